"""Integer expressions of the two languages: versions, regions, counts and guards.

Grammar: integers, names (a loop index or a parameter), ``+ - * // %``, ``min(...)``, ``max(...)``, parentheses;
a condition compares two expressions (``== != < <= > >=``) and may join comparisons with ``and``.
``//`` and ``%`` round towards minus infinity, as in Python, so ``-1 % 2`` is 1 and ring handles need no care.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

MAX_DEPTH = 64
"""Parentheses deeper than this are refused, so that hostile input cannot exhaust the stack."""

MAX_MAGNITUDE = 2**63 - 1
"""Values are 64-bit signed in every emitted program; larger literals are refused."""


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; ``offset`` counts characters from 0 in its text."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Int:
    value: int


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Binary:
    """``op`` is one of ``+ - * // %``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Call:
    """``function`` is ``min`` or ``max``."""

    function: str
    args: tuple[Expr, ...]


Expr = Int | Name | Binary | Call


@dataclass(frozen=True, slots=True)
class Comparison:
    """``op`` is one of ``== != < <= > >=``."""

    left: Expr
    op: str
    right: Expr


Condition = tuple[Comparison, ...]
"""Comparisons that must all hold; the empty condition always holds."""

_TOKEN = re.compile(r"\s*(?:(\d+)|([^\W\d]\w*)|(//|==|!=|<=|>=|[-+*%(),<>]))")
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        self.at = 0
        self.depth = 0
        position = 0
        end = len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                offset = position + len(text[position:]) - len(text[position:].lstrip())
                raise ExpressionError(f"unexpected `{text[offset]}`", offset)
            self.tokens.append((match.group(match.lastindex or 0), match.start(match.lastindex or 0)))
            position = match.end()

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def offset(self) -> int:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        if self.peek() != token:
            found = f"`{self.peek()}`" if self.peek() else "the end"
            raise ExpressionError(f"expected `{token}` and found {found}", self.offset())
        self.at += 1

    def sum(self) -> Expr:
        left = self.product()
        while self.peek() in ("+", "-"):
            op = self.take()
            left = _fold(op, left, self.product())
        return left

    def product(self) -> Expr:
        left = self.unary()
        while self.peek() in ("*", "//", "%"):
            op, offset = self.take(), self.offset()
            right = self.unary()
            if op in ("//", "%") and right == Int(0):
                raise ExpressionError(f"`{op}` by zero", offset)
            left = _fold(op, left, right)
        return left

    def unary(self) -> Expr:
        negative = False
        while self.peek() in ("-", "+"):
            negative ^= self.take() == "-"
        value = self.atom()
        return _fold("-", Int(0), value) if negative else value

    def atom(self) -> Expr:
        token, offset = self.peek(), self.offset()
        if token.isdecimal():
            self.at += 1
            value = int(token) if len(token) <= 20 else MAX_MAGNITUDE + 1
            if value > MAX_MAGNITUDE:
                raise ExpressionError("the number does not fit into 64 bits", offset)
            return Int(value)
        if token in ("min", "max") and self.tokens[self.at + 1 : self.at + 2] and self.tokens[self.at + 1][0] == "(":
            self.at += 1
            return Call(token, self.arguments())
        if token == "(":
            return self.parenthesised()
        if token and (token[0].isalpha() or token[0] == "_"):
            self.at += 1
            return Name(token)
        found = f"`{token}`" if token else "the end"
        raise ExpressionError(f"expected a number, a name or `(` and found {found}", offset)

    def parenthesised(self) -> Expr:
        self.deeper()
        self.expect("(")
        value = self.sum()
        self.expect(")")
        self.depth -= 1
        return value

    def arguments(self) -> tuple[Expr, ...]:
        self.deeper()
        self.expect("(")
        values = [self.sum()]
        while self.peek() == ",":
            self.at += 1
            values.append(self.sum())
        self.expect(")")
        self.depth -= 1
        return tuple(values)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"parentheses nest deeper than {MAX_DEPTH}", self.offset())

    def done(self) -> None:
        if self.at < len(self.tokens):
            raise ExpressionError(f"unexpected `{self.peek()}`", self.offset())


