"""Emitted Python runs: on a pyACL whose streams are threads it computes what the plan means, and fails as it should."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import types
from typing import Any

import pytest

from dagsched.emit.cpp_names import Names
from dagsched.emit.functions import Function
from dagsched.emit.lower import list_calls
from dagsched.emit.py_names import name_python
from dagsched.emit.pyacl import emit_pyacl
from dagsched.plan.model import Mode, OpKind
from dagsched.schedule.model import EventStep
from tests.emit.emulated_pyacl import EmulatedAcl
from tests.emit.pipelines import EXAMPLES, PLANS, Pipeline, compile_file
from tests.emit.random_plans import random_pipelines
from tests.emit.sequential import MASK, Sequential, fnv, input_bytes, size_of, splitmix

COUNTS = (0, 1, 2, 7)
PLAN_NAMES = sorted(path.stem for path in PLANS.glob("*.yaml"))
FAULTS = [
    ("memcpy_async", 2), ("memset_async", 1), ("record_event", 1), ("record_event", 4), ("stream_wait_event", 3),
    ("launch_callback", 1), ("launch_callback", 3), ("synchronize_stream", 1), ("kernel", 2), ("hook", 1), ("hook", 3),
    ("throw", 2),
]  # fmt: skip
INIT_FAULTS = [
    ("get_context", 1), ("create_stream", 1), ("create_stream", 2), ("create_event_ex_with_flag", 2), ("malloc", 1),
    ("malloc_host", 2), ("start_thread", 1), ("subscribe_report", 1),
]  # fmt: skip


class Program:
    """An emitted module, loaded on a emulator, with hooks that mix bytes as ``sequential.py`` does."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.calls = list_calls(pipeline.compiled)
        self.names = name_python(self.calls, "pyacl")
        self.runtime = EmulatedAcl()
        self.runtime.install()
        self.runtime.module.rt.set_device(0)
        text = emit_pyacl(pipeline.compiled)[f"{self.names.stem}.py"]
        self.module: Any = types.ModuleType(self.names.stem)
        sys.modules[self.names.stem] = self.module
        exec(compile(text, f"{self.names.stem}.py", "exec"), self.module.__dict__)

    def open(self) -> Any:
        """A pipeline with its inputs filled."""
        pipeline = self.module.Pipeline()
        for buffer in self.calls.buffers:
            if buffer.input:
                for slot in range(buffer.ring.depth or 1):
                    view = getattr(pipeline, self.names.accessors[buffer.name])(slot)
                    self.runtime.write(view.address, input_bytes(buffer.name, buffer.size))
        return pipeline

    def run(self, pipeline: Any, count: int, *fault: Any) -> list[tuple[str, tuple[int, ...], int]]:
        """One run; returns what host functions saw."""
        hooks = make_hooks(self, *fault)
        counts = self.pipeline.counts(count)
        pipeline.run(hooks, **{self.names.locals[name]: value for name, value in counts.items()})
        return hooks.log  # type: ignore[no-any-return]

    def agrees(self, pipeline: Any, count: int, log: list[tuple[str, tuple[int, ...], int]]) -> bool:
        """Whether host functions saw, and outputs hold, what the sequential meaning says."""
        meaning = Sequential(self.pipeline.plan, self.pipeline.counts(count))
        right = sorted(log) == sorted(meaning.log)
        for buffer in self.pipeline.compiled.resolved.buffers.values():
            final = meaning.final(buffer.name, buffer.ring.depth or 1)
            if buffer.output and final is not None:
                view = getattr(pipeline, self.names.accessors[buffer.name])(final[0])
                right = right and _peek(self, [(view.address, view.nbytes)]) == final[1]
        return right


def _peek(program: Program, runs: list[tuple[int, int]]) -> bytes:
    return b"".join(program.runtime.read(address, size) for address, size in runs)


def _runs(view: Any) -> list[tuple[int, int]]:
    """The contiguous bytes of a view, in order."""
    if not hasattr(view, "run"):
        return [(view.address, view.nbytes)]
    starts = [view.address]
    for count, stride in zip(view.count, view.stride, strict=True):
        starts = [start + n * stride for start in starts for n in range(count)]
    return [(start, view.run) for start in starts]


def make_hooks(program: Program, kind: str = "", number: int = 0) -> Any:
    """Hooks that mix what they read into what they write; the number-th call of any fails in some way."""
    names: Names = program.names
    state = {"left": number}

    def fails() -> int:
        state["left"] -= 1
        if state["left"] != 0:
            return 0
        if kind == "throw":
            raise ValueError("a hook threw")
        return 4242 if kind == "hook" else 0

    class MyHooks(program.module.Hooks):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            self.log: list[tuple[str, tuple[int, ...], int]] = []

    hooks = MyHooks()
    for function in program.calls.functions:
        setattr(MyHooks, names.functions[function.name], _hook(program, function, hooks.log, fails))
    for buffer, method in names.sizes.items():
        size = program.pipeline.compiled.resolved.buffers[buffer].size
        setattr(MyHooks, method, lambda _, index, buffer=buffer, size=size: size_of(buffer, index, size))
    return hooks


