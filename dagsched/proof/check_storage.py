"""Where an access of a schedule lands: the storage behind a name, the slot, and the box that it touches.

Two names can be one storage (``alias``), and two buffers of one ``space`` can overlap by address (``at``). A slot of
None stands for all slots. Two touches overlap exactly where storage and slot agree and their boxes meet on every axis
that both of them bound. Where the file says how large a buffer is, a region that moves past its end touches nothing
there.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar

from dagsched.plan.expressions import Expr, Int, evaluate
from dagsched.plan.model import DTYPES, Access, Mode
from dagsched.schedule.model import Schedule, Storage

T = TypeVar("T")
INFINITY = 1 << 80
Box = tuple[tuple[int, int], ...]
Key = tuple[str, str]
WHOLE: Box = ((-INFINITY, INFINITY),)


@dataclass(frozen=True, slots=True)
class Touch:
    """One access of one instance; ``root`` is the buffer whose storage ``buffer`` is an alias of."""

    buffer: str
    root: str
    storage: Key
    slot: int | None
    box: Box
    mode: Mode


@dataclass(frozen=True, slots=True)
class _Home:
    """What a name stands for: ``at`` is set for buffers placed by address; ``itemsize`` scales regions to bytes."""

    root: str
    storage: Key
    ring: int
    by_slot: bool
    at: tuple[int, int] | None = None
    itemsize: int = 1
    axes: int = 1
    extents: tuple[int, ...] = ()


class Homes:
    """Resolves the names of one schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.buffers = schedule.buffers
        self.homes: dict[str, _Home] = {}

    def touch(self, access: Access, env: Mapping[str, int]) -> Touch | None:
        """Where an access lands for given loop indices and parameters; None where its region is empty."""
        home = self.homes.get(access.buffer)
        if home is None:
            home = self.homes[access.buffer] = self.resolve(access.buffer)
        version = 0 if access.version is None else value_of(access.version, env)
        slot = version % home.ring if home.ring > 0 else version
        box = WHOLE if not access.region else box_of(access, env)
        if home.at is not None:
            box = _address(home, slot, box)
        elif home.extents and access.region:
            ends = zip(box, home.extents, strict=False)
            box = (*((lo, min(hi, end)) for (lo, hi), end in ends), *box[len(home.extents) :])
        if any(lo >= hi for lo, hi in box):
            return None
        return Touch(access.buffer, home.root, home.storage, slot if home.by_slot else None, box, access.mode)

    def resolve(self, name: str) -> _Home:
        own = root = self.buffers.get(name) or Storage(name)
        seen = {name}
        while root.alias is not None and root.alias not in seen:
            seen.add(root.alias)
            root = self.buffers.get(root.alias) or Storage(root.alias)
        if root.at is not None:
            space = root.space or (str(root.place) if root.place else "")
            ring = max(root.ring, 1)
            return _Home(root.name, ("space", space), ring, False, root.at, _itemsize(root), len(root.shape or (1,)))
        # An alias without a ring of its own has its root's; a ring laid over a plain block shares all of it only
        # with accesses of the block as a whole.
        ring = own.ring if root.ring <= 1 else root.ring
        rings = {self.buffers[other].ring for other in self.buffers if self.root_of(other) == root.name}
        by_slot = ring > 1 or max(rings, default=1) <= 1
        extents = own.shape or ((own.size,) if own.size is not None else ())
        return _Home(root.name, ("name", root.name), ring, by_slot, extents=extents)

    def root_of(self, name: str) -> str:
        seen = {name}
        while (storage := self.buffers.get(name)) and storage.alias is not None and storage.alias not in seen:
            name = storage.alias
            seen.add(name)
        return name


def _itemsize(storage: Storage) -> int:
    return DTYPES.get(storage.dtype or "", 1) if storage.shape else 1


