"""An oracle that shares nothing with the passes: unroll, compare all pairs, reduce with networkx."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from dagsched.plan.expressions import evaluate, holds
from dagsched.plan.model import Loop, Mode, Op, Plan
from dagsched.schedule.model import EventStep, LoopStep, OpStep, Schedule

Instance = tuple[str, int]
Edge = tuple[Instance, Instance]
Touched = tuple[str, int, list[tuple[int, int]], Mode]


def instances(plan: Plan, params: dict[str, int]) -> Iterator[tuple[Op, int, dict[str, int], int]]:
    """(op, iteration, environment, item number) in the plan's order; loops hold ops only."""
    for number, item in enumerate(plan.items):
        if isinstance(item, Op):
            yield item, 0, dict(params), number
            continue
        assert isinstance(item, Loop)
        for i in range(evaluate(item.count, params)):
            for op in item.body:
                assert isinstance(op, Op)
                yield op, i, {**params, item.index: i}, number


def conflicts(plan: Plan, params: dict[str, int]) -> set[Edge]:
    """All ordered pairs of instances that conflict (or that ``after:`` orders)."""
    rows: list[tuple[Instance, list[Touched]]] = []
    last: dict[str, list[tuple[int, int]]] = {}
    edges: set[Edge] = set()
    for op, i, env, item in instances(plan, params):
        touched = []
        for access in op.accesses:
            buffer = plan.buffers[access.buffer]
            slot = evaluate(access.version, env) % (buffer.ring.depth or 1) if access.version is not None else 0
            box = []
            for axis, extent in enumerate(buffer.extents):
                lo, hi = 0, extent
                if axis < len(access.region):
                    part = access.region[axis]
                    lo = evaluate(part.lo, env) if part.lo is not None else 0
                    hi = evaluate(part.hi, env) if part.hi is not None else extent
                box.append((lo, hi))
            touched.append((access.buffer, slot, box, access.mode))
        me = (op.name, i)
        for other, theirs in rows:
            if any(_meet(a, b) for a in theirs for b in touched):
                edges.add((other, me))
        for edge in op.after:
            for at, number in last.get(edge.op, []):
                if (number == item and at <= i - edge.distance) or number != item:
                    edges.add(((edge.op, at), me))
        rows.append((me, touched))
        last.setdefault(op.name, []).append((i, item))
    return edges


def _meet(a: Touched, b: Touched) -> bool:
    if a[0] != b[0] or a[1] != b[1]:
        return False
    if a[3] is b[3] and a[3] in (Mode.READ, Mode.ACCUMULATE):
        return False
    return all(max(x[0], y[0]) < min(x[1], y[1]) for x, y in zip(a[2], b[2], strict=True))


def minimal_waits(plan: Plan, params: dict[str, int], streams: dict[str, str]) -> set[Edge]:
    """The cross-stream edges of the transitive reduction of (hazards and stream order)."""
    graph: nx.DiGraph[Instance] = nx.DiGraph()
    newest: dict[str, Instance] = {}
    for op, i, _, _ in instances(plan, params):
        me = (op.name, i)
        graph.add_node(me)
        stream = streams[op.name]
        if stream in newest:
            graph.add_edge(newest[stream], me)
        newest[stream] = me
    graph.add_edges_from(conflicts(plan, params))
    return {(a, b) for a, b in nx.transitive_reduction(graph).edges if streams[a[0]] != streams[b[0]]}


def issued_waits(schedule: Schedule, params: dict[str, int]) -> set[Edge]:
    """(instance recorded, instance that waits) for every wait that binds, by the latch rule."""
    rings = {name: event.ring for name, event in schedule.events.items()}
    records: dict[tuple[str, int], Instance] = {}
    done: dict[str, Instance] = {}
    pending: dict[str, list[Instance]] = {}
    edges: set[Edge] = set()

    def run(steps: tuple, env: dict[str, int]) -> None:  # type: ignore[type-arg]
        for step in steps:
            if not holds(step.when, env):
                continue
            if isinstance(step, LoopStep):
                for i in range(evaluate(step.lo, env), evaluate(step.hi, env)):
                    run(step.steps, {**env, step.index: i})
            elif isinstance(step, OpStep):
                loop_index = [name for name in env if name not in params]
                me = (step.op, env[loop_index[0]] if loop_index else 0)
                done[step.stream.name] = me
                for source in pending.pop(step.stream.name, []):
                    edges.add((source, me))
            elif isinstance(step, EventStep):
                assert step.stream is not None
                x = evaluate(step.event.index, env) if step.event.index is not None else 0
                handle = (step.event.name, x % (rings[step.event.name] or 1))
                if step.action == "record":
                    records[handle] = done[step.stream.name]
                elif handle in records:
                    pending.setdefault(step.stream.name, []).append(records[handle])

    run(schedule.steps, dict(params))
    return edges