def _fold(op: str, left: Expr, right: Expr) -> Expr:
    """Build a binary node; constants are folded so that equal texts of equal meaning compare equal."""
    if isinstance(left, Int) and isinstance(right, Int) and not (op in ("//", "%") and right.value == 0):
        return Int(_ARITHMETIC[op](left.value, right.value))
    if op in ("+", "-") and right == Int(0):
        return left
    if op == "+" and left == Int(0):
        return right
    if op == "*" and right == Int(1):
        return left
    if op == "*" and left == Int(1):
        return right
    if op in ("+", "-") and isinstance(right, Int) and right.value < 0:
        return Binary("-" if op == "+" else "+", left, Int(-right.value))
    return Binary(op, left, right)


def add(left: Expr, right: Expr | int) -> Expr:
    """``left + right``, with constants gathered on the right (``i - 1 + 2`` becomes ``i + 1``)."""
    right = Int(right) if isinstance(right, int) else right
    if isinstance(right, Int) and isinstance(left, Binary) and isinstance(left.right, Int) and left.op in ("+", "-"):
        constant = left.right.value if left.op == "+" else -left.right.value
        return _fold("+", left.left, Int(constant + right.value))
    return _fold("+", left, right)


def combine(op: str, left: Expr, right: Expr) -> Expr:
    """``left op right`` for one of ``+ - * // %``, constants folded."""
    return _fold(op, left, right)


def parse_expression(text: str) -> Expr:
    """Read an expression; raises :class:`ExpressionError` with the offset of the fault."""
    parser = _Parser(text)
    value = parser.sum()
    parser.done()
    return value


def parse_condition(text: str) -> Condition:
    """Read ``a < b and c == d``; raises :class:`ExpressionError`."""
    parser = _Parser(text)
    comparisons = []
    while True:
        left = parser.sum()
        op = parser.peek()
        if op not in _COMPARE:
            raise ExpressionError("expected a comparison (`==`, `!=`, `<`, `<=`, `>`, `>=`)", parser.offset())
        parser.at += 1
        comparisons.append(Comparison(left, op, parser.sum()))
        if parser.peek() != "and":
            break
        parser.at += 1
    parser.done()
    return tuple(comparisons)


def evaluate(expr: Expr, env: Mapping[str, int]) -> int:
    """The value of an expression; raises :class:`ExpressionError` for unknown names and division by zero."""
    if isinstance(expr, Int):
        return expr.value
    if isinstance(expr, Name):
        try:
            return env[expr.name]
        except KeyError:
            raise ExpressionError(f"`{expr.name}` has no value here") from None
    if isinstance(expr, Call):
        values = [evaluate(argument, env) for argument in expr.args]
        return min(values) if expr.function == "min" else max(values)
    left, right = evaluate(expr.left, env), evaluate(expr.right, env)
    if expr.op in ("//", "%") and right == 0:
        raise ExpressionError(f"`{expr.op}` by zero")
    return _ARITHMETIC[expr.op](left, right)


def holds(condition: Condition, env: Mapping[str, int]) -> bool:
    """Whether every comparison of a condition holds."""
    return not condition or all(_COMPARE[c.op](evaluate(c.left, env), evaluate(c.right, env)) for c in condition)


def names_in(expr: Expr) -> frozenset[str]:
    """The names that an expression uses."""
    if isinstance(expr, Name):
        return frozenset((expr.name,))
    if isinstance(expr, Binary):
        return names_in(expr.left) | names_in(expr.right)
    if isinstance(expr, Call):
        return frozenset().union(*(names_in(argument) for argument in expr.args))
    return frozenset()