def _hook(program: Program, function: Function, log: list[Any], fails: Any) -> Any:
    count, host = len(function.parameters), function.kind is OpKind.HOST

    def work(views: tuple[Any, ...], indices: tuple[int, ...]) -> None:
        mix = fnv(function.name.encode())
        for value in indices:
            mix = (mix * 31 + value) & MASK
        for parameter, view in zip(function.parameters, views, strict=True):
            if parameter.mode in (Mode.READ, Mode.UPDATE):
                mix = (mix + fnv(_peek(program, _runs(view)), fnv(parameter.name.encode()))) & MASK
        if host:
            log.append((function.name, indices, mix))
        for parameter, view in zip(function.parameters, views, strict=True):
            if parameter.mode.writes:
                _write(program, view, mix + fnv(parameter.name.encode()), add=parameter.mode is Mode.ACCUMULATE)

    def hook(_: Any, *arguments: Any) -> int:
        code: int = fails()
        if code:
            return code
        views, indices = arguments[:count], arguments[count : count + len(function.indices)]
        if not host:
            return program.runtime.launch(arguments[-1], lambda: work(views, indices))
        work(views, indices)
        return 0

    return hook


_adding = threading.Lock()
"""Accumulates commute: they may meet, and each must be one step."""


def _write(program: Program, view: Any, start: int, *, add: bool) -> None:
    n = start
    with _adding if add else contextlib.nullcontext():
        for address, size in _runs(view):
            data = bytearray(program.runtime.read(address, size) if add else size)
            for k in range(size):
                data[k] = (data[k] + (splitmix(n & MASK) & 0xFF)) & 0xFF
                n += 1
            program.runtime.write(address, bytes(data))


@pytest.fixture(scope="module")
def programs() -> dict[str, Pipeline]:
    return {name: compile_file(PLANS / f"{name}.yaml") for name in PLAN_NAMES}


@pytest.mark.parametrize("name", PLAN_NAMES)
def test_results_are_those_of_the_sequential_meaning(name: str, programs: dict[str, Pipeline]) -> None:
    program = Program(programs[name])
    for seed, counts in ((0, (0, 100)), (1, COUNTS), (2, COUNTS)):
        program.runtime.seed(seed)
        for count in counts if name == "detector" else [min(count, 7) for count in counts]:
            with program.open() as pipeline:
                for _ in range(2):  # a pipeline runs as often as one likes
                    log = program.run(pipeline, count)
                    assert program.agrees(pipeline, count, log), (seed, count)
            assert program.runtime.alive() == 0
    assert program.runtime.complaints == 0


@pytest.mark.parametrize("name", ["detector", "mixed", "dynamic", "names"])
def test_failures_are_reported_and_leave_nothing_behind(name: str, programs: dict[str, Pipeline]) -> None:
    program = Program(programs[name])
    reported = 0
    for kind, number in FAULTS:
        with program.open() as pipeline:
            runtime = program.runtime
            in_hook = kind in ("hook", "throw")
            runtime.fault(*(() if in_hook or kind == "kernel" else (kind, number, 507015)))
            if kind == "kernel":
                runtime.launch = _broken(runtime, number)  # type: ignore[method-assign]
            try:
                log = program.run(pipeline, 3, *((kind, number) if in_hook else ()))
                assert program.agrees(pipeline, 3, log)  # this plan makes no such call, or too few of them
            except program.module.PipelineError as error:
                reported += 1
                assert error.code == {"hook": 4242, "throw": 500001}.get(kind, 507015)
                assert error.op
                if kind == "throw":
                    assert "ValueError: a hook threw" in str(error)
                if kind == "record_event":
                    assert "record_event: ACL_ERROR_RT_AICORE_EXCEPTION (507015): EI0001: injected" in str(error)
            runtime.__dict__.pop("launch", None)
            runtime.fault()
            assert program.agrees(pipeline, 3, program.run(pipeline, 3)), kind  # and it runs again
        assert runtime.alive() == 0
        assert runtime.complaints == 0
    assert reported >= 5


def _broken(runtime: EmulatedAcl, number: int) -> Any:
    """Kernels of which one raises: an error that only shows when its stream is synchronised."""
    left = [number]

    def launch(stream: int, kernel: Any) -> int:
        left[0] -= 1

        def broken() -> None:
            raise ValueError

        return EmulatedAcl.launch(runtime, stream, broken if left[0] == 0 else kernel)

    return launch


@pytest.mark.parametrize("name", ["detector", "mixed"])
def test_a_failed_constructor_leaves_nothing_behind(name: str, programs: dict[str, Pipeline]) -> None:
    program = Program(programs[name])
    for function, number in INIT_FAULTS:
        program.runtime.fault(function, number, 207001)
        with pytest.raises(program.module.PipelineError) as caught:
            program.module.Pipeline()
        assert caught.value.code == 207001
        assert "ACL_ERROR_RT_MEMORY_ALLOCATION (207001)" in str(caught.value)
        assert program.runtime.alive() == 0
        assert program.runtime.complaints == 0


