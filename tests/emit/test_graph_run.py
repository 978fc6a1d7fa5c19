"""Captured loops replay to what the plan means: every launch in another order that the graph allows."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError
from dagsched.emit.acl_graph import ASCENDCL_GRAPH, emit_acl_graph
from dagsched.emit.calls import Repeat
from dagsched.emit.cpp_graph import GraphProgram, plan_graphs
from dagsched.emit.cuda_graph import CUDA_GRAPH, emit_cuda_graph
from dagsched.plan.model import Loop, Op, OpKind
from dagsched.proof.verify import verify_schedule
from tests.emit.agreement import agrees
from tests.emit.driver import Emitted, build, run_cases
from tests.emit.pipelines import PLANS, Pipeline, compile_file, emit, read
from tests.emit.random_plans import random_pipelines
from tests.passes.build import build_schedule

COUNTS = (0, 1, 2, 7, 8, 13, 100)
ON_CUDA = ["detector", "mixed", "denoise", "late"]
ON_ASCENDCL = ["denoise"]


def compile_late() -> Pipeline:
    """The detector with its ops issued up to three rounds late: guards at both ends of the loop."""
    plan = replace(read(PLANS / "detector.yaml"), name="late")
    compiled = compile_plan(plan)
    shifts = {"decode": 0, "upload": 0, "resize": 1, "infer": 1, "download": 2, "draw": 3}
    late = build_schedule(compiled.resolved, compiled.streams, shifts)
    proof = verify_schedule(compiled.resolved, late)
    assert proof.holds
    return emit(plan, replace(compiled, schedule=late, proof=proof))


class Graphs:
    """A plan with captured loops, for one runtime; raises PlanError where no loop can be captured."""

    def __init__(self, pipeline: Pipeline, *, cuda: bool) -> None:
        self.pipeline = pipeline
        compiled = pipeline.compiled
        runtime = CUDA_GRAPH if cuda else ASCENDCL_GRAPH
        self.program: GraphProgram = plan_graphs(compiled, runtime, host_calls=cuda)
        files = emit_cuda_graph(compiled) if cuda else emit_acl_graph(compiled)
        self.emitted = Emitted(self.program.calls, self.program.names, files, runtime)

    def phases(self) -> dict[str, int]:
        """The functions that are told a phase, and modulo what."""
        sizes = {id(loop.repeat): loop.window.size for loop in self.program.loops}
        repeats = [call for call in self.program.calls.body if isinstance(call, Repeat)]
        loops = [item for item in self.pipeline.compiled.resolved.items if isinstance(item, Loop)]
        found = {}
        for repeat, loop in zip(repeats, loops, strict=True):
            for op in loop.body if id(repeat) in sizes else ():
                if isinstance(op, Op) and op.kind is OpKind.COMPUTE:
                    found[op.function or op.name] = sizes[id(repeat)]
        return found


def _compile(name: str) -> Pipeline:
    return compile_late() if name == "late" else compile_file(PLANS / f"{name}.yaml")


@pytest.fixture(scope="module")
def on_cuda() -> list[Graphs]:
    return [Graphs(_compile(name), cuda=True) for name in ON_CUDA]


@pytest.fixture(scope="module")
def on_ascendcl() -> list[Graphs]:
    return [Graphs(_compile(name), cuda=False) for name in ON_ASCENDCL]


@pytest.fixture(scope="module")
def cuda_program(on_cuda: list[Graphs], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("graphs"), [graphs.emitted for graphs in on_cuda])


@pytest.fixture(scope="module")
def ascendcl_program(on_ascendcl: list[Graphs], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("graphs"), [graphs.emitted for graphs in on_ascendcl])


def _check(graphs: Graphs, number: int, program: Path, *, again: bool = True) -> None:
    """Without ``again`` the second run is not judged: a plan may write over its inputs."""
    counts = [min(count, 3) if graphs.pipeline.plan.name == "mixed" else count for count in COUNTS]
    cases = [(count, seed) for count in dict.fromkeys(counts) for seed in (0, 1, 2)]
    answers = run_cases(program, [graphs.pipeline.command(number, count, seed) for count, seed in cases])
    for (count, _), answer in zip(cases, answers, strict=True):
        assert answer[-1] == {"alive": 0}
        half = answer.index({"again": True})
        for run in (answer[:half], answer[half + 1 : -1]) if again else (answer[:half],):
            assert not [line for line in run if "code" in line], run
            agrees(graphs.pipeline, graphs.pipeline.counts(count), run, graphs.phases())


@pytest.mark.parametrize("name", ON_CUDA)
def test_cuda_graphs(name: str, on_cuda: list[Graphs], cuda_program: Path) -> None:
    _check(on_cuda[ON_CUDA.index(name)], ON_CUDA.index(name), cuda_program)


@pytest.mark.parametrize("name", ON_ASCENDCL)
def test_ascendcl_graphs(name: str, on_ascendcl: list[Graphs], ascendcl_program: Path) -> None:
    _check(on_ascendcl[ON_ASCENDCL.index(name)], ON_ASCENDCL.index(name), ascendcl_program)


def _random_graphs(cuda: bool, count: int) -> list[Graphs]:
    """The first so many random plans that have a loop to capture."""
    found: list[Graphs] = []
    for pipeline in random_pipelines(first=20000 if cuda else 30000, count=4 * count):
        with suppress(PlanError):
            found.append(Graphs(pipeline, cuda=cuda))
    assert len(found) >= count
    return found[:count]


@pytest.mark.parametrize("cuda", [True, False], ids=["cuda", "ascendcl"])
def test_random_plans(cuda: bool, tmp_path: Path) -> None:
    """More of them: ``DAGSCHED_RANDOM_PLANS=50``."""
    found = _random_graphs(cuda, int(os.environ.get("DAGSCHED_RANDOM_PLANS", "3")))
    for start in range(0, len(found), 25):
        batch = found[start : start + 25]
        folder = tmp_path / str(start)
        folder.mkdir()
        program = build(folder, [graphs.emitted for graphs in batch])
        for number, graphs in enumerate(batch):
            _check(graphs, number, program, again=False)
