"""Schedules read back as they were written; wrong ones say what is wrong, and where."""

from __future__ import annotations

import time

import pytest
from hypothesis import given

from dagsched.diagnostics import ScheduleError, Source
from dagsched.schedule.model import OpStep, Schedule
from dagsched.schedule.reader import read_schedule
from dagsched.schedule.writer import schedule_json, schedule_text, schedule_yaml
from tests.schedule_files.strategies import schedules


@given(schedules())
def test_json_and_yaml_read_back(schedule: Schedule) -> None:
    assert read_schedule(Source("t.json", schedule_json(schedule))) == schedule
    assert read_schedule(Source("t.yaml", schedule_yaml(schedule))) == schedule
    assert schedule_json(schedule) == schedule_json(schedule)
    assert schedule_text(schedule).endswith("\n")


HEAD = "dagsched-schedule: 1\nname: t\nparams: {n: null}\nbuffers:\n  x: {place: device, ring: 2}\nsteps:\n"


@pytest.mark.parametrize(
    ("step", "code", "line", "column"),
    [
        ("- {stream: s, opp: x}", "S103", 7, 15),
        ("- {stream: s, op: a, reeds: [x]}", "S101", 7, 22),
        ("- {stream: s, op: a, reads: [x@j]}", "S112", 7, 30),
        ("- {stream: s, op: a, reads: ['x[4:4]']}", "S132", 7, 30),
        ("- {stream: s, op: a, reads: ['x[4:']}", "S105", 7, 32),
        ("- {stream: s, wait: e@}", "S105", 7, 22),
        ("- {stream: s, wait: e, when: i >}", "S105", 7, 33),
        ("- {stream: s, wait: e, when: k > 1}", "S112", 7, 30),
        ("- {op: a}", "S102", 7, 3),
        ("- {sync: everything}", "S103", 7, 10),
        ("- {stream: s, op: a, wait: e}", "S103", 7, 22),
        ("- loop: i\n  count: -1\n  steps: []", "S117", 8, 10),
        ("- loop: n\n  count: 1\n  steps: []", "S115", 7, 9),
        ("- loop: i\n  steps: []", "S103", 7, 3),
    ],
)
def test_wrong_steps(step: str, code: str, line: int, column: int) -> None:
    with pytest.raises(ScheduleError) as caught:
        read_schedule(Source("t.yaml", HEAD + step + "\n"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.where is not None
    assert (diagnostic.code, diagnostic.where.line, diagnostic.where.column) == (code, line, column)


@pytest.mark.parametrize(
    ("buffers", "code"),
    [
        ("x: {alias: y}", "S121"),
        ("x: {alias: y}\n  y: {alias: x}", "S122"),
        ("x: {space: ub, at: [4, 4]}", "S120"),
        ("x: {ring: 0}", "S103"),
        ("x: {place: moon}", "S103"),
    ],
)
def test_wrong_buffers(buffers: str, code: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        read_schedule(Source("t.yaml", f"dagsched-schedule: 1\nname: t\nbuffers:\n  {buffers}\nsteps: []\n"))
    assert code in {diagnostic.code for diagnostic in caught.value.diagnostics}


def test_all_errors_are_told_at_once() -> None:
    with pytest.raises(ScheduleError) as caught:
        read_schedule(Source("t.yaml", HEAD + "- {stream: s, op: a, reads: [x@j]}\n- {stream: s, wait: e@k}\n"))
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["S112", "S112"]


def test_a_plan_is_told_from_a_schedule() -> None:
    with pytest.raises(ScheduleError) as caught:
        read_schedule(Source("t.yaml", "dagsched: 1\nname: t\nbuffers: {}\nops: []\n"))
    assert caught.value.diagnostics[0].code == "S100"


def test_places_of_steps_are_kept() -> None:
    schedule = read_schedule(Source("t.yaml", HEAD + "- {stream: s, op: a, reads: [x]}\n"))
    (step,) = schedule.steps
    assert isinstance(step, OpStep)
    assert step.where is not None
    assert step.accesses[0].where is not None
    assert (step.where.line, step.where.column, step.accesses[0].where.column) == (7, 3, 30)


def test_the_name_comes_from_the_file() -> None:
    assert read_schedule(Source("dir/pipe.schedule.yaml", "dagsched-schedule: 1\nsteps: []\n")).name == "pipe"


def test_large_files_are_read_by_the_line() -> None:
    text = HEAD + "".join(f"- {{stream: s{k % 8}, op: o{k}, reads: [x@n], writes: [x]}}\n" for k in range(20_000))
    start = time.perf_counter()
    assert len(read_schedule(Source("t.yaml", text)).steps) == 20_000
    assert time.perf_counter() - start < 30  # a quadratic reader takes minutes
