"""The steady state of a loop: how long an iteration takes once the start-up is over.

The loop alone is simulated for more and more iterations until its pattern repeats: every op of iteration i + p starts
and ends a fixed time after that of iteration i, over a window that is longer than anything reaches. What happens next
depends on nothing outside such a window, so the pattern goes on for ever and the interval is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dagsched.cost.counting import inner_steps
from dagsched.cost.durations import OpCost
from dagsched.cost.model import Device
from dagsched.cost.program import Program, unroll_schedule
from dagsched.cost.queues import HOST_QUEUE, NO_ENGINE, TICKS, Times
from dagsched.cost.simulator import run_program
from dagsched.diagnostics import Diagnostic, ScheduleError
from dagsched.plan.expressions import Int, add, evaluate, names_in
from dagsched.schedule.model import LoopStep, Schedule

MANY = 1 << 40
"""What a parameter without a default counts as, so that guards near a loop's end do not apply."""

_COUNTS = (32, 128, 512, 2048)
_FEWER = 12
"""Iterations that a loop of many ops is tried with first."""

_LONG = 200
"""A loop of so many steps is one of many ops."""

_MAX_TASKS = 20_000


@dataclass(frozen=True, slots=True)
class SteadyState:
    """``ticks`` an iteration on average over a period of ``period`` iterations, after ``transient`` iterations.

    ``exact`` is False where the loop as a whole shows no period in the iterations that were tried; ``ticks`` is then
    that of the slowest op.
    """

    ticks: Fraction
    period: int
    transient: int
    exact: bool

    @property
    def seconds(self) -> float:
        """Seconds an iteration."""
        return float(self.ticks / TICKS)


def find_steady_state(schedule: Schedule, loop: LoopStep, costs: Mapping[str, OpCost], device: Device) -> SteadyState:
    """The steady state of one of a schedule's loops; raises :class:`ScheduleError` as :func:`unroll_schedule` does."""
    span = max((event.ring or 1 for event in schedule.events.values()), default=1)
    found = SteadyState(Fraction(0), 1, 0, False)
    for count in (_FEWER, *_COUNTS) if len(loop.steps) >= _LONG else _COUNTS:
        program, times, lo = run_loop(schedule, loop, costs, device, count)
        found = _find_period(program, times, lo, count, span)
        if found.exact or (count >= _COUNTS[0] and len(program.tasks) * 4 > _MAX_TASKS):
            break
    return found


def run_loop(
    schedule: Schedule, loop: LoopStep, costs: Mapping[str, OpCost], device: Device, count: int
) -> tuple[Program, Times, int]:
    """A loop of a schedule alone, for so many iterations: its tasks, when they ran, and the first index."""
    _require_inner_counts(schedule, loop)
    params: dict[str, int | None] = {name: MANY if v is None else v for name, v in schedule.params.items()}
    env = {name: value for name, value in params.items() if value is not None}
    lo = Int(evaluate(loop.lo, env))
    alone = replace(schedule, params=params, steps=(replace(loop, lo=lo, hi=add(lo, count)),))
    program = unroll_schedule(alone, costs, device, {})
    return program, run_program(program, device, alone), lo.value


def _require_inner_counts(schedule: Schedule, loop: LoopStep) -> None:
    """An iteration takes as long as its inner loops have rounds, so their counts must be known (D130)."""
    for step in inner_steps(loop):
        names = names_in(step.lo) | names_in(step.hi) if isinstance(step, LoopStep) else frozenset()
        open_ = sorted(name for name in names if name in schedule.params and schedule.params[name] is None)
        if open_:
            headline = f"a simulation needs a value for `{open_[0]}`: an inner loop counts by it"
            help_ = f"write `params: {{{open_[0]}: 8}}`"
            raise ScheduleError([Diagnostic("D130", headline, step.where, schedule.source, help=help_)])


