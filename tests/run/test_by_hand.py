"""Schedules written by hand run as they are, with a plan's operations, or are refused with what to change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.devices import load_device
from dagsched.diagnostics import DagschedError, PlanError, Source
from dagsched.library import Schedule as Runnable
from dagsched.plan.expressions import Int
from dagsched.plan.model import Op, OpKind, Plan
from dagsched.plan.reader import read_plan
from dagsched.plan.resolve import resolve_plan
from dagsched.proof.check import check_schedule
from dagsched.run.by_hand import adopt_schedule
from dagsched.schedule.model import (
    AnyStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Schedule,
    Storage,
    SyncStep,
    WaitStreamStep,
)
from dagsched.schedule.reader import read_schedule
from dagsched.schedule.writer import schedule_yaml
from tests.cli.conftest import Cli, cli  # noqa: F401 - the fixture
from tests.emit.random_plans import random_plan
from tests.run.meaning import Functions, inputs_of, require_meaning

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANS = 12


def _written(plan: Plan, random: Random) -> Schedule:
    """A schedule as a careful person writes it: whenever the stream changes, the new one waits for the others."""
    streams = ["s", "t", "u"]

    def write(op: Op) -> Iterator[AnyStep]:
        if op.kind is OpKind.HOST:
            yield random.choice([SyncStep("device"), SyncStep("device")])
            yield HostStep(host=op.name, accesses=op.accesses)
            return
        stream = Indexed(random.choice(streams))
        for other in streams:
            if other != stream.name:
                yield WaitStreamStep(stream=stream, target=Indexed(other))
        yield OpStep(stream=stream, op=op.name, accesses=op.accesses)

    steps: list[AnyStep] = []
    for item in plan.items:
        if isinstance(item, Op):
            steps += write(item)
        else:
            body = tuple(step for op in item.body if isinstance(op, Op) for step in write(op))
            steps.append(LoopStep(index=item.index, lo=Int(0), hi=item.count, steps=body))
    storage = {name: Storage(name, b.place, b.ring.depth or 1) for name, b in plan.buffers.items()}
    return Schedule("by-hand", tuple(steps), params=dict(plan.params), buffers=storage)


def _read_back(schedule: Schedule) -> Schedule:
    return read_schedule(Source("by-hand.yaml", schedule_yaml(schedule)))


def _run(made: Compiled, plan: Plan, counts: tuple[int, ...]) -> None:
    """The plan's meaning, whatever the schedule puts on which stream."""
    functions = Functions(made.resolved, 0)
    with Runnable(made).executor(functions.functions) as executor:
        for count in counts:
            functions.log.clear()
            given = dict.fromkeys(plan.params, count)
            result = executor.run(inputs=inputs_of(made.resolved), timeout=30, counts=given)
            require_meaning(replace(made, plan=plan), given, functions.log, result.outputs)


def _random_plans(count: int) -> Iterator[tuple[int, Compiled]]:
    seed = 0
    while count:
        seed += 1
        try:
            compiled = compile_plan(random_plan(seed))
        except PlanError:
            continue
        yield seed, compiled
        count -= 1


def test_host_steps_and_syncs_keep_their_order() -> None:
    for seed, compiled in _random_plans(PLANS):
        written = _read_back(_written(compiled.resolved, Random(seed)))
        assert check_schedule(written).verdict == "ok"
        _run(adopt_schedule(written, compiled.resolved, compiled.device), compiled.plan, (0, 1, 3))


