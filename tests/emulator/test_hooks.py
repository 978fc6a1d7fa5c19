"""Generated hooks: what ThreadSanitizer is told of them is exact to the byte, and Python's do what C++'s do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.emulator.run import Program, build_program, judge, judge_fault, run_program
from dagsched.plan.reader import read_plan
from tests.emit.pipelines import PLANS, read
from tests.emulator.small import compile_small
from tests.emulator.test_judges import leave_out, waits_of

NEIGHBOURS = """\
dagsched: 1
name: neighbours
buffers:
  x: {place: device, size: 2000}
  y: {place: host, size: 16, output: true}
  z: {place: device, size: 8}
ops:
  - {name: low, compute: f, writes: ["x[0:1003]"], args: {part: x}, time: 1 ms, stream: a}
  - {name: high, compute: f, writes: ["x[1003:2000]"], args: {part: x}, time: 1 ms, stream: b}
  - {name: peek, compute: g, reads: ["x[1000:1006]"], writes: [z], time: 1 us, stream: c}
  - {name: fetch, copy: {from: "x[1000:1016]", to: y}, stream: c}
"""
"""Two functions write side by side, the border inside of eight bytes; three bytes of each are read."""


def compile_text(text: str) -> Compiled:
    return compile_plan(read_plan(Source("plan.yaml", text)))


@pytest.mark.parametrize(
    ("wait", "right"), [(None, True), (0, False), pytest.param(1, False, marks=pytest.mark.nightly)]
)
def test_races_are_seen_to_the_byte(wait: int | None, right: bool, tmp_path: Path) -> None:
    """Neighbours are none, and three bytes in the middle of a large write are one."""
    compiled = compile_text(NEIGHBOURS)
    assert waits_of(compiled) == 2
    program = build_program(compiled if wait is None else leave_out(compiled, wait), tmp_path, "acl-cpp", "thread")
    found = [judge(program, program.meaning({}), run_program(program, {}, seed)) for seed in (0, 1, 3)]
    if right:
        assert found == [[], [], []]
    else:  # by luck of the order every run may compute the right bytes
        assert all(findings for findings in found)
        assert any(findings[0].code == "R307" for findings in found)


@pytest.mark.parametrize("name", ["dynamic", "regions", "mixed"])
def test_emitted_python_is_found_right(name: str, tmp_path: Path) -> None:
    compiled = compile_plan(read(PLANS / f"{name}.yaml"))
    program = build_program(compiled, tmp_path, "pyacl")
    counts = dict.fromkeys(compiled.plan.params, 3)
    for seed in (1, 2):
        outcome = run_program(program, counts, seed)
        assert judge(program, program.meaning(counts), outcome) == []
        assert outcome.alive == 0


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The detector in Python."""
    return build_program(compile_plan(read(PLANS / "detector.yaml")), tmp_path_factory.mktemp("detector"), "pyacl")


def test_traces_of_python_have_what_its_functions_touch(detector: Program) -> None:
    outcome = run_program(detector, {"frames": 2}, 2)
    steps = json.loads((outcome.folder / "trace.json").read_text(encoding="utf-8"))["steps"]
    touched = {step["op"]: step for step in steps if "op" in step}
    for op, key, buffers in (
        ("decode", "writes", {"frame"}),
        ("draw", "reads", {"result"}),
        ("infer", "reads", {"tensor", "weights"}),
    ):
        assert {name.partition(".")[0] for name in touched[f"{op}.1"][key]} == buffers


@pytest.mark.parametrize("wait", [0, 5])
def test_a_missing_wait_of_python_is_found(wait: int, detector: Program, tmp_path: Path) -> None:
    program = build_program(leave_out(detector.compiled, wait), tmp_path, "pyacl")
    meaning = program.meaning({"frames": 4})
    for seed in (1, 2):
        findings = judge(program, meaning, run_program(program, {"frames": 4}, seed))
        assert {finding.code for finding in findings} <= {"R304", "R308"}
        assert findings, seed


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("draw@1:507018", 507018), ("upload@0:507015:call", 507015), ("infer@1:507899", 507899),
        ("buffer image:207001", 207001),
    ],
)  # fmt: skip
def test_python_takes_faults_well(fault: str, code: int, detector: Program) -> None:
    outcome = run_program(detector, {"frames": 2}, 2, inject=fault)
    assert judge_fault(outcome, code) == []
    assert f"({code})" in outcome.failure


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Diffusion steps that are captured, four of them a launch, with AddressSanitizer and LeakSanitizer."""
    compiled, _ = compile_small("denoise")
    return build_program(compiled, tmp_path_factory.mktemp("denoise"), "acl-graph", "address")


@pytest.mark.parametrize(
    ("fault", "where"),
    [
        ("predict@0:507899", "predict, iteration 0"),  # lost while its loop is captured
        ("step@2:207001", "step, iteration 2"),  # the capture cannot go on
        ("step@1:507015", "synchronise graphs"),  # in the first launch
        ("step@6:507015", "synchronise graphs"),  # and in the second
        ("show@6:507899", "loop i, iteration 4"),  # the launch that would make it again
        ("predict@12:507015", "synchronise ai-core"),  # behind the launches
    ],
)
def test_replayed_loops_take_faults_well(fault: str, where: str, replayed: Program) -> None:
    outcome = run_program(replayed, {"steps": 13}, 1, inject=fault)
    assert judge_fault(outcome, int(fault.rpartition(":")[2])) == []
    assert f": {where}: " in outcome.failure


def test_python_refuses_counts_as_its_users_see_it(detector: Program) -> None:
    outcome = run_program(detector, {"frames": 2**60}, 2)
    (finding,) = judge(detector, detector.meaning({"frames": 0}), outcome)
    assert (finding.code, outcome.code, outcome.alive) == ("R304", 100000, 0)
    assert "`frames` must be 0 to" in finding.notes[0]


def test_a_program_imports_what_is_beside_it(tmp_path: Path) -> None:
    """``python -m dagsched.emulator.pyacl PROGRAM`` from anywhere."""
    (tmp_path / "mine.py").write_text("import acl\nNAME = acl.__name__\n", encoding="utf-8")
    (tmp_path / "main.py").write_text("import sys, mine\nprint(mine.NAME, *sys.argv[1:])\n", encoding="utf-8")
    words = [sys.executable, "-m", "dagsched.emulator.pyacl"]
    done = subprocess.run([*words, str(tmp_path / "main.py"), "3"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "acl 3\n"), done.stderr
    done = subprocess.run([*words, "nowhere.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "`nowhere.py` is no file\n")
