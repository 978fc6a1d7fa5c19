"""What a compiled schedule will take, how near that is to the limit, and what binds: the ``predicted`` entry.

Invariant: the bound never exceeds the prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dagsched.cost.blame import Hold, find_holds, rotate_holds
from dagsched.cost.bounds import ISSUING, Bound, Edge, find_cycle_ratio
from dagsched.cost.counting import Thread, count_iteration, count_run
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.engines import engine_capacity
from dagsched.cost.loop_graph import RingEdges, bound_loops
from dagsched.cost.makespan import find_makespan
from dagsched.cost.model import Device
from dagsched.cost.queues import TICKS, to_ticks
from dagsched.cost.run_bounds import bound_run, make_run
from dagsched.cost.steady import MANY, find_steady_state, run_loop
from dagsched.hazards.model import Hazards
from dagsched.plan.expressions import Int, evaluate, names_in
from dagsched.plan.model import Loop, Op, Plan
from dagsched.plan.segments import split_segments
from dagsched.schedule.model import EventStep, LoopStep, OpStep, Schedule

_FEW, _MOST, _HELD_OPS = 12, 48, 10_000
"""Iterations that are simulated to say what holds a loop up, at least and at most, and op instances in between."""


_FEW_COUNTS = (0, 1, 2, 3, 7)
"""Counts for which runs are compared where a parameter says how many iterations there are."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a schedule takes in ticks: an iteration of its slowest parametric loop, or the whole run.

    ``exact``: False where no steady state was reached, so that ``ticks`` is a slope, or where a run that is too long to
    be simulated was scaled. ``period`` is that of the loop's steady state, in iterations. ``together`` is the time of
    one iteration of each parametric loop, or the whole run's.
    """

    ticks: Fraction
    loop: LoopStep | None
    exact: bool
    period: int
    together: Fraction


def measure_schedule(schedule: Schedule, costs: Mapping[str, OpCost], device: Device) -> Measured:
    """Simulate a schedule; raises :class:`ScheduleError` as :func:`unroll_schedule` does."""
    slowest: Measured | None = None
    exact, together = True, Fraction(0)
    for step in schedule.steps:
        if isinstance(step, LoopStep) and _parametric(step):
            state = find_steady_state(schedule, step, costs, device)
            exact, together = exact and state.exact, together + state.ticks
            if slowest is None or state.ticks > slowest.ticks:
                slowest = Measured(state.ticks, step, state.exact, state.period, state.ticks)
    if slowest is not None:
        return replace(slowest, exact=exact, together=together)
    makespan, exact = find_makespan(schedule, costs, device)
    return Measured(makespan, None, exact, 1, makespan)


def measure_closely(schedule: Schedule, costs: Mapping[str, OpCost], device: Device) -> tuple[Fraction, ...]:
    """All times that a change should not make longer, in ticks: open loops' intervals, and runs of a few iterations.

    The first says what the steady state takes and the others what beginning and end do, and loops of constant count
    beside open ones. Raises :class:`ScheduleError` as :func:`measure_schedule` does.
    """
    loops = [step for step in schedule.steps if isinstance(step, LoopStep) and _parametric(step)]
    intervals = [find_steady_state(schedule, loop, costs, device).ticks for loop in loops]
    runs = [_bind(schedule, count) for count in _FEW_COUNTS] if loops else [schedule]
    return (*intervals, *(find_makespan(run, costs, device)[0] for run in runs))


def _bind(schedule: Schedule, count: int) -> Schedule:
    """The schedule with ``count`` for every parameter that counts iterations, as if that were a constant."""
    values = {name: count for step in schedule.steps if isinstance(step, LoopStep) for name in _counting(step)}
    steps = tuple(
        replace(step, lo=Int(evaluate(step.lo, values)), hi=Int(evaluate(step.hi, values)))
        if isinstance(step, LoopStep)
        else step
        for step in schedule.steps
    )
    return replace(schedule, params={**schedule.params, **values}, steps=steps)


def _counting(loop: LoopStep) -> frozenset[str]:
    return names_in(loop.lo) | names_in(loop.hi)


def predict_schedule(
    schedule: Schedule,
    plan: Plan,
    device: Device,
    hazards: Hazards,
    rings: RingEdges | None = None,
    proved: int = 0,
    measured: Measured | None = None,
) -> dict[str, Any]:
    """``{initiation_interval | makespan, serial, bound, binds}`` in seconds, for a schedule of a resolved plan.

    The interval is that of the slowest loop with a count that only a parameter says; without such a loop the makespan
    is given. ``serial`` is what the same takes one op after another. ``held`` names what holds a loop up that is slower
    than its bound. ``unknown`` lists ops that no time is known for (they count as 0), where there are any;
    ``estimated`` is True where the figure is not the simulator's (see :class:`Measured`). ``rings`` are those that
    the compiler may deepen: they do not count for the bound. ``optimal`` is True where the makespan is the bound;
    ``proved`` is a bound of the makespan in ticks from elsewhere (0: none). ``measured`` is what the schedule takes,
    where the caller knows that already.
    """
    costs = op_costs(plan, device)
    measured = measured or measure_schedule(schedule, costs, device)
    if measured.loop is not None:
        bounds = bound_loops(plan, rings or RingEdges(plan, {}), costs, device)
        segments = split_segments(plan)
        open_ = [n for n, s in enumerate(segments) if s.loop and not isinstance(s.count, Int)]
        limit = max((bounds[n] for n in open_), key=lambda bound: bound.ticks)
        # An interval without proof may fall short of the limit, which has one.
        interval = max(limit.ticks, measured.ticks)
        body = {step.op for step in measured.loop.steps if isinstance(step, OpStep)}
        result = _result("initiation_interval", interval, limit, _serial(costs, body))
        if interval > limit.ticks and (held := describe_holds(schedule, measured.loop, costs, device, measured.period)):
            result["held"] = held
        if not measured.exact:
            result["estimated"] = True
    else:
        counts = _counts(plan)
        serial = sum(to_ticks(costs[name].seconds) * count for name, count in counts.items())
        limit = _bound_run(plan, costs, hazards, device, measured.ticks)
        if limit.ticks < proved:
            limit = Bound(Fraction(proved), reason="the solver found that nothing is quicker")
        # An estimate may fall short of the limit, which has a proof; what was simulated may not.
        ticks = measured.ticks if measured.exact else max(measured.ticks, limit.ticks)
        result = _result("makespan", ticks, limit, serial)
        if not measured.exact:
            result["estimated"] = True
        elif measured.ticks == limit.ticks:
            result["optimal"] = True
    unknown = sorted(name for name, cost in costs.items() if not cost.known)
    return result | ({"unknown": unknown} if unknown else {})


def predict_by_hand(schedule: Schedule, plan: Plan, device: Device) -> dict[str, Any]:
    """The same for a schedule written by hand, with the costs of the ops of a (resolved) plan by their names.

    The bound is that of its busiest engine: what the ops depend on is the plan's business. Raises
    :class:`ScheduleError` for an op that the plan does not have (D131) and for what cannot be simulated.
    """
    costs = op_costs(plan, device)
    measured = measure_schedule(schedule, costs, device)
    on_streams = _count(schedule, measured.loop, costs, "stream")
    by_thread = _count(schedule, measured.loop, costs, "issuing")
    work = [
        Bound(
            sum((to_ticks(costs[op].seconds) * costs[op].share * on_streams[op] for op in ops), Fraction(0)) / capacity,
            engine=engine,
        )
        for engine, (capacity, ops) in _by_engine(costs, on_streams).items()
    ]
    calls = to_ticks(device.calls.issue) * sum(on_streams.values(), Fraction(0))
    own = sum((to_ticks(costs[op].seconds) * times for op, times in by_thread.items()), Fraction(0))
    work.append(Bound(calls + own, reason=ISSUING))
    limit = max(work, key=lambda bound: bound.ticks)
    counts = [*on_streams.items(), *by_thread.items()]
    serial = sum((to_ticks(costs[op].seconds) * times for op, times in counts), Fraction(0))
    key = "makespan" if measured.loop is None else "initiation_interval"
    result = _result(key, max(limit.ticks, measured.ticks), limit, serial)
    slow = measured.loop if measured.ticks > limit.ticks else None
    if slow is not None and (held := describe_holds(schedule, slow, costs, device)):
        result["held"] = held
    if not measured.exact:
        result["estimated"] = True
    unknown = sorted({op for op, _ in counts if not costs[op].known})
    return result | ({"unknown": unknown} if unknown else {})


def _count(
    schedule: Schedule, loop: LoopStep | None, costs: Mapping[str, OpCost], thread: Thread
) -> dict[str, Fraction]:
    """How often each op with a cost runs, in an iteration of a loop or else in the whole run."""
    if loop is None:
        return {name: Fraction(times) for name, times in count_run(schedule, costs, thread).items()}
    params = {name: MANY if value is None else value for name, value in schedule.params.items()}
    return count_iteration(loop, costs, params, thread)


def _by_engine(costs: Mapping[str, OpCost], ops: Iterable[str]) -> dict[str, tuple[int, list[str]]]:
    found: dict[str, tuple[int, list[str]]] = {}
    for op in ops:
        engine = costs[op].engine
        found.setdefault(engine.name, (engine_capacity(engine), []))[1].append(op)
    return found


def _result(key: str, ticks: Fraction, bound: Bound, serial: Fraction | int) -> dict[str, Any]:
    return {key: float(ticks / TICKS), "serial": float(serial / TICKS), "bound": bound.seconds, "binds": bound.binds}


def _serial(costs: Mapping[str, OpCost], ops: Iterable[str]) -> int:
    """Ticks of ops one after another."""
    return sum(to_ticks(costs[op].seconds) for op in ops)


def describe_holds(
    schedule: Schedule, loop: LoopStep, costs: Mapping[str, OpCost], device: Device, period: int = 1
) -> str:
    """The cycle that sets a loop's pace in a simulated run, in words; empty where none is found or loops are nested."""
    if any(isinstance(step, LoopStep) for step in loop.steps):
        return ""
    ops = sum(isinstance(step, OpStep) for step in loop.steps)
    few = max(_FEW, min(_MOST, _HELD_OPS // max(1, ops)))
    program, times, _ = run_loop(schedule, loop, costs, device, min(512, few + 8 * period))
    order = [op for _, op, *_ in program.named]
    holds = rotate_holds(find_holds(program, times, period), order)
    if not holds:
        return ""
    start = holds[0].before[1]

    def name(op: tuple[str, int]) -> str:
        later = op[1] - start
        return f"{op[0]}@{loop.index}{later:+}" if later else f"{op[0]}@{loop.index}"

    def why(hold: Hold) -> str:
        if hold.why == "wait":
            rings = _reused(loop, hold)
            return f" (ring {', '.join(rings)})" if rings else ""
        return {"stream": f" (stream {hold.on})", "engine": f" (engine {hold.on})"}.get(hold.why, " (issuing thread)")

    parts = [name(holds[0].before), *(name(hold.after) + why(hold) for hold in holds)]
    shown = parts if len(parts) <= 8 else [*parts[:4], "...", *parts[-3:]]
    return " -> ".join(shown)


def _reused(loop: LoopStep, hold: Hold) -> list[str]:
    """The buffers whose slots a wait between two ops is for, where it is for nothing else."""
    found: dict[str, bool] = {}
    for step in loop.steps:
        for reason in step.protects if isinstance(step, EventStep) else ():
            ends = (reason.before.partition("@")[0], reason.after.partition("@")[0])
            if ends == (hold.before[0], hold.after[0]) and reason.buffer:
                found[reason.buffer] = found.get(reason.buffer, True) and reason.kind in ("WAR", "WAW")
    return sorted(found) if all(found.values()) else []


def _counts(plan: Plan) -> dict[str, int]:
    """How often each op runs, for a plan of constant counts."""
    return {
        op.name: item.count.value if isinstance(item, Loop) and isinstance(item.count, Int) else 1
        for item in plan.items
        for op in ([item] if isinstance(item, Op) else _body(item))
    }


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


def _bound_run(plan: Plan, costs: Mapping[str, OpCost], hazards: Hazards, device: Device, makespan: Fraction) -> Bound:
    """A limit where all counts are constants: engines over everything, chains outside loops, cycles within them.

    The search for one ends at ``makespan``, which is reached.
    """
    counts = _counts(plan)
    engines = list(dict.fromkeys(cost.engine.name for cost in costs.values()))
    capacity = {cost.engine.name: engine_capacity(cost.engine) for cost in costs.values()}
    straight = [item.name for item in plan.items if isinstance(item, Op)]
    number = {name: n for n, name in enumerate(straight)}
    before: list[set[int]] = [set() for _ in straight]
    for hazard in hazards.entries:
        if hazard.before in number and hazard.after in number:
            before[number[hazard.after]].add(number[hazard.before])
    run = make_run(
        straight,
        [to_ticks(costs[name].seconds) for name in straight],
        [engines.index(costs[name].engine.name) for name in straight],
        [costs[name].share for name in straight],
        [tuple(sorted(row)) for row in before],
        (to_ticks(device.calls.issue), to_ticks(device.calls.record), to_ticks(device.calls.wait)),
    )
    lanes = [capacity[name] for name in engines]
    bounds = [bound_run(run, lanes, engines, int(makespan))]
    if len(counts) > len(straight):
        for engine in engines:
            members = [name for name in counts if costs[name].engine.name == engine]
            work = sum(to_ticks(costs[name].seconds) * costs[name].share * counts[name] for name in members)
            bounds.append(Bound(Fraction(work, capacity[engine]), engine=engine))
        # The host issues all instances one after another, and the last of them must still run.
        calls = to_ticks(device.calls.issue) * sum(counts.values())
        least = min((to_ticks(costs[name].seconds) for name, count in counts.items() if count), default=0)
        bounds.append(Bound(Fraction(calls + least), reason=ISSUING))
    for loop in plan.items:
        if isinstance(loop, Loop) and isinstance(loop.count, Int):
            bounds.append(_bound_loop(loop, loop.count.value, costs, hazards))
    return max(bounds, key=lambda bound: bound.ticks)


def _bound_loop(loop: Loop, count: int, costs: Mapping[str, OpCost], hazards: Hazards) -> Bound:
    """``count`` iterations go round the slowest cycle as often as its distance fits; then the op that is reached runs.

    An op has one stream for all iterations, so its own instances are such a cycle, too.
    """
    ops = _body(loop)
    ticks = [to_ticks(costs[op.name].seconds) for op in ops]
    edges = [*_edges(ops, hazards), *((number, number, 1) for number in range(len(ops)))]
    ratio, cycle = find_cycle_ratio(ticks, edges)
    if not cycle or count <= 0:
        return Bound(Fraction(0))
    work = sum(ticks[n] for n in cycle)
    laps = (count - 1) // max(1, int(work / ratio))
    return Bound(Fraction(work * laps + max(ticks[n] for n in cycle)), ops=tuple(ops[n].name for n in cycle))
