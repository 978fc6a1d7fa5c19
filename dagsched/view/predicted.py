"""A predicted run as a timeline: the simulator's times, with the waits as arrows and the reason why each op began when.

What an op needs before it starts ends, at the latest, when it starts; whatever ends just then is a cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.model import Device, Engine
from dagsched.cost.program import Program, unroll_schedule
from dagsched.cost.queues import HOST_QUEUE, TICKS, Times
from dagsched.cost.simulator import run_program
from dagsched.plan.model import Plan
from dagsched.schedule.model import HostStep, OpStep, Schedule
from dagsched.timeline import HOST_TRACK, Flow, Span, Timeline

ITERATIONS = 8
"""Iterations of a loop whose count nothing says."""
UNIT = 1e-3
"""Seconds that each op of a schedule takes where no plan says how long it takes."""


def predict_timeline(
    schedule: Schedule, plan: Plan | None, device: Device | None, counts: Mapping[str, int] | None = None
) -> Timeline:
    """The predicted run of a schedule, for given parameter values (those without one count as :data:`ITERATIONS`).

    ``plan`` (resolved) says what each op costs on ``device``; without them every op takes :data:`UNIT` on a lane of its
    own. Raises :class:`ScheduleError` as ``simulate_schedule`` does.
    """
    env = {name: ITERATIONS if value is None else value for name, value in schedule.params.items()} | dict(counts or {})
    notes = [f"{name} = {env[name]}" for name in schedule.params]
    if plan is not None and device is not None:
        costs, source = op_costs(plan, device), f"predicted for {device.name}"
    else:
        costs, device, source = _equal_costs(schedule), Device("unknown", {}), "every op takes 1 ms"
    program = unroll_schedule(schedule, costs, device, env)
    times = run_program(program, device, schedule)
    if program.unknown:
        notes.append(f"nothing says how long these take: {', '.join(sorted(program.unknown))}")
    timeline = make_timeline(schedule.name, program, times)
    return replace(timeline, source=source, notes=tuple(notes))


def _equal_costs(schedule: Schedule) -> dict[str, OpCost]:
    """One unit for each op, on an engine of its own."""
    names = [step.op for step in schedule.walk() if isinstance(step, OpStep)]
    names += [step.host for step in schedule.walk() if isinstance(step, HostStep)]
    return {name: OpCost(Engine("any", "compute", lanes=1 << 30), UNIT) for name in names}


def make_timeline(name: str, program: Program, times: Times) -> Timeline:
    """The timeline of a simulated run."""
    number = {task: place for place, (task, *_) in enumerate(program.named)}
    tracks = dict.fromkeys(HOST_TRACK if stream is None else stream for _, _, _, stream, _ in program.named)
    flows = tuple(_flows(program, times, number))
    waited: dict[int, list[Flow]] = {}
    for flow in flows:
        waited.setdefault(flow.after, []).append(flow)
    spans: list[Span] = []
    last: dict[str, int] = {}
    for place, (task, op, iteration, stream, engine) in enumerate(program.named):
        track = HOST_TRACK if stream is None else stream
        span = Span(
            track, op, times.start[task] / TICKS, times.end[task] / TICKS, iteration, engine, times.issued[task] / TICKS
        )
        before = last.get(track)
        causes = []
        if before is not None and times.end[program.named[before][0]] == times.start[task] > 0:
            causes.append(f"after {spans[before].text} on its stream")
        causes += [f"waited for {_instance(program, f.before)} ({f.event})" for f in waited.get(place, ()) if f.binds]
        if times.ready[task] < times.start[task]:
            causes.append(f"engine {engine} was busy")
        elif not causes and times.issued[task] == times.start[task]:
            causes.append("the host had just issued it")
        spans.append(replace(span, causes=tuple(causes)))
        last[track] = place
    return Timeline(name, tuple(tracks), tuple(spans), flows, times.makespan / TICKS)


def _instance(program: Program, place: int) -> str:
    _, op, iteration, *_ = program.named[place]
    return op if iteration is None else f"{op}@{iteration}"


def _flows(program: Program, times: Times, number: Mapping[int, int]) -> Iterator[Flow]:
    """An arrow for each wait: from the newest op before the record to the next op after the wait."""
    tasks = program.tasks
    newest: list[int | None] = []
    last: dict[int, int] = {}
    for task, queue in enumerate(tasks.queue):
        if task in number:
            last[queue] = number[task]
        newest.append(last.get(queue))
    following: dict[int, int] = {}
    found: dict[tuple[int, int], Flow] = {}
    for task in range(len(tasks) - 1, -1, -1):
        queue = tasks.queue[task]
        if task in number:
            following[queue] = number[task]
            continue
        for record in tasks.predecessors[task]:
            before, after = newest[record], following.get(queue)
            if before is None or after is None or tasks.queue[record] == queue or queue == HOST_QUEUE:
                continue
            start = times.start[program.named[after][0]]
            binds = times.end[program.named[before][0]] == start and start > 0
            found.setdefault((after, before), Flow(before, after, program.events.get(task, "wait"), binds))
    yield from (found[key] for key in sorted(found))
