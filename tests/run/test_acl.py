"""Backend ``acl`` on the emulator's pyACL: what the plan means, failures with their place, and nothing left behind."""

from __future__ import annotations

import gc
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError, UsageError
from dagsched.library import Schedule
from dagsched.plan.model import OpKind
from dagsched.run.acl_device import AclError, DeviceView
from dagsched.run.errors import ExecutionError
from tests.emit.emulated_pyacl import EmulatedAcl
from tests.emit.pipelines import LARGEST, PLANS, read
from tests.emit.random_plans import random_plan
from tests.run.emulated_acl import array_of, as_kernel
from tests.run.meaning import Functions, inputs_of, require_meaning
from tests.run.plans import FEW, OUTPUT, PIPELINE, schedule_of

pytestmark = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="the emulator needs a C++ compiler"
)


@pytest.fixture(scope="module")
def runtime() -> EmulatedAcl:
    return EmulatedAcl()


@pytest.fixture
def acl(runtime: EmulatedAcl) -> Iterator[Any]:
    """The module, on a device that nothing has run on; nothing may be left, and nothing misused."""
    runtime.install()
    before = runtime.complaints
    yield runtime.module
    gc.collect()
    runtime.fault()
    assert runtime.complaints == before
    assert runtime.alive() == 0
    del sys.modules["acl"]


def _compare(acl: Any, compiled: Compiled, counts: tuple[int, ...], trace: int = 1000) -> None:
    functions = Functions(compiled.resolved, None)
    given = dict(functions.functions)
    for op in compiled.resolved.ops():
        if op.kind is OpKind.COMPUTE:
            name = op.function or op.name
            given[name] = as_kernel(acl, functions.functions[name], [a.mode.writes for a in op.accesses])
    with Schedule(compiled).executor(given, "acl", trace=trace) as executor:
        for count in counts:
            functions.log.clear()
            params = dict.fromkeys(compiled.plan.params, count)
            result = executor.run(counts=params, inputs=inputs_of(compiled.plan), timeout=60)
            require_meaning(compiled, params, functions.log, result.outputs)
            for span in result.trace.spans:
                # two clocks, matched where the run began: a busy machine can set them some milliseconds apart
                assert -1e-3 <= span.start <= span.end + 1e-4 <= result.seconds + 0.1


@pytest.mark.parametrize("name", ["batches", "chunks", "detector", "once", "regions", "shifted"])
def test_every_kind_of_plan(acl: Any, name: str) -> None:
    compiled = compile_plan(read(PLANS / f"{name}.yaml"))
    most = LARGEST.get(name, 4)
    _compare(acl, compiled, tuple(min(count, most) for count in (0, 1, 4)))


def test_random_plans(acl: Any) -> None:
    ran = 0
    for seed in range(30_000, 30_010):
        try:
            compiled = compile_plan(random_plan(seed))
        except PlanError:
            continue
        ran += 1
        acl.emulator.seed(seed)
        _compare(acl, compiled, (0, 3), trace=0)
    assert ran > 3


def _pipeline(acl: Any, fail_at: int = -1, seen: list[int] | None = None) -> dict[str, Any]:
    def work(x: DeviceView, y: DeviceView, i: int, stream: int) -> Any:
        assert x.nbytes == 32 and x.shape == (4,) and x.contiguous and x.dtype == np.int64

        def kernel() -> None:
            if i == fail_at:
                time.sleep(0.15)  # all that may be enqueued behind it is there when it fails
                raise OSError("a broken kernel")
            array_of(acl, y, True)[:] = array_of(acl, x, False) * 3

        return acl.emulator.launch(stream, kernel)

    def show(b: Any, i: int) -> int:
        if seen is not None:
            seen.append(i)
        return int(b[0])

    return {"read": lambda a, i: a.fill(i), "work": work, "show": show}


def test_long_runs_keep_few_handles(acl: Any, runtime: EmulatedAcl) -> None:
    with schedule_of(PIPELINE).executor(_pipeline(acl), "acl") as executor:
        assert list(executor.stream(n=300)) == [3 * i for i in range(300)]  # more than may be in flight
        executor.run(n=200)
        held = runtime.alive()
        result = executor.run(n=600)
        assert runtime.alive() <= held + 20
        spans = sorted((span for span in result.trace.spans if span.name == "work"), key=lambda span: span.start)
        assert [span.iteration for span in spans] == list(range(600))
        assert all(a.end <= b.start + 1e-6 for a, b in pairwise(spans))


@pytest.mark.parametrize("patient", [False, True], ids=["all at once", "one by one"])
def test_a_source_of_a_loop_with_late_ops(acl: Any, runtime: EmulatedAcl, patient: bool) -> None:
    answered = threading.Semaphore(1)

    def source() -> Iterator[int]:
        for number in range(150):
            assert not patient or answered.acquire(timeout=10)
            yield number

    schedule = schedule_of(FEW)
    assert schedule.compiled.shifts
    with schedule.executor(_pipeline(acl), "acl") as executor:
        for number, answer in enumerate(executor.stream(source(), timeout=60)):
            assert answer == 3 * number
            answered.release()
        assert number == 149


