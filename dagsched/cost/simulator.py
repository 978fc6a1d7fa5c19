"""What a schedule will do on a device: the predicted timeline, op by op.

A model, not a measurement: in-order streams, engines with lanes and cores, the host's time for each call, queue depth,
and waits as the schedule states them. The same schedule always gives the same timeline, to the picosecond.
"""

from __future__ import annotations

from collections.abc import Mapping

from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.model import Device
from dagsched.cost.program import Program, unroll_schedule
from dagsched.cost.queues import StuckError, Times, run_queues
from dagsched.cost.timeline import Span, Timeline
from dagsched.diagnostics import Diagnostic, ScheduleError
from dagsched.plan.model import Plan
from dagsched.schedule.model import Schedule


def simulate_schedule(
    schedule: Schedule, plan: Plan, device: Device, counts: Mapping[str, int] | None = None
) -> Timeline:
    """The predicted run of a schedule of a (resolved) plan, for given parameter values.

    Takes O(log n) for each of n commands. Raises :class:`ScheduleError` as :func:`unroll_schedule` does, and where the
    schedule can never finish (D136); :class:`PlanError` where an op does not fit the device.
    """
    return simulate_costs(schedule, op_costs(plan, device), device, counts)


def simulate_costs(
    schedule: Schedule, costs: Mapping[str, OpCost], device: Device, counts: Mapping[str, int] | None = None
) -> Timeline:
    """As :func:`simulate_schedule`, with the cost of each op by name: for a schedule that has no plan."""
    program = unroll_schedule(schedule, costs, device, counts or {})
    times = run_program(program, device, schedule)
    spans = tuple(
        Span(op, iteration, stream, engine, times.issued[t], times.ready[t], times.start[t], times.end[t])
        for t, op, iteration, stream, engine in program.named
    )
    return Timeline(spans, times.makespan, dict(program.engines), tuple(sorted(program.unknown)))


def run_program(program: Program, device: Device, schedule: Schedule) -> Times:
    """Run the tasks of a schedule; raises :class:`ScheduleError` (D136) where they can never finish."""
    try:
        return run_queues(program.tasks, list(program.engines.values()), device.limits.queue_depth)
    except StuckError as error:
        named = {task: op for task, op, *_ in program.named}
        names = {queue: name for name, queue in program.queues.items()}
        heads = [
            f"stream `{names[queue]}`" if task not in named else f"op `{named[task]}`"
            for task in error.tasks
            if (queue := program.tasks.queue[task]) in names
        ]
        headline = "the schedule never finishes"
        notes = (f"stuck: {', '.join(heads)}",) if heads else ()
        raise ScheduleError([Diagnostic("D136", headline, source=schedule.source, notes=notes)]) from None
