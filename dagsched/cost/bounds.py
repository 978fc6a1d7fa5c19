"""How fast any schedule could be: limits that neither streams nor waits can beat.

For one run see ``dagsched.cost.run_bounds``. For a loop: the busiest engine's work an iteration, and the maximum cycle
ratio of the dependencies (a cycle of total duration W whose hazards span D iterations takes at least W / D an
iteration; Reiter 1968, *Scheduling parallel computations*). All in whole ticks and fractions, so that a limit that is
met is met exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dagsched.cost.durations import OpCost
from dagsched.cost.engines import engine_capacity
from dagsched.cost.packing import find_weightings
from dagsched.cost.queues import TICKS, to_ticks

Edge = tuple[int, int, int]
"""(before, after, distance): ``after@i`` starts no earlier than ``before@(i - distance)`` ends."""


ISSUING = "the issuing thread is busy all the time"
"""Why a loop of many small ops is slow."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit in ticks, and what binds it: an engine by name, the ops of a path or cycle in order, or else a reason.

    ``cycle`` holds the cycle's edges where the limit is that of a loop, as numbers into that loop's ops.
    """

    ticks: Fraction
    engine: str | None = None
    ops: tuple[str, ...] = ()
    reason: str | None = None
    cycle: tuple[Edge, ...] = ()

    @property
    def seconds(self) -> float:
        """The limit in seconds."""
        return float(self.ticks / TICKS)

    @property
    def binds(self) -> str:
        """What binds, for people."""
        if self.reason is not None:
            return self.reason
        if self.engine is not None:
            return f"{self.engine} is busy all the time"
        if not self.ops:
            return "nothing"
        ops = self.ops if len(self.ops) <= 8 else (*self.ops[:4], "...", *self.ops[-3:])
        return " -> ".join(ops)


def bound_interval(ops: Sequence[str], costs: Mapping[str, OpCost], edges: Sequence[Edge], issue: int = 0) -> Bound:
    """The least time an iteration, for a loop body of these ops with these dependencies (numbers into ``ops``).

    An op has one stream for all iterations, so its instances run one after another: that is added here. ``issue`` is
    what one thread takes to issue an op, in ticks.
    """
    own = [(number, number, 1) for number in range(len(ops))]
    loads = [find_busiest_engine(ops, costs), Bound(Fraction(issue * len(ops)), reason=ISSUING)]
    load = max(loads, key=lambda bound: bound.ticks)
    ratio, cycle = find_slowest_cycle([to_ticks(costs[op].seconds) for op in ops], [*edges, *own], load.ticks)
    turning = Bound(ratio, ops=tuple(ops[before] for before, _, _ in cycle), cycle=tuple(cycle))
    return turning if cycle else load


def find_busiest_engine(ops: Sequence[str], costs: Mapping[str, OpCost]) -> Bound:
    """The engine with the most work for what it can do at once, for each op once."""
    members: dict[str, list[OpCost]] = {}
    for op in ops:
        members.setdefault(costs[op].engine.name, []).append(costs[op])
    bounds = [_bound_work(name, row) for name, row in members.items()]
    return max(bounds, key=lambda bound: bound.ticks, default=Bound(Fraction(0)))


def _bound_work(name: str, costs: Sequence[OpCost]) -> Bound:
    """The work of one engine's ops over its capacity, in the strictest of the ways to weigh them."""
    work: dict[int, int] = {}
    for cost in costs:
        work[cost.share] = work.get(cost.share, 0) + to_ticks(cost.seconds)
    best = Bound(Fraction(0), engine=name)
    for weighting in find_weightings(work, engine_capacity(costs[0].engine)):
        ticks = Fraction(sum(weighting.weights[share] * each for share, each in work.items()), weighting.room)
        if ticks > best.ticks:
            best = Bound(ticks, engine=name) if weighting.plain else Bound(ticks, reason=describe_full(name))
    return best


def describe_full(engine: str) -> str:
    """Why an engine cannot do more although some of its cores are free."""
    return f"{engine} is full all the time: no more of its ops fit side by side"


def find_cycle_ratio(ticks: Sequence[int], edges: Sequence[Edge]) -> tuple[Fraction, tuple[int, ...]]:
    """The maximum over all cycles of (sum of ``ticks``) / (sum of distances), and a cycle that has it.

    ``(0, ())`` where there is no cycle of positive duration. Raises ValueError for a cycle of distance 0, which no
    order of execution satisfies.
    """
    ratio, cycle = find_slowest_cycle(ticks, edges)
    return ratio, tuple(before for before, _, _ in cycle)


def find_slowest_cycle(
    ticks: Sequence[int], edges: Sequence[Edge], least: Fraction = Fraction(0)
) -> tuple[Fraction, list[Edge]]:
    """As :func:`find_cycle_ratio`, with the cycle's edges, or ``(least, [])`` where no cycle has a greater ratio.

    Newton's iteration: each round finds a cycle that is slower.
    """
    ratio = least
    slowest: list[Edge] = []
    line = sorted(set(edges))
    while (cycle := _better_cycle(ticks, line, ratio)) is not None:
        distance = sum(d for _, _, d in cycle)
        if distance <= 0:
            raise ValueError("a cycle of dependencies within one iteration")
        ratio = Fraction(sum(ticks[before] for before, _, _ in cycle), distance)
        slowest = cycle
    return ratio, slowest


def find_slow_cycle(ticks: Sequence[int], edges: Sequence[Edge], ratio: Fraction) -> list[Edge] | None:
    """A cycle whose duration exceeds ``ratio`` times its distance, or None; the same for equal sets of edges."""
    return _better_cycle(ticks, sorted(set(edges)), ratio)


def _better_cycle(ticks: Sequence[int], edges: Sequence[Edge], ratio: Fraction) -> list[Edge] | None:
    """A cycle whose duration exceeds ``ratio`` times its distance (Bellman and Ford, longest paths), or None."""
    p, q = ratio.numerator, ratio.denominator
    length = [0] * len(ticks)
    by: list[Edge | None] = [None] * len(ticks)
    for _ in range(len(ticks) + 1):
        changed = False
        for edge in edges:
            before, after, distance = edge
            reached = length[before] + ticks[before] * q - distance * p
            if reached > length[after]:
                length[after], by[after], changed = reached, edge, True
        if not changed:
            return None
        cycle = _cycle_of(by)
        if cycle is not None:
            return cycle
    raise AssertionError("unreachable: lengths grow for longer than any simple path only along a cycle")


def _cycle_of(by: Sequence[Edge | None]) -> list[Edge] | None:
    """A cycle of the graph in which every node has at most the one edge that last reached it."""
    seen = [0] * len(by)
    for root in range(len(by)):
        at = root
        while seen[at] == 0:
            seen[at] = root + 1
            edge = by[at]
            if edge is None:
                break
            at = edge[0]
        edge = by[at]
        if seen[at] != root + 1 or edge is None:
            continue
        cycle = [edge]
        while edge[0] != at:
            following = by[edge[0]]
            assert following is not None
            edge = following
            cycle.append(edge)
        return cycle[::-1]
    return None
