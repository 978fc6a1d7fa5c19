"""Backend ``acl``: streams and events of an Ascend NPU over pyACL, page-locked host memory.

Compute functions get a :class:`DeviceView` for device memory and enqueue on ``stream``, the stream that they are given;
what they return is an error code (None counts as 0). Host functions get NumPy arrays on page-locked memory, in the
executor's own threads: no thread for callbacks is needed.

AscendCL reports what fails on the device late, at some later call. Streams are set to stop on failure, and a host
stream that has waited for an event asks whether anything has failed, so that no host function sees what a failed
kernel has left. Invariant: a handle of an event is recorded anew only when nobody refers to its last record any more.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dagsched.compiled import Compiled
from dagsched.emit.acl_errors import ERROR_NAMES
from dagsched.run.backend import Call, Options, Runs
from dagsched.run.errors import refuse
from dagsched.run.executor import Executor
from dagsched.run.functions import Functions
from dagsched.run.program import StreamProgram
from dagsched.run.queued import Queued
from dagsched.run.storage import Array

OPTIONS = ("device",)
_OK, _REPEAT_INITIALIZE, _NO_MEMORY, _DEVICE_ERRORS = 0, 100002, 207001, 500000
_SYNC, _TIME_LINE = 0x1, 0x8
_FAST = 0x1 | 0x2  # FAST_LAUNCH and FAST_SYNC
_HUGE_FIRST, _STOP_ON_FAILURE = 0, 1
_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_STAMPS = 128
"""Stamps of a stream that wait for their time to be asked; older ones are asked at once, so that handles are few."""
_DRAIN = 10_000
"""Milliseconds that a stream gets to come to its end before its memory is left alone."""


def make_executor(compiled: Compiled, functions: Functions | None, options: Options) -> Runs:
    """An executor on an NPU; ``device=`` is its number, without it the current context's, else device 0.

    Raises :class:`UsageError` where pyACL is missing (R150), there is no such device (R151), or the runtime refuses
    memory or streams (R153).
    """
    if functions is None:
        raise refuse("R152", "backend `acl` has no dry run", help="give functions, or use `cpu` or `simulate`")
    driver = Acl((options.extra or {}).get("device"))
    try:
        with _refusing():
            return Executor(compiled, functions, QueuedAcl(driver), options)
    except BaseException:
        driver.close()
        raise


class AclError(RuntimeError):
    """A call of AscendCL that failed: ``code`` is what it returned, ``call`` its name."""

    def __init__(self, call: str, code: int, detail: str = "") -> None:
        name = ERROR_NAMES.get(code, "an error that has no name here")
        late = " (reported late: an op that was enqueued before may be the cause)" if code >= _DEVICE_ERRORS else ""
        super().__init__(f"{call}: {name} ({code}){late}" + (f": {detail}" if detail else ""))
        self.call = call
        self.code = code


@dataclass(frozen=True, slots=True)
class DeviceView:
    """Device memory that an op touches: ``address`` of its first element, ``nbytes`` of all elements together.

    ``strides`` are in bytes; where ``contiguous``, the elements are ``nbytes`` bytes from ``address`` on.
    """

    address: int
    nbytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    contiguous: bool


class Event:
    """One record of a handle, which is given back when nobody refers to the record any more."""

    __slots__ = ("handle", "queue", "spare")

    def __init__(self, handle: int, queue: int, spare: deque[int]) -> None:
        self.handle, self.queue, self.spare = handle, queue, spare

    def __del__(self) -> None:
        self.spare.append(self.handle)


class Stamp:
    """A moment of a stream: an event until its time is known, then nanoseconds of ``perf_counter_ns``."""

    __slots__ = ("at", "event", "queue")

    def __init__(self, event: Event, queue: int) -> None:
        self.event: Event | None = event
        self.queue = queue
        self.at = 0


def _import_acl() -> Any:
    try:
        acl = import_module("acl")
    except ImportError as error:
        headline = "backend `acl` needs pyACL, and `import acl` fails"
        help_ = "install CANN and load its environment: `source /usr/local/Ascend/ascend-toolkit/set_env.sh`"
        raise refuse("R150", headline, notes=(str(error),), help=help_) from error
    if not hasattr(getattr(acl, "rt", None), "create_event_ex_with_flag"):
        headline = "backend `acl` needs a pyACL that has `acl.rt.create_event_ex_with_flag`"
        raise refuse("R150", headline, help="install a newer CANN")
    return acl


@contextmanager
def _refusing() -> Iterator[None]:
    """What fails outside of ops is told as a finding."""
    try:
        yield
    except AclError as error:
        if error.code == _NO_MEMORY:
            help_ = "use shorter rings or smaller buffers"
            raise refuse("R111", f"the device has no memory for the buffers: {error}", help=help_) from error
        help_ = "close this executor, reset the device, and make a new one"
        raise refuse("R153", f"AscendCL refuses {error}", help=help_) from error


class QueuedAcl(Queued):
    """Outside of ops, errors of the runtime are findings."""

    def put(self, inputs: Any) -> None:
        with _refusing():
            super().put(inputs)

    def outputs(self) -> dict[str, Any]:
        with _refusing():
            return super().outputs()

    def begin(self) -> None:
        with _refusing():
            super().begin()


class Acl:
    """The driver, over ``acl.rt``."""

    name = "acl"
    handle = "stream"

    def __init__(self, wanted: int | None, acl: Any = None) -> None:
        self.acl: Any = acl or _import_acl()
        self.rt: Any = self.acl.rt
        self.device: int | None = None  # the one that is to be reset
        self.context: int = self._find(wanted)
        self.here = threading.local()
        self.spare: deque[int] = deque()
        self.events: list[int] = []
        self.queues: list[int] = []
        self.blocks: list[int] = []
        self.probes: dict[int, int] = {}
        self.stamps: dict[int, deque[Stamp]] = {}
        self.settled: dict[int, Stamp] = {}
        self.began = 0
        self.closed = False

    def _find(self, wanted: int | None) -> int:
        """The context to work in: the calling thread's, where it has one and no device was named."""
        if wanted is None:
            context, code = self.rt.get_context()
            if code == _OK and context:
                return int(context)
        number = 0 if wanted is None else wanted
        if isinstance(number, bool) or not isinstance(number, int):
            raise refuse("R151", f"`device` is {number!r}, and NPUs are numbered", help="write device=0")
        code = self.acl.init()
        if code in (_OK, _REPEAT_INITIALIZE):
            code = self.rt.set_device(number)
        if code != _OK:
            error = AclError("set_device", code, self.acl.get_recent_err_msg() or "")
            raise refuse("R151", f"there is no NPU {number}: {error}", help="look at `npu-smi info`")
        self.device = number
        context, code = self.rt.get_context()
        self._check("get_context", code)
        return int(context)

    def _check(self, call: str, code: int) -> None:
        if code != _OK:
            raise AclError(call, code, self.acl.get_recent_err_msg() or "")

    def bfloat16(self, view: Any) -> Any:
        return view

    def enter(self) -> None:
        """Calls of this thread follow."""
        self._check("set_context", self.rt.set_context(self.context))
        self.here.entered = True

    def _enter(self) -> None:
        if not getattr(self.here, "entered", False):
            self.enter()

    # Memory

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        self.enter()
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        address, code = self.rt.malloc_host(size)
        self._check("malloc_host", code)
        memory = (ctypes.c_uint8 * size).from_address(address)
        # Freed with the last array that looks at it: a function, or who was given a result, may have kept one.
        weakref.finalize(memory, _free_host, self.rt, self.context, address).atexit = False
        whole: Any = memory
        array: Array = np.frombuffer(whole, dtype).reshape(shape)
        array.fill(0)
        return array

    def memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        self.enter()
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        address, code = self.rt.malloc(size, _HUGE_FIRST)
        self._check("malloc", code)
        self.blocks.append(address)
        self._check("memset", self.rt.memset(address, size, 0, size))
        return int(address)

    def view(self, memory: int, queue: int, shadow: Array, offset: int) -> DeviceView:
        contiguous = bool(shadow.flags.c_contiguous)
        return DeviceView(memory + offset, shadow.nbytes, shadow.shape, shadow.strides, shadow.dtype, contiguous)

    def host_view(self, array: Array) -> Array:
        return array

    # Queues

    def queue(self, stream: StreamProgram | None) -> int:
        self.enter()
        priority = 0 if stream is None or stream.priority is None else stream.priority
        queue, code = self.rt.create_stream_with_config(priority, _FAST)
        self._check("create_stream_with_config", code)
        self.queues.append(queue)
        self._check("set_stream_failure_mode", self.rt.set_stream_failure_mode(queue, _STOP_ON_FAILURE))
        self.probes[queue] = self._new_handle()
        self.stamps[queue] = deque()
        return int(queue)

    def around(self, queue: int, call: Call) -> Call:
        def in_context(i: int) -> object:
            self._enter()
            result = call(i)
            if isinstance(result, int) and not isinstance(result, bool) and result != _OK:
                raise AclError("the function", result, self.acl.get_recent_err_msg() or "")
            return result

        return in_context

    def to_device(self, queue: int, memory: int, offset: int, source: NDArray[np.uint8]) -> None:
        self._copy(queue, memory + offset, source.ctypes.data, source.size, _TO_DEVICE)

    def to_host(self, queue: int, target: NDArray[np.uint8], memory: int, offset: int) -> None:
        self._copy(queue, target.ctypes.data, memory + offset, target.size, _TO_HOST)

    def on_device(self, queue: int, target: int, offset: int, source: int, source_offset: int, size: int) -> None:
        self._copy(queue, target + offset, source + source_offset, size, _ON_DEVICE)

    def _copy(self, queue: int, target: int, source: int, size: int, kind: int) -> None:
        self._enter()
        self._check("memcpy_async", self.rt.memcpy_async(target, size, source, size, kind, queue))

    def fill(self, queue: int, memory: int, offset: int, size: int, value: int) -> None:
        self._enter()
        self._check("memset_async", self.rt.memset_async(memory + offset, size, value, size, queue))

    def finish(self, queue: int) -> None:
        self._enter()
        self._check("synchronize_stream", self.rt.synchronize_stream(queue))

    # Events

    def _new_handle(self) -> int:
        handle, code = self.rt.create_event_ex_with_flag(_SYNC | _TIME_LINE)
        self._check("create_event_ex_with_flag", code)
        self.events.append(handle)
        return int(handle)

    def record(self, queue: int) -> Event:
        self._enter()
        try:
            handle = self.spare.popleft()
        except IndexError:
            handle = self._new_handle()
        event = Event(handle, queue, self.spare)
        self._check("record_event", self.rt.record_event(handle, queue))
        return event

    def wait(self, queue: int, event: Event) -> None:
        self._enter()
        self._check("stream_wait_event", self.rt.stream_wait_event(queue, event.handle))

    def synchronize(self, event: Event) -> None:
        self._enter()
        self._check("synchronize_event", self.rt.synchronize_event(event.handle))
        # An event completes behind a failed task, too; enqueuing behind one does not.
        self._check("record_event", self.rt.record_event(self.probes[event.queue], event.queue))

    # Times

    def begin(self) -> None:
        self.enter()
        for queue in self.queues:
            self.stamps[queue].clear()
            self.settled[queue] = first = Stamp(self.record(queue), queue)
            assert first.event is not None
            self.synchronize(first.event)
            first.at = perf_counter_ns()
        self.began = perf_counter_ns()

    def stamp(self, queue: int) -> Stamp:
        stamp = Stamp(self.record(queue), queue)
        waiting = self.stamps[queue]
        waiting.append(stamp)
        if len(waiting) > _STAMPS:
            self._settle(queue)
        return stamp

    def _settle(self, queue: int) -> None:
        """Ask for the time of a stream's oldest stamp, from the one before: floats are precise over short times."""
        stamp, before = self.stamps[queue].popleft(), self.settled[queue]
        assert stamp.event is not None and before.event is not None
        self._enter()
        self._check("synchronize_event", self.rt.synchronize_event(stamp.event.handle))
        milliseconds, code = self.rt.event_elapsed_time(before.event.handle, stamp.event.handle)
        self._check("event_elapsed_time", code)
        stamp.at = before.at + round(milliseconds * 1e6)
        before.event = None
        self.settled[queue] = stamp

    def time(self, stamp: Stamp) -> int:
        while stamp.at == 0:
            self._settle(stamp.queue)
        return stamp.at - self.began

    # The end

    def close(self) -> None:
        """Release everything; what a stream that does not come to its end may still touch is left alone."""
        if self.closed:
            return
        self.closed = True
        rt = self.rt
        rt.set_context(self.context)
        stuck = {queue for queue in self.queues if _never_ends(rt, queue)}
        self.settled.clear()
        self.stamps.clear()
        for handle in () if stuck else self.events:
            rt.destroy_event(handle)
        for queue in self.queues:
            if queue not in stuck:
                rt.destroy_stream(queue)
        for address in () if stuck else self.blocks:
            rt.free(address)
        if self.device is not None:
            rt.reset_device(self.device)


def _never_ends(rt: Any, queue: int) -> bool:
    """Whether a stream is still at work after a while; its failures have been told."""
    wait: Callable[[int, int], int] = rt.synchronize_stream_with_timeout
    return bool(wait(queue, _DRAIN) == 507046)


def _free_host(rt: Any, context: int, address: int) -> None:
    """Free page-locked memory, from whatever thread drops the last array on it."""
    with suppress(Exception):
        before, code = rt.get_context()
        rt.set_context(context)
        rt.free_host(address)
        if code == _OK and before:
            rt.set_context(before)
