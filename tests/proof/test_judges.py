"""Three judges of random schedules: the checker's clocks, brute force over all states, and the adversary's contents.

They share no code and look at different things (which order is certain, what had run when, who wrote what is read),
and must say the same: one verdict, and the race that the adversary shows is one that the other two know, with the
same kinds. ``make judges`` asks them about 10,000 schedules.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from dagsched.proof.adversary import Options, attack_schedule
from dagsched.proof.adversary_model import Attempt, Failure
from dagsched.proof.check import check_schedule
from dagsched.proof.check_model import Verdict
from dagsched.schedule.model import Schedule
from dagsched.testing import schedules
from tests.check.oracle import Judgement, TooBig, judge

CASES = max(300, 2 * settings().max_examples)
"""10,000 at night."""

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
SYSTEMATIC = Options(examples=0, waits=False, time_limit=600)
"""Every state, or every piece of work held back; nothing left to chance."""


def judged(schedule: Schedule, count: int = 0) -> Judgement:
    try:
        return judge(schedule, {"n": count} if schedule.params else {})
    except TooBig:
        assume(False)
        raise


def same_race(failure: Failure, verdict: Verdict) -> bool:
    """Whether the checker lists the race that the adversary shows."""
    first, second = failure.first, failure.second
    assert first is not None and second is not None
    names = {failure.buffer, "/".join(reversed((failure.buffer or "").split("/")))}
    return any(
        (race.first.op, race.second.op) == (first.op, second.op)
        and race.buffer in names
        and set(failure.kinds) <= set(race.kinds)
        and (race.distance is None) == (failure.distance is None)
        and (race.distance or 0) <= (failure.distance or 0)
        for race in verdict.races
    )


def agree(attempt: Attempt, verdict: Verdict, judgements: list[Judgement]) -> None:
    races = set().union(*(judgement.races() for judgement in judgements))
    deadlock = any(judgement.deadlock for judgement in judgements)
    brute = "deadlock" if deadlock else "race" if races else "ok"
    event(f"{attempt.verdict} / {verdict.verdict} / {brute}")
    failure = attempt.failure
    if failure is None:
        assert attempt.explored.whole
    if verdict.verdict == "invalid" or attempt.verdict == "invalid":  # freed memory is read: brute force does not look
        assert attempt.verdict in ("invalid", "race", "deadlock") and verdict.verdict == "invalid"
        return
    assert verdict.verdict == brute
    if attempt.verdict == "race" and brute == "deadlock":  # found first, and both are so
        assert races
    else:
        assert attempt.verdict == brute
    if failure is not None and failure.kind == "race":
        assert failure.first is not None and failure.second is not None
        for kind in failure.kinds:
            assert (failure.first.op, failure.second.op, failure.buffer, kind) in races
        assert same_race(failure, verdict)


@settings(max_examples=CASES, deadline=None, suppress_health_check=SLOW)
@given(schedules())
def test_three_judges_agree(schedule: Schedule) -> None:
    judgement = judged(schedule)
    verdict = check_schedule(schedule)
    assume(not verdict.limited)
    agree(attack_schedule(schedule, options=SYSTEMATIC), verdict, [judgement])


@settings(max_examples=CASES // 5, deadline=None, suppress_health_check=SLOW)
@given(schedules(steps=5, streams=2, params=True, models=("latch",)))
def test_three_judges_agree_on_loops_of_any_count(schedule: Schedule) -> None:
    """The checker speaks of every count, brute force of the first few: what it finds there the checker says, too. What
    the checker finds at larger counts only, the adversary shows at one that lets the longest ring come round."""
    assume(schedule.params)
    judgements = [judged(schedule, count) for count in range(3)]
    verdict = check_schedule(schedule)
    assume(not verdict.limited)
    small = attack_schedule(schedule, options=replace(SYSTEMATIC, counts=(0, 1, 2)))
    found = any(judgement.races() or judgement.deadlock for judgement in judgements)
    if found or verdict.verdict == "ok":
        agree(small, verdict, judgements)
    attempt = attack_schedule(schedule, options=SYSTEMATIC)
    event(f"{attempt.verdict} / {verdict.verdict}")
    assert attempt.verdict == verdict.verdict or verdict.verdict == "invalid"
    assert attempt.failure is None or attempt.failure.kind != "race" or same_race(attempt.failure, verdict)


@settings(max_examples=CASES // 5, deadline=None, suppress_health_check=SLOW)
@given(schedules(), st.integers(0, 100))
def test_chance_finds_nothing_that_is_not_there(schedule: Schedule, seed: int) -> None:
    """What hypothesis draws, also with work that takes effect in parts, fails only where the others say so."""
    judgement = judged(schedule)
    attempt = attack_schedule(schedule, options=Options(examples=20, seed=seed, waits=False, time_limit=600))
    if attempt.verdict == "deadlock":
        assert judgement.deadlock
    elif attempt.verdict == "race":
        assert judgement.races()
    else:
        assert attempt.verdict == "invalid" or not (judgement.races() or judgement.deadlock)
