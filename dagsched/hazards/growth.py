"""Buffers of which a loop touches more and more: the history of their older part is kept in few pieces.

``kv[0:t+1]`` reads all that earlier iterations have written. Each of them left a piece of its own, though from then on
all of these are touched together or not at all: the bounds of later accesses lie at a few constants, or at the moving
front. Pieces that no later bound can part, with the same phases, become one; of each op the newest instance stands.
State is told relative to the front, so that it comes back although the part behind it grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dagsched.plan.expressions import Int, linear_in, names_in
from dagsched.plan.model import Access, Buffer, Plan
from dagsched.plan.regions import Box
from dagsched.plan.segments import Segment


@dataclass(frozen=True, slots=True)
class Growth:
    """On ``axis`` all bounds of a loop's accesses are among ``cuts``, or ``step`` further in each iteration.

    ``low`` is the lowest moving bound in round 0 (with shifted ops: that of the latest one). Bounds of other segments
    are among ``cuts``, which are sorted.
    """

    axis: int
    step: int
    low: int
    cuts: tuple[int, ...]

    def front(self, iteration: int) -> int:
        """Below this, later bounds stand at ``cuts`` only."""
        return self.step * iteration + self.low

    def settled(self) -> int:
        """From which round on no cut lies ahead of a moving bound: before it, no two rounds are alike."""
        return -(-(max(self.cuts, default=0) - self.low) // self.step)

    def is_one(self, box: Box, iteration: int) -> bool:
        """Whether every access from an iteration on touches all of a box on the axis, or nothing."""
        lo, hi = box[self.axis]
        return hi <= self.front(iteration) and not any(lo < cut < hi for cut in self.cuts)

    def place(self, box: Box, iteration: int) -> tuple[object, ...]:
        """A box with bounds told as constants, or relative to a settled round; by itself where constants lie ahead."""
        told: list[object] = list(box)
        last = self.cuts[-1] if self.cuts else 0
        ends = []
        for bound in box[self.axis]:
            if bound in self.cuts:
                ends.append((0, bound, 0))
            else:
                early = iteration + 1 if bound < last else 0
                ends.append((1, bound - self.step * iteration, early))
        told[self.axis] = tuple(ends)
        return tuple(told)


def find_growths(plan: Plan, segments: Sequence[Segment], number: int, drain: int) -> dict[str, Growth]:
    """The buffers of one slot that a segment's loop touches by constant bounds and bounds that move by one step."""
    segment = segments[number]
    if segment.loop is None:
        return {}
    index = segment.loop.index
    here = _by_buffer(segment)
    found = {}
    for name, accesses in here.items():
        buffer = plan.buffers[name]
        axes = {axis for a in accesses for axis, part in enumerate(a.region) if _uses(part.lo, part.hi) & {index}}
        if len(axes) != 1 or (buffer.ring.depth or 1) > 1:
            continue
        elsewhere = [a for n, other in enumerate(segments) if n != number for a in _by_buffer(other).get(name, ())]
        growth = _growth(buffer, index, axes.pop(), accesses, elsewhere, drain)
        if growth is not None:
            found[name] = growth
    return found


def _by_buffer(segment: Segment) -> dict[str, list[Access]]:
    rows: dict[str, list[Access]] = {}
    for op in segment.ops:
        for access in op.accesses:
            rows.setdefault(access.buffer, []).append(access)
    return rows


def _uses(*bounds: object) -> set[str]:
    return {name for bound in bounds if bound is not None for name in names_in(bound)}  # type: ignore[arg-type]


def _growth(
    buffer: Buffer, index: str, axis: int, accesses: Iterable[Access], elsewhere: Iterable[Access], drain: int
) -> Growth | None:
    extent = buffer.extents[axis]
    moving: set[tuple[int, int]] = set()
    cuts = {0, extent}
    for own, group in ((True, accesses), (False, elsewhere)):
        for access in group:
            part = access.region[axis] if axis < len(access.region) else None
            for bound in (part.lo, part.hi) if part else ():
                linear = None if bound is None else linear_in(bound, index)
                if bound is None:
                    continue
                if isinstance(bound, Int):
                    cuts.add(bound.value)
                elif own and linear is not None and isinstance(linear[1], Int) and linear[0] > 0:
                    moving.add((linear[0], linear[1].value))
                else:
                    return None
    steps = {step for step, _ in moving}
    if len(steps) != 1:
        return None
    (step,) = steps
    low = min(offset for _, offset in moving) - step * drain
    return Growth(axis, step, low, tuple(sorted(cuts - {extent})))
