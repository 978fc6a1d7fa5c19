"""Buffers of which a loop touches more and more: what lies behind their front is told in few rows.

Every bound of the loop's accesses is a constant, or moves up by one step an iteration, on one axis. What lies behind
all moving bounds, and between two neighbouring constants, is from then on touched as a whole or not at all. So the
accesses of one op in it can be told by the newest: its stream orders the older ones before that, and where it is
ordered, they are. (Were that wrong, the proof would ask for more than it must, never for less.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dagsched.plan.expressions import Expr, Int, linear_in, names_in, substitute
from dagsched.plan.model import Access, Plan
from dagsched.proof.instances import Box, PlannedSegment


@dataclass(frozen=True, slots=True)
class Growing:
    """The axis, how far bounds move an iteration, the lowest moving one in iteration 0, and all constant ones."""

    axis: int
    step: int
    low: int
    constants: frozenset[int]

    def may_join(self, box: Box, iteration: int) -> bool:
        """Whether accesses from an iteration on touch all of a box on the axis, or none of it."""
        lo, hi = box[self.axis]
        return hi <= self.low + self.step * iteration and not any(lo < at < hi for at in self.constants)

    def settled(self) -> int:
        """From which iteration on no constant lies ahead of a moving bound: before it, no two iterations are alike."""
        return -(-(max(self.constants) - self.low) // self.step)

    def move(self, box: Box, iterations: int) -> Box:
        """Where a box is so many iterations later, if they are like those before."""
        far = self.step * iterations
        lo, hi = (at if at in self.constants else at + far for at in box[self.axis])
        return (*box[: self.axis], (lo, hi), *box[self.axis + 1 :])

    def tell(self, box: Box, iteration: int) -> tuple[object, ...]:
        """A box relative to a settled iteration; while constants lie ahead of it, it is like that of no other one."""
        beyond = max(self.constants)
        moved = self.step * iteration
        ahead = min((at for at in box[self.axis] if at not in self.constants), default=beyond)
        ends = [(0, at) if at in self.constants else (1, at - moved) for at in box[self.axis]]
        told = (*ends, (2, iteration if ahead < beyond else -1))
        return (*box[: self.axis], told, *box[self.axis + 1 :])


def find_growing(
    plan: Plan, segment: PlannedSegment, others: Iterable[PlannedSegment], windows: Mapping[str, object]
) -> dict[str, Growing]:
    """The growing buffers of a loop; those whose region moves as a whole (``windows``) are none."""
    if segment.index is None:
        return {}
    own, elsewhere = _regions(segment), [_regions(other) for other in others]
    found = {}
    for name, regions in own.items():
        if name in windows:
            continue
        axes = {axis for region in regions for axis, part in enumerate(region) if _names(part) & {segment.index}}
        if len(axes) == 1:
            (axis,) = axes
            rest = [region for rows in elsewhere for region in rows.get(name, ())]
            growing = _measure(axis, segment.index, regions, rest, plan.buffers[name].extents[axis])
            if growing is not None:
                found[name] = growing
    return found


_Part = tuple[Expr | None, Expr | None]
_Region = tuple[_Part, ...]


def _regions(segment: PlannedSegment) -> dict[str, list[_Region]]:
    """The regions of every buffer's accesses, with the inner loops' values put in."""
    rows: dict[str, list[_Region]] = {}
    for planned in segment.ops:
        values: dict[str, Expr] = {name: Int(value) for name, value in planned.inner}
        for access in planned.op.accesses:
            rows.setdefault(access.buffer, []).append(_region(access, values))
    return rows


def _region(access: Access, values: Mapping[str, Expr]) -> _Region:
    def put(bound: Expr | None) -> Expr | None:
        return None if bound is None else substitute(bound, values)

    return tuple((put(part.lo), put(part.hi)) for part in access.region)


def _names(part: _Part) -> set[str]:
    return {name for bound in part if bound is not None for name in names_in(bound)}


def _measure(axis: int, index: str, own: list[_Region], others: list[_Region], extent: int) -> Growing | None:
    constants = {0}
    moving: set[tuple[int, int]] = set()
    for rows, here in ((own, True), (others, False)):
        for region in rows:
            for bound in region[axis] if axis < len(region) else ():
                linear = linear_in(bound, index) if bound is not None and here else None
                if bound is None or (isinstance(bound, Int) and bound.value == extent):
                    continue  # no moving bound passes the buffer's end
                if isinstance(bound, Int):
                    constants.add(bound.value)
                elif linear is not None and linear[0] > 0 and isinstance(linear[1], Int):
                    moving.add((linear[0], linear[1].value))
                else:
                    return None
    if len({step for step, _ in moving}) != 1:
        return None
    return Growing(axis, min(moving)[0], min(low for _, low in moving), frozenset(constants))
