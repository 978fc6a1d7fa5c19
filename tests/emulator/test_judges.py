"""The whole matrix: every example in every C++ target, every wait left out, every op met by every kind of fault.

On small buffers (``small.py``), with the schedules of the real plans. By default a few cells of each; ``make judges``
goes through all of them.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.emit.targets import emit_targets
from dagsched.emulator.build import INCLUDE
from dagsched.emulator.run import PYTHON, TARGETS, Program, build_program, judge, judge_fault, run_program
from dagsched.plan.model import Loop
from dagsched.schedule.model import AnyStep, EventStep, LoopStep
from tests.emit.pipelines import EXAMPLES, read
from tests.emit.test_targets_text import FAKE_HIP, NVCC_FLAGS
from tests.emulator.small import LARGEST, compile_small, shape_of

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
COUNTS = (0, 1, 2, 7, 100)
USUAL = {("denoise", "acl-graph")}
"""What is run by default: other programs are run by ``test_run.py``, ``test_hooks.py`` and tests of emitted code."""

PAIRS = [(name, target) for name in NAMES for target in (*TARGETS, PYTHON)]
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
    """The program (Python without a sanitizer); None where the target has no loop to capture, which must be so."""
    try:
        return build_program(compiled, folder, target, None if target == PYTHON else sanitizer)
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
    """Under ThreadSanitizer (not Python): outputs, what host functions saw, and the trace."""
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


@pytest.mark.nightly  # test_run.py and test_hooks.py leave out a few
@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_any_wait_is_caught(name: str, tmp_path: Path) -> None:
    """By ThreadSanitizer or by what comes out, within eight seeds; that the trace shows it as well does not count."""
    compiled, _ = compile_small(name)
    waits = waits_of(compiled)
    assert waits > 0
    for wait in range(waits):
        folder = tmp_path / str(wait)
        folder.mkdir()
        program = build_program(leave_out(compiled, wait), folder, "acl-cpp", "thread")
        codes = (
            finding.code
            for count in (20, 0)  # rings of eight are filled; a wait that only an empty loop leaves open
            for finding in find_faults(program, dict.fromkeys(compiled.plan.params, count))
        )
        assert any(code in ("R304", "R307") for code in codes), wait


def find_faults(program: Program, counts: dict[str, int]) -> Iterator[Diagnostic]:
    """What is wrong with runs of it, seed by seed."""
    meaning = program.meaning(counts)
    for seed in range(8):
        yield from judge(program, meaning, run_program(program, counts, seed))


@pytest.mark.nightly  # test_run.py and test_hooks.py have some
@pytest.mark.parametrize(("name", "target"), PAIRS)
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
    codes = FAULTS["cuda" if target.startswith("cuda") else "acl"]
    for op in compiled.resolved.ops():
        places = [f"{op.name}@{at}" for at in (0, 1, 5, count - 1) if at < count] if op.name in inner else [op.name]
        for place in places:
            for how, code in codes.items():
                for seed in (1,) if target == PYTHON else (1, 2):
                    outcome = run_program(program, counts, seed, inject=f"{place}:{code}:{how}")
                    assert judge_fault(outcome, code) == [], (place, how, seed)
                    assert str(code) in outcome.failure


COMPILERS = {
    "g++": ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{INCLUDE}"],
    "clang++": ["clang++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{INCLUDE}"],
    "nvcc": ["nvcc", *NVCC_FLAGS, "-c", "-o", "unit.o"],
    "hip": [
        "g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-D__HIP_PLATFORM_AMD__", f"-I{FAKE_HIP}",
    ],
}  # fmt: skip


@pytest.mark.nightly  # the usual tests compile one unit with all headers
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_program_compiles_without_a_warning(compiler: str, tmp_path: Path) -> None:
    """Each example's program in each C++ target that can express it."""
    words = COMPILERS[compiler]
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]}")
    compiled = 0
    for name in NAMES:
        whole = compile_plan(read(EXAMPLES / f"{name}.yaml"))
        for target in TARGETS:
            if compiler in ("nvcc", "hip") and not target.startswith("cuda"):
                continue
            folder = tmp_path / name / target
            folder.mkdir(parents=True)
            try:
                files = emit_targets(whole, target)
            except PlanError:
                assert name not in CAPTURED.get(target, set())
                continue
            for file, text in files.items():
                (folder / file).write_text(text, encoding="utf-8")
            (main,) = (file for file in files if "_main." in file)
            language = [] if compiler == "nvcc" else ["-x", "c++"]
            done = subprocess.run([*words, *language, main], capture_output=True, text=True, check=False, cwd=folder)
            assert done.returncode == 0, (name, target, (done.stdout + done.stderr)[:4000])
            compiled += 1
    assert compiled >= len(NAMES)
