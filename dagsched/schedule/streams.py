"""Put ops on streams.

A policy gives every op a lane; lanes become streams. ``engine``: one per engine of the device, and one per host
function (a host thread each, since a thread that waits for one op could not run another). ``single``: one for all.
``concurrent``: the fewest chains of dependent ops. Pinned ops keep the stream that they name. Where lanes outnumber
what the plan or the device allows, the two with the fewest ops are joined, host lanes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.engines import engine_capacity
from dagsched.cost.estimate import Instance, estimate_makespan
from dagsched.cost.model import Device
from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.hazards.history import Dependencies
from dagsched.hazards.model import Hazards
from dagsched.hazards.sweep import Sample, Sweep
from dagsched.plan.expressions import Int
from dagsched.plan.model import OpKind, Plan
from dagsched.schedule.cover import cover_chains
from dagsched.schedule.model import Stream

CLOCK_ENTRIES = 2_000_000
"""Ops times streams at the most: every op has a clock of all streams, in the passes and in the proof."""

FEW_STREAMS = 64
"""So many streams any plan may have; beyond those that ops are pinned to, an eighth of it."""

ESTIMATED_ITERATIONS = 8
ESTIMATED_INSTANCES = 20_000


@dataclass(frozen=True, slots=True)
class Assignment:
    """Streams in the order of their first ops, the stream of each op by number, and the policy that gave them."""

    streams: tuple[Stream, ...]
    stream_of: tuple[int, ...]
    policy: str


def assign_streams(sweep: Sweep, hazards: Hazards, device: Device) -> Assignment:
    """The assignment for a plan's policy; ``auto`` estimates all and keeps the quickest, the simplest of equals.

    Raises :class:`PlanError` where ops are pinned to more streams than are allowed.
    """
    costs = op_costs(sweep.plan, device)
    most = most_streams(sweep, device)
    if sweep.plan.streams.policy != "auto":
        return assign_by_policy(sweep, hazards, costs, sweep.plan.streams.policy, most)
    candidates = [assign_by_policy(sweep, hazards, costs, policy, most) for policy in candidate_policies(sweep)]
    if len({candidate.stream_of for candidate in candidates}) == 1:
        return candidates[0]
    instances = _unroll(sweep)
    times = [_estimate(sweep, candidate, costs, instances, device) for candidate in candidates]
    return candidates[min(range(len(candidates)), key=lambda n: (round(times[n], 12), n))]


def candidate_policies(sweep: Sweep) -> tuple[str, ...]:
    """The policies that ``auto`` tries, the simplest first."""
    return ("engine", "single", "concurrent") if len(sweep.ops) > 1 else ("engine",)


def most_streams(sweep: Sweep, device: Device) -> int:
    """How many streams there may be, by the plan, the device, and on plans of thousands of ops ``CLOCK_ENTRIES``."""
    limits = [limit for limit in (sweep.plan.streams.max, device.limits.streams) if limit is not None]
    most = min(limits, default=len(sweep.ops) or 1)
    pins = sorted({op.stream for op in sweep.ops if op.stream is not None})
    if len(pins) > most:
        places = [op.where for op in sweep.ops if op.stream == pins[most]]
        raise PlanError(
            [
                Diagnostic(
                    code="P250",
                    headline=f"ops are pinned to {len(pins)} streams, and at most {most} are allowed",
                    where=places[0],
                    source=sweep.plan.source,
                    notes=("pinned: " + ", ".join(f"`{name}`" for name in pins),),
                    help=f"set `streams: {{max: {len(pins)}}}`, or pin fewer streams",
                )
            ]
        )
    return min(most, max(CLOCK_ENTRIES // max(1, len(sweep.ops)), FEW_STREAMS, len(pins) + FEW_STREAMS // 8))


def assign_by_policy(sweep: Sweep, hazards: Hazards, costs: dict[str, OpCost], policy: str, most: int) -> Assignment:
    """The assignment that one policy gives, on at most ``most`` streams."""
    lane_of = _POLICIES[policy](sweep, hazards, costs)
    pinned = {op.stream for op in sweep.ops if op.stream is not None}
    host = set(lane_of) - {lane for lane, op in zip(lane_of, sweep.ops, strict=True) if op.kind is not OpKind.HOST}
    return make_assignment(sweep, costs, _merge(lane_of, most, pinned, host), policy)


def make_assignment(sweep: Sweep, costs: dict[str, OpCost], lane_of: list[str], policy: str) -> Assignment:
    """The streams that ops on named lanes make."""
    on: dict[str, list[int]] = {}
    for n, lane in enumerate(lane_of):
        on.setdefault(lane, []).append(n)
    numbers = {name: n for n, name in enumerate(on)}
    streams = []
    for name, members in on.items():
        engines = {costs[sweep.ops[n].name].engine.name for n in members}
        priorities = {sweep.ops[n].priority for n in members} - {None}
        streams.append(
            Stream(
                name=name,
                host=all(sweep.ops[n].kind is OpKind.HOST for n in members),
                engine=engines.pop() if len(engines) == 1 else None,
                priority=min(p for p in priorities if p is not None) if priorities else None,
            )
        )
    return Assignment(tuple(streams), tuple(numbers[lane] for lane in lane_of), policy)


def _by_engine(sweep: Sweep, hazards: Hazards, costs: dict[str, OpCost]) -> list[str]:
    engines = {cost.engine.name for cost in costs.values()}
    lanes = []
    for op in sweep.ops:
        lane = costs[op.name].engine.name
        if op.kind is OpKind.HOST:
            base = op.function or op.name
            lane = f"{base} (host)" if base in engines else base
        lanes.append(op.stream or lane)
    return lanes


def _single(sweep: Sweep, hazards: Hazards, costs: dict[str, OpCost]) -> list[str]:
    return [op.stream or "main" for op in sweep.ops]


def _concurrent(sweep: Sweep, hazards: Hazards, costs: dict[str, OpCost]) -> list[str]:
    lanes = [op.stream or "" for op in sweep.ops]
    taken = set(lanes)
    edges = [(sweep.number[h.before], sweep.number[h.after]) for h in hazards.entries if h.distance in (0, None)]
    chains = cover_chains(len(sweep.ops), [edge for edge in edges if edge[0] < edge[1]])
    number = 0
    for chain in chains:
        if all(sweep.ops[n].stream is not None for n in chain):
            continue
        while f"s{number}" in taken:
            number += 1
        for n in chain:
            lanes[n] = lanes[n] or f"s{number}"
        number += 1
    return lanes


_POLICIES: dict[str, Callable[[Sweep, Hazards, dict[str, OpCost]], list[str]]] = {
    "engine": _by_engine,
    "single": _single,
    "concurrent": _concurrent,
}


def _merge(lane_of: list[str], most: int, pinned: set[str], host: set[str]) -> list[str]:
    """Join lanes until there are no more than ``most``; pinned ones keep their names and are joined last."""
    sizes, first = Counter(lane_of), {lane: n for n, lane in reversed(list(enumerate(lane_of)))}
    # The lanes by class, in the order in which they are joined: free before pinned, of these host before device.
    heaps: dict[tuple[bool, bool], list[tuple[int, int, str]]] = {
        (named, device): [] for named in (False, True) for device in (False, True)
    }
    for lane, size in sizes.items():
        heaps[lane in pinned, lane not in host].append((size, first[lane], lane))
    for heap in heaps.values():
        heapify(heap)
    joined: dict[str, str] = {}
    for _ in range(len(sizes) - most):
        (_, gone_device), heap = next(row for row in heaps.items() if row[1])
        gone = heappop(heap)[2]
        alike = [row for row in heaps.items() if row[1] and row[0][1] == gone_device]
        (_, kept_device), heap = (alike or [row for row in heaps.items() if row[1]])[0]
        kept = heappop(heap)[2]
        if kept not in pinned and first[gone] < first[kept] and kept_device == gone_device:
            gone, kept = kept, gone
        joined[gone] = kept
        sizes[kept] += sizes[gone]
        first[kept] = min(first[kept], first[gone])
        heappush(heaps[kept in pinned, kept not in host], (sizes[kept], first[kept], kept))
    names = {lane: lane for lane in sizes}
    for gone in reversed(joined):  # whatever a lane was joined to was joined later, if at all
        names[gone] = names[joined[gone]]
    return [names[lane] for lane in lane_of]


def _unroll(sweep: Sweep) -> list[tuple[int, tuple[int, ...]]]:
    """A few iterations of everything: (op number, positions of what it comes after)."""
    counts = []
    for segment in sweep.segments:
        limit = ESTIMATED_ITERATIONS if segment.loop else 1
        limit = min(limit, segment.count.value) if isinstance(segment.count, Int) else limit
        counts.append(min(limit, max(1, ESTIMATED_INSTANCES // max(1, len(segment.ops)))))
    params = tuple((name, ESTIMATED_ITERATIONS) for name in sorted(sweep.plan.params))
    rows: list[tuple[int, tuple[int, ...]]] = []

    def visit(number: int, segment: int, iteration: int, sequence: int, found: Dependencies) -> None:
        rows.append((number, tuple({earlier for earlier, _ in found})))

    counts = [min(n, limit) for n, limit in zip(counts, sweep.limits, strict=True)]
    sweep.run(Sample(params, tuple(counts)), visit)
    return rows


def _estimate(
    sweep: Sweep,
    assignment: Assignment,
    costs: dict[str, OpCost],
    rows: list[tuple[int, tuple[int, ...]]],
    device: Device,
) -> float:
    engines = list(dict.fromkeys(cost.engine.name for cost in costs.values()))
    capacity = {cost.engine.name: engine_capacity(cost.engine) for cost in costs.values()}
    instances = []
    for number, predecessors in rows:
        cost = costs[sweep.ops[number].name]
        instances.append(
            Instance(
                sweep.ops[number].name,
                assignment.stream_of[number],
                engines.index(cost.engine.name),
                cost.seconds,
                predecessors,
                cost.share,
                cost.blocks,
            )
        )
    return estimate_makespan(instances, device.calls, [capacity[name] for name in engines], device.limits.queue_depth)


def stream_names(plan: Plan, assignment: Assignment) -> dict[str, str]:
    """The stream of each op by name."""
    return {op.name: assignment.streams[n].name for op, n in zip(plan.ops(), assignment.stream_of, strict=True)}