def _find_period(program: Program, times: Times, lo: int, count: int, span: int) -> SteadyState:
    rows: list[list[int]] = [[] for _ in range(count)]  # per iteration: start and end of each op
    issued: list[int] = [0] * count
    ready: list[int] = [times.makespan] * count
    for (task, *_), iteration in zip(program.named, program.rounds, strict=True):
        assert iteration is not None
        number = min(max(iteration - lo, 0), count - 1)
        rows[number] += (times.start[task], times.end[task])
        issued[number] = times.issued[task]
        ready[number] = min(ready[number], times.ready[task])
    ends = [max(row, default=0) for row in rows]
    if not any(rows):
        return SteadyState(Fraction(0), 1, 0, True)
    safe = _safe_time(program, times)
    usable = next((number for number in range(count) if ends[number] > safe), count)
    reach = max(span, _longest_overlap(ready, ends, usable)) + 1
    last = next((number for number in range(usable - 1, -1, -1) if rows[number]), 0)  # guards may empty iterations
    for period in range(1, usable // 3 + 1):
        window = 2 * period + reach
        if window + period > usable:
            break
        if period > last or len(rows[last]) != len(rows[last - period]):
            continue
        step = rows[last][-1] - rows[last - period][-1]
        first = _first_repeat(rows, usable, period, step)
        slow_host = issued[usable - 1] - issued[usable - 1 - period] > step
        if usable - period - first >= window and not slow_host:
            return SteadyState(Fraction(step, period), period, first, True)
    return _slowest_op(program, times, count)


def _slowest_op(program: Program, times: Times, count: int) -> SteadyState:
    """Where ops drift apart for ever (nothing ties a fast stream to a slow one), the slowest op's own period counts.

    Without proof, since another op may still catch up; where an op shows no period, the slope of its later half, and
    never less than what keeps the busiest engine busy.
    """
    series: dict[tuple[str, str | None, int], list[int]] = {}
    seen: Counter[tuple[str, str | None, int | None]] = Counter()
    for (task, op, _, stream, _), number in zip(program.named, program.rounds, strict=True):
        seen[op, stream, number] += 1
        series.setdefault((op, stream, seen[op, stream, number]), []).append(times.end[task])
    slowest = SteadyState(_engine_load(program, count), 1, 0, False)
    for ends in series.values():
        found, last = None, len(ends) - 1
        for period in range(1, len(ends) // 4):
            step = ends[last] - ends[last - period]
            if all(ends[n] - ends[n - period] == step for n in range(last - 2 * period, last)):
                found = SteadyState(Fraction(step, period), period, 0, False)
                break
        if found is None:
            half = len(ends) // 2
            slope = Fraction(ends[last] - ends[half], max(1, count - half))
            found = SteadyState(slope, 1, half, False)
        slowest = max(slowest, found, key=lambda state: state.ticks)
    return slowest


def _engine_load(program: Program, count: int) -> Fraction:
    """The busiest engine's work an iteration, over its capacity."""
    tasks, capacities = program.tasks, list(program.engines.values())
    work = [0] * len(capacities)
    for task, *_ in program.named:
        if tasks.engine[task] != NO_ENGINE:
            work[tasks.engine[task]] += tasks.ticks[task] * tasks.share[task]
    loads = (Fraction(w, capacity * count) for w, capacity in zip(work, capacities, strict=True))
    return max(loads, default=Fraction(0))


def _first_repeat(rows: list[list[int]], usable: int, period: int, step: int) -> int:
    """The first iteration from which every one is ``step`` before the one ``period`` later."""
    first = usable - period
    while first > 0:
        row, later = rows[first - 1], rows[first - 1 + period]
        if len(row) != len(later) or any(b - a != step for a, b in zip(row, later, strict=True)):
            break
        first -= 1
    return first


def _safe_time(program: Program, times: Times) -> int:
    """Until when the end of the loop shows nowhere: a further iteration's ops come after the last in their streams."""
    last: dict[int, int] = {}
    for task, queue in enumerate(program.tasks.queue):
        if queue != HOST_QUEUE:
            last[queue] = max(times.end[task], times.host)
    return min(last.values(), default=times.host)


def _longest_overlap(ready: list[int], ends: list[int], usable: int) -> int:
    """The most iterations that are under way at once."""
    most, newest = 1, 0
    for number in range(usable):
        newest = max(newest, number)
        while newest + 1 < usable and ready[newest + 1] < ends[number]:
            newest += 1
        most = max(most, newest - number + 1)
    return most
