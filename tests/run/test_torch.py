"""The logic of backend ``torch`` on a stand-in of torch's streams: no accelerator was there to try it on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import UsageError
from dagsched.plan.model import OpKind
from dagsched.run.backend import Options
from dagsched.run.executor import Executor
from dagsched.run.queued import Queued
from dagsched.run.torch_device import Torch
from tests.emit.pipelines import LARGEST, PLANS, read
from tests.run import fake_torch
from tests.run.meaning import Functions, inputs_of, require_meaning
from tests.run.plans import PIPELINE, schedule_of


def _asynchronous(function: Any, modes: list[bool]) -> Any:
    """The NumPy function as an operator that is enqueued on the current stream."""

    def call(*views: Any, i: Any = None, j: Any = None) -> None:
        arrays = [view.array[...] for view in views]
        for array, writes in zip(arrays, modes, strict=True):
            array.flags.writeable = writes
        extra = {} if j is None else {"j": j}
        fake_torch.enqueue(lambda: function(*arrays, i=i, **extra))

    return call


def _executor(compiled: Compiled, functions: dict[str, Any], trace: int = 1000) -> Executor:
    torch = fake_torch.Torch(cuda=False, npu=True)
    return Executor(compiled, functions, Queued(Torch(None, torch)), Options(trace=trace))


@pytest.mark.parametrize("name", ["batches", "detector", "mixed", "once", "regions", "shifted"])
def test_results_are_those_of_the_sequential_meaning(name: str) -> None:
    compiled = compile_plan(read(PLANS / f"{name}.yaml"))
    functions = Functions(compiled.resolved, None)
    given = dict(functions.functions)
    for op in compiled.resolved.ops():
        if op.kind is OpKind.COMPUTE:
            name_ = op.function or op.name
            given[name_] = _asynchronous(functions.functions[name_], [access.mode.writes for access in op.accesses])
    with _executor(compiled, given) as executor:
        for count in (0, 1, min(5, LARGEST.get(name, 5))):
            functions.log.clear()
            counts = dict.fromkeys(compiled.plan.params, count)
            result = executor.run(counts=counts, inputs=inputs_of(compiled.plan), timeout=60)
            require_meaning(compiled, counts, functions.log, result.outputs)
            assert all(span.start <= span.end for span in result.trace.spans)


def test_the_stream_is_current_and_can_be_asked_for() -> None:
    def work(x: Any, y: Any, stream: Any) -> None:
        assert fake_torch._local.stream is stream and x.kind == "npu"

        def add() -> None:
            y.array[...] = x.array + 1

        fake_torch.enqueue(add)

    functions = {"read": lambda a, i: a.fill(i), "work": work, "show": lambda b: int(b[0])}
    with _executor(schedule_of(PIPELINE).compiled, functions) as executor:
        assert list(executor.stream(n=300)) == list(range(1, 301))  # more than may be in flight


def test_bfloat16_is_torchs_own() -> None:
    kinds: set[Any] = set()

    def work(x: Any, y: Any) -> None:
        kinds.update((x.array.dtype, y.array.dtype))
        fake_torch.enqueue(lambda: np.copyto(y.array, x.array))

    compiled = schedule_of(PIPELINE.replace("int64", "bfloat16")).compiled
    with _executor(compiled, {"read": lambda a, i: a.fill(i), "work": work, "show": lambda b: int(b[0])}) as executor:
        assert list(executor.stream(n=5)) == list(range(5))
    assert kinds == {fake_torch.Torch().bfloat16}


def test_without_an_accelerator() -> None:
    with pytest.raises(UsageError, match=r"R151.*an accelerator"):
        Torch(None, fake_torch.Torch(cuda=False))
    with pytest.raises(UsageError, match=r"R151.*`xpu`"):
        Torch("xpu", fake_torch.Torch(npu=True))
    with pytest.raises(UsageError, match=r"R152"):
        schedule_of(PIPELINE).executor(backend="torch")
