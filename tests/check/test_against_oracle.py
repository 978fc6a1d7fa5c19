"""The checker against brute force: every interleaving of small random schedules is run.

Order, deadlocks, races, redundant and removable waits must be equal, exactly, for all event models and step kinds.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dagsched.plan.expressions import Int
from dagsched.proof.check import check_schedule
from dagsched.proof.check_clock import is_before
from dagsched.proof.check_expand import WORK
from dagsched.proof.check_run import Run, run_schedule
from dagsched.proof.check_shape import used_params
from dagsched.proof.check_waits import is_wait
from dagsched.schedule.model import AnyStep, LoopStep, Schedule
from tests.check.oracle import Judgement, TooBig, judge
from tests.check.strategies import open_loops, schedules

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def judged(schedule: Schedule, count: int | None = None) -> Judgement:
    try:
        return judge(schedule, {} if count is None else {"n": count})
    except TooBig:
        assume(False)
        raise


def order_by_oracle(judgement: Judgement) -> tuple[set[tuple[int, int]], list[int]]:
    """Ordered pairs of work, and work that never runs, by position among the work."""
    work = [command.number for command in judgement.commands if command.what == "work"]
    place = {number: at for at, number in enumerate(work)}
    never = [at for at, number in enumerate(work) if judgement.before[number] is None]
    return {(place[a], place[b]) for a, b in judgement.ordered()}, never


def order_by_checker(run: Run) -> tuple[set[tuple[int, int]], list[int]]:
    work = [node for node in run.program.nodes if node.action in WORK]
    clocks = run.order.clocks
    never = [at for at, node in enumerate(work) if clocks[node.index] is None]
    return {
        (x, y)
        for x, a in enumerate(work)
        for y, b in enumerate(work)
        if x != y and clocks[b.index] is not None and is_before(run.program, run.order, a.index, b.index)
    }, never


@settings(max_examples=1500, deadline=None, suppress_health_check=SLOW)
@given(schedules())
def test_order_deadlocks_and_races(schedule: Schedule) -> None:
    judgement = judged(schedule)
    run = run_schedule(schedule, {}, explore=1_000_000)
    assume(not run.order.limited)
    assert order_by_checker(run) == order_by_oracle(judgement)
    assert bool(run.order.stuck) == judgement.deadlock
    assert {(*key, kind) for key, race in run.conflicts.races.items() for kind in race.kinds} == judgement.races()


@settings(max_examples=400, deadline=None, suppress_health_check=SLOW)
@given(schedules(longest=7))
def test_verdict_and_waits(schedule: Schedule) -> None:
    judgement = judged(schedule)
    schedule = replace(schedule, steps=labelled(schedule.steps, iter(range(1000))))
    verdict = check_schedule(schedule)
    assume(not verdict.limited and all(finding.code != "S409" for finding in verdict.findings))
    races = judgement.races()
    if verdict.verdict != "invalid":
        assert verdict.verdict == ("deadlock" if judgement.deadlock else "race" if races else "ok")
    redundant = {wait.label for wait in verdict.waits.redundant}
    removable = {wait.label for wait in verdict.waits.removable}
    touches = any(command.accesses for command in judgement.commands)
    for step in schedule.walk():
        if not is_wait(step):
            continue
        other = judged(replace(schedule, steps=without(schedule.steps, step)))
        same = order_by_oracle(other) == order_by_oracle(judgement) and other.deadlock == judgement.deadlock
        safe = verdict.verdict == "ok" and touches and not other.races() and not other.deadlock
        assert (step.label in redundant) == same
        assert (step.label in removable) == (safe and not same)


def labelled(steps: tuple[AnyStep, ...], numbers: object) -> tuple[AnyStep, ...]:
    """Give every wait a label of its own."""
    found = []
    for step in steps:
        if isinstance(step, LoopStep):
            step = replace(step, steps=labelled(step.steps, numbers))
        elif is_wait(replace(step, label="")):
            step = replace(step, label=f"W{next(numbers)}")  # type: ignore[call-overload]
        found.append(step)
    return tuple(found)


def without(steps: tuple[AnyStep, ...], dropped: AnyStep) -> tuple[AnyStep, ...]:
    """The steps without one."""
    return tuple(
        replace(step, steps=without(step.steps, dropped)) if isinstance(step, LoopStep) else step
        for step in steps
        if step is not dropped
    )


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(open_loops())
def test_every_count_means_every_count(schedule: Schedule) -> None:
    """What is claimed for all counts is what many more counts than were tried show, with the smallest distances."""
    verdict = check_schedule(schedule)
    assume(verdict.counts_text == "every count from 0 up")
    seen: dict[tuple[str, str, str], tuple[set[str], int | None]] = {}
    for count in range(30):
        for key, race in run_schedule(schedule, {"n": count}).conflicts.races.items():
            kinds, distance = seen.get(key, (set(), None))
            known = [d for d in (distance, race.distance) if d is not None]
            seen[key] = (kinds | race.kinds, min(known, default=None))
    claimed = {(r.first.op, r.second.op, r.buffer): (set(r.kinds), r.distance) for r in verdict.races}
    assert claimed == seen


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(open_loops(), st.integers(190, 230))
def test_long_loops_are_cut_to_equal_ones(schedule: Schedule, count: int) -> None:
    """A long constant loop is answered from a shorter one: the answer is that of the whole loop."""
    loop = schedule.steps[0]
    assert isinstance(loop, LoopStep)
    closed = replace(schedule, steps=(replace(loop, hi=Int(count)), *schedule.steps[1:]), params={})
    assume(not used_params(replace(closed, params={"n": None})))
    cut = check_schedule(closed, budget=350)
    assume(not cut.limited)
    whole = run_schedule(closed, {}).conflicts.races
    claimed = {(r.first.op, r.second.op, r.buffer): (set(r.kinds), r.distance) for r in cut.races}
    assert claimed == {key: (race.kinds, race.distance) for key, race in whole.items()}
