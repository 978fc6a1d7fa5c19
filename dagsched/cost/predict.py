"""What a compiled schedule will take, how near that is to the limit, and what binds: the ``predicted`` entry.

Invariant: the bound never exceeds the prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

from dagsched.cost.bounds import Bound, Edge, bound_interval, bound_makespan, find_cycle_ratio
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.engines import engine_capacity
from dagsched.cost.estimate import Instance
from dagsched.cost.model import Device
from dagsched.cost.program import unroll_schedule
from dagsched.cost.queues import TICKS, to_ticks
from dagsched.cost.simulator import run_program
from dagsched.cost.steady import find_steady_state
from dagsched.hazards.model import Hazards
from dagsched.plan.expressions import Int, add
from dagsched.plan.model import Loop, Op, Plan
from dagsched.schedule.model import AnyStep, LoopStep, Schedule

_LONG = 2_000
"""Iterations beyond this many are not simulated one by one: the steady state says what they take."""


def predict_schedule(schedule: Schedule, plan: Plan, device: Device, hazards: Hazards) -> dict[str, Any]:
    """``{initiation_interval | makespan, bound, binds}`` in seconds, for a schedule of a resolved plan.

    The interval is that of the slowest loop with a count that only a parameter says; without such a loop the makespan
    is given. ``unknown`` lists ops that no time is known for (they count as 0), where there are any; ``estimated`` is
    True where no steady state was reached, so that the interval is a slope.
    """
    costs = op_costs(plan, device)
    loops = [item for item in plan.items if isinstance(item, Loop) and not isinstance(item.count, Int)]
    if loops:
        steady = [
            find_steady_state(schedule, step, costs, device)
            for step in schedule.steps
            if isinstance(step, LoopStep) and _parametric(step)
        ]
        limits = [bound_interval([op.name for op in ops], costs, _edges(ops, hazards)) for ops in map(_body, loops)]
        limit = max(limits, key=lambda limit: limit.ticks)
        # An interval without proof may fall short of the limit, which has one.
        interval = max([limit.ticks, *(state.ticks for state in steady)])
        result = _result("initiation_interval", interval, limit)
        if not all(state.exact for state in steady):
            result["estimated"] = True
    else:
        result = _result("makespan", _makespan(schedule, costs, device), _bound_run(plan, costs, hazards))
    unknown = sorted(name for name, cost in costs.items() if not cost.known)
    return result | ({"unknown": unknown} if unknown else {})


def _result(key: str, ticks: Fraction, bound: Bound) -> dict[str, Any]:
    return {key: float(ticks / TICKS), "bound": bound.seconds, "binds": bound.binds}


def _parametric(step: LoopStep) -> bool:
    return not (isinstance(step.lo, Int) and isinstance(step.hi, Int))


def _body(loop: Loop) -> list[Op]:
    return [op for op in loop.body if isinstance(op, Op)]


def _edges(ops: list[Op], hazards: Hazards) -> list[Edge]:
    number = {op.name: n for n, op in enumerate(ops)}
    return [
        (number[h.before], number[h.after], h.distance)
        for h in hazards.entries
        if h.distance is not None and h.before in number and h.after in number
    ]


def _bound_run(plan: Plan, costs: Mapping[str, OpCost], hazards: Hazards) -> Bound:
    """A limit where all counts are constants: engines over everything, chains outside loops, cycles within them."""
    counts = {
        op.name: item.count.value if isinstance(item, Loop) and isinstance(item.count, Int) else 1
        for item in plan.items
        for op in ([item] if isinstance(item, Op) else _body(item))
    }
    engines = list(dict.fromkeys(cost.engine.name for cost in costs.values()))
    capacity = {cost.engine.name: engine_capacity(cost.engine) for cost in costs.values()}
    straight = [item.name for item in plan.items if isinstance(item, Op)]
    number = {name: n for n, name in enumerate(straight)}
    before: dict[str, list[int]] = {name: [] for name in straight}
    for hazard in hazards.entries:
        if hazard.before in number and hazard.after in number:
            before[hazard.after].append(number[hazard.before])
    names = [*straight, *(name for name in counts if name not in number)]
    bounds = [
        bound_makespan(
            [
                Instance(
                    name, 0, engines.index(costs[name].engine.name), costs[name].seconds, tuple(before.get(name, ()))
                )
                for name in straight
            ],
            [capacity[name] for name in engines],
            engines,
        )
    ]
    for engine in engines:
        members = [name for name in names if costs[name].engine.name == engine]
        work = sum(to_ticks(costs[name].seconds) * costs[name].share * counts[name] for name in members)
        bounds.append(Bound(Fraction(work, capacity[engine]), engine=engine))
    for loop in plan.items:
        if isinstance(loop, Loop) and isinstance(loop.count, Int):
            bounds.append(_bound_loop(loop, loop.count.value, costs, hazards))
    return max(bounds, key=lambda bound: bound.ticks)


def _bound_loop(loop: Loop, count: int, costs: Mapping[str, OpCost], hazards: Hazards) -> Bound:
    """``count`` iterations go round the slowest cycle as often as its distance fits."""
    ops = _body(loop)
    edges = _edges(ops, hazards)
    ratio, cycle = find_cycle_ratio([to_ticks(costs[op.name].seconds) for op in ops], edges)
    if not cycle:
        return Bound(Fraction(0))
    work = sum(to_ticks(costs[ops[n].name].seconds) for n in cycle)
    laps = (count - 1) // max(1, int(work / ratio))
    return Bound(Fraction(work * max(laps, 0)), ops=tuple(ops[n].name for n in cycle))


def _makespan(schedule: Schedule, costs: Mapping[str, OpCost], device: Device) -> Fraction:
    """The makespan; of long loops the start-up is simulated and the steady state extended."""
    rings = lcm(*(event.ring or 1 for event in schedule.events.values()))
    extra = Fraction(0)
    steps: list[AnyStep] = []
    for step in schedule.steps:
        if isinstance(step, LoopStep) and isinstance(step.lo, Int) and isinstance(step.hi, Int):
            count = step.hi.value - step.lo.value
            if count > _LONG:
                steady = find_steady_state(schedule, step, costs, device)
                stride = lcm(rings, steady.period)
                left = (count - min(_LONG // 4, count)) // stride * stride
                extra += steady.ticks * left
                step = replace(step, hi=add(step.hi, -left))
        steps.append(step)
    short = replace(schedule, steps=tuple(steps))
    program = unroll_schedule(short, costs, device, {})
    return run_program(program, device, short).makespan + extra
