"""Fix the depth of every ring that the plan leaves open, for given streams.

The model's graph proposes (``dagsched.cost.depths``), the simulator decides. Where no engine is shared between streams
the two agree. Where they do not, because ops of several streams take turns on an engine or because a loop of constant
count spends its time on filling up, rings with a slot more are tried; what brings nothing is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm

from dagsched.cost.depths import Depths, DepthSearch, RingChoice, RingPoint, choose_depths
from dagsched.cost.loop_graph import LoopGraph, RingEdges
from dagsched.cost.model import Device
from dagsched.cost.predict import Measured
from dagsched.diagnostics import Diagnostic, LimitError
from dagsched.plan.model import Place, Plan
from dagsched.plan.resolve import resolve_depths

MOST_SIMULATED = 24
"""Sets of depths that are simulated at the most."""

WORTH = Fraction(999, 1000)
"""A deeper ring must bring a run of constant length below this share of its time."""

MOST_TEDIUM = 60_000
"""Instances that are gone through for sets of depths with ops issued late, beyond those that the graph proposes."""

_START_UP = 16
"""Iterations until a loop's rings show their pattern, about."""

_ROOMY = 3
"""Slots beyond the least that a ring is likely to get."""

Measure = Callable[[dict[str, int]], Measured]
"""What a schedule with rings of given depths takes."""

Wanted = Callable[[Measured], bool]
"""Whether a schedule that takes so long is of use."""


def make_search(rings: RingEdges, resolved: Plan, graphs: Sequence[LoopGraph], device: Device) -> DepthSearch:
    """All that the choice of depths depends on, for loops on given streams.

    ``rings`` are those of the ordered plan, ``resolved`` is that plan with any depths. Raises :class:`LimitError`
    (C103) where the buffers do not fit into the memory that the plan or the device allows.
    """
    ranges = rings.ranges
    others = {place.value: 0 for place in Place}
    for buffer in resolved.buffers.values():
        if buffer.name not in ranges:
            others[buffer.place.value] += buffer.size * (buffer.ring.depth or 1)
    limits = memory_limits(resolved, device)
    room = {place: limit - others[place] for place, limit in limits.items()}
    least = dict(others)
    for name, allowed in ranges.items():
        least[resolved.buffers[name].place.value] += resolved.buffers[name].size * allowed.least
    require_memory(resolved, device, least)
    return DepthSearch(graphs, ranges, resolved.buffers, room)


def choose_ring_depths(
    search: DepthSearch, measure: Measure, *, table: bool = False, wanted: Wanted | None = None
) -> RingChoice | None:
    """Depths for the rings with a choice; None where the room is too small for how far ops are shifted.

    ``table`` asks for all pairs of memory and interval; those of a table are the simulator's. Where the best is not
    ``wanted``, memory is not saved either.
    """
    choice = choose_depths(search, table=table)
    if choice is None or not search.names:
        return choice
    choice = _judge(search, choice, measure, wanted)
    return _simulate_points(choice, measure) if table else choice