def test_messages(programs: dict[str, Pipeline]) -> None:
    program = Program(programs["detector"])
    with program.open() as pipeline:
        program.runtime.fault("memcpy_async", 4, 507015)  # load, upload@0, download@0, upload@1
        with pytest.raises(program.module.PipelineError) as caught:
            program.run(pipeline, 5)
        text = "upload, iteration 1: memcpy_async: ACL_ERROR_RT_AICORE_EXCEPTION (507015): EI0001: injected into"
        assert str(caught.value).startswith(text)
        for count, kind in ((-1, ValueError), (2**60, ValueError), ("3", TypeError), (True, TypeError)):
            with pytest.raises(kind, match="`frames` must be"):
                pipeline.run(make_hooks(program), count)
    with pytest.raises(program.module.PipelineError, match=r"ACL_ERROR_UNINITIALIZE .*the pipeline has been closed"):
        pipeline.run(make_hooks(program), 1)
    pipeline.close()


def test_counts_end_where_the_proof_does(programs: dict[str, Pipeline]) -> None:
    program = Program(programs["limited"])
    with program.open() as pipeline:
        hooks = make_hooks(program)
        pipeline.run(hooks, n=32, m=32)
        with pytest.raises(ValueError, match="`m` is 33, and the schedule is proved up to 32 and not beyond"):
            pipeline.run(hooks, n=2, m=33)


def test_regions_that_leave_their_buffer_are_errors(programs: dict[str, Pipeline]) -> None:
    program = Program(programs["batches"])
    wrong = pytest.raises(program.module.PipelineError, match="check_region: ACL_ERROR_INVALID_PARAM")
    with program.open() as pipeline, wrong:
        pipeline.run(make_hooks(program), 9)
    assert program.runtime.alive() == 0


def test_every_wait_is_needed_and_its_loss_is_seen(programs: dict[str, Pipeline]) -> None:
    """These tests would notice: without any one of its waits the detector computes something else."""
    program = Program(programs["detector"])
    schedule = program.pipeline.compiled.schedule
    waits = sum(isinstance(step, EventStep) and step.action == "wait" for step in schedule.walk())
    for wait in range(waits):
        seen = False
        for slow in range(1, 4 * len(schedule.streams)):
            program.runtime.seed(slow)
            program.runtime.emulator.leave_out(wait, waits)
            with program.open() as pipeline:
                seen = not program.agrees(pipeline, 4, program.run(pipeline, 4))
            if seen:
                break
        assert seen, f"wait {wait} is not needed"


def test_random_plans() -> None:
    """More of them: ``DAGSCHED_RANDOM_PLANS=300``."""
    for pipeline in random_pipelines(first=5000, count=int(os.environ.get("DAGSCHED_RANDOM_PLANS", "6"))):
        program = Program(pipeline)
        for count in COUNTS:
            program.runtime.seed(count)
            with program.open() as opened:
                assert program.agrees(opened, count, program.run(opened, count)), pipeline.plan.name
            assert program.runtime.alive() == 0
            assert program.runtime.complaints == 0


def test_views_are_numpy_arrays(programs: dict[str, Pipeline]) -> None:
    """Host memory is a NumPy array of the buffer's type and shape without a copy; device memory is an address."""
    program = Program(programs["regions"])
    with program.open() as pipeline:
        table = pipeline.table()
        assert (table.array().shape, str(table.array().dtype)) == ((8, 12), "int32")
        table.array()[2, 3] = 77
        assert _peek(program, [(table.address + 4 * 27, 4)]) == (77).to_bytes(4, "little")
        assert not pipeline.out().array().flags.writeable
        rows = pipeline._buffers.table.read_rows(0, 4, 8, (8,), (48,)).array()
        assert (rows == table.array()[:, 1:3]).all()
        with pytest.raises(TypeError, match="device memory"):
            pipeline._buffers.wide.read(0).array()


def test_the_program_around_it(programs: dict[str, Pipeline], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    program = Program(compile_file(EXAMPLES / "detector.yaml"))
    text = emit_pyacl(program.pipeline.compiled)["detector_pyacl_main.py"]
    scope: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "detector_pyacl_main.py", "exec"), scope)
    program.runtime.module.finalize()  # the program initialises AscendCL itself
    monkeypatch.setattr(sys, "argv", ["detector_pyacl_main.py", "3"])
    assert scope["main"]() == 0
    assert capsys.readouterr().out.startswith("detector 0.")
    monkeypatch.setattr(sys, "argv", ["detector_pyacl_main.py", "-3"])
    assert scope["main"]() == 1
    program.runtime.module.init()
    assert "`frames` must be 0 to" in capsys.readouterr().err
    assert program.runtime.alive() == 0