def _address(home: _Home, slot: int, box: Box) -> Box:
    """A region within a placed buffer as addresses; the slots of a ring divide the place evenly."""
    assert home.at is not None
    lo, hi = home.at
    size = (hi - lo) // home.ring
    lo += slot * size
    hi = lo + size if home.ring > 1 else hi
    if home.axes > 1:  # Rows of several axes are not one interval: the whole place stands for them.
        return ((lo, hi),)
    first, last = box[0]
    start = lo if first <= 0 else lo + first * home.itemsize
    end = hi if last >= INFINITY else min(hi, lo + last * home.itemsize)
    return ((start, end),)


def value_of(expr: Expr, env: Mapping[str, int]) -> int:
    """``evaluate`` with a short way for literals."""
    return expr.value if type(expr) is Int else evaluate(expr, env)


def box_of(access: Access, env: Mapping[str, int]) -> Box:
    """The bounds of a region, open ends unbounded."""
    return tuple(
        (
            -INFINITY if part.lo is None else value_of(part.lo, env),
            INFINITY if part.hi is None else value_of(part.hi, env),
        )
        for part in access.region
    )


def overlaps(a: Box, b: Box) -> bool:
    """Whether two boxes share a point; an axis that one of them leaves out is unbounded there."""
    return all(x[0] < y[1] and y[0] < x[1] for x, y in zip(a, b, strict=False))


def meets(a: Touch, b: Touch) -> bool:
    """Whether two accesses share bytes."""
    same_slot = a.slot is None or b.slot is None or a.slot == b.slot
    return a.storage == b.storage and same_slot and overlaps(a.box, b.box)


def covers(outer: Box, inner: Box) -> bool:
    """Whether a box holds all of another; an axis that one of them leaves out is unbounded there."""
    missing = any(lo > -INFINITY or hi < INFINITY for lo, hi in outer[len(inner) :])
    return not missing and all(x[0] <= y[0] and y[1] <= x[1] for x, y in zip(outer, inner, strict=False))


def without(touch: Touch, other: Touch) -> list[Touch]:
    """The parts of an access's place that another does not touch; one slot cut out of all slots cuts nothing."""
    if not meets(touch, other) or (touch.slot is None and other.slot is not None):
        return [touch]
    size = max(len(touch.box), len(other.box))
    rest = [*touch.box, *WHOLE * (size - len(touch.box))]
    parts = []
    for axis, (first, last) in enumerate([*other.box, *WHOLE * (size - len(other.box))]):
        lo, hi = rest[axis]
        if lo < first:
            parts.append(replace(touch, box=(*rest[:axis], (lo, first), *rest[axis + 1 :])))
        if last < hi:
            parts.append(replace(touch, box=(*rest[:axis], (last, hi), *rest[axis + 1 :])))
        rest[axis] = (max(lo, first), min(hi, last))
    return parts


@lru_cache(maxsize=64)
def conflict(first: Mode, second: Mode) -> tuple[str, ...]:
    """The hazards between two accesses of the same bytes, the first issued before the second."""
    if first is Mode.ACCUMULATE and second is Mode.ACCUMULATE:
        return ()
    kinds = []
    if first.writes and second.reads:
        kinds.append("RAW")
    if first.reads and second.writes:
        kinds.append("WAR")
    if first.writes and second.writes:
        kinds.append("WAW")
    return tuple(kinds)


class Cells(Generic[T]):
    """A value for each distinct box touched so far, found by overlap.

    Boxes are sorted by their lower bound on the first axis, those of like length (to a power of two) in a list of
    their own: many small regions of one buffer cost a search each and not a scan, whatever large ones there are.
    """

    def __init__(self) -> None:
        self.values: dict[Box, T] = {}
        self.starts: dict[int, list[tuple[int, Box]]] = {}

    def add(self, box: Box, value: T) -> None:
        self.values[box] = value
        lo, hi = box[0]
        insort(self.starts.setdefault(max(0, hi - lo).bit_length(), []), (lo, box))

    def overlapping(self, box: Box) -> Iterator[tuple[Box, T]]:
        lo, hi = box[0]
        for bits, starts in self.starts.items():
            for at in range(bisect_left(starts, (lo - (1 << bits),)), len(starts)):
                start, other = starts[at]
                if start >= hi:
                    break
                if overlaps(other, box):
                    yield other, self.values[other]
