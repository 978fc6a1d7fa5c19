"""Emitted programs run: on a runtime whose streams are threads, they compute what the plan means.

Built with AddressSanitizer (which also finds leaks), run for small counts and several timings; and again with every
kind of failure injected: the program reports it, leaves nothing behind, and can run again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dagsched.schedule.model import EventStep
from tests.emit.agreement import COUNTS, agree_in_batches, agrees
from tests.emit.driver import build, run_cases
from tests.emit.pipelines import Pipeline, compile_all
from tests.emit.random_plans import random_pipelines

NAMES = ["batches", "chunks", "detector", "dynamic", "mixed", "names", "once", "regions"]
FAULTS = [
    ("aclrtMemcpyAsync", 1), ("aclrtMemcpyAsync", 2), ("aclrtMemcpy2dAsync", 2), ("aclrtMemsetAsync", 1),
    ("aclrtRecordEvent", 1), ("aclrtRecordEvent", 4), ("aclrtStreamWaitEvent", 1), ("aclrtStreamWaitEvent", 5),
    ("aclrtLaunchHostFunc", 1), ("aclrtLaunchHostFunc", 3), ("kernel", 2), ("aclrtSynchronizeStream", 1),
    ("task", 1), ("task", 5), ("task", 12), ("hook", 1), ("hook", 3), ("throw", 1), ("throw", 2), ("throw", 4),
]  # fmt: skip
INIT_FAULTS = [
    ("aclrtGetCurrentContext", 1), ("aclrtCreateStream", 1), ("aclrtCreateStream", 2),
    ("aclrtCreateEventExWithFlag", 1), ("aclrtCreateEventExWithFlag", 3),
    ("aclrtMalloc", 1), ("aclrtMalloc", 3), ("aclrtMallocHost", 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def pipelines() -> dict[str, tuple[int, Pipeline]]:
    return {name: (number, pipeline) for number, (name, pipeline) in enumerate(compile_all().items())}


@pytest.fixture(scope="module")
def program(pipelines: dict[str, tuple[int, Pipeline]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    emitted = [pipeline.emitted for _, pipeline in pipelines.values()]
    return build(tmp_path_factory.mktemp("driver"), emitted, "-fsanitize=address")


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_sequential_meaning(
    name: str, pipelines: dict[str, tuple[int, Pipeline]], program: Path
) -> None:
    number, pipeline = pipelines[name]
    cases = [(count, seed) for count in COUNTS for seed in (0, 1, 2)]
    answers = run_cases(program, [pipeline.command(number, count, seed) for count, seed in cases])
    assert len(answers) == len(cases)
    for (count, _), answer in zip(cases, answers, strict=True):
        assert answer[-1] == {"alive": 0}
        half = answer.index({"again": True})
        for run in (answer[:half], answer[half + 1 : -1]):
            assert not [line for line in run if "code" in line]
            agrees(pipeline, pipeline.counts(count), run)


@pytest.mark.parametrize("name", NAMES)
def test_failures_are_reported_and_leave_nothing_behind(
    name: str, pipelines: dict[str, tuple[int, Pipeline]], program: Path
) -> None:
    number, pipeline = pipelines[name]
    cases = [(function, call) for function, call in FAULTS]
    commands = [pipeline.command(number, 3, 1, f"{function} {call} 507015") for function, call in cases]
    reported = 0
    for (function, _), answer in zip(cases, run_cases(program, commands), strict=True):
        assert answer[-1] == {"alive": 0}
        half = answer.index({"again": True})
        failures = [line for line in answer[:half] if "code" in line]
        agrees(pipeline, pipeline.counts(3), answer[half + 1 : -1])  # and it runs again
        if not failures:  # this plan makes no such call, or too few of them
            agrees(pipeline, pipeline.counts(3), answer[:half])
            continue
        reported += 1
        failure = failures[0]
        text = str(failure["failure"])
        assert failure["threw"] == (function == "throw")
        if function == "throw":
            assert failure["code"] == 500001
            assert "ACL_ERROR_FAILURE (500001): a hook threw" in text
        elif function == "hook":
            assert failure["code"] == 4242
        else:
            assert failure["code"] == 507015
            assert "ACL_ERROR_RT_AICORE_EXCEPTION (507015): " in text
        if function not in ("throw", "hook", "kernel", "task"):
            assert f"EI0001: injected into {function}" in text
        assert f"{pipeline.emitted.names.stem}.hpp:" in text
    assert reported >= 5


@pytest.mark.parametrize("name", ["detector", "mixed", "once"])
def test_init_fails_without_a_trace(name: str, pipelines: dict[str, tuple[int, Pipeline]], program: Path) -> None:
    number, pipeline = pipelines[name]
    commands = [pipeline.command(number, 1, 0, f"init:{function} {call} 207001") for function, call in INIT_FAULTS]
    failed = 0
    for answer in run_cases(program, commands):
        if "failure" in answer[0]:
            failed += 1
            assert answer[0]["code"] == 207001
            assert answer[0]["alive"] == 0
            assert "ACL_ERROR_RT_MEMORY_ALLOCATION" in str(answer[0]["failure"])
            assert len(answer) == 1
        else:
            assert answer[-1] == {"alive": 0}
    assert failed >= 3


def test_a_failure_names_op_iteration_call_and_line(pipelines: dict[str, tuple[int, Pipeline]], program: Path) -> None:
    number, pipeline = pipelines["detector"]
    (answer,) = run_cases(program, [pipeline.command(number, 5, 0, "aclrtMemcpyAsync 4 507015")])
    text = str(answer[0]["failure"])  # the fourth copy: load, upload@0, download@0, upload@1
    assert ".hpp:" in text
    assert ": upload, iteration 1: aclrtMemcpyAsync(buffers.image[i]" in text


@pytest.mark.parametrize(("name", "counts"), [("mixed", "2 4"), ("batches", "9"), ("regions", "9")])
def test_regions_that_leave_their_buffer_are_errors(
    name: str, counts: str, pipelines: dict[str, tuple[int, Pipeline]], program: Path
) -> None:
    number, _ = pipelines[name]
    (answer,) = run_cases(program, [f"{number} 0 - 0 0 {counts}"])
    assert answer[-1] == {"alive": 0}
    failures = [line for line in answer if "code" in line]
    assert [failure["code"] for failure in failures] == [100000, 100000]
    assert "check_region(" in str(failures[0]["failure"])


@pytest.mark.parametrize("counts", ["-1", "9223372036854775807"])
def test_counts_are_checked(counts: str, pipelines: dict[str, tuple[int, Pipeline]], program: Path) -> None:
    number, _ = pipelines["detector"]
    (answer,) = run_cases(program, [f"{number} 0 - 0 0 {counts}"])
    assert "check_count(frames, kMaxCount): ACL_ERROR_INVALID_PARAM" in str(answer[0]["failure"])


def test_counts_end_where_the_proof_does(pipelines: dict[str, tuple[int, Pipeline]], program: Path) -> None:
    number, _ = pipelines["limited"]
    (right,) = run_cases(program, [f"{number} 0 - 0 0 32 32"])
    assert not [line for line in right if "code" in line]
    (answer,) = run_cases(program, [f"{number} 0 - 0 0 2 33"])
    assert "the schedule is proved for m up to 32, and not beyond: check_count(m, 32)" in str(answer[0]["failure"])


def test_no_data_race(pipelines: dict[str, tuple[int, Pipeline]], tmp_path: Path) -> None:
    """ThreadSanitizer sees every access of every function, and the program's own bookkeeping."""
    chosen = [pipelines[name][1] for name in ("detector", "mixed", "dynamic")]
    program = build(tmp_path, [pipeline.emitted for pipeline in chosen], "-fsanitize=thread")
    faults = ("- 0 0", "throw 3 1", "aclrtRecordEvent 5 507015")
    cases = [p.command(n, 5, seed, fault) for n, p in enumerate(chosen) for seed in (1, 2) for fault in faults]
    for answer in run_cases(program, cases):
        assert answer[-1] == {"alive": 0}