def find_divisor(expr: Expr) -> Expr | None:
    """The first divisor of `//` or `%` that is no number, and so may turn out as 0."""
    if isinstance(expr, Binary):
        if expr.op in ("//", "%") and not isinstance(expr.right, Int):
            return expr.right
        return find_divisor(expr.left) or find_divisor(expr.right)
    if isinstance(expr, Call):
        return next((found for argument in expr.args if (found := find_divisor(argument)) is not None), None)
    return None


def names_in_condition(condition: Condition) -> frozenset[str]:
    """The names that a condition uses."""
    return frozenset().union(*(names_in(c.left) | names_in(c.right) for c in condition))


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace names by expressions, folding constants."""
    if isinstance(expr, Name):
        return values.get(expr.name, expr)
    if isinstance(expr, Binary):
        left, right = substitute(expr.left, values), substitute(expr.right, values)
        if expr.op in ("+", "-") and isinstance(right, Int):
            return add(left, right.value if expr.op == "+" else -right.value)
        return _fold(expr.op, left, right)
    if isinstance(expr, Call):
        args = tuple(substitute(argument, values) for argument in expr.args)
        if all(isinstance(argument, Int) for argument in args):
            return Int(evaluate(Call(expr.function, args), {}))
        return Call(expr.function, args)
    return expr


def substitute_condition(condition: Condition, values: Mapping[str, Expr]) -> Condition:
    """Replace names in a condition by expressions."""
    return tuple(Comparison(substitute(c.left, values), c.op, substitute(c.right, values)) for c in condition)


def linear_in(expr: Expr, index: str) -> tuple[int, Expr] | None:
    """``(c, rest)`` with ``expr == c*index + rest``, ``rest`` free of the index; None where no such pair is seen."""
    if index not in names_in(expr):
        return 0, expr
    if isinstance(expr, Name):
        return 1, Int(0)
    if isinstance(expr, Binary):
        left, right = linear_in(expr.left, index), linear_in(expr.right, index)
        if left is None or right is None:
            return None
        if expr.op == "+":
            return left[0] + right[0], _fold("+", left[1], right[1])
        if expr.op == "-":
            return left[0] - right[0], _fold("-", left[1], right[1])
        if expr.op == "*" and isinstance(expr.right, Int):
            return left[0] * expr.right.value, _fold("*", left[1], expr.right)
        if expr.op == "*" and isinstance(expr.left, Int):
            return right[0] * expr.left.value, _fold("*", right[1], expr.left)
    return None


_LEVEL = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}


def expression_text(expr: Expr) -> str:
    """The text of an expression, which reads back as an equal one."""
    return _text(expr, 0)


def _text(expr: Expr, level: int) -> str:
    if isinstance(expr, Int):
        return str(expr.value) if expr.value >= 0 or level == 0 else f"({expr.value})"
    if isinstance(expr, Name):
        return expr.name
    if isinstance(expr, Call):
        return f"{expr.function}({', '.join(_text(argument, 0) for argument in expr.args)})"
    own = _LEVEL[expr.op]
    text = f"{_text(expr.left, own)}{_spaced(expr.op)}{_text(expr.right, own + 1)}"
    if expr.left == Int(0) and expr.op == "-":
        text = f"-{_text(expr.right, 3)}"
        own = 0 if level else own
    return f"({text})" if own < level else text


def _spaced(op: str) -> str:
    return op if op in ("+", "-", "*", "//", "%") else f" {op} "


def condition_text(condition: Condition) -> str:
    """The text of a condition, which reads back as an equal one."""
    return " and ".join(f"{expression_text(c.left)} {c.op} {expression_text(c.right)}" for c in condition)


def all_of(conditions: Iterable[Condition]) -> Condition:
    """The condition that holds where all of the given ones do, each comparison once."""
    return tuple(dict.fromkeys(comparison for condition in conditions for comparison in condition))
