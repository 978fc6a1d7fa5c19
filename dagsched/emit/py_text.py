"""Python as text: integer expressions, literals, comments, and statements laid out as ``ruff format`` leaves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dagsched.emit.cpp_text import WIDTH, Invocation
from dagsched.emit.names import printable
from dagsched.plan.expressions import Call, Condition, Expr, Int, Name

_LEVEL = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}


def py_expression(expr: Expr, names: Mapping[str, str], level: int = 0) -> str:
    """An expression over ``int``; ``//`` and ``%`` mean in Python what they mean in plans."""
    if isinstance(expr, Int):
        return str(expr.value) if expr.value >= 0 or level == 0 else f"({expr.value})"
    if isinstance(expr, Name):
        return names[expr.name]
    if isinstance(expr, Call):
        return f"{expr.function}({', '.join(py_expression(argument, names) for argument in expr.args)})"
    if expr.op == "-" and expr.left == Int(0):
        text = f"-{py_expression(expr.right, names, 3)}"
        return f"({text})" if level else text
    own = _LEVEL[expr.op]
    text = f"{py_expression(expr.left, names, own)} {expr.op} {py_expression(expr.right, names, own + 1)}"
    return f"({text})" if own < level else text


def py_condition(condition: Condition, names: Mapping[str, str]) -> list[str]:
    """Comparisons, all of which must hold."""
    return [f"{py_expression(c.left, names)} {c.op} {py_expression(c.right, names)}" for c in condition]


def py_string(text: str) -> str:
    """A string literal that holds the text, in ASCII; double quotes unless single ones need fewer escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_escape(letter, quote) for letter in text) + quote


def _escape(letter: str, quote: str) -> str:
    if letter in (quote, "\\"):
        return f"\\{letter}"
    code = ord(letter)
    if 0x20 <= code < 0x7F:
        return letter
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def py_comment(text: str, indent: int) -> list[str]:
    """``#`` lines; words are never split."""
    return wrap(printable(text), " " * indent + "# ")


def py_doc(text: str, indent: int) -> list[str]:
    """A docstring, which must end in a full stop or the like."""
    safe = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    pad = " " * indent
    lines = wrap(safe, pad, first=pad + '"""')
    if len(lines) == 1 and len(lines[0]) + 3 <= WIDTH:
        return [f'{lines[0]}"""']
    return [*lines, f'{pad}"""']


def wrap(text: str, prefix: str, first: str | None = None) -> list[str]:
    """Lines of at most 120 characters, where words allow it."""
    lines: list[str] = []
    current = first if first is not None else prefix
    empty = True
    for word in text.split(" "):
        gap = "" if empty else " "
        if not empty and len(current) + 1 + len(word) > WIDTH:
            lines.append(current.rstrip())
            current, gap = prefix, ""
        current += gap + word
        empty = False
    return [*lines, current.rstrip()]


def py_call(call: Invocation, indent: int, lead: str = "", tail: str = "") -> list[str]:
    """The lines of ``lead head(arguments) tail``: one, else three, else one argument a line."""
    return list(_lay_out(call, " " * indent, lead, tail))


def _lay_out(call: Invocation, pad: str, lead: str, tail: str) -> Iterator[str]:
    one = f"{pad}{lead}{call}{tail}"
    if len(one) <= WIDTH or not call.arguments:
        yield one
        return
    yield f"{pad}{lead}{call.head}("
    inner = pad + "    "
    together = inner + ", ".join(str(argument) for argument in call.arguments)
    if len(together) <= WIDTH:
        yield together
    else:
        for argument in call.arguments:
            if isinstance(argument, Invocation):
                yield from _lay_out(argument, inner, "", ",")
            else:
                yield f"{inner}{argument},"
    yield f"{pad}){tail}"


def py_if(conditions: Sequence[str], indent: int) -> list[str]:
    """The head of an ``if`` whose conditions must all hold."""
    pad = " " * indent
    one = f"{pad}if {' and '.join(conditions)}:"
    if len(one) <= WIDTH:
        return [one]
    together = f"{pad}    {' and '.join(conditions)}"
    if len(together) <= WIDTH:
        return [f"{pad}if (", together, f"{pad}):"]
    rows = [f"{pad}    {'and ' if number else ''}{condition}" for number, condition in enumerate(conditions)]
    return [f"{pad}if (", *rows, f"{pad}):"]
