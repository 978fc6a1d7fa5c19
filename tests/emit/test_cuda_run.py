"""Emitted CUDA programs run: on a runtime whose streams are threads they compute what the plan means, and fail well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.emit.agreement import COUNTS, agree_in_batches, agrees
from tests.emit.driver import build, run_cases
from tests.emit.pipelines import Pipeline, compile_all
from tests.emit.random_plans import random_pipelines

NAMES = ["batches", "chunks", "detector", "dynamic", "mixed", "names", "once", "regions"]
FAULTS = [
    ("cudaMemcpyAsync", 2), ("cudaMemcpy2DAsync", 1), ("cudaMemsetAsync", 1), ("cudaEventRecord", 4),
    ("cudaStreamWaitEvent", 3), ("cudaLaunchHostFunc", 2), ("kernel", 2), ("cudaStreamSynchronize", 1), ("task", 5),
    ("hook", 2), ("throw", 2),
]  # fmt: skip


FAULTS_OF_INIT = [("cudaStreamCreateWithFlags", 2), ("cudaMalloc", 2), ("cudaMallocHost", 1)]


@pytest.fixture(scope="module")
def pipelines() -> list[Pipeline]:
    found = compile_all()
    return [found[name] for name in NAMES]


@pytest.fixture(scope="module")
def program(pipelines: list[Pipeline], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("cuda"), [pipeline.cuda for pipeline in pipelines])


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_sequential_meaning(name: str, pipelines: list[Pipeline], program: Path) -> None:
    number = NAMES.index(name)
    pipeline = pipelines[number]
    cases = [(count, seed) for count in COUNTS for seed in (0, 1, 2)] + [(100, 0)] * (name == "detector")
    answers = run_cases(program, [pipeline.command(number, count, seed) for count, seed in cases])
    for (count, _), answer in zip(cases, answers, strict=True):
        assert answer[-1] == {"alive": 0}
        half = answer.index({"again": True})
        for run in (answer[:half], answer[half + 1 : -1]):
            assert not [line for line in run if "code" in line]
            agrees(pipeline, pipeline.counts(count), run)


@pytest.mark.parametrize("name", ["detector", "mixed", "regions"])
def test_failures_are_reported_and_leave_nothing_behind(name: str, pipelines: list[Pipeline], program: Path) -> None:
    number = NAMES.index(name)
    pipeline = pipelines[number]
    commands = [pipeline.command(number, 3, 1, f"{function} {call} 700") for function, call in FAULTS]
    reported = 0
    for (function, _), answer in zip(FAULTS, run_cases(program, commands), strict=True):
        assert answer[-1] == {"alive": 0}
        half = answer.index({"again": True})
        agrees(pipeline, pipeline.counts(3), answer[half + 1 : -1])  # and it runs again
        failures = [line for line in answer[:half] if "code" in line]
        if not failures:  # this plan makes no such call
            agrees(pipeline, pipeline.counts(3), answer[:half])
            continue
        reported += 1
        assert failures[0]["code"] == {"hook": 4242, "throw": 999}.get(function, 700)
        if function not in ("hook", "throw"):
            expected = "cudaErrorIllegalAddress (700): an illegal memory access was encountered"
            assert expected in str(failures[0]["failure"])
    assert reported >= 5


@pytest.mark.parametrize(("function", "number"), FAULTS_OF_INIT)
def test_init_fails_without_a_trace(function: str, number: int, pipelines: list[Pipeline], program: Path) -> None:
    plan = NAMES.index("detector")
    (answer,) = run_cases(program, [pipelines[plan].command(plan, 1, 0, f"init:{function} {number} 2")])
    assert [(line.get("code"), line.get("alive")) for line in answer] == [(2, 0)]
    assert "cudaErrorMemoryAllocation (2)" in str(answer[0]["failure"])


def test_random_plans(tmp_path: Path) -> None:
    """More of them: ``DAGSCHED_RANDOM_PLANS=300``."""
    found = random_pipelines(first=40000, count=int(os.environ.get("DAGSCHED_RANDOM_PLANS", "4")))
    agree_in_batches(tmp_path, found, lambda pipeline: pipeline.cuda)
