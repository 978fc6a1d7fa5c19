"""Which record a wait is bound to: the one of its handle that the schedule issues last before the wait.

Nearly every wait of a loop is bound to a record of the same loop a fixed number of iterations back; that number is
worked out once (``back``). All others are looked up when the wait is reached, newest first.

Invariant: what is found depends on the order of the steps alone and never on what has run so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dagsched.plan.expressions import Condition, Int, Name
from dagsched.run.numbers import Number, as_number, as_test, offset_of
from dagsched.run.program import Program, RecordPoint, Section, WaitPoint

Bound = Callable[[int], tuple[int, int] | None]
"""For the wait's iteration: the record's number and the iteration that must have been passed, or None: no record."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """The wait in iteration i is bound to iteration ``i + back`` of record ``number``; before ``lo`` to ``early``."""

    number: int
    back: int
    lo: int
    early: Bound | None = None


def bind_wait(program: Program, wait: WaitPoint, section: Section, params: Mapping[str, int]) -> Fixed | Bound | None:
    """What a wait is bound to; None where no record of its event comes before it in any run."""
    same = program.by_event.get(wait.event, ())
    near = [r for r in same if r.place.section == section.number and section.index is not None]
    far: list[RecordPoint] = []
    for record in reversed(same):  # newest first, as far as one that is surely there
        if _comes_before(record, wait, section):
            far.append(record)
            if _is_certain(program, record, wait):
                break
    if not near and far and section.index is None and _is_certain(program, far[0], wait):
        return Fixed(far[0].number, 0, 0)
    early = _lookup(program, wait, section, [], far, params) if far else None
    fixed = _fixed(program, wait, section, near, early) if near else None
    if fixed is not None:
        return fixed
    return _lookup(program, wait, section, near, far, params) if near or far else None


def _comes_before(record: RecordPoint, wait: WaitPoint, section: Section) -> bool:
    """Whether a record outside the wait's own loop is issued before the wait."""
    if record.place.section != section.number:
        return record.place.section < section.number
    return section.index is None and record.place.position < wait.place.position


def _is_certain(program: Program, record: RecordPoint, wait: WaitPoint) -> bool:
    """Whether a record is made in every run, into the very handle that the wait means."""
    outside = program.sections[record.place.section].index is None
    return outside and not record.when and record.index is None and wait.index is None


def _fixed(
    program: Program, wait: WaitPoint, section: Section, near: list[RecordPoint], early: Bound | None
) -> Fixed | None:
    """The distance, where each record's handle and the wait's move with the index and nothing is conditional."""
    if not isinstance(section.lo, Int):
        return None
    ring = program.rings[wait.event]
    best: tuple[int, int, RecordPoint] | None = None
    for record in near:
        latest = 0 if record.place.position < wait.place.position else -1
        if wait.index is None or record.index is None:
            if wait.index is not record.index and ring != 1:
                return None
            back = latest
        else:
            waits, records = offset_of(wait.index, section.index), offset_of(record.index, section.index)
            if waits is None or records is None:
                return None
            meant = waits - records
            if ring is None:
                if meant > latest:
                    continue
                back = meant
            else:
                back = latest - (latest - meant) % ring
        if record.when:
            return None
        found = (back, record.place.position, record)
        if best is None or found[:2] > best[:2]:
            best = found
    return None if best is None else Fixed(best[2].number, best[0], section.lo.value, early)


def _lookup(
    program: Program,
    wait: WaitPoint,
    section: Section,
    near: list[RecordPoint],
    far: list[RecordPoint],
    params: Mapping[str, int],
) -> Bound:
    """A function that finds the newest record for an iteration of the wait."""
    ring = program.rings[wait.event]
    value = as_number(wait.index, section.index, params) if wait.index is not None else lambda i: 0
    own_lo = as_number(section.lo, None, params)
    near_ones = [(r, _Finder(program.sections[r.place.section], r, ring, params)) for r in near]
    far_ones = [(r, _Finder(program.sections[r.place.section], r, ring, params)) for r in far]

    def find(i: int) -> tuple[int, int] | None:
        wanted = value(i)
        best: tuple[int, int, int] | None = None  # iteration, position, number
        for record, finder in near_ones:
            last = i if record.place.position < wait.place.position else i - 1
            found = finder.newest(own_lo(0), last + 1, wanted)
            if found is not None and (best is None or (found, record.place.position) > best[:2]):
                best = (found, record.place.position, record.number)
        if best is not None:
            return best[2], best[0]
        seen = -1
        for record, finder in far_ones:
            if best is not None and record.place.section != seen:
                break
            lo, hi = finder.range()
            found = finder.newest(lo, hi, wanted)
            if found is not None and (best is None or (found, record.place.position) > best[:2]):
                best = (found, record.place.position, record.number)
                seen = record.place.section
        return None if best is None else (best[2], best[0])

    return find


class _Finder:
    """Finds the newest iteration in which a record step records a wanted handle."""

    def __init__(self, section: Section, record: RecordPoint, ring: int | None, params: Mapping[str, int]) -> None:
        index = section.index
        self.ring = ring
        self.shift = offset_of(record.index, index) if record.index is not None else None
        self.value: Number = as_number(record.index, index, params) if record.index is not None else lambda i: 0
        self.moves = record.index is not None and index is not None and self.shift is not None
        self.lo = as_number(section.lo, None, params)
        self.hi = as_number(section.hi, None, params)
        self.test = as_test(record.when, index, params)
        self.limits = _limits(record.when, index, params)

    def range(self) -> tuple[int, int]:
        return self.lo(0), self.hi(0)

    def newest(self, lo: int, hi: int, wanted: int) -> int | None:
        """The newest iteration in [lo, hi) that records handle ``wanted``, or None."""
        for at_least, at_most in self.limits:
            lo, hi = max(lo, at_least(0)), min(hi, at_most(0) + 1)
        step = 1
        at = hi - 1
        if self.moves and self.shift is not None:
            if self.ring is None:
                at, step = wanted - self.shift, hi - lo + 1
                if at >= hi:
                    return None
            else:
                step = self.ring
                at -= (at + self.shift - wanted) % step
        while at >= lo:
            if self.matches(at, wanted) and (self.test is None or self.test(at)):
                return at
            at -= step
        return None

    def matches(self, at: int, wanted: int) -> bool:
        difference = self.value(at) - wanted
        return difference == 0 if self.ring is None else difference % self.ring == 0


_FAR = 2**62


def _limits(condition: Condition, index: str | None, params: Mapping[str, int]) -> list[tuple[Number, Number]]:
    """Bounds on the index that a record's guard sets, so that its iterations need not be searched one by one."""
    found = []
    for comparison in condition:
        if index is None or comparison.left != Name(index) or comparison.op in ("!=", "<", ">"):
            continue
        edge = as_number(comparison.right, None, params)
        low = edge if comparison.op in ("==", ">=") else lambda i: -_FAR
        high = edge if comparison.op in ("==", "<=") else lambda i: _FAR
        found.append((low, high))
    return found
