"""Choose ring depths by the model: the least memory with which a loop is as fast as its streams allow.

A set of depths is fast enough where no cycle of the loop's graph takes longer than its distance allows. Where one does,
every set that is fast enough and at least as deep has a deeper ring on that cycle; so deepening each ring on it by one
step, cheapest set first, meets the cheapest set that is fast enough first. The search is exact; where it grows beyond
``MOST_TRIED`` sets or ``MOST_SEEN`` edges, the cheapest ring of each slow cycle is deepened instead, and every ring is
then tried shorter.

Without a limit on memory one search is enough. With one, or for the table of ``--explain-rings``, searches for ever
faster sets give every worthwhile pair of memory and interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

from dagsched.cost.bounds import Edge, find_slow_cycle
from dagsched.cost.loop_graph import LoopGraph, is_late
from dagsched.cost.slow_cycles import SlowCycles
from dagsched.plan.model import Buffer
from dagsched.plan.rings import RingRange

MOST_TRIED = 3_000
"""Sets of depths that one search looks at."""

MOST_SEEN = 400_000
"""Edges that all exact searches of one plan look at together; greedy ones come after."""

_STEP = Fraction(9, 10)
"""What a greedy point leaves of the slowdown of the one before, about."""

_CLOSE = Fraction(1001, 1000)
"""A greedy point that is nearer to the limit than this is followed by the last one."""

_NEARER = Fraction(1, 10**40)
"""Less than any difference between two ratios of times in picoseconds and distances in iterations."""

ANY = Fraction(10**9)
"""A slowdown that any depths have that the order of issue allows."""

Depths = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RingPoint:
    """Depths by buffer, the bytes of these rings by place, and what they make of the loops.

    ``slowdown`` is the largest interval of a loop over what its streams allow (1: the limit is reached); ``interval``
    is that of the slowest loop, in ticks. ``run`` is what the whole run takes, where its counts are constants and it
    has been simulated.
    """

    depths: dict[str, int]
    memory: dict[str, int]
    interval: Fraction
    slowdown: Fraction
    run: Fraction | None = None

    @property
    def ticks(self) -> Fraction:
        """What a point is judged by: the run where all counts are constants, else the slowest loop's interval."""
        return self.interval if self.run is None else self.run

    @property
    def price(self) -> int:
        """Bytes of all places."""
        return sum(self.memory.values())


@dataclass(frozen=True, slots=True)
class RingChoice:
    """The point that was chosen, and all points that were found, from the least memory to the fastest.

    ``exact``: no other depths with as little memory are as fast, as far as the model's graph tells.
    """

    chosen: RingPoint
    points: tuple[RingPoint, ...]
    exact: bool


