"""``dagsched run --backend emulated``: right programs pass, wrong ones are found, and faults are taken well."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dagsched
from dagsched.cli.main import main
from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError, UsageError
from dagsched.emulator.meaning import execute
from dagsched.emulator.run import Program, build_program, judge, judge_fault, run_program
from tests.emit.pipelines import PLANS, read
from tests.emit.random_plans import random_pipelines
from tests.emulator.test_judges import leave_out

DETECTOR = str(PLANS / "detector.yaml")


@pytest.mark.parametrize(("name", "target"), [("mixed", "acl-cpp"), ("regions", "cuda-cpp")])
def test_right_programs_are_found_right(name: str, target: str, tmp_path: Path) -> None:
    compiled = compile_plan(read(PLANS / f"{name}.yaml"))
    program = build_program(compiled, tmp_path, target, "thread")
    for count in (0, 1, 3):
        counts = dict.fromkeys(compiled.plan.params, count)
        meaning = execute(compiled.plan, counts)
        for seed in (0, 1, 2, 5):
            outcome = run_program(program, counts, seed)
            assert judge(program, meaning, outcome) == []
            assert outcome.alive == 0


@pytest.mark.parametrize("wait", [0, 5])
def test_a_missing_wait_is_found_with_every_seed(wait: int, tmp_path: Path) -> None:
    """Without ThreadSanitizer: results or the trace tell."""
    compiled = compile_plan(read(PLANS / "detector.yaml"))
    program = build_program(leave_out(compiled, wait), tmp_path)
    meaning = execute(compiled.plan, {"frames": 4})
    codes = set()
    for seed in range(8):
        findings = judge(program, meaning, run_program(program, {"frames": 4}, seed))
        assert findings, seed
        codes |= {finding.code for finding in findings}
    assert codes == {"R304", "R308"}


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["run", DETECTOR, "--backend", "emulated", "--count", "frames=3", "--keep", str(tmp_path / "kept")]
    assert main([*words, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [run["seed"] for run in data["runs"]] == [0, 1, 2, 3]
    assert all(run["right"] for run in data["runs"])
    trace = str(tmp_path / "kept" / "seed-2" / "trace.json")
    assert main(["check", trace]) == 0
    assert ": ok: " in capsys.readouterr().out
    steps = json.loads(Path(trace).read_text(encoding="utf-8"))["steps"]
    assert {"upload.2", "infer.0"} <= {step.get("op") for step in steps}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The detector with AddressSanitizer and LeakSanitizer."""
    compiled = compile_plan(read(PLANS / "detector.yaml"))
    return build_program(compiled, tmp_path_factory.mktemp("checked"), "acl-cpp", "address")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("upload@1:507015", 507015), ("upload@1:507015:call", 507015), ("draw@2:507018", 507018),
        ("load:107000", 107000),
        ("infer@0:507899", 507899), ("infer@2:507899:task", 507899), ("buffer image:207001", 207001),
        ("stream d2h:207008", 207008), ("event draw.done:207007", 207007),
    ],
)  # fmt: skip
def test_faults_are_taken_well(fault: str, code: int, checked: Program) -> None:
    for seed in (1, 2, 7):
        outcome = run_program(checked, {"frames": 3}, seed, inject=fault)
        assert judge_fault(outcome, code) == []
        assert f"({code})" in outcome.failure


def test_a_fault_that_is_not_met(checked: Program) -> None:
    outcome = run_program(checked, {"frames": 3}, 1, inject="upload@99:507015")
    assert [finding.code for finding in judge_fault(outcome, 507015)] == ["R306"]


def test_the_command_tells_of_the_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", DETECTOR, "--backend", "emulated", "--inject", "upload@1:507015", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 of 1 took the fault and left nothing behind" in out
    assert "ACL_ERROR_RT_AICORE_EXCEPTION (507015)" in out