def _simulate_points(choice: RingChoice, measure: Measure) -> RingChoice:
    """What each point really takes (calls and engines that streams share are not in the graph), less the useless."""
    points = [point for point in choice.points if point != choice.chosen]
    step = -(-len(points) // MOST_SIMULATED) or 1
    chosen = _simulate_point(choice.chosen, measure)
    known = [*(_simulate_point(point, measure) for point in points[::step]), chosen]
    known.sort(key=lambda point: (point.price, point.ticks))
    kept: list[RingPoint] = []
    for point in known:
        if point is chosen or not kept or point.ticks < min(other.ticks for other in kept):
            kept.append(point)
    return replace(choice, chosen=chosen, points=tuple(kept))


def _simulate_point(point: RingPoint, measure: Measure) -> RingPoint:
    measured = measure(point.depths)
    if measured.loop is None:
        return replace(point, run=measured.ticks)
    return replace(point, interval=measured.ticks)


def with_depths(ordered: Plan, resolved: Plan, depths: Mapping[str, int]) -> Plan:
    """The resolved plan with some of its rings at other depths."""
    known = {name: buffer.ring.depth or 1 for name, buffer in resolved.buffers.items()}
    return resolved if known == {**known, **depths} else resolve_depths(ordered, {**known, **depths})


def memory_limits(plan: Plan, device: Device) -> dict[str, int]:
    """Bytes that the buffers of each place may take: the smaller of what plan and device say."""
    rows = {
        "host": [plan.memory.host, device.memory.host],
        "device": [plan.memory.device, device.memory.device],
    }
    known = {place: [limit for limit in limits if limit is not None] for place, limits in rows.items()}
    return {place: min(limits) for place, limits in known.items() if limits}


def require_memory(plan: Plan, device: Device, taken: Mapping[str, int]) -> None:
    """Refuse buffers that do not fit (C103)."""
    faults = []
    for place, limit in memory_limits(plan, device).items():
        if taken[place] > limit:
            own = plan.memory.host if place == "host" else plan.memory.device
            who = "the plan allows" if own == limit else f"`{device.name}` has"
            headline = f"the buffers take at least {taken[place]:,} bytes of {place} memory, and {who} {limit:,}"
            help_ = "shorten rings that are fixed or have a `min`, or make buffers smaller"
            if own == limit:
                help_ = f"write `memory: {{{place}: {taken[place]}}}` in the plan, or shorten rings and buffers"
            notes = (f"the largest: {_largest(plan, place)}",)
            faults.append(Diagnostic("C103", headline, None, plan.source, notes=notes, help=help_))
    if faults:
        raise LimitError(faults)


def price_rings(rings: RingEdges, resolved: Plan, graph: LoopGraph) -> tuple[int, int]:
    """Bytes and slots of the rings with which one loop is as fast as its streams allow, if memory had no limit."""
    search = DepthSearch([graph], rings.ranges, resolved.buffers, {})
    depths = search.cheapest(Fraction(1))
    return search.price(depths if depths is not None else search.least())


def likely_depths(search: DepthSearch) -> dict[str, int]:
    """Depths at which the choice will hardly end above, for models that come before it: a few slots more than least."""
    depths = search.least()
    for _ in range(_ROOMY):
        depths = _widen(search, depths)
    return dict(zip(search.names, depths, strict=True))


def _largest(plan: Plan, place: str) -> str:
    """The three buffers of a place that take most in one slot."""
    sizes = sorted((-buffer.size, name) for name, buffer in plan.buffers.items() if buffer.place.value == place)
    return ", ".join(f"`{name}` with {-size:,} bytes a slot" for size, name in sizes[:3])


def _judge(search: DepthSearch, choice: RingChoice, measure: Measure, wanted: Wanted | None) -> RingChoice:
    """Let the simulator have the last word on what the graph proposes."""
    left, tedium = MOST_SIMULATED, MOST_TEDIUM
    known: dict[Depths, Measured] = {}

    def may(depths: Depths) -> bool:
        return left > 0 and _tell_tedium(search, depths) <= tedium

    def look(depths: Depths) -> Fraction:
        nonlocal left, tedium
        if depths not in known:
            left, tedium = left - 1, tedium - _tell_tedium(search, depths)
            known[depths] = measure(dict(zip(search.names, depths, strict=True)))
        return known[depths].ticks

    depths = tuple(choice.chosen.depths[name] for name in search.names)
    ticks, looped = look(depths), known[depths].loop is not None
    if looped and ticks <= choice.chosen.interval:
        return choice
    least = Fraction(1) if looped else WORTH
    best = depths
    for _ in range(2):  # one slot more, then two: beyond that, turns on an engine do not get better
        wider = _widen(search, best)
        if wider == best or not may(wider) or not look(wider) < look(best) * least:
            break
        best = wider
    enough = look(best) / least
    useful = wanted is None or wanted(known[best])
    for ring in sorted(range(len(best)), key=lambda ring: -search.sizes[ring]) if useful else ():
        while (shorter := search.shorten(best, ring)) and may(shorter) and look(shorter) <= enough:
            best = shorter
    if best == depths:
        return choice
    return replace(choice, chosen=search.point(best), exact=False)


def _tell_tedium(search: DepthSearch, depths: Depths) -> int:
    """Instances in building a schedule with ops issued late: every count up to some patterns of the rings is gone
    through, behind the start-up."""
    shifted = [graph for graph in search.graphs if any(graph.shifts)]
    return (lcm(*depths) + _START_UP) ** 2 * sum(len(graph.ops) for graph in shifted)


def _widen(search: DepthSearch, depths: Depths) -> Depths:
    """Every ring a slot deeper, as far as there is room."""
    for ring in range(len(depths)):
        deeper = search.deepen(depths, ring)
        depths = deeper if deeper is not None and search.fits(deeper) else depths
    return depths
