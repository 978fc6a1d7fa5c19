"""What was done to each buffer so far: the accesses that a later one can conflict with, and who wrote which bytes.

:class:`Accesses` keeps, per slot, every access that is not covered by a later write (whoever conflicts with a covered
one conflicts with that write as well, and the two have been checked against each other). :class:`Contents` keeps the
last writer of every byte. Both know boxes only, and are found by the lowest bound on the first axis.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from dagsched.plan.model import Mode
from dagsched.proof.clocks import Instance
from dagsched.proof.growing import Growing
from dagsched.proof.instances import Box

COMMUTING = (Mode.READ, Mode.ACCUMULATE)
"""Modes in which two accesses do not conflict with each other."""


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes share a byte."""
    for (a_lo, a_hi), (b_lo, b_hi) in zip(a, b, strict=True):  # noqa: SIM110 - the hottest line of the proof
        if a_lo >= b_hi or b_lo >= a_hi:
            return False
    return True


def covers(a: Box, b: Box) -> bool:
    """Whether ``a`` contains all of ``b``."""
    return all(p[0] <= q[0] and q[1] <= p[1] for p, q in zip(a, b, strict=True))


def cut_out(a: Box, b: Box) -> list[Box]:
    """``a`` without ``b``, as disjoint boxes."""
    parts: list[Box] = []
    rest = list(a)
    for axis in range(len(a)):
        (lo, hi), (cut_lo, cut_hi) = rest[axis], b[axis]
        if cut_lo >= hi or cut_hi <= lo:
            return [a]
        if lo < cut_lo:
            parts.append((*rest[:axis], (lo, cut_lo), *rest[axis + 1 :]))
        if cut_hi < hi:
            parts.append((*rest[:axis], (cut_hi, hi), *rest[axis + 1 :]))
        rest[axis] = (max(lo, cut_lo), min(hi, cut_hi))
    return parts


def _position(value: object) -> int:
    assert isinstance(value, Instance)
    return value.position


Row = tuple[int, int, Box, object]
"""The lowest bound of a box, a number that no other row has, the box, and a value."""


@dataclass(slots=True)
class Spans:
    """Boxes with a value each, sorted by their lowest bound."""

    rows: list[Row] = field(default_factory=list)
    widest: int = 0
    number: int = 0

    def add(self, box: Box, value: object) -> Row:
        """Enter a box."""
        self.number += 1
        row = (box[0][0], self.number, box, value)
        self.keep(row)
        return row

    def keep(self, row: Row) -> None:
        """Enter a row, which may be another's, if all rows are."""
        box = row[2]
        self.widest = max(self.widest, box[0][1] - box[0][0])
        insort(self.rows, row)

    def holds(self, row: Row) -> bool:
        """Whether a row that was added is still there."""
        at = bisect_left(self.rows, row[:2])
        return at < len(self.rows) and self.rows[at] is row

    def remove(self, row: Row) -> None:
        """Take a row out, if it is still there."""
        at = bisect_left(self.rows, row[:2])
        if at < len(self.rows) and self.rows[at] is row:
            del self.rows[at]

    def around(self, box: Box) -> tuple[int, int]:
        """The range of rows that can overlap a box."""
        if len(self.rows) < 4:
            return 0, len(self.rows)
        first = bisect_right(self.rows, (box[0][0] - self.widest,))
        return first, bisect_left(self.rows, (box[0][1],))

    def move(self, growing: Growing, iterations: int) -> None:
        """Put every box where it is so many iterations later."""
        old, self.rows = self.rows, []
        for row in old:
            self.add(growing.move(row[2], iterations), row[3])

    def unite(self, growing: Growing, iteration: int, alike: Callable[[object, object], bool]) -> list[Row]:
        """Make one row of neighbours that are alike and that nothing will tell apart; the rows that came of it."""
        axis = growing.axis
        ends: dict[object, Row] = {}
        made: list[Row] = []
        for row in list(self.rows):
            box, value = row[2], row[3]
            sides = box[:axis], box[axis + 1 :]
            before = ends.pop((box[axis][0], sides), None)
            if before is not None and alike(before[3], value):
                joined = (*sides[0], (before[2][axis][0], box[axis][1]), *sides[1])
                if growing.may_join(joined, iteration):
                    self.remove(before)
                    self.remove(row)
                    newest = max(before[3], value, key=_position)
                    row = self.add(joined, newest)
                    made = [old for old in made if old is not before] + [row]
            ends[box[axis][1], sides] = row
        return made

    def overlapping(self, box: Box) -> Iterator[tuple[Box, object]]:
        """The rows that overlap a box."""
        first, last = self.around(box)
        for _, _, other, value in self.rows[first:last]:
            if overlap(other, box):
                yield other, value


