"""Assertions for a test suite: that a schedule cannot race, that a plan's schedule does what the plan means.

Two judges answer: the checker or the verifier, for every count, and the adversary, which shows the interleaving. A
failed assertion is an ``AssertionError`` whose text has the race, its steps and a timeline.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from dagsched.diagnostics import Diagnostic, Source
from dagsched.library import Plan, Schedule
from dagsched.library import compile as compile_plan
from dagsched.plan import model as plan_model
from dagsched.proof.adversary import EXAMPLES, TIME_LIMIT, Options, attack_schedule
from dagsched.proof.adversary_model import Attempt
from dagsched.schedule import model as schedule_model
from dagsched.view.attempts import attempt_diagnostics
from dagsched.view.diagnostics import diagnostics_text
from dagsched.view.interleaving import failure_text, waits_lines

WIDTH = 110

AnySchedule = Schedule | schedule_model.Schedule | str | os.PathLike[str]
AnyPlan = Plan | plan_model.Plan | str | os.PathLike[str]


def assert_race_free(
    schedule: AnySchedule,
    *,
    counts: Sequence[int] = (),
    examples: int = EXAMPLES,
    seed: int = 0,
    time_limit: float = TIME_LIMIT,
    partly: bool = False,
) -> Attempt:
    """Assert that no interleaving of a schedule races, hangs, or reads freed memory; returns what was explored.

    ``schedule`` is one that ``dagsched.compile`` gave, a schedule as data, the path of a file, or the text of one.
    It is checked for every count, and attacked at small ones (``counts``, or chosen for it) with ``examples`` attacks
    drawn from ``seed`` besides the systematic ones, for ``time_limit`` seconds at the most. Where that leaves something
    undecided the assertion fails as well, unless ``partly``.

    Raises ``AssertionError`` with the shortest interleaving that fails, and :class:`dagsched.ScheduleError` or
    :class:`dagsched.UsageError` for a file that is wrong or cannot be read.
    """
    model, plan = _schedule_of(schedule)
    attempt = attack_schedule(model, plan, Options(tuple(counts), examples, seed, time_limit, waits=False))
    if attempt.failure is not None:
        raise AssertionError(_explain(attempt, model, plan))
    _check(model, partly)
    if attempt.explored.gaps and not partly:
        raise AssertionError(_undecided(attempt.explored.gaps))
    return attempt


def assert_proved(
    plan: AnyPlan,
    *,
    minimal: bool = False,
    counts: Sequence[int] = (),
    examples: int = EXAMPLES,
    seed: int = 0,
    time_limit: float = TIME_LIMIT,
) -> Attempt:
    """Assert that a plan compiles, that its schedule proves, and that no interleaving departs from the plan's meaning.

    ``plan`` is one that was built or loaded, the path of a file, or the text of one. With ``minimal`` every wait is
    dropped in turn, and one that nothing needs at the counts tried fails the assertion. The other options are those of
    :func:`assert_race_free`.

    Raises ``AssertionError``, and :class:`dagsched.PlanError`, :class:`dagsched.LimitError` or
    :class:`dagsched.ProofError` where the plan does not compile.
    """
    compiled = compile_plan(_plan_of(plan)).compiled
    options = Options(tuple(counts), examples, seed, time_limit, waits=minimal)
    attempt = attack_schedule(compiled.schedule, compiled.plan, options)
    if attempt.failure is not None:
        raise AssertionError(_explain(attempt, compiled.schedule, compiled.plan))
    if minimal:
        idle = [wait for wait in attempt.waits if wait.result != "needed"]
        if idle:
            lines = "\n".join(f"  {line}" for line in waits_lines(attempt, width=WIDTH))
            raise AssertionError(f"{len(idle)} of {len(attempt.waits)} waits are not known to be needed:\n{lines}")
    return attempt


def _schedule_of(schedule: AnySchedule) -> tuple[schedule_model.Schedule, plan_model.Plan | None]:
    if isinstance(schedule, Schedule):
        return schedule.model, schedule.compiled.plan
    if isinstance(schedule, schedule_model.Schedule):
        return schedule, None
    from dagsched.schedule.reader import read_schedule

    return read_schedule(_source_of(schedule)), None


def _plan_of(plan: AnyPlan) -> Plan | plan_model.Plan:
    if isinstance(plan, Plan | plan_model.Plan):
        return plan
    from dagsched.plan.reader import read_plan

    return read_plan(_source_of(plan))


def _source_of(file: str | os.PathLike[str]) -> Source:
    """A text of several lines is the file itself, all else its path."""
    if isinstance(file, str) and "\n" in file:
        return Source("<text>", file)
    from dagsched.sources import read_file

    return read_file(file)


def _check(schedule: schedule_model.Schedule, partly: bool) -> None:
    """Ask the checker, which speaks of every count."""
    from dagsched.proof.check import check_schedule

    verdict = check_schedule(schedule)
    if verdict.verdict != "ok":
        found = [d for d in verdict.diagnostics(schedule.source) if d.severity == "error"]
        raise AssertionError(f"the schedule is wrong ({verdict.verdict}), as larger counts show:\n\n{_text(found)}")
    if verdict.limited and not partly:
        raise AssertionError(_undecided((f"checked for {verdict.counts_text}",)))


def _explain(attempt: Attempt, schedule: schedule_model.Schedule, plan: plan_model.Plan | None) -> str:
    failure = attempt.failure
    assert failure is not None
    found = attempt_diagnostics(attempt, schedule, plan)
    at = ", ".join(f"{name} = {value}" for name, value in failure.env)
    steps = failure_text(failure, width=WIDTH, indent="  ")
    head = f"the steps that lead there{f', with {at}' if at else ''}:\n\n" if steps else ""
    return f"{failure.headline.replace('`', '')}\n\n{_text(found)}\n{head}{steps}"


def _text(found: Iterable[Diagnostic]) -> str:
    return diagnostics_text(found, width=WIDTH)


def _undecided(gaps: Iterable[str]) -> str:
    return f"not decided: {'; '.join(gaps)}\n(`partly=True` lets that pass, `time_limit=` gives more time)"
