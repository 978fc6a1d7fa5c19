"""Accesses as text: ``NAME``, ``NAME@EXPR``, ``NAME[lo:hi]``, ``NAME@EXPR[lo:hi, lo:hi]``; both languages use them.

A name is any text without ``@``, ``[``, ``]`` and characters that no line can hold. A bound is an expression, may be
left out, and may carry a unit of size (``[0:4KiB]``); a single index ``k`` means ``k:k+1``.
"""

from __future__ import annotations

import re

from dagsched.diagnostics import Where
from dagsched.plan.expressions import (
    MAX_MAGNITUDE,
    Binary,
    Call,
    Expr,
    ExpressionError,
    Int,
    add,
    expression_text,
    parse_expression,
)
from dagsched.plan.model import Access, Mode, Slice
from dagsched.plan.units import SIZES, UnitError, nearest_unit, parse_size

MAX_NAME = 200
"""Characters of a name."""

MAX_EXPRESSION = 400
"""Characters of an expression, so that hostile input cannot exhaust the stack."""

_REFUSED = re.compile("[@\\[\\]\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_WITH_UNIT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(\s?)([A-Za-z]+)\b")


class AccessError(ValueError):
    """An access that cannot be read; ``offset`` counts characters in its text."""

    def __init__(self, message: str, offset: int = 0, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message, self.offset, self.remedy = message, offset, remedy


def check_name(name: str, what: str = "a name") -> None:
    """Raise :class:`AccessError` for a text that cannot name a buffer, an op or a function."""
    if not name:
        raise AccessError(f"{what} must not be empty")
    if len(name) > MAX_NAME:
        raise AccessError(f"{what} must not have more than {MAX_NAME} characters, and this has {len(name)}")
    refused = _REFUSED.search(name)
    if refused is not None:
        shown = refused.group() if refused.group() in "@[]" else f"U+{ord(refused.group()):04X}"
        raise AccessError(f"{what} must not contain `{shown}`", refused.start())
    if name != name.strip():
        raise AccessError(f"{what} must not start or end with a space", 0, f'write "{name.strip()}"')


def parse_access(text: str, mode: Mode, where: Where | None = None) -> Access:
    """Read an access; raises :class:`AccessError`. The buffer's existence and bounds are not checked."""
    name, version, region = split_access(text)
    return Access(name, mode, version, region, where)


def split_access(text: str) -> tuple[str, Expr | None, tuple[Slice, ...]]:
    """Buffer, version and region of an access's text; raises :class:`AccessError`."""
    bracket = text.find("[")
    head = text if bracket < 0 else text[:bracket]
    name, version = split_indexed(head)
    return name, version, () if bracket < 0 else _region(text, bracket)


def split_indexed(text: str) -> tuple[str, Expr | None]:
    """Name and index of ``NAME`` or ``NAME@EXPR``; raises :class:`AccessError`."""
    at = text.find("@")
    name = (text if at < 0 else text[:at]).strip()
    try:
        check_name(name)
    except AccessError as error:
        lead = len(text) - len(text.lstrip())
        raise AccessError(error.message, error.offset + lead, error.remedy) from None
    if at < 0:
        return name, None
    if not text[at + 1 :].strip():
        raise AccessError("an expression must follow `@`", at, f"for example `{name}@i-1`")
    return name, _expression(text[at + 1 :], at + 1)


def unit_offset(text: str) -> int | None:
    """Where the first unit of size stands in an access's bounds, or None."""
    bracket = text.find("[")
    if bracket < 0:
        return None
    match = _WITH_UNIT.search(text, bracket)
    return match.start() if match else None


def _region(text: str, bracket: int) -> tuple[Slice, ...]:
    close = text.find("]", bracket)
    if close < 0:
        raise AccessError("the region is not closed", bracket, f"write `{text.rstrip()}]`")
    if text[close + 1 :].strip():
        offset = close + 1 + len(text[close + 1 :]) - len(text[close + 1 :].lstrip())
        remedy = "write the version before the region, as in `x@i-1[0:4]`" if text[offset] == "@" else None
        remedy = "separate axes by commas, as in `x[0:4, 0:8]`" if text[offset] == "[" else remedy
        raise AccessError("nothing may follow the region", offset, remedy)
    if not text[bracket + 1 : close].strip():
        raise AccessError("the region is empty", bracket, "write bounds, as in `[0:4KiB]`, or drop the brackets")
    return tuple(_slice(text[start:end], start) for start, end in _split(text, bracket + 1, close, ","))


def _slice(part: str, offset: int) -> Slice:
    bounds = _split(part, 0, len(part), ":")
    if len(bounds) > 2:
        raise AccessError("a region has no step", offset + bounds[2][0] - 1, "write `lo:hi`")
    if len(bounds) == 1:
        if not part.strip():
            raise AccessError("bounds are missing here", offset, "write `:` for a whole axis")
        index = _bound(part, offset)
        return Slice(index, add(index, 1))
    lo, hi = (None if not part[a:b].strip() else _bound(part[a:b], offset + a) for a, b in bounds)
    return Slice(lo, hi)


def _split(text: str, start: int, end: int, separator: str) -> list[tuple[int, int]]:
    """The parts of ``text[start:end]`` between separators that stand outside parentheses."""
    parts, depth = [], 0
    for position in range(start, end):
        character = text[position]
        if character == "(":
            depth += 1
        elif character == ")":
            depth = max(0, depth - 1)
        elif character == separator and depth == 0:
            parts.append((start, position))
            start = position + 1
    return [*parts, (start, end)]


def _bound(text: str, offset: int) -> Expr:
    """A bound whose numbers may carry units of size."""
    if text.isdecimal():  # as nearly all are in a trace
        return read_expression(text)
    pieces: list[str] = []
    places: list[int] = []  # for each character of the plain text, where it stands in the written one
    position = 0
    for match in _WITH_UNIT.finditer(text):
        plain = str(_bytes(match, offset))
        pieces += [text[position : match.start()], plain]
        places += [*range(position, match.start()), *([match.start()] * len(plain))]
        position = match.end()
    pieces.append(text[position:])
    places += range(position, len(text) + 1)
    try:
        return read_expression("".join(pieces))
    except ExpressionError as error:
        raise AccessError(error.message, offset + places[min(error.offset, len(places) - 1)]) from None


def _bytes(match: re.Match[str], offset: int) -> int:
    number, _, unit = match.groups()
    if unit not in SIZES:
        near = nearest_unit(unit, SIZES)
        remedy = f"write `{number}{near}`" if near else f"units are {', '.join(f'`{known}`' for known in SIZES)}"
        raise AccessError(f"unknown unit `{unit}`", offset + match.start(3), remedy)
    if not number.strip("0."):
        return 0
    try:
        return parse_size(number + unit)
    except UnitError as error:
        raise AccessError(error.message, offset + match.start(), error.remedy) from None


def _expression(text: str, offset: int) -> Expr:
    try:
        return read_expression(text)
    except ExpressionError as error:
        raise AccessError(error.message, offset + error.offset) from None


def read_expression(text: str) -> Expr:
    """``parse_expression`` for texts of files: not too long, and constants in 64 bits; raises ``ExpressionError``."""
    if text.isdecimal() and len(text) <= 18:
        return Int(int(text))
    if len(text) > MAX_EXPRESSION:
        raise ExpressionError(f"an expression must not have more than {MAX_EXPRESSION} characters")
    expr = parse_expression(text)
    if isinstance(expr, Int) and abs(expr.value) > MAX_MAGNITUDE:
        raise ExpressionError("the number does not fit into 64 bits")
    return expr


def shorten(text: str, most: int = MAX_NAME) -> str:
    """The text as a name: without the characters that no name can have, and not too long; may be empty."""
    return _REFUSED.sub("", text).strip()[:most].strip()


def exact_text(expr: Expr) -> str:
    """The text of an expression that reads back as an equal one: the short one, or one with every parenthesis."""
    text = expression_text(expr)
    return text if parse_expression(text) == expr else _parenthesised(expr)


def _parenthesised(expr: Expr) -> str:
    if isinstance(expr, Binary):
        return f"({_parenthesised(expr.left)}{expr.op}{_parenthesised(expr.right)})"
    if isinstance(expr, Call):
        return f"{expr.function}({', '.join(_parenthesised(argument) for argument in expr.args)})"
    return expression_text(expr)


def access_text(access: Access) -> str:
    """The text of an access, which reads back as an equal one (bounds in plain numbers)."""
    version = "" if access.version is None else f"@{exact_text(access.version)}"
    region = f"[{', '.join(slice_text(part) for part in access.region)}]" if access.region else ""
    return f"{access.buffer}{version}{region}"


def slice_text(part: Slice) -> str:
    """``lo:hi``, with open ends left out."""
    lo = "" if part.lo is None else exact_text(part.lo)
    hi = "" if part.hi is None else exact_text(part.hi)
    return f"{lo}:{hi}"
