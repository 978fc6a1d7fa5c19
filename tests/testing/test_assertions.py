"""``dagsched.testing`` as a user's test suite calls it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import dagsched
from dagsched.proof.adversary_program import unfold
from dagsched.schedule.model import Schedule
from dagsched.schedule.reader import read_schedule
from dagsched.sources import read_file
from dagsched.testing import assert_proved, assert_race_free, plans, schedules

ROOT = Path(__file__).parent.parent.parent
CASES = ROOT / "tests" / "check" / "cases"
DETECTOR = ROOT / "examples" / "detector.yaml"


def test_every_form_of_a_schedule_is_taken() -> None:
    path = CASES / "ring-of-two.schedule.yaml"
    for form in (path, str(path), path.read_text(encoding="utf-8"), read_schedule(read_file(path))):
        assert assert_race_free(form, examples=10).verdict == "ok"
    assert assert_race_free(dagsched.compile(DETECTOR), examples=10).explored.whole


def test_every_form_of_a_plan_is_taken() -> None:
    loaded = dagsched.load(DETECTOR)
    for form in (DETECTOR, str(DETECTOR), DETECTOR.read_text(encoding="utf-8"), loaded, loaded.model):
        assert assert_proved(form, examples=5).verdict == "ok"
    assert all(wait.result == "needed" for wait in assert_proved(DETECTOR, minimal=True, examples=5).waits)


def test_a_race_reads_well() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_race_free(CASES / "ring-too-short.schedule.yaml")
    text = str(caught.value)
    assert text.startswith("upload@3 can overwrite din before infer@0 has read it\n")
    assert "error[S201]" in text and "the steps that lead there, with n = 4" in text
    assert "infer@0 !" in text and "= help: add `{stream: compute, record: infer_done@i}`" in text


@pytest.mark.parametrize("name", ["lock-order", "use-after-free", "take-without-set"])
def test_what_is_wrong_fails(name: str) -> None:
    with pytest.raises(AssertionError):
        assert_race_free(CASES / f"{name}.schedule.yaml")


def test_what_is_undecided_fails_unless_it_may() -> None:
    """Only latch events are known for every count, so a parametric loop of another model is checked in part."""
    text = (
        "dagsched-schedule: 1\nevent_model: reevaluate\nparams: {n: null}\n"
        "steps: [{loop: i, count: n, steps: [{stream: s, op: put, writes: [x]}]}]\n"
    )
    with pytest.raises(AssertionError, match="not decided"):
        assert_race_free(text, examples=5)
    assert assert_race_free(text, examples=5, partly=True).verdict == "ok"


def test_a_wrong_file_raises_what_the_library_raises() -> None:
    with pytest.raises(dagsched.ScheduleError):
        assert_race_free("dagsched-schedule: 1\nsteps: [{sync: now}]\n")
    with pytest.raises(dagsched.UsageError):
        assert_race_free(ROOT / "nowhere.yaml")
    with pytest.raises(dagsched.PlanError):
        assert_proved("dagsched: 1\nops: []\n")


def test_strategies_refuse_what_they_cannot_draw() -> None:
    with pytest.raises(ValueError, match="is called"):
        schedules(kinds=("op", "jump"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least"):
        plans(ops=0)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schedules(steps=6, streams=2, models=("latch",), kinds=("op", "record", "wait"), legacy=False, loops=False))
def test_schedules_are_as_asked(schedule: Schedule) -> None:
    kinds = {command.what for command in unfold(schedule, {}, 100).commands}
    assert kinds <= {"work", "record", "wait"}
    assert schedule.event_model == "latch" and schedule.default_stream == "none"
    assert len(schedule.steps) <= 6


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans(params=False, loops=1, ops=3))
def test_plans_compile(plan: dagsched.Plan) -> None:
    assert not plan.model.params
    dagsched.compile(plan)


def test_the_example_suite_passes(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "examples/testing"],
        cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