@pytest.mark.parametrize(
    ("words", "code", "help_"),
    [
        (["--inject", "uplaod@1:507015"], "U002", "--inject upload@1:507015"),
        (["--inject", "upload"], "U002", "write `--inject"),
        (["--count", "frame=1"], "R103", "write `--count frames=1`"),
        (["--tsan", "--asan"], "U002", "run twice"),
        (["--repeat", "3"], "U002", "--keep DIR"),
        (["--target", "fortran"], "U002", "there are acl-cpp, cuda-cpp, acl-graph, cuda-graph, pyacl"),
        (["--target", "pyacl", "--tsan"], "U002", "leave out `--tsan`, or take `--target acl-cpp`"),
        (["--target", "pyacl", "--asan"], "U002", "leave out `--asan`, or take `--target acl-cpp`"),
        (["--inject", "upload@7:507015"], "U002", "loop i of this run has iterations 0 to 6 (frames = 7)"),
        (["--inject", "upload@07:507015"], "U002", "write `--inject upload@6:507015`"),
        (["--inject", "upload:507015"], "U002", "write `--inject upload@0:507015`"),
        (["--inject", "load@3:507015:call"], "U002", "write `--inject load:507015:call`"),
        (["--count", "frames=0", "--inject", "infer@0:2"], "U002", "add `--count frames=1`"),
        (["--inject", "buffer imaeg:207001"], "U002", 'write `--inject "buffer image:207001"`'),
        (["--inject", "buffer image@1:207001"], "U002", 'write `--inject "buffer image:207001"`'),
        (["--inject", "buffer image:507015:task"], "U002", 'write `--inject "buffer image:507015"`'),
        (["--inject", "upload@1:599999"], "U002", "507015 ACL_ERROR_RT_AICORE_EXCEPTION"),
        (["--inject", "upload@1:ACL_ERROR_RT_AICORE_EXEPTION"], "U002", "upload@1:ACL_ERROR_RT_AICORE_EXCEPTION`"),
        (["--inject", "upload@1:507015", "--target", "cuda-cpp"], "U002", "700 cudaErrorIllegalAddress"),
        (["--inject", "upload@1:lost"], "U002", "write `--inject upload@1:507899:lost`"),
    ],
)
def test_wrong_words_are_refused(words: list[str], code: str, help_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", DETECTOR, "--backend", "emulated", *words]) == 2
    said = capsys.readouterr().err
    assert f"error[{code}]" in said
    assert help_ in said


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("batches", ["n=9"], ["a region of `upload@8` leaves its buffer with n = 9", "write `--count n=8`"]),
        ("limited", ["n=32", "m=33"], ["proved for `m` up to 32, and m = 33", "write `--count m=32`"]),
    ],
)
def test_counts_that_a_program_would_refuse(
    name: str, words: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    counts = [word for count in words for word in ("--count", count)]
    assert main(["run", str(PLANS / f"{name}.yaml"), "--backend", "emulated", "--target", "pyacl", *counts]) == 2
    err = capsys.readouterr().err
    assert "error[R310]" in err
    assert all(text in err for text in said), err


def test_an_executor_on_the_emulator_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        dagsched.compile(dagsched.load(DETECTOR)).executor(backend="emulated")
    (found,) = caught.value.diagnostics
    assert found.code == "R102"
    assert "`dagsched run PLAN --backend emulated`" in (found.help or "")


def test_options_of_the_emulator_want_the_emulator(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", DETECTOR, "--tsan"]) == 2
    assert "add `--backend emulated`" in capsys.readouterr().err


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert main(["run", DETECTOR, "--backend", "emulated"]) == 2
    assert "error[R301]" in capsys.readouterr().err


@pytest.mark.nightly  # and `make random-runs`
@pytest.mark.parametrize(
    ("target", "first", "count"),
    [
        ("acl-cpp", 9000, 300),
        ("cuda-cpp", 12000, 75),
        ("acl-graph", 15000, 150),
        ("cuda-graph", 18000, 150),
        ("pyacl", 21000, 30),
    ],
)
def test_random_plans(target: str, first: int, count: int, tmp_path: Path) -> None:
    judged = 0
    for pipeline in random_pipelines(first, count):
        folder = tmp_path / pipeline.plan.name
        try:
            program = build_program(pipeline.compiled, folder, target)
        except PlanError:  # there is no loop that can be captured
            assert target.endswith("-graph")
            continue
        judged += 1
        for value in (0, 1, 2, 7, 40):
            counts = dict.fromkeys(pipeline.plan.params, value)
            meaning = program.meaning(counts)
            for seed in (0, 1, 2, 3):
                outcome = run_program(program, counts, seed)
                assert judge(program, meaning, outcome) == [], (pipeline.plan.name, value)
                assert outcome.alive == 0
        shutil.rmtree(folder)
    assert judged >= count // 5
