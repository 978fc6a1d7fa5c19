"""Where the accesses of a schedule land, and in which *cells* two of them meet.

A place is a box in a storage: the slot is its first axis, the region gives the others. Two names can be one storage
(``alias``), and buffers of one ``space`` meet by address. Every pair of boxes that overlap shares a cell of its own,
and so does each box with itself; two accesses meet exactly where they share a cell, and a cell has contents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from dagsched.plan.expressions import evaluate
from dagsched.plan.model import DTYPES, Access, Mode
from dagsched.schedule.model import Schedule, Storage

Span = tuple[float, float]
Box = tuple[Span, ...]
ALL: Span = (-inf, inf)


@dataclass(frozen=True, slots=True)
class Touch:
    """One access of one instance; ``slot`` is None for all slots of its storage. ``box`` starts with the slot."""

    buffer: str
    storage: tuple[str, str]
    slot: int | None
    box: Box
    mode: Mode


class Places:
    """Finds the places of one schedule's accesses."""

    def __init__(self, schedule: Schedule) -> None:
        self.buffers = schedule.buffers
        self.roots = {name: self.root(name) for name in self.buffers}
        self.deepest: dict[str, int] = defaultdict(lambda: 1)
        for name, root in self.roots.items():
            self.deepest[root.name] = max(self.deepest[root.name], self.buffers[name].ring)

    def root(self, name: str) -> Storage:
        """The buffer whose storage a name stands for."""
        seen = set()
        at = self.buffers.get(name) or Storage(name)
        while at.alias is not None and at.alias not in seen:
            seen.add(at.alias)
            at = self.buffers.get(at.alias) or Storage(at.alias)
        return at

    def touches(self, accesses: Sequence[Access], env: Mapping[str, int]) -> tuple[Touch, ...]:
        """The places of all accesses that touch anything."""
        found = (self.touch(access, env) for access in accesses)
        return tuple(touch for touch in found if touch is not None)

    def freed(self, access: Access, env: Mapping[str, int]) -> tuple[Touch, ...]:
        """What a free destroys: as if it were written."""
        return self.touches((replace(access, mode=Mode.WRITE),), env)

    def touch(self, access: Access, env: Mapping[str, int]) -> Touch | None:
        name = access.buffer
        own = self.buffers.get(name) or Storage(name)
        root = self.roots.get(name) or own
        version = 0 if access.version is None else evaluate(access.version, env)
        bounds = tuple(
            (
                -inf if part.lo is None else evaluate(part.lo, env),
                inf if part.hi is None else evaluate(part.hi, env),
            )
            for part in access.region
        )
        if root.at is not None:
            span = _addresses(root, version, bounds)
            if span[0] >= span[1]:
                return None
            return Touch(name, ("space", root.space or str(root.place or "")), None, (ALL, span), access.mode)
        if any(lo >= hi for lo, hi in bounds):
            return None
        ring = root.ring if root.ring > 1 else own.ring
        # A ring laid over a plain block: whoever names the block as a whole meets every slot.
        slot = version % ring if ring > 1 or self.deepest[root.name] <= 1 else None
        first = ALL if slot is None else (slot, slot + 1)
        return Touch(name, ("name", root.name), slot, (first, *bounds), access.mode)


def _addresses(root: Storage, version: int, bounds: Box) -> Span:
    """The addresses of a region in a placed buffer, whose slots divide the place evenly."""
    assert root.at is not None
    slots = max(root.ring, 1)
    size = (root.at[1] - root.at[0]) // slots
    lo: float = root.at[0] + version % slots * size
    hi: float = lo + size if slots > 1 else root.at[1]
    if not bounds or len(root.shape or (1,)) > 1:  # rows of several axes are not one range of addresses
        return (lo, hi)
    scale = DTYPES.get(root.dtype or "", 1) if root.shape else 1
    first, last = bounds[0]
    return (lo + max(first, 0) * scale, min(hi, lo + last * scale))


def meet(a: Box, b: Box) -> bool:
    """Whether two boxes share a point; an axis that one of them leaves out is unbounded there."""
    return all(p[0] < q[1] and q[0] < p[1] for p, q in zip(a, b, strict=False))


class Cells:
    """The cells of a set of boxes: ``of[(storage, box)]`` are the numbers of those that a box touches."""

    def __init__(self, places: set[tuple[tuple[str, str], Box]]) -> None:
        self.of: dict[tuple[tuple[str, str], Box], list[int]] = {}
        self.sides: list[tuple[tuple[str, str], Box, Box]] = []
        groups: dict[tuple[str, str], list[Box]] = defaultdict(list)
        for storage, box in places:
            groups[storage].append(box)
        for storage in sorted(groups):
            self.fill(storage, groups[storage])

    def fill(self, storage: tuple[str, str], boxes: list[Box]) -> None:
        """Go through the boxes by their lower bound on the axis that tells most apart, keeping those still open."""
        axis = max(range(max(map(len, boxes))), key=lambda axis: len({_side(box, axis) for box in boxes}))
        boxes = sorted(boxes, key=lambda box: (_side(box, axis), box))
        open_ones: list[Box] = []
        for box in boxes:
            lo = _side(box, axis)[0]
            open_ones = [other for other in open_ones if _side(other, axis)[1] > lo]
            self.of[storage, box] = []
            for other in [box, *open_ones]:
                if meet(box, other):
                    number = len(self.sides)
                    self.sides.append((storage, other, box))
                    self.of[storage, box].append(number)
                    if other is not box:
                        self.of[storage, other].append(number)
            open_ones.append(box)


def _side(box: Box, axis: int) -> Span:
    return box[axis] if axis < len(box) else ALL
