"""Put ops into an order that their hazards, ``after:`` and pinned streams allow.

The order written is kept wherever it can be. Only ``after:`` an op that stands later asks for more: then the ops of
that segment are sorted topologically, the earliest written first, under the hazards of one iteration, ``after:``, and
the order written among ops pinned to one stream. Conflicting ops never change places, so the meaning stays.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from itertools import pairwise

from dagsched.diagnostics import Diagnostic, Label
from dagsched.plan.expressions import ExpressionError, evaluate
from dagsched.plan.model import Access, Loop, Mode, Op, Plan
from dagsched.plan.regions import box_of, intersect
from dagsched.plan.segments import Segment, split_segments


def order_ops(plan: Plan) -> tuple[Plan, list[Diagnostic]]:
    """The plan in an order that can be issued, and the cycles that stand in the way of one."""
    segments = split_segments(plan)
    faults: list[Diagnostic] = []
    items: list[Op | Loop] = []
    placed: set[str] = set()
    for segment in segments:
        ops = segment.ops
        if _asks(segment):
            order, cycle = _sort(plan, segment)
            if cycle:
                faults.append(_describe(plan, segment, cycle))
            ops = tuple(segment.ops[n] for n in order)
        names = {op.name for op in ops}
        faults += [_too_late(plan, op, edge.op) for op in ops for edge in op.after if edge.op not in placed | names]
        placed |= names
        if segment.loop:
            items.append(replace(segment.loop, body=ops))
        else:
            items.extend(ops)
    return replace(plan, items=tuple(items)), faults


def _asks(segment: Segment) -> bool:
    """Whether an op has to come after one that stands later (or after itself)."""
    at = {op.name: n for n, op in enumerate(segment.ops)}
    return any(edge.distance == 0 and at.get(edge.op, -1) >= n for n, op in enumerate(segment.ops) for edge in op.after)


def _edges(plan: Plan, segment: Segment) -> dict[tuple[int, int], str]:
    """Pairs (before, after) with why, by number within the segment."""
    ops = segment.ops
    at = {op.name: n for n, op in enumerate(ops)}
    edges: dict[tuple[int, int], str] = {}
    for n, op in enumerate(ops):
        for m in range(n + 1, len(ops)):
            later = ops[m]
            shared = _conflict(plan, segment, op, later)
            if shared:
                edges[n, m] = f"both use `{shared}`"
            elif op.stream is not None and op.stream == later.stream:
                edges[n, m] = f"both are pinned to stream `{op.stream}`, in this order"
    for n, op in enumerate(ops):
        for edge in op.after:
            if edge.distance == 0 and edge.op in at:
                edges[at[edge.op], n] = f"`after: [{edge.op}]`"
    return edges


def _conflict(plan: Plan, segment: Segment, first: Op, second: Op) -> str | None:
    for a in first.accesses:
        for b in second.accesses:
            if a.buffer == b.buffer and _matters(a, b) and _overlap(plan, segment, a, b):
                return a.buffer
    return None


def _matters(a: Access, b: Access) -> bool:
    return (a.mode.writes or b.mode.writes) and not (a.mode is b.mode is Mode.ACCUMULATE)


def _overlap(plan: Plan, segment: Segment, a: Access, b: Access) -> bool:
    """Whether two accesses of one iteration can meet (in doubt: yes)."""
    buffer = plan.buffers[a.buffer]
    depth = buffer.ring.depth or 1
    for iteration in range(4):
        env = {name: default or 0 for name, default in plan.params.items()}
        if segment.loop:
            env[segment.loop.index] = iteration
        try:
            slots = [evaluate(x.version, env) % depth if x.version is not None else 0 for x in (a, b)]
            if slots[0] == slots[1] and intersect(box_of(a, buffer, env), box_of(b, buffer, env)):
                return True
        except ExpressionError:
            return True
    return False


def _sort(plan: Plan, segment: Segment) -> tuple[list[int], list[tuple[int, int, str]]]:
    """A topological order, the earliest written first; with a cycle where there is none."""
    count = len(segment.ops)
    edges = _edges(plan, segment)
    successors: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for before, after in edges:
        successors[before].append(after)
        waiting[after] += 1
    ready = [n for n in range(count) if waiting[n] == 0]
    order = []
    while ready:
        n = heappop(ready)
        order.append(n)
        for m in successors[n]:
            waiting[m] -= 1
            if waiting[m] == 0:
                heappush(ready, m)
    if len(order) == count:
        return order, []
    return list(range(count)), _cycle(edges, {n for n in range(count) if waiting[n] > 0})


def _cycle(edges: dict[tuple[int, int], str], stuck: set[int]) -> list[tuple[int, int, str]]:
    """One cycle among the ops that could not be placed; each of them has a predecessor that could not either."""
    before: dict[int, int] = {}
    for a, b in sorted(edges):
        if a in stuck and b in stuck:
            before.setdefault(b, a)
    n = min(stuck)
    seen: list[int] = []
    while n not in seen:
        seen.append(n)
        n = before[n]
    ring = [*seen[seen.index(n) :], n]
    return [(b, a, edges[b, a]) for a, b in pairwise(ring)][::-1]


def _describe(plan: Plan, segment: Segment, cycle: list[tuple[int, int, str]]) -> Diagnostic:
    ops = segment.ops
    first = ops[cycle[0][0]]
    chain = "; ".join(f"`{ops[a].name}` before `{ops[b].name}` ({why})" for a, b, why in cycle)
    pinned = any("pinned" in why for _, _, why in cycle)
    blamed = next((ops[b] for _, b, why in cycle if why.startswith("`after")), first)
    where = next((edge.where for edge in blamed.after if edge.where), blamed.where)
    help_ = f"remove `after:` from `{blamed.name}`, or write it after the ops that it names"
    if pinned:
        help_ = f"pin the ops to different streams, or write `{blamed.name}` later"
    names = " -> ".join(f"`{name}`" for name in [*(ops[a].name for a, _, _ in cycle), first.name])
    return Diagnostic(
        code="P221" if pinned else "P220",
        headline=f"{'pinned streams force a cycle' if pinned else 'the plan asks for a cycle'}: {names}",
        where=where,
        source=plan.source,
        labels=tuple(Label(ops[a].where, f"`{ops[a].name}`") for a, _, _ in cycle[:3] if ops[a].where),  # type: ignore[arg-type]
        notes=(chain,),
        help=help_,
    )


def _too_late(plan: Plan, op: Op, name: str) -> Diagnostic:
    where = next((edge.where for edge in op.after if edge.op == name and edge.where), op.where)
    return Diagnostic(
        code="P222",
        headline=f"`{op.name}` comes after `{name}`, which runs only later",
        where=where,
        source=plan.source,
        notes=("loops and the ops between them run in the order written",),
        help=f"remove `{name}` from `after:`, or write `{op.name}` behind it",
    )
