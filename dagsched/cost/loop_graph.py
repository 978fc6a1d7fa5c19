"""A loop as a marked graph: ops with durations, and edges that say how many iterations later one op follows another.

Three things make edges: hazards (of fixed buffers, and of each ring at each depth that may be chosen), the streams that
ops share, and copies that hold up the issuing thread. The maximum cycle ratio of the graph is a limit for the loop's
interval on those streams; where no engine is shared between streams it is the interval itself (max-plus theory).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from dagsched.cost.bounds import ISSUING, Bound, Edge, bound_interval, find_busiest_engine, find_slowest_cycle
from dagsched.cost.durations import OpCost
from dagsched.cost.model import Device
from dagsched.cost.queues import to_ticks
from dagsched.hazards.steady import LoopEdge, find_loop_edges, restrict_plan, shape_plan, split_plan
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan, Ring
from dagsched.plan.resolve import resolve_depths
from dagsched.plan.rings import RingRange, find_ring_ranges
from dagsched.plan.segments import Segment, split_segments


class RingEdges:
    """The edges that rings add, by buffer and depth, found when they are first asked for.

    ``ordered`` is the plan before its rings are fixed; ``ranges`` are the buffers whose depth may be chosen.
    """

    def __init__(self, ordered: Plan, ranges: Mapping[str, RingRange]) -> None:
        self.ordered = ordered
        self.ranges = dict(ranges)
        self.cache: dict[tuple[str, int], tuple[tuple[LoopEdge, ...], ...]] = {}
        self.local: dict[tuple[int, str, int], tuple[Edge, ...]] = {}  # of LoopGraph.ring_edges
        self.number = {op.name: number for number, op in enumerate(ordered.ops())}
        self.loops = [segment.loop is not None for segment in split_segments(ordered)]
        self.alone = split_plan(ordered, ranges)
        self.shapes = {name: shape_plan(plan) for name, plan in self.alone.items()}
        self.known: dict[tuple[object, int], list[tuple[LoopEdge, ...]]] = {}
        self.last: tuple[Plan, tuple[tuple[LoopEdge, ...], ...]] | None = None  # of ``fixed``, asked for several times

    def at(self, buffer: str, depth: int) -> tuple[tuple[LoopEdge, ...], ...]:
        """For each segment of the plan the edges of one buffer at one depth, ops by number in the whole plan."""
        key = buffer, depth
        if key not in self.cache:
            plan = self.alone[buffer]
            alike = self.shapes[buffer], depth
            if alike not in self.known:
                sweep = Sweep(resolve_depths(plan, {buffer: depth}))
                found = zip(find_loop_edges(sweep), sweep.segments, strict=True)
                self.known[alike] = [row for row, segment in found if segment.loop is not None]
            number = [self.number[op.name] for op in plan.ops()]
            rows = [
                tuple(LoopEdge(number[e.before], number[e.after], e.distance, buffer, e.kind) for e in row)
                for row in self.known[alike]
            ]
            of_loops = iter(rows)
            self.cache[key] = tuple(next(of_loops) if looped else () for looped in self.loops)
        return self.cache[key]

    def fixed(self, resolved: Plan) -> tuple[tuple[LoopEdge, ...], ...]:
        """For each segment the edges that no choice changes: those of all other buffers, and ``after:``."""
        if not any(self.loops):
            return ((),) * len(self.loops)
        if self.last is None or self.last[0] is not resolved:
            others = [name for name in resolved.buffers if name not in self.ranges]
            self.last = resolved, find_loop_edges(Sweep(restrict_plan(resolved, others, after=True)))
        return self.last[1]


def ring_edges(ordered: Plan) -> RingEdges:
    """The rings of an ordered plan whose depth may be chosen."""
    return RingEdges(ordered, find_ring_ranges(ordered, split_segments(ordered)))


@dataclass(frozen=True, slots=True)
class LoopGraph:
    """One loop: ops by name with their ticks, the edges that no depth changes, and those of each ring at each depth.

    Edges number the loop's ops from 0. ``fixed`` are those of hazards and of streams, ``members`` the ops of each
    stream in the order issued, ``shifts`` how many rounds late each op is issued. ``load`` is what engines and calls
    take, ``floor`` what no depth can beat on these streams, both in ticks an iteration. A loop whose copies hold up the
    issuing thread has no ``members``: its ops cannot be shifted.
    """

    segment: int
    first: int
    ops: tuple[str, ...]
    ticks: tuple[int, ...]
    fixed: tuple[Edge, ...]
    rings: RingEdges
    members: tuple[tuple[int, ...], ...] = ()
    hazards: tuple[Edge, ...] = ()
    shifts: tuple[int, ...] = ()
    load: Fraction = Fraction(0)
    floor: Fraction = Fraction(0)

    def ring_edges(self, buffer: str, depth: int) -> tuple[Edge, ...]:
        """The edges of one ring at a depth."""
        known = self.rings.local.get((self.segment, buffer, depth))
        if known is None:
            known = tuple(local_edge(edge, self.first) for edge in self.rings.at(buffer, depth)[self.segment])
            self.rings.local[self.segment, buffer, depth] = known
        return known

    def loosest_edges(self) -> list[Edge]:
        """The edges of all rings at the greatest depths that they may have."""
        return [edge for name, choice in self.rings.ranges.items() for edge in self.ring_edges(name, choice.most)]

    def edges_at(self, depths: Mapping[str, int]) -> list[Edge]:
        """All edges for given depths."""
        return [*self.fixed, *(edge for name, depth in depths.items() for edge in self.ring_edges(name, depth))]

    def interval_at(self, depths: Mapping[str, int]) -> Fraction:
        """Ticks an iteration for given depths, as far as the graph tells."""
        return find_slowest_cycle(self.ticks, self.edges_at(depths), self.floor)[0]


def shift_graph(graph: LoopGraph, shifts: Sequence[int]) -> LoopGraph | None:
    """The same loop with ops issued some rounds late; None where that is no order that the hazards allow."""
    edges = [*graph.hazards]
    for members in graph.members:
        edges += order_edges(members, shifts)
    moved = replace(graph, fixed=tuple(dict.fromkeys(edges)), shifts=tuple(shifts), floor=graph.load)
    rings = graph.loosest_edges()
    if any(is_late(edge, shifts) for edge in (*graph.hazards, *rings)):
        return None
    try:
        ratio, _ = find_slowest_cycle(graph.ticks, (*moved.fixed, *rings), graph.load)
    except ValueError:
        return None
    return replace(moved, floor=ratio)


def is_late(edge: Edge, shifts: Sequence[int]) -> bool:
    """Whether the order of issue contradicts a hazard: what has to come before is issued behind."""
    before, after, distance = edge
    rounds = shifts[after] + distance - shifts[before]
    return rounds < 0 or (rounds == 0 and before >= after)


def local_edge(edge: LoopEdge, first: int) -> Edge:
    """A hazard as an edge between ops numbered within their loop, the first of which is ``first`` in the plan."""
    return edge.before - first, edge.after - first, edge.distance


def order_edges(members: Sequence[int], shifts: Sequence[int] | None = None) -> list[Edge]:
    """What a stream adds that runs these ops in this order in each round, each late by its shift."""
    late = shifts or [0] * (max(members, default=0) + 1)
    ring = [(a, b, late[a] - late[b]) for a, b in pairwise(members)]
    return [*ring, (members[-1], members[0], 1 + late[members[-1]] - late[members[0]])] if members else []


def blocking_edges(segment: Segment, costs: Mapping[str, OpCost]) -> list[Edge]:
    """A copy of pageable memory holds the issuing thread, so all that is issued later starts behind it."""
    edges: list[Edge] = []
    for number, op in enumerate(segment.ops):
        if costs[op.name].blocks:
            edges += [(number, other, 0 if other > number else 1) for other in range(len(segment.ops))]
    return edges


def build_graphs(
    resolved: Plan, rings: RingEdges, stream_of: Sequence[int], costs: Mapping[str, OpCost], device: Device
) -> list[LoopGraph]:
    """A graph for every loop of a resolved plan with ops on streams (by number); ``resolved`` has any depths."""
    fixed = rings.fixed(resolved)
    most = {name: choice.most for name, choice in rings.ranges.items()}
    graphs = []
    for number, segment in enumerate(split_segments(resolved)):
        if segment.loop is None or not segment.ops:
            continue
        names = tuple(op.name for op in segment.ops)
        streams: dict[int, list[int]] = {}
        for at in range(len(names)):
            streams.setdefault(stream_of[segment.first + at], []).append(at)
        hazards = [local_edge(edge, segment.first) for edge in fixed[number]]
        blocking = blocking_edges(segment, costs)
        edges = [*hazards, *blocking]
        for members in streams.values():
            edges += order_edges(members)
        load = max(bound.ticks for bound in load_bounds(names, costs, device))
        graph = LoopGraph(
            segment=number,
            first=segment.first,
            ops=names,
            ticks=tuple(to_ticks(costs[name].seconds) for name in names),
            fixed=tuple(dict.fromkeys(edges)),
            rings=rings,
            members=() if blocking else tuple(map(tuple, streams.values())),
            hazards=tuple(dict.fromkeys(hazards)),
            shifts=(0,) * len(names),
            load=load,
            floor=load,
        )
        graphs.append(replace(graph, floor=graph.interval_at(most)))
    return graphs


def load_bounds(ops: Sequence[str], costs: Mapping[str, OpCost], device: Device) -> list[Bound]:
    """What the busiest engine and the thread that issues everything take for an iteration."""
    issuing = Fraction(to_ticks(device.calls.issue) * len(ops))
    return [find_busiest_engine(ops, costs), Bound(issuing, reason=ISSUING)]


def bound_loops(resolved: Plan, rings: RingEdges, costs: Mapping[str, OpCost], device: Device) -> dict[int, Bound]:
    """What no streams and no allowed depths can beat, for every loop by the number of its segment."""
    fixed = rings.fixed(resolved)
    bounds = {}
    for number, segment in enumerate(split_segments(resolved)):
        if segment.loop is None:
            continue
        labelled = list(fixed[number])
        for name, choice in rings.ranges.items():
            labelled += rings.at(name, choice.most)[number]
        edges: dict[Edge, LoopEdge] = {}
        for label in labelled:
            edges.setdefault(local_edge(label, segment.first), label)
        for edge in blocking_edges(segment, costs):
            edges.setdefault(edge, LoopEdge(*edge, "", "BLOCK"))
        names = [op.name for op in segment.ops]
        bound = bound_interval(names, costs, list(edges), to_ticks(device.calls.issue))
        if bound.cycle:
            links = [edges.get(edge) for edge in bound.cycle]
            bound = replace(bound, reason=describe_cycle(names, segment, bound.cycle, links, rings.ordered))
        bounds[number] = bound
    return bounds


def describe_cycle(
    names: Sequence[str],
    segment: Segment,
    cycle: Sequence[Edge],
    links: Sequence[LoopEdge | None],
    ordered: Plan,
) -> str:
    """The links of a cycle that lead from one iteration to a later one, and what would loosen them."""
    assert segment.loop is not None
    if len(cycle) == 1 and links[0] is None:
        return f"{names[cycle[0][0]]} runs all the time, one iteration after another"
    index = segment.loop.index
    parts = []
    for (before, after, distance), link in zip(cycle, links, strict=True):
        if distance == 0 or link is None:
            continue
        here, there = f"{names[before]}@{index}", f"{names[after]}@{index}+{distance}"
        if link.kind == "RAW":
            parts.append(f"{there} reads {link.buffer} of {here}")
        elif link.kind in ("WAR", "WAW") and _can_deepen(ordered, link.buffer):
            parts.append(f"{there} waits for {here}: deepen ring {link.buffer}")
        else:
            parts.append(f"{there} waits for {here}" + (f", which uses {link.buffer}" if link.buffer else ""))
    shown = parts if len(parts) <= 3 else [*parts[:3], f"and {len(parts) - 3} more"]
    return ", ".join(shown) or " -> ".join(names[before] for before, _, _ in cycle)


def _can_deepen(ordered: Plan, buffer: str) -> bool:
    """Whether more slots would keep the plan's meaning."""
    known = ordered.buffers[buffer]
    deeper = replace(known, ring=Ring(None, (known.ring.depth or known.ring.min), None))
    plan = restrict_plan(replace(ordered, buffers={buffer: deeper}), [buffer], after=False)
    return buffer in find_ring_ranges(plan, split_segments(plan))
