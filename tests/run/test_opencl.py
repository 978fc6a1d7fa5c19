"""Backend ``opencl`` on whatever device there is (PoCL in CI): what the plan means, timed by the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dagsched
from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError, UsageError
from dagsched.library import Schedule
from dagsched.plan.model import OpKind
from dagsched.run.modules import load_module
from dagsched.run.queued import find_runs
from tests.cli.conftest import Cli, cli  # noqa: F401 - the fixture
from tests.emit.pipelines import LARGEST, PLANS, read
from tests.emit.random_plans import random_plan
from tests.run.meaning import Functions, inputs_of, require_meaning
from tests.run.plans import PIPELINE, schedule_of

cl = pytest.importorskip("pyopencl")

try:
    cl.get_platforms()
except cl.Error:
    pytest.skip("there is no OpenCL platform", allow_module_level=True)


def _read(queue: Any, array: Any) -> Any:
    """The elements of a device array, whatever its strides."""
    flat = np.empty(array.base_data.size, np.uint8)
    cl.enqueue_copy(queue, flat, array.base_data)
    return np.ndarray(array.shape, array.dtype, flat, array.offset, array.strides).copy()


def _write(queue: Any, array: Any, values: Any) -> None:
    place = np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), array.shape, array.strides)
    size, starts, sources = find_runs(place, values)
    flat = values.reshape(-1).view(np.uint8)
    for start, source in zip(starts, sources, strict=True):
        cl.enqueue_copy(queue, array.base_data, flat[source : source + size], dst_offset=array.offset + start)


def _on_device(function: Any, modes: list[bool]) -> Any:
    """The NumPy function for device arrays: bring them, call it, take back what it has written."""

    def call(*views: Any, queue: Any, i: Any = None, j: Any = None) -> None:
        host = [_read(queue, view) if isinstance(view, cl.array.Array) else view for view in views]
        for array, writes in zip(host, modes, strict=True):
            array.flags.writeable = writes
        extra = {} if j is None else {"j": j}
        function(*host, i=i, **extra)
        for view, array, writes in zip(views, host, modes, strict=True):
            if writes and isinstance(view, cl.array.Array):
                _write(queue, view, array)

    return call


def _compare(compiled: Any, seed: int, counts: tuple[int, ...]) -> None:
    functions = Functions(compiled.resolved, seed)
    given = dict(functions.functions)
    for op in compiled.resolved.ops():
        if op.kind is OpKind.COMPUTE:
            modes = [access.mode.writes for access in op.accesses]
            given[op.function] = _on_device(functions.functions[op.function], modes)
    with Schedule(compiled).executor(given, "opencl") as executor:
        for count in counts:
            functions.log.clear()
            params = dict.fromkeys(compiled.plan.params, count)
            result = executor.run(counts=params, inputs=inputs_of(compiled.plan), timeout=60)
            require_meaning(compiled, params, functions.log, result.outputs)
            # two clocks, matched where the run began: a busy machine can set them some milliseconds apart
            assert all(-0.1 <= span.start <= span.end <= result.seconds + 0.1 for span in result.trace.spans)


@pytest.mark.parametrize("name", ["batches", "chunks", "detector", "mixed", "once", "regions", "shifted"])
def test_every_kind_of_plan(name: str) -> None:
    compiled = compile_plan(read(PLANS / f"{name}.yaml"))
    most = LARGEST.get(name, 5)
    _compare(compiled, 1, tuple(min(count, most) for count in (0, 1, 5)))


def test_random_plans() -> None:
    ran = 0
    for seed in range(20_000, 20_012):
        try:
            compiled = compile_plan(random_plan(seed))
        except PlanError:
            continue
        ran += 1
        _compare(compiled, seed, (0, 3))
    assert ran > 3


def test_kernels_on_the_queue_that_they_are_given() -> None:
    def work(x: Any, y: Any, queue: Any) -> None:
        assert x.queue == queue
        cl.array.multiply(x, 3, out=y, queue=queue) if hasattr(cl.array, "multiply") else y.__setitem__(
            slice(None), x * 3
        )

    functions = {"read": lambda a, i: a.fill(i), "work": work, "show": lambda b: int(b[0])}
    with schedule_of(PIPELINE).executor(functions, backend="opencl") as executor:
        assert list(executor.stream(n=20)) == [3 * i for i in range(20)]
        assert executor.run(n=200).iterations == 200  # more than may be in flight


def test_what_it_refuses() -> None:
    schedule = schedule_of(PIPELINE)
    with pytest.raises(UsageError, match=r"R152"):
        schedule.executor(backend="opencl")
    functions = {"read": lambda a: None, "work": lambda x, y: None, "show": lambda b: None}
    with pytest.raises(UsageError, match=r"R151.*`no such device`"):
        schedule.executor(functions, backend="opencl", device="no such device")
    dynamic = compile_plan(read(PLANS / "dynamic.yaml"))
    with pytest.raises(UsageError, match=r"R140.*`tokens`"):
        Schedule(dynamic).executor(Functions(dynamic.resolved, None).functions, backend="opencl")


EXAMPLES = Path(__file__).parents[2] / "examples"
COUNTS: dict[str, list[dict[str, int]]] = {"add_one": [{}], "denoise": [{"steps": n} for n in (1, 2, 7)]}


def test_there_are_examples_with_opencl_functions() -> None:
    assert {path.stem.removesuffix("_opencl") for path in EXAMPLES.glob("*_opencl.py")} == set(COUNTS)


@pytest.mark.parametrize("name", COUNTS)
def test_examples_yield_what_numpy_does(name: str) -> None:
    module = load_module(str(EXAMPLES / f"{name}_opencl.py"))
    with dagsched.compile(EXAMPLES / f"{name}.yaml").executor(module.functions, "opencl") as executor:
        for counts in COUNTS[name]:
            found = executor.run(**counts, inputs=module.inputs(), timeout=60).outputs
            wanted = module.functions.plain(**counts)
            assert found.keys() == wanted.keys()
            for buffer, array in wanted.items():
                assert array.any() and np.array_equal(found[buffer], array), f"{buffer} for {counts}"


@pytest.mark.parametrize("name", COUNTS)
def test_examples_from_the_command_line(name: str, cli: Cli) -> None:  # noqa: F811 - the fixture
    counts = [f"--count={param}={value}" for param, value in COUNTS[name][-1].items()]
    functions = str(EXAMPLES / f"{name}_opencl.py")
    plan = str(EXAMPLES / f"{name}.yaml")
    result = cli("run", plan, "--backend", "opencl", "--functions", functions, *counts)
    assert result.status == 0, result.err
    assert result.out.startswith(f"{name} on opencl\n")
