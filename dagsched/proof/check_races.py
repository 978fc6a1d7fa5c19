"""Find every pair of conflicting accesses that happens-before leaves unordered.

Work is visited in issue order. For each distinct box of a storage the latest access of every static step on every
thread is kept, newest last: since a thread is in order, the accesses that race with a new one are the newest few of
each thread, down to the clock of the new one. The latest instance of a step races if any of its instances does, and
at the smallest distance, so one instance per step is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dagsched.plan.model import Mode
from dagsched.proof.check_clock import Clock, Order, is_before
from dagsched.proof.check_expand import Node, Path, Program, name_of
from dagsched.proof.check_storage import Cells, Key, Touch, conflict, covers, meets, without

Entry = tuple[int, int, Touch]
"""(ordinal, node, access): an access as a cell remembers it."""

Recent = dict[tuple[int, int], Entry]
"""The latest access of each static step (and access of it) on one thread, newest last."""

_Freed = dict[Key, list[tuple[Touch, Node]]]
"""Storage → what of it was freed, and by whom."""

MAX_PAIRS = 1_000_000
"""Racing pairs of instances looked at before the search stops (only files that race everywhere get there)."""
MAX_RACES = 20_000
"""Races told apart by their names before the search stops: nobody reads more."""


@dataclass(slots=True)
class FoundRace:
    """A race by names: ``first`` and ``second`` are the nodes at the smallest distance, ``exact`` those indices."""

    first: Node
    second: Node
    buffer: str
    distance: int | None
    kinds: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Conflicts:
    """``races`` by (first name, second name, buffer). ``needs[n]``: thread → the last conflicting work on it issued
    before node n, which its clock has to cover. ``dangling``: uses after a free, as (free, use) nodes."""

    races: dict[tuple[str, str, str], FoundRace] = field(default_factory=dict)
    needs: dict[int, dict[int, int]] = field(default_factory=dict)
    dangling: dict[tuple[int, int], tuple[Node, Node]] = field(default_factory=dict)
    complete: bool = True


@dataclass(slots=True)
class _Cell:
    """Who touched one box. All that is in ``old`` comes before the access ``floor`` (thread, ordinal), which conflicts
    with whatever touches the box: who comes after that one need not look at the old ones."""

    new: dict[int, Recent] = field(default_factory=dict)
    old: dict[int, Recent] = field(default_factory=dict)
    floor: tuple[int, int] | None = None

    def settle(self, node: Node) -> None:
        """Everything so far comes before ``node``."""
        for thread, recent in self.new.items():
            known = self.old.setdefault(thread, {})
            for key, entry in recent.items():
                known.pop(key, None)
                known[key] = entry
        self.new = {}
        self.floor = (node.thread, node.ordinal)


def find_conflicts(program: Program, order: Order, mutual: bool) -> Conflicts:
    """All races of a program, and what every node needs.

    ``mutual``: an order against the issue order is possible (flags), and is an order all the same.
    """
    return _Search(program, order, mutual).run()


class _Search:
    def __init__(self, program: Program, order: Order, mutual: bool) -> None:
        self.program, self.order, self.mutual = program, order, mutual
        self.found = Conflicts()
        self.storages: dict[tuple[Key, int | None], Cells[_Cell]] = {}
        self.slots: dict[Key, set[int | None]] = {}
        self.pairs = 0

    def run(self) -> Conflicts:
        freed: _Freed = {}
        for node in self.program.nodes:
            if not node.touches:
                continue
            if freed or node.action == "free":
                _check_lifetime(node, freed, self.found)
            clock = self.order.clocks[node.index]
            if clock is None or not self.found.complete:
                continue
            needs: dict[int, int] = {}
            settled: list[_Cell] = []
            for touch in node.touches:
                for cells in self.meeting(touch):
                    for box, cell in cells.overlapping(touch.box):
                        ordered = self.compare(node, touch, clock, cell, needs)
                        if ordered and touch.mode in (Mode.WRITE, Mode.UPDATE) and covers(touch.box, box):
                            settled.append(cell)
            if needs:
                self.found.needs[node.index] = needs
            for cell in settled:
                cell.settle(node)
            for number, touch in enumerate(node.touches):
                self.remember(node, number, touch)
        return self.found

    def meeting(self, touch: Touch) -> list[Cells[_Cell]]:
        """The cells of all slots that an access can meet."""
        known = self.slots.setdefault(touch.storage, set())
        known.add(touch.slot)
        wanted = known if touch.slot is None else {touch.slot, None} & known
        found = (self.storages.get((touch.storage, slot)) for slot in wanted)
        return [cells for cells in found if cells is not None]

    def compare(self, node: Node, touch: Touch, clock: Clock, cell: _Cell, needs: dict[int, int]) -> bool:
        """Compare an access with those of a cell; whether all of them, conflicting or not, come before it."""
        ordered = self.compare_with(node, touch, clock, cell.new, needs)
        floor = cell.floor
        if floor is None or floor[0] == node.thread or clock.get(floor[0], 0) >= floor[1]:
            return ordered
        self.compare_with(node, touch, clock, cell.old, needs)
        return False

    def compare_with(
        self, node: Node, touch: Touch, clock: Clock, entries: dict[int, Recent], needs: dict[int, int]
    ) -> bool:
        ordered = True
        for thread, recent in entries.items():
            if thread == node.thread:
                continue
            certain = clock.get(thread, 0)
            for ordinal, index, other in reversed(recent.values()):
                if ordinal > certain:
                    ordered = False
                elif ordinal <= needs.get(thread, 0):
                    break
                kinds = conflict(other.mode, touch.mode)
                if not kinds:
                    continue
                if ordinal > needs.get(thread, 0):
                    needs[thread] = ordinal
                if ordinal <= certain:
                    break
                self.race(index, node, other, touch, kinds)
        return ordered

    def race(self, first: int, second: Node, a: Touch, b: Touch, kinds: tuple[str, ...]) -> None:
        if self.mutual and is_before(self.program, self.order, second.index, first):
            return
        self.pairs += 1
        if self.pairs <= MAX_PAIRS and len(self.found.races) < MAX_RACES:
            _add(self.found, self.program.nodes[first], second, a, b, kinds)
        else:
            self.found.complete = False

    def remember(self, node: Node, number: int, touch: Touch) -> None:
        cells = self.storages.setdefault((touch.storage, touch.slot), Cells())
        cell = cells.values.get(touch.box)
        if cell is None:
            cell = _Cell()
            cells.add(touch.box, cell)
        recent = cell.new.setdefault(node.thread, {})
        recent.pop((node.static, number), None)
        recent[(node.static, number)] = (node.ordinal, node.index, touch)


def _add(found: Conflicts, first: Node, second: Node, a: Touch, b: Touch, kinds: tuple[str, ...]) -> None:
    buffer = a.buffer if a.buffer == b.buffer else f"{a.buffer}/{b.buffer}"
    key = (name_of(first), name_of(second), buffer)
    distance = distance_of(first.instance, second.instance)
    race = found.races.get(key)
    if race is None:
        race = found.races[key] = FoundRace(first, second, buffer, distance)
    elif distance is not None and (race.distance is None or distance < race.distance):
        race.first, race.second, race.distance = first, second, distance
    race.kinds.update(kinds)


def distance_of(first: Path, second: Path) -> int | None:
    """How many iterations of their outermost differing common loop lie between two instances; None: no common loop."""
    shared = False
    for (loop, value), (other_loop, other) in zip(first, second, strict=False):
        if loop != other_loop:
            break
        if value != other:
            return abs(value - other)
        shared = True
    return 0 if shared else None


def _check_lifetime(node: Node, freed: _Freed, found: Conflicts) -> None:
    """Note reads of contents that a free has destroyed; what a write overwrites is live again, and no more."""
    if node.action == "free":
        for touch in node.touches:
            freed.setdefault(touch.storage, []).append((touch, node))
        return
    for touch in node.touches:
        if touch.mode.reads:
            for gone, free in freed.get(touch.storage, ()):
                if gone.root == touch.root and meets(gone, touch):
                    found.dangling.setdefault((free.static, node.static), (free, node))
    for touch in node.touches:
        some = freed.get(touch.storage, ())
        if touch.mode.writes and any(meets(gone, touch) for gone, _ in some):
            rest = [(part, free) for gone, free in some for part in without(gone, touch)]
            freed[touch.storage] = rest
            if not rest:
                del freed[touch.storage]