class DepthSearch:
    """One plan's rings and loops; ``room`` is how many bytes its rings may take, by place (absent: any)."""

    def __init__(
        self,
        graphs: Sequence[LoopGraph],
        ranges: Mapping[str, RingRange],
        buffers: Mapping[str, Buffer],
        room: Mapping[str, int],
    ) -> None:
        self.graphs = graphs
        self.names = tuple(ranges)
        self.ranges = [ranges[name] for name in self.names]
        self.sizes = [buffers[name].size for name in self.names]
        self.places = [buffers[name].place.value for name in self.names]
        self.room = room
        self.exact = True
        self.left = MOST_SEEN
        self.late: dict[tuple[int, int], bool] = {}

    def least(self) -> Depths:
        """The fewest slots that the plan's meaning allows."""
        return tuple(choice.least for choice in self.ranges)

    def cheapest(self, slowdown: Fraction) -> Depths | None:
        """The depths of least memory whose slowdown is at most this; None where nothing within the room is as fast."""
        start = self.least()
        if not self.fits(start):
            return None
        line = [(self.price(start), start)]
        seen = {start}
        for _ in range(MOST_TRIED):
            if not line:
                return None
            if self.left <= 0:
                break
            _, depths = heappop(line)
            slow = self.slow_rings(depths, slowdown)
            if slow is None:
                return depths
            for ring in slow:
                deeper = self.deepen(depths, ring)
                if deeper is not None and deeper not in seen and self.fits(deeper):
                    seen.add(deeper)
                    heappush(line, (self.price(deeper), deeper))
        self.exact = False
        return self.greedy(slowdown)

    def greedy(self, slowdown: Fraction) -> Depths | None:
        """Some depths that are fast enough: deepen what costs least, then shorten what need not be as deep."""
        depths = self.least()
        for ring in range(len(depths)):
            while self.is_late(ring, depths[ring]):
                deeper = self.deepen(depths, ring)
                if deeper is None or not self.fits(deeper):
                    return None
                depths = deeper
        cycles = [SlowCycles(graph.ticks, graph.fixed, graph.floor * slowdown) for graph in self.graphs]
        for ring, depth in enumerate(depths):
            self.set_ring(cycles, ring, depth)
        while (slow := next((found for each in cycles if (found := each.find()) is not None), None)) is not None:
            options = [(deeper, ring) for ring in slow if (deeper := self.deepen(depths, ring)) and self.fits(deeper)]
            if not options:
                return None
            depths, ring = min(options, key=lambda option: self.dearer(depths, *option))
            self.set_ring(cycles, ring, depths[ring])
        for ring in sorted(range(len(depths)), key=lambda ring: -self.sizes[ring]):
            while shorter := self.shorten(depths, ring):
                saved = [each.save() for each in cycles]
                self.set_ring(cycles, ring, shorter[ring])
                if any(each.find() is not None for each in cycles):
                    self.set_ring(cycles, ring, depths[ring])
                    for each, labels in zip(cycles, saved, strict=True):
                        each.restore(labels)
                    break
                depths = shorter
        return depths

    def set_ring(self, cycles: Sequence[SlowCycles], ring: int, depth: int) -> None:
        """Give a ring a depth in all loops."""
        for graph, each in zip(self.graphs, cycles, strict=True):
            each.change(ring, graph.ring_edges(self.names[ring], depth))

    def dearer(self, depths: Depths, deeper: Depths, ring: int) -> tuple[int, int, int]:
        """What a deeper ring costs more: bytes, slots; the last such ring first."""
        steps = deeper[ring] - depths[ring]
        return self.sizes[ring] * steps, steps, -ring

    def slow_rings(self, depths: Depths, slowdown: Fraction) -> list[int] | None:
        """The rings on a cycle that is too slow (none: no depth helps), or None where there is no such cycle."""
        self.left -= sum(len(graph.fixed) + len(graph.ops) for graph in self.graphs)
        late = self.late_rings(depths)
        if late:
            return late
        named = dict(zip(self.names, depths, strict=True))
        for graph in self.graphs:
            edges: dict[Edge, int | None] = dict.fromkeys(graph.fixed)
            for ring, name in enumerate(self.names):
                for edge in graph.ring_edges(name, named[name]):
                    edges.setdefault(edge, ring)
            cycle = find_slow_cycle(graph.ticks, list(edges), graph.floor * slowdown)
            if cycle is not None:
                return sorted({found for edge in cycle if (found := edges[edge]) is not None})
        return None

    def deepen(self, depths: Depths, ring: int) -> Depths | None:
        """The same with one ring a step deeper, as far as its range and the plan's meaning allow."""
        return self.step(depths, ring, range(depths[ring] + 1, self.ranges[ring].most + 1))

    def shorten(self, depths: Depths, ring: int) -> Depths | None:
        """The same with one ring a step shorter, where the order of issue allows that."""
        shorter = self.step(depths, ring, range(depths[ring] - 1, self.ranges[ring].least - 1, -1))
        return None if shorter is None or self.is_late(ring, shorter[ring]) else shorter

    def late_rings(self, depths: Depths) -> list[int]:
        """The rings that are too short for the rounds by which ops are shifted."""
        return [ring for ring, depth in enumerate(depths) if self.is_late(ring, depth)]

    def is_late(self, ring: int, depth: int) -> bool:
        """Whether a ring of this depth is too short for the shifts."""
        if (ring, depth) not in self.late:
            name = self.names[ring]
            self.late[ring, depth] = any(
                is_late(edge, graph.shifts) for graph in self.graphs for edge in graph.ring_edges(name, depth)
            )
        return self.late[ring, depth]

    def step(self, depths: Depths, ring: int, options: range) -> Depths | None:
        depth = next((depth for depth in options if self.ranges[ring].keeps(depth)), None)
        return None if depth is None else (*depths[:ring], depth, *depths[ring + 1 :])

    def price(self, depths: Depths) -> tuple[int, int]:
        """Bytes, then slots."""
        return sum(size * depth for size, depth in zip(self.sizes, depths, strict=True)), sum(depths)

    def memory(self, depths: Depths) -> dict[str, int]:
        """Bytes by place."""
        total: dict[str, int] = dict.fromkeys(self.places, 0)
        for place, size, depth in zip(self.places, self.sizes, depths, strict=True):
            total[place] += size * depth
        return total

    def fits(self, depths: Depths) -> bool:
        """Whether the rings are within the room that they have."""
        return not self.room or all(
            bytes_ <= self.room.get(place, bytes_) for place, bytes_ in self.memory(depths).items()
        )

    def point(self, depths: Depths) -> RingPoint:
        """What given depths come to."""
        named = dict(zip(self.names, depths, strict=True))
        intervals = [graph.interval_at(named) for graph in self.graphs]
        pairs = [(interval, graph.floor) for interval, graph in zip(intervals, self.graphs, strict=True)]
        slowdown = max((interval / floor for interval, floor in pairs if floor), default=Fraction(1))
        return RingPoint(named, self.memory(depths), max(intervals, default=Fraction(0)), slowdown)

    def points(self) -> Iterator[RingPoint]:
        """All pairs of memory and slowdown of which none is better in both, from the least memory up."""
        depths = self.cheapest(ANY)
        while depths is not None:
            point = self.point(depths)
            yield point
            if point.slowdown <= 1:
                return
            target = point.slowdown - _NEARER
            if not self.exact:
                target = 1 + (point.slowdown - 1) * (_STEP if point.slowdown > _CLOSE else 0)
            depths = self.cheapest(max(Fraction(1), target))


def choose_depths(search: DepthSearch, *, table: bool = False, slowdown: Fraction = Fraction(1)) -> RingChoice | None:
    """The least memory for the slowdown, or else the fastest that fits; None where no depths fit.

    ``table`` finds all points in any case.
    """
    depths = None if table else search.cheapest(slowdown)
    if depths is not None:
        point = search.point(depths)
        return RingChoice(point, (point,), search.exact)
    points = tuple(search.points())
    if not points:
        return None
    chosen = next((point for point in points if point.slowdown <= slowdown), points[-1])
    return RingChoice(chosen, points, search.exact)
