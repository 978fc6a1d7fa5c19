"""Regions as boxes: the part of a buffer that an access touches, as half-open bounds on every axis.

A buffer with a ``shape`` has one axis per dimension (in elements), any other has a single axis of bytes. A box always
bounds every axis, so two boxes of one buffer overlap exactly where all their intervals do.
"""

from __future__ import annotations

from collections.abc import Mapping

from dagsched.plan.expressions import Call, Expr, evaluate, linear_in, names_in
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


def step_of(expr: Expr | None, index: str) -> int | None:
    """By how much a bound moves from one iteration to the next; clamps (``min``, ``max``) are seen through.

    None where it does not move evenly.
    """
    if expr is None or index not in names_in(expr):
        return 0
    if isinstance(expr, Call):
        steps = {step_of(argument, index) for argument in expr.args} - {0}
        return steps.pop() if len(steps) == 1 else None
    linear = linear_in(expr, index)
    return linear[0] if linear is not None else None


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
