"""Schedules read back as they were written, by our readers and by others', whatever their names are."""

from __future__ import annotations

import json
import time
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dagsched.diagnostics import DagschedError, Source
from dagsched.plan.expressions import Int, Name
from dagsched.schedule.model import Indexed, LoopStep, OpStep, Schedule, SyncStep
from dagsched.schedule.reader import read_schedule
from dagsched.schedule.writer import schedule_data, schedule_json, schedule_text, schedule_yaml
from dagsched.schemas import schedule_schema
from tests.schedule_files.strategies import KINDS, kinds_of, schedules

SCHEMA = jsonschema.Draft7Validator(schedule_schema())


@given(schedules())
def test_json_and_yaml_read_back(schedule: Schedule) -> None:
    as_json, as_yaml = schedule_json(schedule), schedule_yaml(schedule)
    from_json = read_schedule(Source("t.json", as_json))
    assert from_json == schedule
    assert read_schedule(Source("t.yaml", as_yaml)) == schedule
    assert (schedule_json(from_json), schedule_yaml(from_json)) == (as_json, as_yaml)


@given(schedules())
def test_other_readers_and_the_schema_agree(schedule: Schedule) -> None:
    """PyYAML reads YAML 1.1, in which `on`, `1:30` and `1_000` are no texts."""
    data = schedule_data(schedule)
    assert json.loads(schedule_json(schedule)) == data
    assert yaml.safe_load(schedule_yaml(schedule)) == data
    SCHEMA.validate(data)


@given(schedules())
def test_both_forms_are_readable(schedule: Schedule) -> None:
    """One step a line; nothing in a text can move a cursor or reorder a line; files end with a line break."""
    steps = sum(1 for _ in schedule.walk())
    for text in (schedule_json(schedule), schedule_yaml(schedule), schedule_text(schedule)):
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert len(text.splitlines()) == text.count("\n")
        assert steps <= text.count("\n")
        assert all(line == line.rstrip() for line in text.split("\n"))
    assert all(line.isprintable() for line in schedule_text(schedule).split("\n"))


def test_random_schedules_have_every_kind_of_step() -> None:
    seen: set[str] = set()

    @settings(max_examples=200, derandomize=True, database=None)
    @given(schedules())
    def collect(schedule: Schedule) -> None:
        seen.update(kinds_of(schedule))

    collect()
    assert seen == set(KINDS)


@given(schedules(), st.data())
def test_damaged_files_are_read_or_refused(schedule: Schedule, data: st.DataObject) -> None:
    """Whatever is done to a file, the answer is a schedule or an error with a place."""
    name = data.draw(st.sampled_from(["t.yaml", "t.json"]))
    text = schedule_yaml(schedule) if name == "t.yaml" else schedule_json(schedule)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.text("{}[]:,-\"'@i0123 \n#&*!|>%", max_size=3)) + text[at + cut :]
    try:
        read_schedule(Source(name, text))
    except DagschedError as error:
        assert error.diagnostics
        for diagnostic in error.diagnostics:
            assert diagnostic.where is not None
            assert 1 <= diagnostic.where.line <= text.count("\n") + 2


@given(schedules(), st.data())
def test_values_of_the_wrong_kind_are_refused(schedule: Schedule, data: st.DataObject) -> None:
    """Any value of a file may be replaced by any other: never a traceback."""
    document = schedule_data(schedule)
    holder: Any = document
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if not isinstance(holder[key], dict | list) or data.draw(st.integers(0, 3)) == 0:
            break
        holder = holder[key]
    holder[key] = data.draw(
        st.sampled_from([None, True, -1, 0, 10**30, 1.5, "", "x", "a@", "x[", [], {}, [[]], {"a": 1}])
    )
    try:
        read_schedule(Source("t.json", json.dumps(document)))
    except DagschedError as error:
        assert all(diagnostic.where is not None for diagnostic in error.diagnostics)


def test_equal_texts_have_equal_schedules_in_both_forms() -> None:
    text = '{"dagsched-schedule": 1, "name": "t", "steps": [{"stream": "s@n%2", "op": "a"}], "params": {"n": 2}}'
    assert read_schedule(Source("t.json", text)) == read_schedule(Source("t.yaml", text))


def test_places_are_kept() -> None:
    head = "dagsched-schedule: 1\nbuffers:\n  x: {}\nsteps:\n"
    schedule = read_schedule(
        Source("t.yaml", head + "- loop: i\n  count: 2\n  steps:\n  - {stream: s, op: a, reads: [x]}\n")
    )
    loop, op = schedule.walk()
    assert isinstance(loop, LoopStep)
    assert isinstance(op, OpStep)
    assert loop.where is not None
    assert op.where is not None
    assert op.accesses[0].where is not None
    assert schedule.buffers["x"].where is not None
    assert (loop.where.line, loop.where.column) == (5, 3)
    assert (op.where.line, op.where.column) == (8, 5)
    assert (op.accesses[0].where.line, op.accesses[0].where.column) == (8, 32)
    assert (schedule.buffers["x"].where.line, schedule.buffers["x"].where.column) == (3, 3)


def test_the_name_comes_from_the_file() -> None:
    for name in ("pipe.schedule.yaml", "dir/pipe.schedule.json", "pipe.yaml"):
        assert read_schedule(Source(name, '{"dagsched-schedule": 1, "steps": []}')).name == "pipe"
    assert read_schedule(Source("<stdin>", "dagsched-schedule: 1\nsteps: []\n")).name


def test_everything_behind_the_first_at_is_the_index() -> None:
    text = """\
dagsched-schedule: 1
params: {n: 4}
steps:
- {stream: a b@(n+1)%2, op: x}
- {loop: i, range: [1, n], steps: [{sync: {stream: s@i}}]}
"""
    op, loop, sync = read_schedule(Source("t.yaml", text)).walk()
    assert isinstance(op, OpStep)
    assert op.stream.name == "a b"
    assert schedule_data(read_schedule(Source("t.yaml", text)))["steps"][0]["stream"] == "a b@(n+1)%2"
    assert sync == SyncStep(kind="stream", target=Indexed("s", Name("i")))
    assert loop == LoopStep(index="i", lo=Int(1), hi=Name("n"), steps=(sync,))


def test_sizes_may_have_units() -> None:
    schedule = read_schedule(
        Source("t.yaml", "dagsched-schedule: 1\nbuffers: {x: {size: 48MiB}, y: {size: 40 kB}}\nsteps: []\n")
    )
    assert [storage.size for storage in schedule.buffers.values()] == [48 * 2**20, 40_000]
    assert schedule_data(schedule)["buffers"] == {"x": {"size": 48 * 2**20}, "y": {"size": 40_000}}


@pytest.mark.parametrize("name", ["t.yaml", "t.json"])
def test_large_files_take_seconds(name: str) -> None:
    """20,000 steps take 1.3 s on the machine this was written on; a quadratic reader takes minutes."""
    step = "{{stream: s{0}, op: o{1}, reads: [x@n], writes: [x]}}" if name == "t.yaml" else (
        '{{"stream": "s{0}", "op": "o{1}", "reads": ["x@n"], "writes": ["x"]}}'
    )  # fmt: skip
    steps = ",\n".join(step.format(k % 8, k) for k in range(20_000))
    text = (
        f'{{"dagsched-schedule": 1, "params": {{"n": null}}, "buffers": {{"x": {{"ring": 2}}}}, "steps": [{steps}]}}\n'
    )
    start = time.process_time()
    assert len(read_schedule(Source(name, text)).steps) == 20_000
    assert time.process_time() - start < 20
