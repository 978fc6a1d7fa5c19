"""Where the accesses of a schedule land, and in which *cells* two of them meet.

A place is a box in a slot of a storage. Two names can be one storage (``alias``), and buffers of one ``space`` meet by
address. The boxes of a storage cut each other into cells, within which no access tells one byte from another: two
accesses meet exactly where they share a cell, and a cell has contents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
    """One access of one instance; ``root`` is the buffer whose storage it is, ``slot`` None for all slots of it."""

    buffer: str
    root: str
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
            return Touch(name, root.name, ("space", root.space or str(root.place or "")), None, (span,), access.mode)
        if any(lo >= hi for lo, hi in bounds):
            return None
        ring = root.ring if root.ring > 1 else own.ring
        # A ring laid over a plain block: whoever names the block as a whole meets every slot.
        slot = version % ring if ring > 1 or self.deepest[root.name] <= 1 else None
        return Touch(name, root.name, ("name", root.name), slot, bounds, access.mode)


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


def meet(a: Touch, b: Touch) -> bool:
    """Whether two accesses share bytes; an axis that one of them leaves out is unbounded there."""
    if a.storage != b.storage or (a.slot is not None and b.slot is not None and a.slot != b.slot):
        return False
    return all(p[0] < q[1] and q[0] < p[1] for p, q in zip(a.box, b.box, strict=False))


def cut(rest: Touch, written: Touch) -> list[Touch]:
    """What is left of one place without another; nothing is cut where only one slot of all is written."""
    if not meet(rest, written) or (rest.slot is None and written.slot is not None):
        return [rest]
    axes = max(len(rest.box), len(written.box))
    left = [_side(rest.box, axis) for axis in range(axes)]
    parts = []
    for axis in range(axes):
        (lo, hi), (first, last) = left[axis], _side(written.box, axis)
        for span in ((lo, first), (last, hi)):
            if span[0] < span[1]:
                parts.append(replace(rest, box=(*left[:axis], span, *left[axis + 1 :])))
        left[axis] = (max(lo, first), min(hi, last))
    return parts


class Cells:
    """The cells of a set of places. An *atom* of a storage is what is in the same boxes; a cell is an atom in a slot.

    ``atoms[(storage, box)]``: the atoms of a box. Accesses of all slots also touch what is in no slot that is named.
    """

    def __init__(self, touches: Iterable[Touch]) -> None:
        boxes: dict[tuple[str, str], dict[Box, None]] = defaultdict(dict)
        self.slots: dict[tuple[str, str], dict[int | None, None]] = defaultdict(dict)
        for touch in touches:
            boxes[touch.storage][touch.box] = None
            self.slots[touch.storage][touch.slot] = None
        self.atoms: dict[tuple[tuple[str, str], Box], list[int]] = {}
        for storage, found in boxes.items():
            rows = list(found)
            members = sorted(_find_atoms(rows), key=sorted)
            for box in rows:
                self.atoms[storage, box] = []
            for atom, inside in enumerate(members):
                for number in sorted(inside):
                    self.atoms[storage, rows[number]].append(atom)
        self.numbers: dict[tuple[tuple[str, str], int | None, int], int] = {}

    def of(self, touch: Touch) -> list[int]:
        """The cells that an access touches."""
        slots: Iterable[int | None] = (touch.slot,) if touch.slot is not None else self.slots[touch.storage]
        return [
            self.numbers.setdefault((touch.storage, slot, atom), len(self.numbers))
            for slot in slots
            for atom in self.atoms[touch.storage, touch.box]
        ]


def _find_atoms(boxes: list[Box]) -> set[frozenset[int]]:
    """The sets of boxes that have a point in common and nothing else there."""
    axes = max(map(len, boxes))
    known: dict[tuple[int, frozenset[int]], set[frozenset[int]]] = {}

    def split(axis: int, inside: frozenset[int]) -> set[frozenset[int]]:
        if axis == axes or len(inside) == 1:
            return {inside}
        key = (axis, inside)
        if key not in known:
            known[key] = set()
            for group in _sweep([(*_side(boxes[number], axis), number) for number in inside]):
                known[key] |= split(axis + 1, group)
        return known[key]

    return split(0, frozenset(range(len(boxes))))


def _sweep(spans: list[tuple[float, float, int]]) -> set[frozenset[int]]:
    """Which spans cover each stretch between their ends."""
    ends = sorted({end for lo, hi, _ in spans for end in (lo, hi)})
    starting: dict[float, list[int]] = defaultdict(list)
    ending: dict[float, list[int]] = defaultdict(list)
    for lo, hi, number in spans:
        starting[lo].append(number)
        ending[hi].append(number)
    found: set[frozenset[int]] = set()
    open_ones: set[int] = set()
    for end in ends:
        open_ones.difference_update(ending[end])
        open_ones.update(starting[end])
        if open_ones:
            found.add(frozenset(open_ones))
    return found


def _side(box: Box, axis: int) -> Span:
    return box[axis] if axis < len(box) else ALL
