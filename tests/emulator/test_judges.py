"""The whole matrix: every example in every C++ target, every wait left out, every op met by every kind of fault.

On small buffers (``small.py``), with the schedules of the real plans. By default a few cells of each; ``make judges``
goes through all of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from dagsched.compiled import Compiled
from dagsched.diagnostics import PlanError
from dagsched.emulator.run import TARGETS, Program, build_program, judge, judge_fault, run_program
from dagsched.plan.model import Loop, OpKind
from dagsched.schedule.model import AnyStep, EventStep, LoopStep
from tests.emit.pipelines import EXAMPLES
from tests.emulator.small import LARGEST, compile_small, shape_of

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
COUNTS = (0, 1, 2, 7, 100)
USUAL = {("denoise", "acl-graph"), ("denoise", "cuda-graph")}
"""What is run by default: the rest of the programs are run by ``test_run.py`` and the tests of emitted code."""

PAIRS = [(name, target) for name in NAMES for target in TARGETS]
FAULTS = {
    "acl": {"call": 207001, "task": 507015, "lost": 507899},
    "cuda": {"call": 2, "task": 700, "lost": 719},
}
"""By runtime: a code for each way in which a fault comes back."""

CAPTURED = {"acl-graph": {"denoise"}, "cuda-graph": {"denoise", "detector"}}
"""Examples that the target must be able to capture."""


def marked(*values: object) -> ParameterSet:
    """The last of the values says whether the others are for the night."""
    return pytest.param(*values[:-1], marks=pytest.mark.nightly if values[-1] else ())


def is_nightly(request: pytest.FixtureRequest) -> bool:
    """Whether everything is to be gone through."""
    return bool(request.config.getoption("--hypothesis-profile") == "nightly")


def without_wait(steps: tuple[AnyStep, ...], left: list[int]) -> tuple[AnyStep, ...]:
    """The steps without the wait of this number (counted down in ``left``)."""
    kept: list[AnyStep] = []
    for step in steps:
        if isinstance(step, LoopStep):
            step = replace(step, steps=without_wait(step.steps, left))
        elif isinstance(step, EventStep) and step.action == "wait":
            left[0] -= 1
            if left[0] == -1:
                continue
        kept.append(step)
    return tuple(kept)


def leave_out(compiled: Compiled, wait: int) -> Compiled:
    """The same with a schedule that lacks a wait."""
    steps = without_wait(compiled.schedule.steps, [wait])
    return replace(compiled, schedule=replace(compiled.schedule, steps=steps))


def waits_of(compiled: Compiled) -> int:
    """How many waits a schedule has."""
    return sum(isinstance(step, EventStep) and step.action == "wait" for step in compiled.schedule.walk())


def build(compiled: Compiled, folder: Path, target: str, sanitizer: str) -> Program | None:
    """The program; None where the target has no loop to capture, which must be so."""
    try:
        return build_program(compiled, folder, target, sanitizer)
    except PlanError as error:
        assert [diagnostic.code for diagnostic in error.diagnostics] == ["E106"]
        assert compiled.plan.name not in CAPTURED.get(target, set())
        return None


@pytest.mark.parametrize("name", NAMES)
def test_small_plans_have_the_schedules_of_the_real_ones(name: str) -> None:
    small, real = compile_small(name)
    assert shape_of(small.schedule.steps) == shape_of(real.schedule.steps)
    assert max(buffer.size for buffer in small.plan.buffers.values()) <= LARGEST


@pytest.mark.parametrize(
    ("name", "target"), [marked(name, target, (name, target) not in USUAL) for name, target in PAIRS]
)
def test_examples_are_right_in_every_target(
    name: str, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Under ThreadSanitizer: outputs, what host functions saw, and the trace."""
    nightly = is_nightly(request)
    compiled, _ = compile_small(name)
    program = build(compiled, tmp_path, target, "thread")
    if program is None:
        return
    counts = COUNTS if nightly else (1, 13)  # 13: three launches of four iterations
    for count in counts if compiled.plan.params else (0,):
        values = dict.fromkeys(compiled.plan.params, count)
        meaning = program.meaning(values)
        for seed in (0, 1, 2, 3) if nightly else (2,):
            outcome = run_program(program, values, seed)
            assert judge(program, meaning, outcome) == [], (count, seed)
            assert outcome.alive == 0


@pytest.mark.parametrize("name", [marked(name, name != "add_one") for name in NAMES])
def test_the_loss_of_any_wait_is_caught(name: str, tmp_path: Path) -> None:
    """By ThreadSanitizer or by what comes out, within eight seeds; that the trace shows it as well does not count."""
    compiled, _ = compile_small(name)
    waits = waits_of(compiled)
    assert waits > 0
    for wait in range(waits):
        folder = tmp_path / str(wait)
        folder.mkdir()
        program = build_program(leave_out(compiled, wait), folder, "acl-cpp", "thread")
        counts = dict.fromkeys(compiled.plan.params, 7)
        meaning = program.meaning(counts)
        found = (judge(program, meaning, run_program(program, counts, seed)) for seed in range(8))
        assert any(finding.code in ("R304", "R307") for findings in found for finding in findings), wait


@pytest.mark.parametrize(
    ("name", "target"), [marked(name, target, (name, target) != ("add_one", "acl-cpp")) for name, target in PAIRS]
)
def test_every_op_takes_every_fault(name: str, target: str, tmp_path: Path) -> None:
    """Of the call, of the device, and its loss, under AddressSanitizer and LeakSanitizer."""
    compiled, _ = compile_small(name)
    program = build(compiled, tmp_path, target, "address")
    if program is None:
        return
    count = 13 if program.phases else 2
    counts = dict.fromkeys(compiled.plan.params, count)
    loops = tuple(item for item in compiled.resolved.items if isinstance(item, Loop))
    inner = {op.name for op in replace(compiled.resolved, items=loops).ops()}
    codes = FAULTS[target.partition("-")[0]]
    for op in compiled.resolved.ops():
        places = [f"{op.name}@{at}" for at in (0, 1, 5, count - 1) if at < count] if op.name in inner else [op.name]
        for place in places:
            for how, code in codes.items():
                if op.kind is OpKind.HOST and how == "task":
                    continue  # a host function has no way to fail
                for seed in (1, 2):
                    outcome = run_program(program, counts, seed, inject=f"{place}:{code}:{how}")
                    assert judge_fault(outcome, code) == [], (place, how, seed)
                    assert str(code) in outcome.failure