def _same_line(one: object, other: object) -> bool:
    """Whether two are instances of one op that a stream orders."""
    assert isinstance(one, Instance)
    assert isinstance(other, Instance)
    return (one.name, one.segment, one.stream) == (other.name, other.segment, other.stream)


class Accesses:
    """Reads, writes and accumulates of one slot; ``own`` are each op's rows in each mode, dropped ones among them."""

    def __init__(self) -> None:
        self.rows: dict[Mode, Spans] = {mode: Spans() for mode in Mode}
        self.own: dict[tuple[Mode, str], Spans] = {}

    def enter(self, box: Box, mode: Mode, instance: Instance) -> list[tuple[Mode, Instance]]:
        """The accesses that conflict with a new one, which is kept from now on."""
        found: list[tuple[Mode, Instance]] = []
        for other, spans in self.rows.items():
            if spans.rows and not (mode is other and mode in COMMUTING):
                found += [(other, value) for _, value in spans.overlapping(box) if value is not instance]  # type: ignore[misc]
        if mode in COMMUTING:
            self._replace(mode, box, instance)
        else:
            for spans in self.rows.values():
                if spans.rows:
                    self._cover(spans, box)
            self.rows[mode].add(box, instance)
        return found

    def _replace(self, mode: Mode, box: Box, instance: Instance) -> None:
        """Let an access stand for the earlier ones of its op that it covers, if their stream orders them before it."""
        spans = self.rows[mode]
        own = self.own.setdefault((mode, instance.name), Spans())
        first, last = own.around(box)
        kept = []
        for row in own.rows[first:last]:
            value = row[3]
            assert isinstance(value, Instance)
            before = value.stream == instance.stream and value.position < instance.position
            if before and covers(box, row[2]):
                spans.remove(row)
            elif spans.holds(row):
                kept.append(row)
        own.rows[first:last] = kept
        own.keep(spans.add(box, instance))

    def move(self, growing: Growing, iterations: int) -> None:
        """Put every access where it is so many iterations later."""
        for spans in self.rows.values():
            spans.move(growing, iterations)
        self.own = {}
        for mode, spans in self.rows.items():
            for row in spans.rows:
                assert isinstance(row[3], Instance)
                self.own.setdefault((mode, row[3].name), Spans()).keep(row)

    def unite(self, growing: Growing, iteration: int) -> None:
        """Let the newest of one op's neighbouring accesses stand for all where nothing will tell them apart."""
        for mode, spans in self.rows.items():
            for row in spans.unite(growing, iteration, _same_line):
                assert isinstance(row[3], Instance)
                own = self.own.get((mode, row[3].name))
                if own is not None:
                    own.rows = [old for old in own.rows if spans.holds(old)]
                    own.keep(row)

    @staticmethod
    def _cover(spans: Spans, box: Box) -> None:
        """Drop what a write covers."""
        first, last = spans.around(box)
        spans.rows[first:last] = [row for row in spans.rows[first:last] if not covers(box, row[2])]

    def live(self) -> Iterator[tuple[Mode, Box, Instance]]:
        """All that is kept."""
        for mode, spans in self.rows.items():
            for _, _, box, value in spans.rows:
                assert isinstance(value, Instance)
                yield mode, box, value


class Contents:
    """Who wrote the bytes of each block (a slot, or a version)."""

    def __init__(self) -> None:
        self.blocks: dict[Hashable, Spans] = {}

    def write(self, key: Hashable, box: Box, writer: Instance) -> None:
        """Let an instance write a box."""
        spans = self.blocks.setdefault(key, Spans())
        first, last = spans.around(box)
        old = [row for row in spans.rows[first:last] if overlap(row[2], box)]
        for row in old:
            spans.rows.remove(row)
        for row in old:
            for part in cut_out(row[2], box):
                spans.add(part, row[3])
        spans.add(box, writer)

    def unite(self, key: Hashable, growing: Growing, iteration: int) -> None:
        """Tell a block whose writers nobody asks for in few rows."""
        self.blocks[key].unite(growing, iteration, lambda one, other: True)

    def read(self, key: Hashable, box: Box) -> tuple[list[tuple[Box, Instance]], list[Box]]:
        """The written parts of a box with their writers, and the parts never written."""
        found: list[tuple[Box, Instance]] = []
        missing = [box]
        spans = self.blocks.get(key)
        for other, writer in spans.overlapping(box) if spans else ():
            assert isinstance(writer, Instance)
            shared = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(other, box, strict=True))
            found.append((shared, writer))
            missing = [
                part for rest in missing for part in (cut_out(rest, shared) if overlap(rest, shared) else [rest])
            ]
        return found, missing