def test_every_wait_is_needed_and_its_loss_is_seen(pipelines: dict[str, tuple[int, Pipeline]], program: Path) -> None:
    """These tests would notice: without any one of its waits the detector computes something else."""
    number, pipeline = pipelines["detector"]
    schedule = pipeline.compiled.schedule
    waits = sum(isinstance(step, EventStep) and step.action == "wait" for step in schedule.walk())
    assert waits >= 8
    (right,) = run_cases(program, [pipeline.command(number, 4)])
    for wait in range(waits):
        fault = f"wait {wait} {waits}"
        commands = [pipeline.command(number, 4, seed, fault) for seed in range(1, 4 * len(schedule.streams))]
        answers = run_cases(program, commands)
        assert any(_sorted(answer) != _sorted(right) for answer in answers), f"wait {wait} is not needed"


def _sorted(answers: list[dict[str, object]]) -> list[str]:
    return sorted(json.dumps(answer, sort_keys=True) for answer in answers)


def test_random_plans(tmp_path: Path) -> None:
    """More of them: ``DAGSCHED_RANDOM_PLANS=300 pytest tests/emit/test_acl_run.py -k random``."""
    pipelines = random_pipelines(first=1000, count=int(os.environ.get("DAGSCHED_RANDOM_PLANS", "8")))
    agree_in_batches(tmp_path, pipelines, lambda pipeline: pipeline.emitted)
