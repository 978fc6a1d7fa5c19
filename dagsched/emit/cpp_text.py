"""C++ as text: integer expressions, and statements laid out in lines of at most 120 characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dagsched.plan.expressions import Call, Condition, Expr, Int, Name

WIDTH = 120

_LEVEL = {"+": 1, "-": 1, "*": 2}


def cpp_expression(expr: Expr, names: Mapping[str, str], level: int = 0) -> str:
    """An expression over ``int64_t``; ``names`` maps indices and parameters to identifiers.

    ``//`` and ``%`` become ``floor_div`` and ``floor_mod``: C++ rounds towards zero.
    """
    if isinstance(expr, Int):
        return str(expr.value) if expr.value >= 0 or level == 0 else f"({expr.value})"
    if isinstance(expr, Name):
        return names[expr.name]
    if isinstance(expr, Call):
        arguments = ", ".join(cpp_expression(argument, names) for argument in expr.args)
        return f"std::{expr.function}<int64_t>({{{arguments}}})"
    if expr.op in ("//", "%"):
        function = "floor_div" if expr.op == "//" else "floor_mod"
        return f"{function}({cpp_expression(expr.left, names)}, {cpp_expression(expr.right, names)})"
    own = _LEVEL[expr.op]
    if expr.op == "-" and expr.left == Int(0):
        text, own = f"-{cpp_expression(expr.right, names, 3)}", 0
        return f"({text})" if level else text
    text = f"{cpp_expression(expr.left, names, own)} {expr.op} {cpp_expression(expr.right, names, own + 1)}"
    return f"({text})" if own < level else text


def cpp_condition(condition: Condition, names: Mapping[str, str]) -> str:
    """Comparisons joined by ``&&``."""
    return " && ".join(f"{cpp_expression(c.left, names)} {c.op} {cpp_expression(c.right, names)}" for c in condition)


@dataclass(frozen=True, slots=True)
class Invocation:
    """``head(arguments)``, which can be broken behind any comma."""

    head: str
    arguments: tuple[str | Invocation, ...]

    def __str__(self) -> str:
        return f"{self.head}({', '.join(str(argument) for argument in self.arguments)})"


def lay_out_call(call: Invocation, indent: int, tail: str = ";", lead: str = "") -> list[str]:
    """The lines of ``lead head(arguments)tail``; arguments that do not fit are aligned with the first."""
    text = f"{' ' * indent}{lead}{call}{tail}"
    if len(text) <= WIDTH:
        return [text]
    return _fill(call, " " * indent + lead, tail)


def _fill(call: Invocation, start: str, tail: str) -> list[str]:
    lines = [f"{start}{call.head}("]
    column = len(lines[0])
    if column > WIDTH // 2:  # too far right to align with: go on in the next line
        column = len(start) - len(start.lstrip()) + 4
        lines.append(" " * column)
    for number, argument in enumerate(call.arguments):
        last = number == len(call.arguments) - 1
        text = f"{argument}{f'){tail}' if last else ','}"
        gap = "" if lines[-1].endswith("(") or not lines[-1].strip() else " "
        if len(lines[-1]) + len(gap) + len(text) <= WIDTH:
            lines[-1] += gap + text
            continue
        if lines[-1].strip() and not lines[-1].endswith("("):
            lines.append(" " * column)
        if isinstance(argument, Invocation) and len(lines[-1]) + len(text) > WIDTH:
            lines[-1:] = _fill(argument, lines[-1], f"){tail}" if last else ",")
        else:
            lines[-1] += text
    if not call.arguments:
        lines[-1] += f"){tail}"
    return lines


def comment(text: str, indent: int, width: int = WIDTH) -> list[str]:
    """``//`` lines; the text must be safe already (``names.cpp_comment``). Words are never split."""
    prefix = " " * indent + "// "
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        if current and len(prefix) + len(current) + 1 + len(word) > width:
            lines.append(prefix + current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, prefix + current]


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as columns, two spaces apart."""
    if not rows:
        return []
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
