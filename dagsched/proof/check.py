"""Check a schedule that somebody wrote by hand: races, deadlocks, needless waits.

The only input is the schedule; what it is meant to compute is not known, so the accesses themselves say what must be
ordered. The steps: expand it for given loop counts (``check_expand``), bind each wait (``check_links``), compute
happens-before (``check_clock``, or ``check_explore`` where waits depend on who comes first), find conflicting accesses
that it leaves unordered (``check_races``), then try which waits can go (``check_waits``). Loops whose count is a
parameter are checked for as many counts as make the answer hold for all of them (``check_counts``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from dagsched.plan.expressions import ExpressionError, Int
from dagsched.proof.check_counts import Counts, Repeats, choose_counts, count_steps, shorten
from dagsched.proof.check_findings import Gathered, describe_invalid, make_findings
from dagsched.proof.check_model import Verdict, Waits
from dagsched.proof.check_needless import Needless, find_needless
from dagsched.proof.check_paths import orders
from dagsched.proof.check_run import Run, run_schedule
from dagsched.proof.check_shape import Shape, used_params
from dagsched.proof.check_steady import find_repeats
from dagsched.proof.check_waits import is_wait
from dagsched.schedule.model import FlagStep, LoopStep, Schedule

__all__ = ["check_schedule", "orders"]

MAX_COUNT = 4_096
BUDGET = 400_000
MOST_CONTENDED = 20_000
"""What long loops are cut to where interleavings are explored and no steady state is seen."""
EXPLORE = 60_000
"""Contended steps tried in all runs together, where more counts could always be checked."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What the runs of a schedule show, before anything is put into words.

    ``largest`` is the run of the largest counts (None where even the smallest are too many steps), ``stuck`` the first
    one that hangs, if any does.
    """

    counts: Counts
    gathered: Gathered
    largest: Run | None
    stuck: Run | None

    @property
    def verdict(self) -> Literal["ok", "race", "deadlock", "invalid"]:
        """The worst that holds."""
        if self.gathered.dangling:
            return "invalid"
        if self.gathered.deadlock is not None:
            return "deadlock"
        return "race" if self.gathered.races else "ok"

    @property
    def limited(self) -> bool:
        """Whether a limit was hit, so that something may have been missed."""
        return self.gathered.limited or not self.counts.whole or not self.gathered.complete


def check_schedule(schedule: Schedule, *, max_count: int = MAX_COUNT, budget: int = BUDGET) -> Verdict:
    """Everything that is wrong with a schedule, or needless in it.

    ``max_count`` is the largest loop count tried where a count is a parameter, ``budget`` the most step instances
    looked at in all runs together; where one of them ends the search, the verdict says so (``limited``).
    """
    try:
        return _check(schedule, max_count, budget)
    except ExpressionError as error:
        return Verdict("invalid", findings=(describe_invalid(schedule, error),), limited=True)


def _check(schedule: Schedule, max_count: int, budget: int) -> Verdict:
    examined = examine_schedule(schedule, max_count, budget)
    counts, gathered, verdict = examined.counts, examined.gathered, examined.verdict
    largest = examined.largest
    needless = find_needless(counts, largest, verdict == "ok") if largest is not None else Needless()
    total = sum(is_wait(step) for step in schedule.walk())
    findings = make_findings(gathered, counts.text, counts.whole, not needless.untried)
    waits = Waits(total, needless.redundant, needless.removable)
    return Verdict(verdict, gathered.all_races(), gathered.deadlock, waits, findings, counts.text, examined.limited)


def examine_schedule(schedule: Schedule, max_count: int = MAX_COUNT, budget: int = BUDGET) -> Examined:
    """Run a schedule for all counts that matter; raises ``ExpressionError`` where an expression has no value."""
    counts = _choose(schedule, max_count, budget)
    gathered = Gathered(schedule)
    largest: Run | None = None
    stuck: Run | None = None
    done: list[dict[str, int]] = []
    tried = 0
    for env in counts.environments:
        largest = run_schedule(counts.schedule, env)
        gathered.add(largest.program, largest.links, largest.order, largest.conflicts)
        stuck = largest if stuck is None and largest.order.stuck else stuck
        done.append(env)
        tried += largest.order.tried
        if tried > EXPLORE and not counts.whole:
            break
    return Examined(replace(counts, environments=done, text=counts.upto(done)), gathered, largest, stuck)


def _choose(schedule: Schedule, max_count: int, budget: int) -> Counts:
    """The counts to check; long constant loops are cut to an equivalent length, or to what the budget allows."""

    def attempt(candidate: Schedule, env: dict[str, int], shape: Shape) -> Repeats | None:
        run = run_schedule(candidate, env, budget)
        return find_repeats(run.program, run.links, run.order, shape)

    if used_params(schedule):
        return choose_counts(
            schedule,
            lambda env, shape: attempt(schedule, env, shape),
            lambda env: count_steps(schedule, env),
            max_count,
            budget,
        )
    if count_steps(schedule, {}) <= budget:
        return Counts(schedule, [{}])
    shorter = shorten(schedule, attempt)
    if shorter is not None:
        return Counts(shorter, [{}])
    if _is_contended(schedule):
        budget = min(budget, MOST_CONTENDED)
    longest = 1 << 40
    while count_steps(cut := _cut(schedule, longest), {}) > budget and longest > 1:
        longest //= 2
    return Counts(cut, [{}], f"the first {longest:,} iterations of each loop only: no steady state was seen", False)


def _is_contended(schedule: Schedule) -> bool:
    """Whether interleavings may have to be explored, each instance of a step for itself."""
    return schedule.event_model != "latch" or any(isinstance(step, FlagStep) for step in schedule.walk())


def _cut(schedule: Schedule, longest: int) -> Schedule:
    steps = []
    for step in schedule.steps:
        if isinstance(step, LoopStep) and isinstance(step.hi, Int) and isinstance(step.lo, Int):
            step = replace(step, hi=Int(min(step.hi.value, step.lo.value + longest)))
        steps.append(step)
    return replace(schedule, steps=tuple(steps))
