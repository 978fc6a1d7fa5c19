"""The whole matrix: every example in every C++ target, every wait left out, every op met by every kind of fault.

By default a few cells of each; ``pytest --hypothesis-profile nightly`` goes through all of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError
from dagsched.emulator.run import TARGETS, build_program, judge, judge_fault, run_program
from dagsched.plan.model import Loop, OpKind
from dagsched.schedule.model import AnyStep, EventStep, LoopStep
from tests.emit.pipelines import EXAMPLES, read

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
COUNTS = (0, 1, 2, 7, 100)
USUAL = {("denoise", "acl-graph"), ("denoise", "cuda-graph")}
"""What is run by default: the rest of the programs are run by ``test_run.py`` and the tests of emitted code."""

CELLS = [
    pytest.param(name, target, marks=() if (name, target) in USUAL else pytest.mark.nightly)
    for name in NAMES
    for target in TARGETS
]

CAPTURED = {"acl-graph": {"denoise"}, "cuda-graph": {"denoise", "detector"}}
"""Examples that the target must be able to capture."""


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


@pytest.mark.parametrize(("name", "target"), CELLS)
def test_examples_are_right_in_every_target(
    name: str, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    nightly = is_nightly(request)
    compiled = compile_plan(read(EXAMPLES / f"{name}.yaml"))
    try:
        program = build_program(compiled, tmp_path, target, "thread" if nightly else None)
    except PlanError as error:
        assert [diagnostic.code for diagnostic in error.diagnostics] == ["E106"]
        assert name not in CAPTURED.get(target, set())
        return
    for count in COUNTS if nightly else (1, 13):  # 13: three launches of four iterations
        counts = dict.fromkeys(compiled.plan.params, count)
        meaning = program.meaning(counts)
        for seed in (0, 1, 2, 3) if nightly else (2,):
            outcome = run_program(program, counts, seed)
            assert judge(program, meaning, outcome) == [], (count, seed)
            assert outcome.alive == 0


@pytest.mark.nightly  # test_run.py leaves out a few
@pytest.mark.parametrize("name", ["detector", "video"])
def test_the_loss_of_any_wait_is_caught(name: str, tmp_path: Path) -> None:
    """By ThreadSanitizer, the results or the trace, within eight seeds."""
    compiled = compile_plan(read(EXAMPLES / f"{name}.yaml"))
    waits = waits_of(compiled)
    assert waits > 1
    for wait in range(waits):
        folder = tmp_path / str(wait)
        folder.mkdir()
        program = build_program(leave_out(compiled, wait), folder, "acl-cpp", "thread")
        counts = dict.fromkeys(compiled.plan.params, 7)
        meaning = program.meaning(counts)
        assert any(judge(program, meaning, run_program(program, counts, seed)) for seed in range(8)), wait


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "add_one" else pytest.mark.nightly) for name in NAMES]
)
def test_every_op_takes_every_fault(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Of the call, of the device, and its loss; by default of one op of an example without loops."""
    nightly = is_nightly(request)
    compiled = compile_plan(read(EXAMPLES / f"{name}.yaml"))
    program = build_program(compiled, tmp_path, "acl-cpp", "address")
    counts = dict.fromkeys(compiled.plan.params, 2)
    loops = tuple(item for item in compiled.plan.items if isinstance(item, Loop))
    inner = {op.name for op in replace(compiled.plan, items=loops).ops()}
    for op in compiled.plan.ops() if nightly else list(compiled.plan.ops())[:1]:
        place = f"{op.name}@1" if op.name in inner else op.name
        for how in ("call", "task", "lost"):
            if op.kind is OpKind.HOST and how == "task":
                continue
            for seed in (1, 2):
                outcome = run_program(program, counts, seed, inject=f"{place}:507015:{how}")
                found = [fault for fault in judge_fault(outcome, 507015) if fault.code != "R306"]
                assert found == [], (op.name, how, seed)
