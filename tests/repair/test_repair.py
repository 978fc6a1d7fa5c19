"""Repaired schedules against brute force: nothing races, nothing blocks, no op has moved, and no wait is to spare."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from dagsched.proof.check import check_schedule
from dagsched.proof.check_waits import is_wait
from dagsched.proof.verify import verify_schedule
from dagsched.repair.draft import Added
from dagsched.repair.repair import Repair, repair_schedule
from dagsched.schedule.model import AnyStep, FlagStep, FreeStep, HostStep, OpStep, Schedule
from tests.check.oracle import Judgement, TooBig, judge
from tests.check.strategies import open_loops, schedules
from tests.check.test_against_oracle import order_by_oracle, without
from tests.passes.build import build_schedule
from tests.passes.strategies import assignments, plans
from tests.proof.mutations import map_steps, mutated, waits_of
from tests.repair.strategies import nests

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def judged(schedule: Schedule, count: int | None = None) -> Judgement:
    try:
        return judge(schedule, {} if count is None else {"n": count})
    except TooBig:
        assume(False)
        raise


def work_by_thread(schedule: Schedule) -> dict[object, list[AnyStep]]:
    """Every op and host action, by the stream that it is issued to, in order."""
    found: dict[object, list[AnyStep]] = {}
    for step in schedule.walk():
        if isinstance(step, OpStep | HostStep):
            found.setdefault(getattr(step, "stream", None), []).append(step)
    return found


def needless_by_oracle(schedule: Schedule, extra: frozenset[int], count: int | None = None) -> list[AnyStep]:
    """The waits, and the steps in ``extra`` by number, whose removal leaves the order as it is, or leaves no race."""
    judgement = judged(schedule, count)
    touches = any(command.accesses for command in judgement.commands)
    found = []
    for number, step in enumerate(schedule.walk()):
        if not is_wait(step) and number not in extra:
            continue
        other = judged(replace(schedule, steps=without(schedule.steps, step)), count)
        same = order_by_oracle(other) == order_by_oracle(judgement) and other.deadlock == judgement.deadlock
        safe = touches and not other.races() and not other.deadlock
        if same or safe:
            found.append(step)
    return found


def added_steps(repair: Repair) -> frozenset[int]:
    """The numbers of steps in the result that make order and are new."""
    built = repair.draft.build()
    assert built.schedule == repair.schedule
    steps = tuple(built.schedule.walk())
    return frozenset(
        at
        for at, origin in enumerate(built.origins)
        if isinstance(origin, Added) and origin.moved is None and getattr(steps[at], "action", "wait") == "wait"
    )


@settings(max_examples=250, deadline=None, suppress_health_check=SLOW)
@given(schedules(longest=7))
def test_any_schedule(schedule: Schedule) -> None:
    repair = repair_schedule(schedule)
    event(f"{repair.before.verdict} -> {repair.after.verdict}")
    assert repair.is_right or (not repair.draft and repair.schedule is schedule and repair.remaining is not None)
    assert repair.after == (check_schedule(repair.schedule) if repair.draft else repair.before)
    if not repair.is_right or repair.after.limited or repair.untried:
        return
    assert work_by_thread(repair.schedule) == work_by_thread(schedule)
    judgement = judged(repair.schedule)
    assert not judgement.deadlock
    assert not judgement.races()
    assert needless_by_oracle(repair.schedule, added_steps(repair)) == []


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(schedules(longest=8))
def test_without_flags_and_locks_every_race_can_be_ordered(schedule: Schedule) -> None:
    def is_odd(step: AnyStep) -> bool:  # a free that names the index of its loop cannot leave it
        named = isinstance(step, FreeStep) and (step.access.version is not None or step.when)
        return isinstance(step, FlagStep) or bool(named)

    steps = map_steps(schedule.steps, lambda step: None if is_odd(step) else step)
    assert repair_schedule(replace(schedule, event_model="latch", steps=steps)).is_right


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(open_loops())
def test_loops_of_any_count(schedule: Schedule) -> None:
    repair = repair_schedule(schedule)
    assert repair.is_right
    assert work_by_thread(repair.schedule) == work_by_thread(schedule)
    assume(not repair.untried and not repair.after.limited)
    assert not repair.after.waits.redundant and not repair.after.waits.removable
    for count in range(4):
        judgement = judged(repair.schedule, count)
        assert not judgement.races() and not judgement.deadlock


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(nests())
def test_loops_in_loops(schedule: Schedule) -> None:
    """Without locks and counted flags every schedule can be repaired, in all event models."""
    repair = repair_schedule(schedule)
    event(f"{schedule.event_model}: {repair.before.verdict}")
    assert repair.is_right
    assert work_by_thread(repair.schedule) == work_by_thread(schedule)
    assume(not repair.untried and not repair.after.limited)
    assert not repair.after.waits.redundant and not repair.after.waits.removable
    for count in range(3) if schedule.params else [None]:
        judgement = judged(repair.schedule, count)
        assert not judgement.races() and not judgement.deadlock


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_spoiled_compiled_schedules(data: st.DataObject) -> None:
    """The verifier, which knows the plan and shares nothing with the repair, takes what comes out again."""
    plan = data.draw(plans(loops=1))
    compiled = build_schedule(plan, data.draw(assignments(plan)))
    spoiled = compiled
    for _ in range(data.draw(st.integers(1, 3))):
        spoiled = data.draw(mutated(spoiled))
    repair = repair_schedule(spoiled)
    assert repair.is_right
    assert work_by_thread(repair.schedule) == work_by_thread(spoiled)
    if not repair.untried and not repair.after.limited:
        assert not repair.after.waits.redundant and not repair.after.waits.removable
    same_ops = work_by_thread(spoiled) == work_by_thread(compiled)
    event(f"{repair.before.verdict}, {'same ops' if same_ops else 'an op on another stream'}")
    if same_ops:
        problems = [p for p in verify_schedule(plan, repair.schedule).problems if p.code == "V110"]
        assert [p.text for p in problems if "`after:`" not in p.text] == []  # An order that no buffer shows is lost.


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_all_waits_are_found_again(data: st.DataObject) -> None:
    """A schedule stripped of every wait gets as many as the compiler had put there, or fewer, and never races."""
    plan = data.draw(plans(loops=1))
    compiled = build_schedule(plan, data.draw(assignments(plan)))
    wanted = [wait for wait in waits_of(compiled) if all(protected.kind != "AFTER" for protected in wait.protects)]
    assume(wanted)
    waits = {id(wait) for wait in wanted}
    stripped = replace(compiled, steps=map_steps(compiled.steps, lambda s: None if id(s) in waits else s))
    repair = repair_schedule(stripped)
    assert repair.is_right
    assume(not repair.untried and not repair.after.limited)
    assert repair.after.waits.total <= len(waits_of(compiled))
    assert all(wait.protects for wait in waits_of(repair.schedule))


def test_a_right_schedule_is_left_alone() -> None:
    @settings(max_examples=30, deadline=None, database=None, suppress_health_check=SLOW)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        plan = data.draw(plans(loops=1))
        compiled = build_schedule(plan, data.draw(assignments(plan)))
        repair = repair_schedule(compiled)
        waits = check_schedule(compiled).waits
        assert repair.is_right
        if not waits.redundant and not waits.removable:
            assert not repair.draft

    check()
