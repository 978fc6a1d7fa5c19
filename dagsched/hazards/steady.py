"""The hazards that every iteration of a loop has once its start-up is over: the edges of its event graph.

``find_hazards`` keeps the smallest distance at which a pair ever meets, which is what a wait needs. A limit needs what
holds in *all* iterations: here the distance of a pair is the largest of the smallest ones of each iteration, and a pair
that some iteration does without is left out. Since the instances of one op follow one another, each edge found is a
constraint that every schedule obeys; where hazards are the same in every iteration, there are no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dagsched.hazards.history import KINDS, Dependencies
from dagsched.hazards.sweep import Clocks, Regime, Sweep, measure_loops
from dagsched.plan.model import Loop, Op, Plan


@dataclass(frozen=True, slots=True, order=True)
class LoopEdge:
    """``after@i`` comes after ``before@(i - distance)`` in every iteration i; ops by number in the whole plan.

    ``buffer`` is empty for an order that the plan states with ``after:``; ``kind`` is one of RAW, WAR, WAW, AFTER.
    """

    before: int
    after: int
    distance: int
    buffer: str
    kind: str


class _Notes(Clocks):
    """What each instance has to come after, by segment and iteration."""

    def __init__(self) -> None:
        self.place: dict[int, tuple[int, int, int]] = {}
        self.rows: dict[int, dict[int, list[tuple[int, Dependencies]]]] = {}

    def visit(self, number: int, segment: int, iteration: int, sequence: int, found: Dependencies) -> None:
        self.place[sequence] = (number, segment, iteration)
        self.rows.setdefault(segment, {}).setdefault(iteration, []).append((number, found))


def find_loop_edges(sweep: Sweep) -> tuple[tuple[LoopEdge, ...], ...]:
    """The edges of each segment's loop, sorted (none for a segment without a loop)."""
    notes = _Notes()
    regimes = measure_loops(sweep, notes)
    return tuple(
        _edges(notes, number, regimes[number]) if segment.loop else () for number, segment in enumerate(sweep.segments)
    )


def _edges(notes: _Notes, segment: int, regime: Regime) -> tuple[LoopEdge, ...]:
    """One loop's: over one period behind its start-up, or over all iterations where there is no period."""
    rows = notes.rows.get(segment, {})
    steady = [iteration for iteration in sorted(rows) if not regime.period or iteration >= regime.warmup]
    nearest: dict[tuple[int, int, str, int], dict[int, int]] = {}
    for iteration in steady:
        for number, found in rows[iteration]:
            for (earlier, buffer), kinds in found.items():
                before, home, source = notes.place[earlier]
                if home != segment:
                    continue
                for bit in KINDS:
                    if kinds & bit:
                        known = nearest.setdefault((before, number, buffer, bit), {})
                        known[iteration] = min(iteration - source, known.get(iteration, iteration - source))
    edges = []
    for (before, after, buffer, bit), distances in nearest.items():
        distance = max(distances.values())
        asked = steady if regime.period else [iteration for iteration in steady if iteration >= distance]
        if asked and all(iteration in distances for iteration in asked):
            edges.append(LoopEdge(before, after, distance, buffer, KINDS[bit]))
    return tuple(sorted(edges))


def restrict_plan(plan: Plan, buffers: Iterable[str], *, after: bool) -> Plan:
    """The same ops with only the accesses of some buffers, and with ``after:`` or without it.

    Without ``after:``, ops that touch none of the buffers are left out; loops stay. Hazards of different buffers do
    not depend on each other, so a plan's are those of its restrictions together.
    """
    kept = set(buffers)

    def stays(op: Op) -> bool:
        return after or any(access.buffer in kept for access in op.accesses)

    def trim(op: Op) -> Op:
        accesses = tuple(access for access in op.accesses if access.buffer in kept)
        return replace(op, accesses=accesses, after=op.after if after else ())

    items: list[Op | Loop] = []
    for item in plan.items:
        if isinstance(item, Loop):
            body = tuple(trim(op) for op in item.body if isinstance(op, Op) and stays(op))
            items.append(replace(item, body=body))
        elif stays(item):
            items.append(trim(item))
    named = {name: buffer for name, buffer in plan.buffers.items() if name in kept}
    return replace(plan, buffers=named, items=tuple(items))


def split_plan(plan: Plan, buffers: Iterable[str]) -> dict[str, Plan]:
    """The restriction of a plan to each of some buffers alone, without ``after:``; linear in the plan's accesses."""
    items: dict[str, list[Op | Loop]] = {name: [] for name in buffers}
    for item in plan.items:
        body = item.body if isinstance(item, Loop) else (item,)
        rows: dict[str, list[Op]] = {}
        for op in body:
            if isinstance(op, Op):
                for name in dict.fromkeys(access.buffer for access in op.accesses):
                    if name in items:
                        own = tuple(access for access in op.accesses if access.buffer == name)
                        rows.setdefault(name, []).append(replace(op, accesses=own, after=()))
        if isinstance(item, Loop):
            for name, row in items.items():
                row.append(replace(item, body=tuple(rows.get(name, ()))))
        else:
            for name, ops in rows.items():
                items[name] += ops
    return {name: replace(plan, buffers={name: plan.buffers[name]}, items=tuple(row)) for name, row in items.items()}


def shape_plan(plan: Plan) -> object:
    """What the edges of a plan of one buffer depend on, names of ops and buffers left out."""
    rows = []
    for item in plan.items:
        ops = [item] if isinstance(item, Op) else [op for op in item.body if isinstance(op, Op)]
        accesses = tuple(tuple((a.mode, a.region, a.version) for a in op.accesses) for op in ops)
        rows.append(((item.index, item.count) if isinstance(item, Loop) else None, accesses))
    return tuple(buffer.extents for buffer in plan.buffers.values()), tuple(rows)
