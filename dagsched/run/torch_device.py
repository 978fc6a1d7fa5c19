"""Backend ``torch``: streams and events of the accelerator that PyTorch has (``cuda``, ``npu`` or ``xpu``).

Compute functions get tensors and run with their stream as the current one, which they may also ask for as ``stream``;
what they call must be asynchronous. Host functions get NumPy arrays on page-locked memory, as on ``cpu``.
Written after PyTorch's documentation and tried on a stand-in of its streams only.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dagsched.compiled import Compiled
from dagsched.run.backend import Call, Options, Runs
from dagsched.run.errors import refuse
from dagsched.run.executor import Executor
from dagsched.run.functions import Functions
from dagsched.run.program import StreamProgram
from dagsched.run.queued import Queued
from dagsched.run.storage import Array

OPTIONS = ("device",)
KINDS = ("cuda", "npu", "xpu")


def make_executor(compiled: Compiled, functions: Functions | None, options: Options) -> Runs:
    """An executor on PyTorch's accelerator; ``device=`` names one of several kinds.

    Raises :class:`UsageError` where PyTorch is missing (R150) or has no accelerator (R151).
    """
    if functions is None:
        raise refuse("R152", "backend `torch` has no dry run", help="give functions, or use `cpu` or `simulate`")
    wanted = (options.extra or {}).get("device")
    return Executor(compiled, functions, Queued(Torch(wanted)), options)


def _import_torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        headline = "backend `torch` needs PyTorch, which is not installed"
        raise refuse("R150", headline, help="install the PyTorch of your accelerator's maker") from error


class Torch:
    """The driver, over ``torch.KIND.Stream``, ``torch.KIND.Event`` and ``torch.KIND.stream``."""

    name = "torch"
    handle = "stream"

    def __init__(self, wanted: str | None, torch: Any = None) -> None:
        self.torch: Any = torch or _import_torch()
        self.kind = self._find(wanted)
        self.api: Any = getattr(self.torch, self.kind)
        self.base: Any = None
        self.pinned: list[Any] = []  # tensors whose memory host arrays look at

    def _find(self, wanted: str | None) -> str:
        kinds = [kind for kind in KINDS if wanted is None or kind == wanted]
        if "npu" in kinds and getattr(self.torch, "npu", None) is None:
            with suppress(ImportError):  # PyTorch before 2.5 does not look for it by itself
                import_module("torch_npu")
        for kind in kinds:
            api = getattr(self.torch, kind, None)
            if api is not None and api.is_available():
                return kind
        what = "an accelerator" if wanted is None else f"`{wanted}`"
        note = f"`torch.{'`, `torch.'.join(kinds or KINDS)}` are not available"
        raise refuse("R151", f"PyTorch has not got {what}", notes=(note,), help="run on `cpu`")

    def _tensor(self, shape: tuple[int, ...], dtype: np.dtype[Any], **where: Any) -> Any:
        return self.torch.zeros(shape, dtype=getattr(self.torch, dtype.name), **where)

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        tensor = self._tensor(shape, dtype, pin_memory=True)
        self.pinned.append(tensor)
        array: Array = tensor.numpy()
        return array

    def memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        return self._tensor(shape, dtype, device=self.kind)

    def view(self, memory: Any, queue: Any, shadow: Array, offset: int) -> Any:
        strides = tuple(stride // shadow.itemsize for stride in shadow.strides)
        return memory.as_strided(shadow.shape, strides, offset // shadow.itemsize)

    def host_view(self, array: Array) -> Any:
        return self.torch.from_numpy(array)

    def bfloat16(self, view: Any) -> Any:
        return view.view(self.torch.bfloat16)

    def enter(self) -> None:
        return None

    def queue(self, stream: StreamProgram | None) -> Any:
        if stream is None or stream.priority is None:
            return self.api.Stream()
        return self.api.Stream(priority=stream.priority)

    def around(self, queue: Any, call: Call) -> Call:
        within = self.api.stream

        def on_stream(i: int) -> object:
            with within(queue):
                return call(i)

        return on_stream

    def to_device(self, queue: Any, memory: Any, offset: int, source: NDArray[np.uint8]) -> None:
        with self.api.stream(queue):
            self._bytes(memory, offset, source.size).copy_(self.torch.from_numpy(source), non_blocking=True)

    def to_host(self, queue: Any, target: NDArray[np.uint8], memory: Any, offset: int) -> None:
        with self.api.stream(queue):
            self.torch.from_numpy(target).copy_(self._bytes(memory, offset, target.size), non_blocking=True)

    def on_device(self, queue: Any, target: Any, offset: int, source: Any, source_offset: int, size: int) -> None:
        with self.api.stream(queue):
            self._bytes(target, offset, size).copy_(self._bytes(source, source_offset, size), non_blocking=True)

    def fill(self, queue: Any, memory: Any, offset: int, size: int, value: int) -> None:
        with self.api.stream(queue):
            self._bytes(memory, offset, size).fill_(value)

    def _bytes(self, memory: Any, offset: int, size: int) -> Any:
        return memory.reshape(-1).view(self.torch.uint8)[offset : offset + size]

    def record(self, queue: Any) -> Any:
        event = self.api.Event(enable_timing=True)
        event.record(queue)
        return event

    def wait(self, queue: Any, event: Any) -> None:
        queue.wait_event(event)

    def synchronize(self, event: Any) -> None:
        event.synchronize()

    def begin(self) -> None:
        self.api.synchronize()
        self.base = self.api.Event(enable_timing=True)
        self.base.record(self.api.current_stream())
        self.base.synchronize()

    def stamp(self, queue: Any) -> Any:
        return self.record(queue)

    def time(self, stamp: Any) -> int:
        milliseconds: float = self.base.elapsed_time(stamp)
        return round(milliseconds * 1e6)

    def finish(self, queue: Any) -> None:
        queue.synchronize()

    def close(self) -> None:
        self.pinned.clear()
