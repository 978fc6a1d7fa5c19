"""Regions as boxes: the part of a buffer that an access touches, as half-open bounds on every axis.

A buffer with a ``shape`` has one axis per dimension (in elements), any other has a single axis of bytes. A box always
bounds every axis, so two boxes of one buffer overlap exactly where all their intervals do.
"""

from __future__ import annotations

from collections.abc import Mapping

from dagsched.plan.expressions import Binary, Call, Expr, Int, evaluate, linear_in, names_in
from dagsched.plan.model import Access, Buffer

Box = tuple[tuple[int, int], ...]


def whole_box(buffer: Buffer) -> Box:
    """The box of all of a buffer."""
    return tuple((0, extent) for extent in buffer.extents)


def box_of(access: Access, buffer: Buffer, env: Mapping[str, int]) -> Box:
    """The box that an access touches, for given values of loop indices and parameters; bounds are not checked."""
    if not access.region:
        return whole_box(buffer)
    bounds = []
    for axis, extent in enumerate(buffer.extents):
        if axis < len(access.region):
            part = access.region[axis]
            lo = 0 if part.lo is None else evaluate(part.lo, env)
            hi = extent if part.hi is None else evaluate(part.hi, env)
            bounds.append((lo, hi))
        else:
            bounds.append((0, extent))
    return tuple(bounds)


def is_inside(box: Box, buffer: Buffer) -> bool:
    """Whether a box is non-empty and lies within its buffer."""
    return all(0 <= lo < hi <= extent for (lo, hi), extent in zip(box, buffer.extents, strict=True))


def intersect(a: Box, b: Box) -> Box | None:
    """What two boxes share, or None."""
    shared = []
    for (a_lo, a_hi), (b_lo, b_hi) in zip(a, b, strict=True):
        lo, hi = max(a_lo, b_lo), min(a_hi, b_hi)
        if lo >= hi:
            return None
        shared.append((lo, hi))
    return tuple(shared)


def subtract(a: Box, b: Box) -> list[Box]:
    """The parts of ``a`` outside ``b``, as disjoint boxes (at most two per axis)."""
    if intersect(a, b) is None:
        return [a]
    parts: list[Box] = []
    rest = list(a)
    for axis, ((a_lo, a_hi), (b_lo, b_hi)) in enumerate(zip(a, b, strict=True)):
        if a_lo < b_lo:
            parts.append((*rest[:axis], (a_lo, b_lo), *rest[axis + 1 :]))
        if b_hi < a_hi:
            parts.append((*rest[:axis], (b_hi, a_hi), *rest[axis + 1 :]))
        rest[axis] = (max(a_lo, b_lo), min(a_hi, b_hi))
    return parts


def join(a: Box, b: Box) -> Box | None:
    """The box that two make up where ``b`` begins on one axis where ``a`` ends, and they agree on all others."""
    differing = [axis for axis, (one, other) in enumerate(zip(a, b, strict=True)) if one != other]
    if len(differing) != 1 or a[differing[0]][1] != b[differing[0]][0]:
        return None
    axis = differing[0]
    return (*a[:axis], (a[axis][0], b[axis][1]), *a[axis + 1 :])


def unclamp(bound: Expr | None, extent: int) -> Expr | None:
    """An upper bound without a `min` that only keeps it inside its buffer: there is nothing beyond, clamped or not."""
    if isinstance(bound, Call) and bound.function == "min":
        rest = [argument for argument in bound.args if not (isinstance(argument, Int) and argument.value >= extent)]
        return rest[0] if len(rest) == 1 else bound
    return bound


def comes_back(bound: Expr | None, index: str) -> bool:
    """Whether a bound has the same values again some iterations later: the index stands in `%` only."""
    if bound is None or index not in names_in(bound):
        return True
    if isinstance(bound, Call):
        return all(comes_back(argument, index) for argument in bound.args)
    if isinstance(bound, Binary):
        if bound.op == "%" and isinstance(bound.right, Int) and linear_in(bound.left, index) is not None:
            return True
        return comes_back(bound.left, index) and comes_back(bound.right, index)
    return False


def moves_with(access: Access, index: str) -> bool:
    """Whether the region of an access depends on a loop index."""
    bounds = (bound for part in access.region for bound in (part.lo, part.hi) if bound is not None)
    return any(index in names_in(bound) for bound in bounds)


def largest_count(access: Access, buffer: Buffer, index: str, ceiling: int) -> int:
    """The most iterations (up to ``ceiling``) for which a moving region stays inside its buffer from 0 on.

    Bounds are piecewise linear in the index, so the first iteration that leaves the buffer is found by doubling and
    bisection once the single steps have been tried.
    """

    def inside(i: int) -> bool:
        return is_inside(box_of(access, buffer, {index: i}), buffer)

    if any(names_in(b) - {index} for p in access.region for b in (p.lo, p.hi) if b is not None):
        return ceiling
    if not inside(0):
        return 0
    step = 1
    while step < ceiling and inside(step):
        step *= 2
    low, high = step // 2, min(step, ceiling)
    if inside(min(step, ceiling)):
        return ceiling
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return high
