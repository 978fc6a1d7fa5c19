"""Expressions as Python functions of the loop index: what a stream evaluates again and again.

``params`` is looked up when the function is called, so that one set of functions serves all runs; a parameter whose
count is not known yet (a source that has not ended) raises :class:`KeyError`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from dagsched.plan.expressions import Binary, Call, Condition, Expr, Int, Name, linear_in

Number = Callable[[int], int]
"""The value for a given loop index (anything outside loops)."""

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def offset_of(expr: Expr | None, index: str | None) -> int | None:
    """``c`` where the expression is the index plus the constant c, else None."""
    if expr is None or index is None:
        return None
    linear = linear_in(expr, index)
    if linear is None or linear[0] != 1 or not isinstance(linear[1], Int):
        return None
    return linear[1].value


def as_number(expr: Expr, index: str | None, params: Mapping[str, int]) -> Number:
    """A function that computes the expression."""
    if isinstance(expr, Int):
        value = expr.value
        return lambda i: value
    if isinstance(expr, Name):
        name = expr.name
        if name == index:
            return lambda i: i
        return lambda i: params[name]
    offset = offset_of(expr, index)
    if offset is not None:
        return lambda i: i + offset
    if isinstance(expr, Call):
        parts = [as_number(argument, index, params) for argument in expr.args]
        choose: Callable[[list[int]], int] = min if expr.function == "min" else max
        return lambda i: choose([part(i) for part in parts])
    assert isinstance(expr, Binary)
    left, right = as_number(expr.left, index, params), as_number(expr.right, index, params)
    compute = _ARITHMETIC[expr.op]
    return lambda i: compute(left(i), right(i))


def as_test(condition: Condition, index: str | None, params: Mapping[str, int]) -> Callable[[int], bool] | None:
    """A function that says whether a condition holds, None for the empty one; an unknown count makes it hold."""
    if not condition:
        return None
    parts = [(_COMPARE[c.op], as_number(c.left, index, params), as_number(c.right, index, params)) for c in condition]

    def holds(i: int) -> bool:
        for compare, left, right in parts:
            try:
                if not compare(left(i), right(i)):
                    return False
            except KeyError:  # the count is not known yet
                continue
        return True

    return holds
