"""What a choice is made about, as whole numbers: ops, what each must come after, engines, calls, limits.

Ops are numbered as the plan stands. Those of a loop's body stand for one iteration: what they must come after is what
that iteration asks for (``dagsched.choice.rounds`` has the other iterations). Ops pinned to one stream keep the order
written, as ``dagsched.plan.order`` has it, so that pinning never changes what a stream does first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dagsched.cost.durations import OpCost
from dagsched.cost.engines import engine_capacity
from dagsched.cost.model import Device
from dagsched.cost.queues import to_ticks
from dagsched.cost.run_bounds import Run, make_run
from dagsched.hazards.model import Hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import OpKind

FREE = -1
"""The pin of an op that no stream is named for."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Ops as parallel tuples; times in ticks.

    ``before`` and ``after`` are the direct predecessors and successors by number (those of pinned order included);
    ``pin`` is a number into ``pinned`` or ``FREE``; ``urgency`` is an op's stated priority (low goes first) or None;
    ``most`` is how many streams there may be. ``issue``, ``record`` and ``wait`` are what calls cost the host.
    ``segment`` is the part of the plan that an op belongs to: parts run one after another, whatever the order in each.
    """

    names: tuple[str, ...]
    ticks: tuple[int, ...]
    engine: tuple[int, ...]
    share: tuple[int, ...]
    blocks: tuple[bool, ...]
    host: tuple[bool, ...]
    urgency: tuple[int | None, ...]
    pin: tuple[int, ...]
    pinned: tuple[str, ...]
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    engines: tuple[str, ...]
    capacities: tuple[int, ...]
    issue: int
    record: int
    wait: int
    depth: int | None
    most: int
    segment: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ticks)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer: op numbers in issue order, and the stream of each op; pinned streams have the first numbers.

    ``late`` says how many rounds late each op of a loop is issued (empty: none is).
    """

    order: tuple[int, ...]
    stream_of: tuple[int, ...]
    late: tuple[int, ...] = ()

    @property
    def streams(self) -> int:
        """How many streams are used."""
        return len(set(self.stream_of))


def make_problem(sweep: Sweep, hazards: Hazards, costs: Mapping[str, OpCost], device: Device, most: int) -> Problem:
    """The problem of a plan, for at most ``most`` streams; ``hazards`` are those of its rings at their least depths."""
    ops = sweep.ops
    spent = [costs[op.name] for op in ops]
    engines = tuple(dict.fromkeys(cost.engine.name for cost in spent))
    capacity = {cost.engine.name: engine_capacity(cost.engine) for cost in spent}
    pinned = tuple(dict.fromkeys(op.stream for op in ops if op.stream is not None))
    before: list[set[int]] = [set() for _ in ops]
    part = sweep.segment_of
    for hazard in hazards.entries:
        earlier, later = sweep.number[hazard.before], sweep.number[hazard.after]
        if part[earlier] == part[later] and not hazard.distance:
            before[later].add(earlier)
    newest: dict[tuple[int, str], int] = {}
    for number, op in enumerate(ops):
        if op.stream is not None:
            own = part[number], op.stream
            if own in newest:
                before[number].add(newest[own])
            newest[own] = number
    after: list[list[int]] = [[] for _ in ops]
    for number, row in enumerate(before):
        for earlier in row:
            after[earlier].append(number)
    return Problem(
        names=tuple(op.name for op in ops),
        ticks=tuple(to_ticks(cost.seconds) for cost in spent),
        engine=tuple(engines.index(cost.engine.name) for cost in spent),
        share=tuple(cost.share for cost in spent),
        blocks=tuple(cost.blocks for cost in spent),
        host=tuple(op.kind is OpKind.HOST for op in ops),
        urgency=tuple(op.priority for op in ops),
        pin=tuple(FREE if op.stream is None else pinned.index(op.stream) for op in ops),
        pinned=pinned,
        before=tuple(tuple(sorted(row)) for row in before),
        after=tuple(map(tuple, after)),
        engines=engines,
        capacities=tuple(capacity[name] for name in engines),
        issue=to_ticks(device.calls.issue),
        record=to_ticks(device.calls.record),
        wait=to_ticks(device.calls.wait),
        depth=device.limits.queue_depth,
        most=most,
        segment=sweep.segment_of,
    )


def describe_run(problem: Problem) -> Run:
    """The problem as the bounds of ``dagsched.cost.run_bounds`` take it."""
    calls = problem.issue, problem.record, problem.wait
    return make_run(problem.names, problem.ticks, problem.engine, problem.share, problem.before, calls)
