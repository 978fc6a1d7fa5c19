"""How an expression moves with a loop index: after how many iterations it has grown by a constant.

Invariant: with (period p, growth d) every value of the index i has expr(i + p) == expr(i) + d.
"""

from __future__ import annotations

from math import gcd, lcm

from dagsched.plan.expressions import Binary, Call, Expr, Int, Name, names_in

Movement = tuple[int, int]
"""Period and growth: after so many iterations the expression has grown by so much."""


def movement_of(expr: Expr, index: str) -> Movement | None:
    """The movement of an expression; None where it has none (a clamp, a product with another parameter)."""
    if index not in names_in(expr):
        return 1, 0
    if isinstance(expr, Name):
        return 1, 1
    if isinstance(expr, Int):
        return 1, 0
    if isinstance(expr, Call):
        return _clamp(expr, index)
    left, right = movement_of(expr.left, index), movement_of(expr.right, index)
    if left is None or right is None:
        return None
    if expr.op in ("+", "-"):
        period = lcm(left[0], right[0])
        sign = 1 if expr.op == "+" else -1
        return period, _over(left, period) + sign * _over(right, period)
    return _scaled(expr, left, right)


def _over(movement: Movement, period: int) -> int:
    """The growth over a multiple of the movement's period."""
    return movement[1] * (period // movement[0])


def _clamp(expr: Call, index: str) -> Movement | None:
    """Arguments that grow alike stay in the same order."""
    moves = [movement_of(argument, index) for argument in expr.args]
    known = [move for move in moves if move is not None]
    if len(known) != len(moves):
        return None
    period = lcm(*(move[0] for move in known))
    growths = {_over(move, period) for move in known}
    return (period, growths.pop()) if len(growths) == 1 else None


def _scaled(expr: Binary, left: Movement, right: Movement) -> Movement | None:
    """Products, quotients and remainders by constants."""
    if expr.op == "*":
        for factor, move in ((expr.right, left), (expr.left, right)):
            if isinstance(factor, Int):
                return move[0], move[1] * factor.value
        return (lcm(left[0], right[0]), 0) if left[1] == right[1] == 0 else None
    if left[1] == right[1] == 0:
        return lcm(left[0], right[0]), 0
    if not isinstance(expr.right, Int) or expr.right.value == 0:
        return None
    divisor = abs(expr.right.value)
    times = divisor // gcd(left[1], divisor)
    period, growth = left[0] * times, left[1] * times
    return (period, growth // expr.right.value) if expr.op == "//" else (period, 0)


def repeat_after(expr: Expr, index: str, modulus: int) -> int | None:
    """After how many iterations an expression has the same value modulo ``modulus`` (0: the very same value)."""
    movement = movement_of(expr, index)
    if movement is None:
        return None
    period, growth = movement
    if growth == 0:
        return period
    if modulus == 0:
        return None
    return period * (modulus // gcd(growth, modulus))
