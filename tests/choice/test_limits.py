"""Limits, against all that can be had: no order, no streams, no ring depths beat them, and what binds is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from math import gcd

from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.cost.bounds import Bound
from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import bound_loops, ring_edges
from dagsched.cost.model import CallCosts, Device, Engine
from dagsched.cost.predict import measure_schedule
from dagsched.cost.queues import to_ticks
from dagsched.cost.run_bounds import bound_run, make_run
from dagsched.hazards.find import find_hazards
from dagsched.plan.model import Plan, StreamOptions
from dagsched.plan.resolve import order_plan, resolve_plan
from dagsched.schedule.depths import with_depths
from tests.choice.exhaustive import partitions
from tests.choice.plans import devices, plans
from tests.cost.loops import loop_texts, plan_of
from tests.passes.build import build_schedule

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)


class Serial:
    """The least makespan over all orders, each op as early as its engine has room: no streams, no waits, only issuing.

    Every schedule's run is later than such a one (an op never starts before its call is over, what it depends on has
    ended, and its engine has room), so this is a limit that is at least as strong as any.
    """

    def __init__(self, plan: Plan, device: Device) -> None:
        costs = op_costs(plan, device)
        self.names = [op.name for op in plan.ops()]
        self.ticks = [round(costs[name].seconds * 10**12) for name in self.names]
        self.engine = [costs[name].engine.name for name in self.names]
        self.share = [costs[name].share for name in self.names]
        self.room = {cost.engine.name: cost.engine.cores or cost.engine.lanes for cost in costs.values()}
        self.issue = round(device.calls.issue * 10**12)
        number = {name: n for n, name in enumerate(self.names)}
        self.before: list[set[int]] = [set() for _ in self.names]
        for hazard in find_hazards(plan).entries:
            self.before[number[hazard.after]].add(number[hazard.before])

    def limit(self, device: Device) -> Bound:
        """What the limits say where a run of twice the best length is all that is known."""
        calls = tuple(round(each * 10**12) for each in (device.calls.issue, device.calls.record, device.calls.wait))
        engines = list(self.room)
        run = make_run(
            self.names, self.ticks, [engines.index(name) for name in self.engine], self.share,
            [tuple(sorted(row)) for row in self.before], (calls[0], calls[1], calls[2]),
        )  # fmt: skip
        return bound_run(run, [self.room[name] for name in engines], engines, most=2 * self.best() + 1)

    def exclude(self, a: int, b: int) -> bool:
        """Whether two ops can never run at once."""
        full = self.engine[a] == self.engine[b] and self.share[a] + self.share[b] > self.room[self.engine[a]]
        return full or self.comes_before(a, b) or self.comes_before(b, a)

    def comes_before(self, a: int, b: int) -> bool:
        return a in self.before[b] or any(self.comes_before(a, p) for p in self.before[b])

    def best(self) -> int:
        return min(map(self.run, self.orders((), frozenset(range(len(self.names))))), default=0)

    def orders(self, done: tuple[int, ...], left: frozenset[int]) -> list[tuple[int, ...]]:
        if not left:
            return [done]
        free = [op for op in sorted(left) if not left & self.before[op]]
        return [order for op in free for order in self.orders((*done, op), left - {op})]

    def run(self, order: Sequence[int]) -> int:
        start: dict[int, int] = {}
        for position, op in enumerate(order):
            earliest = max([(position + 1) * self.issue, *(start[p] + self.ticks[p] for p in self.before[op])])
            ends = [start[p] + self.ticks[p] for p in start]
            start[op] = next(at for at in sorted({earliest, *ends}) if at >= earliest and self.fits(op, at, start))
        return max([len(order) * self.issue, *(start[op] + self.ticks[op] for op in order)])

    def fits(self, op: int, at: int, start: dict[int, int]) -> bool:
        same = [p for p in start if self.engine[p] == self.engine[op] and self.ticks[p]]
        instants = [at, *(start[p] for p in same if at < start[p] < at + self.ticks[op])]
        return all(
            self.share[op] + sum(self.share[p] for p in same if start[p] <= t < start[p] + self.ticks[p])
            <= self.room[self.engine[op]]
            for t in instants
        )


@settings(max_examples=80, phases=NO_SHRINKING)
@given(data=st.data())
def test_no_order_beats_the_limit_of_a_run(data: st.DataObject) -> None:
    plan = replace(data.draw(plans(most=6, pins=False)), streams=StreamOptions())
    device = data.draw(devices())
    if data.draw(st.booleans()):  # many sizes of ops on one engine
        device = replace(device, engines={**device.engines, "core": Engine("core", "compute", cores=7)})
        sizes = st.sampled_from([1, 2, 3, 4, 5])
        timed = [replace(op, cores=data.draw(sizes)) if op.kind.value == "compute" else op for op in plan.ops()]
        plan = replace(plan, items=tuple(replace(op, engine=None) for op in timed))
    predicted = compile_plan(plan, device=device).schedule.predicted
    assert predicted is not None
    serial = Serial(resolve_plan(plan), device)
    best, bound = serial.best(), to_ticks(predicted["bound"])
    assert bound <= best
    assert bound <= to_ticks(predicted["makespan"])
    event("met" if bound == best else "weaker than the best order")
    # As if nothing so quick were known, so that all ways to a limit are gone.
    limit = serial.limit(device)
    assert limit.ticks <= best
    require_reason(limit.binds, int(limit.ticks), serial)
    require_reason(predicted["binds"], bound, serial)


def require_reason(binds: str, bound: int, serial: Serial) -> None:
    """The figure is that of what is said to bind."""
    if binds.endswith(" is busy all the time") and binds != "the issuing thread is busy all the time":
        engine = binds.removesuffix(" is busy all the time")
        own = [n for n, name in enumerate(serial.engine) if name == engine]
        work = -(-sum(serial.ticks[n] * serial.share[n] for n in own) // serial.room[engine])
        assert work <= bound < work + serial.issue + gcd(*serial.ticks)  # behind the first call, in whole steps of time
    elif binds == "the issuing thread is busy all the time":
        assert serial.issue * len(serial.names) <= bound <= serial.issue * len(serial.names) + max(serial.ticks)
    elif "->" in binds and "..." not in binds:
        chain = [serial.names.index(name) for name in binds.split(" -> ")]
        assert all(a in serial.before[b] for a, b in pairwise(chain))
        assert 0 <= bound - sum(serial.ticks[n] for n in chain) <= serial.issue * len(serial.names)
    elif " of which no two run side by side: " in binds:
        names = binds.partition(": ")[2].split(", ")
        shown = [serial.names.index(name) for name in names if name != "..."]
        assert all(serial.exclude(a, b) for a, b in combinations(shown, 2))
        assert "..." in names or bound >= sum(serial.ticks[n] for n in shown)
    else:
        assert any(binds.startswith(name) for name in (*serial.room, *serial.names, "nothing", "the solver"))


@settings(max_examples=7, phases=NO_SHRINKING)
@given(data=st.data())
def test_no_streams_and_no_depths_beat_the_limit_of_a_loop(data: st.DataObject) -> None:
    """Every partition of up to four ops into streams, every set of depths that is allowed."""
    plan = plan_of(data.draw(loop_texts(deepest=2)))
    lanes, issue = data.draw(st.integers(1, 2)), data.draw(st.sampled_from([0.0, 0.0, 1e-6, 3e-6]))
    cores = data.draw(st.sampled_from([None, 4]))
    engines = {name: Engine(name, "compute", lanes=lanes, cores=cores) for name in ("e0", "e1", "e2")}
    device = Device("d", engines, CallCosts(issue, issue / 2, issue / 4))
    ordered, _ = order_plan(plan)
    rings, resolved = ring_edges(ordered), resolve_plan(plan)
    costs = op_costs(resolved, device)
    (bound,) = bound_loops(resolved, rings, costs, device).values()
    names = [op.name for op in resolved.ops()]
    options = [[d for d in range(r.least, min(r.most, 2) + 1) if r.keeps(d)] for r in rings.ranges.values()]
    reached = []
    for depths in product(*options):
        deep = with_depths(ordered, resolved, dict(zip(rings.ranges, depths, strict=True)))
        for group in partitions(len(names), len(names)):
            schedule = build_schedule(deep, {name: f"s{at}" for name, at in zip(names, group, strict=True)})
            measured = measure_schedule(schedule, costs, device)
            if measured.exact:
                reached.append(measured.ticks)
    assert not reached or bound.ticks <= min(reached)
    event("met" if reached and bound.ticks == min(reached) else "not met")
