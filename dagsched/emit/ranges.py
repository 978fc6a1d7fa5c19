"""Arithmetic on expressions: differences in lowest terms, and the range of values that an expression can take.

Emitted programs compute with 64-bit integers. Ranges say which bounds need no check when the program runs, and how
large loop counts may be before anything could overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dagsched.plan.expressions import MAX_MAGNITUDE, Binary, Call, Expr, Int, Name, combine

Range = tuple[int, int]
"""The least and the greatest value, both possible."""

LARGEST_COUNT = 2**53
"""No program is allowed more iterations than this, overflow or not."""


def subtract(left: Expr, right: Expr) -> Expr:
    """``left - right`` with equal terms cancelled: ``(i*32 + 32) - i*32`` is 32, ``min(i*32 + 32, n) - i*32`` is
    ``min(32, n - i*32)``.
    """
    terms, constant = _terms(left)
    others, other = _terms(right)
    for term, factor in others.items():
        terms[term] = terms.get(term, 0) - factor
    terms = {term: factor for term, factor in terms.items() if factor}
    clamps = [term for term in terms if isinstance(term, Call)]
    if len(clamps) == 1 and len(terms) > 1 and abs(terms[clamps[0]]) == 1:
        return _move_into(clamps[0], terms, constant - other)
    return _sum(terms, constant - other)


def _move_into(clamp: Call, terms: Mapping[Expr, int], constant: int) -> Expr:
    """``min(a, b) + rest`` as ``min(a + rest, b + rest)``, where terms may cancel; ``-min`` is ``max`` of negatives."""
    rest = _sum({term: factor for term, factor in terms.items() if term != clamp}, constant)
    if terms[clamp] > 0:
        return Call(clamp.function, tuple(plus(argument, rest) for argument in clamp.args))
    other = "max" if clamp.function == "min" else "min"
    return Call(other, tuple(subtract(rest, argument) for argument in clamp.args))


def scale(expr: Expr, factor: int) -> Expr:
    """``expr * factor`` with the factor taken into each term."""
    terms, constant = _terms(expr)
    return _sum({term: value * factor for term, value in terms.items()}, constant * factor)


def plus(left: Expr, right: Expr) -> Expr:
    """``left + right`` with equal terms gathered."""
    return subtract(left, scale(right, -1))


def _terms(expr: Expr) -> tuple[dict[Expr, int], int]:
    """An expression as a sum of terms with factors, and a constant."""
    if isinstance(expr, Int):
        return {}, expr.value
    if isinstance(expr, Binary) and expr.op in "+-":
        terms, constant = _terms(expr.left)
        others, other = _terms(expr.right)
        sign = 1 if expr.op == "+" else -1
        for term, factor in others.items():
            terms[term] = terms.get(term, 0) + sign * factor
        return terms, constant + sign * other
    if isinstance(expr, Binary) and expr.op == "*":
        for one, other_side in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(one, Int):
                terms, constant = _terms(other_side)
                return {term: factor * one.value for term, factor in terms.items()}, constant * one.value
    return {expr: 1}, 0


def _sum(terms: Mapping[Expr, int], constant: int) -> Expr:
    kept = [(term, factor) for term, factor in terms.items() if factor]
    total: Expr | None = None
    if constant > 0 and all(factor < 0 for _, factor in kept):
        total, constant = Int(constant), 0
    for term, factor in sorted(kept, key=lambda pair: pair[1] < 0):  # what is added first: no leading minus
        product = combine("*", term, Int(abs(factor)))
        if total is None:
            total = product if factor > 0 else combine("-", Int(0), product)
        else:
            total = combine("+" if factor > 0 else "-", total, product)
    return Int(constant) if total is None else combine("+", total, Int(constant))


def range_of(expr: Expr, names: Mapping[str, Range]) -> Range:
    """Bounds on the value of an expression, given those of its names; a divisor that can be 0 gives no bounds.

    Raises ZeroDivisionError for such a divisor.
    """
    if isinstance(expr, Int):
        return expr.value, expr.value
    if isinstance(expr, Name):
        return names[expr.name]
    if isinstance(expr, Call):
        parts = [range_of(argument, names) for argument in expr.args]
        pick = min if expr.function == "min" else max
        return pick(low for low, _ in parts), pick(high for _, high in parts)
    low, high = range_of(expr.left, names)
    other_low, other_high = range_of(expr.right, names)
    if expr.op == "+":
        return low + other_low, high + other_high
    if expr.op == "-":
        return low - other_high, high - other_low
    if expr.op in ("//", "%") and other_low <= 0 <= other_high:
        raise ZeroDivisionError
    if expr.op == "%":
        return (0, other_high - 1) if other_low > 0 else (other_low + 1, 0)
    corners = [(a * b if expr.op == "*" else a // b) for a in (low, high) for b in (other_low, other_high)]
    return min(corners), max(corners)


def parts_of(expr: Expr) -> Iterable[Expr]:
    """An expression and everything in it: each is a value that the program computes."""
    yield expr
    if isinstance(expr, Binary):
        yield from parts_of(expr.left)
        yield from parts_of(expr.right)
    elif isinstance(expr, Call):
        for argument in expr.args:
            yield from parts_of(argument)


def fits(expr: Expr, names: Mapping[str, Range]) -> bool:
    """Whether no step of an expression leaves 64 bits."""
    return all(
        low >= -MAX_MAGNITUDE and high <= MAX_MAGNITUDE
        for low, high in (range_of(part, names) for part in parts_of(expr))
    )
