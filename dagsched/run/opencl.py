"""Backend ``opencl``: in-order queues and events of an OpenCL device, page-locked host memory.

Compute functions get ``pyopencl.array.Array`` views of device buffers and enqueue on ``queue``, the queue that they are
given; they must not wait. Host functions get NumPy arrays, as on ``cpu``. Needs the extra ``opencl``.
"""

from __future__ import annotations

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


def make_executor(compiled: Compiled, functions: Functions | None, options: Options) -> Runs:
    """An executor on an OpenCL device; ``device=`` names one (a part of its name), else the first is taken.

    Raises :class:`UsageError` where pyopencl is missing (R150), or no such device is there (R151).
    """
    if functions is None:
        raise refuse("R152", "backend `opencl` has no dry run", help="give functions, or use `cpu` or `simulate`")
    wanted = (options.extra or {}).get("device")
    return Executor(compiled, functions, Queued(OpenCL(wanted)), options)


class OpenCL:
    """The driver."""

    name = "opencl"
    handle = "queue"

    def __init__(self, wanted: str | None) -> None:
        try:
            import pyopencl
            import pyopencl.array
        except ImportError as error:
            headline = "backend `opencl` needs pyopencl, which is not installed"
            raise refuse("R150", headline, help="pip install 'dagsched[opencl]'") from error
        self.cl: Any = pyopencl
        self.context = self.cl.Context([self._find(wanted)])
        self.base = 0
        self.timer = self._queue()
        self._mapped: list[Any] = []

    def _find(self, wanted: str | None) -> Any:
        try:
            devices = [device for platform in self.cl.get_platforms() for device in platform.get_devices()]
        except self.cl.Error:
            devices = []
        fitting = [device for device in devices if wanted is None or wanted.lower() in device.name.lower()]
        if not fitting:
            names = ", ".join(f"`{device.name}`" for device in devices) or "none"
            which = "there is no OpenCL device" if wanted is None else f"there is no OpenCL device `{wanted}`"
            raise refuse("R151", which, notes=(f"devices: {names}",), help="install a driver, such as PoCL for CPUs")
        return fitting[0]

    def _queue(self) -> Any:
        return self.cl.CommandQueue(self.context, properties=self.cl.command_queue_properties.PROFILING_ENABLE)

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        flags = self.cl.mem_flags
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        buffer = self.cl.Buffer(self.context, flags.READ_WRITE | flags.ALLOC_HOST_PTR, size)
        maps = self.cl.map_flags
        array, _ = self.cl.enqueue_map_buffer(self.timer, buffer, maps.READ | maps.WRITE, 0, shape, dtype)
        self._mapped.append((buffer, array))
        array.fill(0)
        found: Array = array
        return found

    def memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        return self.cl.array.zeros(self.timer, shape, dtype)

    def view(self, memory: Any, queue: Any, shadow: Array, offset: int) -> Any:
        array = self.cl.array.Array(
            queue, shadow.shape, shadow.dtype, strides=shadow.strides, data=memory.base_data, offset=offset
        )
        array.events.clear()
        return array

    def host_view(self, array: Array) -> Any:
        return array

    def bfloat16(self, view: Any) -> Any:
        return view

    def enter(self) -> None:
        return None

    def queue(self, stream: StreamProgram | None) -> Any:
        return self._queue()

    def around(self, queue: Any, call: Call) -> Call:
        return call

    def to_device(self, queue: Any, memory: Any, offset: int, source: NDArray[np.uint8]) -> None:
        self.cl.enqueue_copy(queue, memory.base_data, source, dst_offset=offset, is_blocking=False)

    def to_host(self, queue: Any, target: NDArray[np.uint8], memory: Any, offset: int) -> None:
        self.cl.enqueue_copy(queue, target, memory.base_data, src_offset=offset, is_blocking=False)

    def on_device(self, queue: Any, target: Any, offset: int, source: Any, source_offset: int, size: int) -> None:
        self.cl.enqueue_copy(
            queue, target.base_data, source.base_data, byte_count=size, src_offset=source_offset, dst_offset=offset
        )

    def fill(self, queue: Any, memory: Any, offset: int, size: int, value: int) -> None:
        self.cl.enqueue_fill_buffer(queue, memory.base_data, np.uint8(value), offset, size)

    def record(self, queue: Any) -> Any:
        event = self.cl.enqueue_marker(queue)
        queue.flush()  # a queue that waits for this must not wait for somebody to send it off
        return event

    def wait(self, queue: Any, event: Any) -> None:
        self.cl.enqueue_barrier(queue, wait_for=[event])

    def synchronize(self, event: Any) -> None:
        event.wait()

    def begin(self) -> None:
        event = self.cl.enqueue_marker(self.timer)
        event.wait()
        self.base = event.profile.end

    def stamp(self, queue: Any) -> Any:
        return self.record(queue)

    def time(self, stamp: Any) -> int:
        return int(stamp.profile.end) - self.base

    def finish(self, queue: Any) -> None:
        queue.finish()

    def close(self) -> None:
        for buffer, array in self._mapped:
            array.base.release(self.timer)
            buffer.release()
        self._mapped.clear()