def test_a_view_that_outlives_the_executor(acl: Any) -> None:
    kept: list[Any] = []
    functions = {**_pipeline(acl), "show": kept.append}
    with schedule_of(PIPELINE).executor(functions, "acl") as executor:
        executor.run(n=4)
    assert [int(view[0]) for view in kept] == [6, 9, 6, 9]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_kernel_that_fails_is_told_and_nobody_sees_what_it_left(
    acl: Any, seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    acl.emulator.seed(seed)
    seen: list[int] = []
    with schedule_of(PIPELINE).executor(_pipeline(acl, 5, seen), "acl") as executor:
        with pytest.raises(ExecutionError, match=r"R201.*507015") as caught:
            executor.run(n=50, timeout=30)
        assert isinstance(caught.value.__cause__, AclError) and caught.value.__cause__.code == 507015
        assert caught.value.op is not None and "late" in str(caught.value)
        assert seen == list(range(len(seen))) and len(seen) <= 5
        with pytest.raises(UsageError, match=r"R153"):
            executor.run(n=1)
    with schedule_of(PIPELINE).executor(_pipeline(acl), "acl") as again:
        assert list(again.stream(n=3)) == [0, 3, 6]


@pytest.mark.parametrize(
    ("call", "op"), [("memcpy_async", {"up", "down"}), ("record_event", None), ("stream_wait_event", None)]
)
def test_a_call_that_fails_is_told_with_its_op(acl: Any, runtime: EmulatedAcl, call: str, op: set[str] | None) -> None:
    with schedule_of(PIPELINE).executor(_pipeline(acl), "acl", trace=0) as executor:
        runtime.fault(call, 7, 507899)
        with pytest.raises(ExecutionError, match=rf"{call}: ACL_ERROR_RT_DRV_INTERNAL_ERROR \(507899\)") as caught:
            executor.run(n=50, timeout=30)
        assert caught.value.iteration is not None and (op is None or caught.value.op in op)
        runtime.fault()
        assert list(executor.stream(n=3)) == [0, 3, 6]


def test_a_function_that_returns_an_error_code(acl: Any) -> None:
    functions = {**_pipeline(acl), "work": lambda x, y, i: 107000 if i == 2 else 0}
    with (
        schedule_of(PIPELINE).executor(functions, "acl") as executor,
        pytest.raises(ExecutionError, match=r"`work@2`.*ACL_ERROR_RT_PARAM_INVALID \(107000\)"),
    ):
        executor.run(n=5)


@pytest.mark.parametrize(
    ("call", "code", "number"),
    [("malloc", 207001, 2), ("malloc_host", 207001, 3), ("create_stream_with_config", 207008, 2),
     ("create_event_ex_with_flag", 207007, 1)],
)  # fmt: skip
def test_a_device_that_is_full(acl: Any, runtime: EmulatedAcl, call: str, code: int, number: int) -> None:
    runtime.fault(call, number, code)
    with pytest.raises(UsageError, match=r"R111" if code == 207001 else r"R153") as caught:
        schedule_of(PIPELINE).executor(_pipeline(acl), "acl")
    assert str(code) in str(caught.value)
    caught.value.__cause__ = None


def test_in_the_context_of_the_caller(acl: Any) -> None:
    assert acl.rt.set_device(1) == 0
    context, _ = acl.rt.create_context(1)
    with schedule_of(OUTPUT).executor({"scale": lambda t, sums: acl.rt.get_context()[0] != context}, "acl") as executor:
        executor.run(n=3, inputs={"table": np.arange(3)})
    assert acl.rt.get_context() == (context, 0)
    assert acl.rt.destroy_context(context) == 0 and acl.rt.reset_device(1) == 0


def test_an_executor_that_nobody_closes(acl: Any, runtime: EmulatedAcl) -> None:
    executor = schedule_of(PIPELINE).executor(_pipeline(acl), "acl")
    executor.run(n=3)
    assert runtime.alive() > 0
    del executor  # the fixture looks for what is left


def test_what_it_refuses(acl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = schedule_of(PIPELINE)
    with pytest.raises(UsageError, match=r"R152"):
        schedule.executor(backend="acl")
    with pytest.raises(UsageError, match=r"R151.*no NPU 99"):
        schedule.executor(_pipeline(acl), "acl", device=99)
    with pytest.raises(UsageError, match=r"R151.*numbered"):
        schedule.executor(_pipeline(acl), "acl", device="npu")
    monkeypatch.setitem(sys.modules, "acl", None)
    with pytest.raises(UsageError, match=r"R150.*pyACL"):
        schedule.executor(_pipeline(acl), "acl")
    monkeypatch.setitem(sys.modules, "acl", object())
    with pytest.raises(UsageError, match=r"R150.*create_event_ex_with_flag"):
        schedule.executor(_pipeline(acl), "acl")
    monkeypatch.undo()
    sys.modules["acl"] = acl