def test_what_compile_writes_can_be_run_as_if_by_hand() -> None:
    for _, compiled in _random_plans(PLANS // 2):
        _run(adopt_schedule(_read_back(compiled.schedule), compiled.resolved, compiled.device), compiled.plan, (0, 4))


LATE = """\
dagsched-schedule: 1
params: {n: null}
events: {done: {ring: 2}}
buffers: {a: {place: host, ring: 2}, b: {place: device, ring: 2}}
steps:
  - loop: i
    count: n+1
    steps:
      - {stream: s, op: up, reads: [a@i], writes: [b@i], when: i < n}
      - {stream: s, record: done@i, when: i < n}
      - {stream: t, wait: done@i-1, when: i >= 1}
      - {stream: t, op: use@i-1, updates: [b@i-1], when: i >= 1}
      - {sync: {stream: t}}
"""

END = "- {sync: {stream: t}}"

PLAN = """\
dagsched: 1
device: host
params: {n: null}
buffers:
  a: {place: host, shape: [1], dtype: int64, ring: 2, input: true}
  b: {place: device, shape: [1], dtype: int64, ring: 2, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: up, copy: {from: a, to: b}}
      - {name: use, compute: use, updates: [b], time: 1 ms}
"""


def test_ops_of_other_iterations(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    functions = 'inputs = {"a": [[5], [7]]}\n\ndef use(b, i):\n    b += i\n'
    for name, text in (("late.schedule.yaml", LATE), ("plan.yaml", PLAN), ("my.py", functions)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = ["late.schedule.yaml", "--costs", "plan.yaml", "--functions", "my.py", "--count", "n=4", "--format", "json"]
    result = cli("run", *words)
    assert result.status == 0, result.err
    data = json.loads(result.out)
    assert (data["plan"], data["iterations"]) == ("late", 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [("use@i-1, updates: [b@i-1], when: i >= 1", "use@i-1, updates: [b@i-1], when: i >= 1 and i % 2 == 0"),
     ("use@i-1, updates: [b@i-1], when: i >= 1", "use@i-1, updates: [b@i-1], when: i >= 2"),
     ("writes: [b@i], when: i < n", "writes: [b@i], when: i < n - 1")],
)  # fmt: skip
def test_a_source_feeds_late_ops_that_run_for_every_item_only(old: str, new: str) -> None:
    plan = resolve_plan(read_plan(Source("plan.yaml", PLAN)))
    functions = {"use": lambda b, i: b.__iadd__(i)}
    for text, fits in ((LATE, True), (LATE.replace(old, new), False)):
        made = adopt_schedule(read_schedule(Source("late.schedule.yaml", text)), plan, load_device("host"))
        with Runnable(made).executor(functions) as executor:
            executor.run(n=5, inputs={"a": [[5], [7]]})
            if fits:
                result = executor.run(n=iter(range(4)))
                assert result.counts == {"n": 4} and result.outputs["b"].tolist() == [7 + 3]
            else:
                with pytest.raises(DagschedError, match="R106"):
                    executor.run(n=iter(range(4)))


def test_a_dry_run_takes_as_long_as_predicted() -> None:
    written = read_schedule(_source(EXAMPLES / "handwritten" / "detector.schedule.yaml"))
    plan = resolve_plan(read_plan(_source(EXAMPLES / "detector.yaml")))
    made = adopt_schedule(written, plan, load_device(plan.device))
    with Runnable(made).executor() as executor, Runnable(made).executor(backend="simulate") as simulator:
        measured, predicted = executor.run(frames=5), simulator.run(frames=5)
    assert predicted.seconds == pytest.approx(5 * 9.06e-3, rel=0.01)
    assert predicted.seconds <= measured.seconds
    assert {span.track for span in measured.trace.spans} == {"copy", "compute", "host"}
    order = sorted(measured.trace.spans, key=lambda span: span.start)
    assert [span.name for span in order] == ["decode", "upload", "resize", "infer", "download", "draw"] * 5


def _source(path: Path) -> Source:
    return Source(str(path), path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("op: up,", "op: upp,", "R117: no op `upp`"),
        ("reads: [a@i], writes: [b@i]", "reads: [a@i, c], writes: [b@i]", "R117: reads `a`, reads `c`"),
        ("      - {stream: t, wait: done@i-1, when: i >= 1}\n", "", "R118: is not right"),
        ("done: {ring: 2}}", "done: {ring: 2}}\nevent_model: flag", "R101: `flag`"),
        (END, END + "\n      - {stream: t, acquire: l}\n      - {stream: t, release: l}", "R101: `acquire`"),
        (END, END + "\n      - {stream: u@i, op: more, reads: [c]}", "R101: indexed stream `u`"),
        (END, "- {stream: t, op: up, reads: [a], writes: [b]}", "R118: is not right"),
        ("ring: 2}, b: {", "alias: c, ring: 2}, c: {ring: 2}, b: {", "R101: `a`"),
    ],
)
def test_what_it_refuses(old: str, new: str, code: str) -> None:
    assert old in LATE
    plan = resolve_plan(read_plan(Source("plan.yaml", PLAN)))
    text = LATE.replace(old, new)
    with pytest.raises(DagschedError) as caught:
        adopt_schedule(read_schedule(Source("late.schedule.yaml", text)), plan, load_device("host"))
    name, said = code.split(": ")
    assert name in str(caught.value) and said in str(caught.value)


def test_the_plan_is_asked_for(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "late.schedule.yaml").write_text(LATE, encoding="utf-8")
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")
    result = cli("run", "late.schedule.yaml")
    assert (result.status, "add `--costs PLAN`" in result.err) == (2, True)
    result = cli("run", "plan.yaml", "--costs", "plan.yaml")
    assert (result.status, "drop `--costs`" in result.err) == (2, True)
    assert cli("run", "-", "--costs", "-").status == 2
