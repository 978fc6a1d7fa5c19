"""Backends with queues of a device: what they share, above a small *driver* that speaks to the runtime.

Every stream keeps its thread, which now issues. On a device stream ops are enqueued, a record is an event of the
device, and a wait is told to the queue; the thread itself only sleeps until the record that it waits for is issued.
Host streams run their functions in their threads, on host memory that the device can reach, and wait for events.

Device buffers have a *shadow*, a NumPy array that is never touched: slices of it say where a region lies.
Invariant: an event that is no longer kept has happened. A stream is never more than ``IN_FLIGHT`` records ahead of its
device, so that memory stays flat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dagsched.plan.model import Access, Op, OpKind, Place
from dagsched.run.backend import Call
from dagsched.run.cpu import Cpu, call_function, newest_versions
from dagsched.run.errors import refuse
from dagsched.run.functions import Plug
from dagsched.run.program import OpPoint, Program, StreamProgram
from dagsched.run.storage import Array, Storage, View, common_period, period_of, slot_of, view_of

if TYPE_CHECKING:
    from dagsched.run.board import Board

IN_FLIGHT = 64
"""Records of one kind that a stream may have issued beyond the last one that has happened."""


class Driver(Protocol):
    """What a runtime must be able to do. ``memory`` is one slot of a device buffer, offsets and sizes are bytes."""

    name: str
    handle: str
    """How functions call the queue that they are given."""

    def host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Zeroed host memory that the device can copy from and to without the host's help."""

    def memory(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Zeroed device memory for an array."""

    def view(self, memory: Any, queue: Any, shadow: Array, offset: int) -> Any:
        """What a function gets: the part of a slot that a slice of its shadow, ``offset`` bytes in, describes."""

    def host_view(self, array: Array) -> Any:
        """What a device function gets for host memory."""

    def bfloat16(self, view: Any) -> Any:
        """The same part with elements of ``bfloat16`` (it has ``uint16``), where the runtime knows that type."""

    def enter(self) -> None:
        """A thread that is no stream's is about to call."""

    def queue(self, stream: StreamProgram | None) -> Any:
        """A new in-order queue, for a stream or (None) for what comes before and after runs."""

    def around(self, queue: Any, call: Call) -> Call:
        """A compute function's call, with all that it expects of its surroundings."""

    def to_device(self, queue: Any, memory: Any, offset: int, source: NDArray[np.uint8]) -> None:
        """Enqueue a copy of contiguous host bytes."""

    def to_host(self, queue: Any, target: NDArray[np.uint8], memory: Any, offset: int) -> None:
        """Enqueue a copy into contiguous host bytes."""

    def on_device(self, queue: Any, target: Any, offset: int, source: Any, source_offset: int, size: int) -> None:
        """Enqueue a copy between device memories."""

    def fill(self, queue: Any, memory: Any, offset: int, size: int, value: int) -> None:
        """Enqueue setting bytes."""

    def record(self, queue: Any) -> Any:
        """An event behind all that the queue has been given."""

    def wait(self, queue: Any, event: Any) -> None:
        """Let what the queue is given from now on come after an event."""

    def synchronize(self, event: Any) -> None:
        """Sleep until an event has happened."""

    def stamp(self, queue: Any) -> Any:
        """What says later when the queue came so far; a run keeps very many."""

    def time(self, stamp: Any) -> int:
        """When a stamp's moment was, in nanoseconds since :meth:`begin`."""

    def begin(self) -> None:
        """A run begins: events' times count from here."""

    def finish(self, queue: Any) -> None:
        """Sleep until a queue has done all; raises what went wrong on the device."""

    def close(self) -> None:
        """Give everything back."""


class Queued(Cpu):
    """A backend over a driver; host ops are those of ``cpu``."""

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self.driver = driver
        self.name = driver.name
        self.handle = driver.handle
        self.queues: dict[int, Any] = {}
        self.memory: dict[str, list[Any]] = {}
        self.events: dict[int, dict[int, Any]] = {}
        self.owner: dict[int, int] = {}
        self.start = 0
        self.spare: Any = None

    def open(self, program: Program, board: Board, params: Mapping[str, int]) -> None:
        for buffer in program.plan.buffers.values():
            if buffer.dynamic:
                headline = f"backend `{self.name}` runs no buffers whose size varies, such as `{buffer.name}`"
                help_ = f"remove `dynamic: true` from `{buffer.name}`, or run on `cpu`"
                raise refuse("R140", headline, buffer.where, program.plan.source, help=help_)
        self.params, self.plan = params, program.plan
        driver = self.driver
        for name, buffer in program.plan.buffers.items():
            on_device = buffer.place is Place.DEVICE
            make = np.empty if on_device else np.zeros if buffer.pageable else driver.host_array
            store = self.storage[name] = Storage(buffer, make)
            if on_device:
                self.memory[name] = [driver.memory(slot.shape, slot.dtype) for slot in store.slots]
        self.queues = {
            stream.number: driver.queue(stream)
            for stream in program.streams
            if any(isinstance(p, OpPoint) and self._is_device_op(p.op) for _, points in stream.parts for p in points)
        }
        self.owner = {record.number: record.stream for record in program.records}
        self.owner |= {twin: self.owner[number] for number, twin in program.twins.items()}

    def put(self, inputs: Mapping[str, Any]) -> None:
        self.driver.enter()
        for name, value in inputs.items():
            store = self.storage[name]
            store.put(value, f'inputs["{name}"]')
            if name in self.memory:
                queue = self._any_queue()
                for slot, memory in zip(store.slots, self.memory[name], strict=True):
                    self.driver.to_device(queue, memory, 0, _flat(slot))
                self.driver.finish(queue)

    def outputs(self) -> dict[str, Any]:
        self.driver.enter()
        newest = newest_versions(self.plan, self.params)
        found = {}
        for name, store in self.storage.items():
            if store.buffer.output:
                slot = newest.get(name, 0) % store.depth
                array = np.empty_like(store.slots[slot])
                if name in self.memory:
                    queue = self._any_queue()
                    self.driver.to_host(queue, _flat(array), self.memory[name][slot], 0)
                    self.driver.finish(queue)
                else:
                    np.copyto(array, store.slots[slot])
                found[name] = array
        return found

    def begin(self) -> None:
        super().begin()
        self.events = {number: {} for number in self.owner}
        self.driver.begin()
        self.start = perf_counter_ns()

    def call(self, stream: StreamProgram, point: OpPoint, plug: Plug | None, take: Callable[[int], Any] | None) -> Call:
        queue = self.queues.get(stream.number)
        if queue is None or not self._is_device_op(point.op):
            call = super().call(stream, point, plug, take)
            return call if queue is None else self._behind(queue, call)
        index = point.loop.index if point.loop else None
        op = point.op
        if op.kind is OpKind.COPY:
            return self._copy(queue, op.accesses[0], op.accesses[1], index)
        if op.kind is OpKind.FILL:
            return self._fill(queue, op.accesses[0], op.value, index)
        assert plug is not None
        views = [self._view(queue, access, index) for access in op.accesses]
        period = common_period([period_of(a, self.storage[a.buffer], index) for a in op.accesses])
        return self.driver.around(queue, call_function(plug, views, period, take, queue))

    def look(self, buffers: tuple[str, ...], point: OpPoint) -> Call:
        for name in buffers:
            if name in self.memory:
                headline = f"`stream` cannot yield `{name}`, which is device memory on backend `{self.name}`"
                raise refuse("R108", headline, help="copy it to a host buffer, or name an op as `sink`")
        return super().look(buffers, point)

    def record(self, stream: StreamProgram, number: int) -> Callable[[int], None] | None:
        queue = self.queues.get(stream.number)
        if queue is None:
            return None
        make, synchronize = self.driver.record, self.driver.synchronize

        def record(i: int) -> None:
            events = self.events[number]
            events[i] = make(queue)
            while (oldest := next(iter(events))) <= i - IN_FLIGHT:
                synchronize(events.pop(oldest))

        return record

    def wait(self, stream: StreamProgram, number: int) -> Callable[[int], None] | None:
        if self.owner[number] not in self.queues:
            return None  # a host op has ended when its record is noted
        queue = self.queues.get(stream.number)
        driver = self.driver

        def wait(needed: int) -> None:
            event = self.events[number].get(needed)
            if event is None:
                return
            if queue is None:
                driver.synchronize(event)
            else:
                driver.wait(queue, event)

        return wait

    def stamp(self, stream: StreamProgram) -> Callable[[], Any] | None:
        """An event that says when the queue has come so far; None for host streams, whose clock is the host's."""
        queue = self.queues.get(stream.number)
        return None if queue is None else lambda: self.driver.stamp(queue)

    def time(self, stamp: Any) -> int:
        """A stamp on the host's clock, nanoseconds."""
        return self.start + self.driver.time(stamp)

    def finish(self, stream: StreamProgram) -> None:
        queue = self.queues.get(stream.number)
        if queue is not None:
            self.driver.finish(queue)

    def close(self) -> None:
        super().close()
        self.queues.clear()
        self.memory.clear()
        self.events.clear()
        self.driver.close()

    def _is_device_op(self, op: Op) -> bool:
        return op.kind is OpKind.COMPUTE or any(access.buffer in self.memory for access in op.accesses)

    def _behind(self, queue: Any, call: Call) -> Call:
        """A host op on a device stream: it comes after all that the queue has been given."""
        driver = self.driver

        def behind(i: int) -> object:
            driver.synchronize(driver.record(queue))
            return call(i)

        return behind

    def _any_queue(self) -> Any:
        """A queue for what comes before and after runs."""
        if self.spare is None:
            self.spare = self.driver.queue(None)
        return self.spare

    def _where(self, access: Access, index: str | None) -> Callable[[int], tuple[Any, Array, int]]:
        """For an iteration: the slot's memory (None on the host), the slice of the slot, and its offset in bytes."""
        store = self.storage[access.buffer]
        slot = slot_of(access, store, index, self.params)
        view = view_of(access, store, index, self.params, write=True)
        memory = self.memory.get(access.buffer)

        def where(i: int) -> tuple[Any, Array, int]:
            number, part = slot(i), view(i)
            offset = part.__array_interface__["data"][0] - store.slots[number].__array_interface__["data"][0]
            return (None if memory is None else memory[number]), part, offset

        return where

    def _view(self, queue: Any, access: Access, index: str | None) -> View:
        if self.plan.buffers[access.buffer].dtype == "bfloat16":
            bits, bfloat16 = self._plain_view(queue, access, index), self.driver.bfloat16
            return lambda i: bfloat16(bits(i))
        return self._plain_view(queue, access, index)

    def _plain_view(self, queue: Any, access: Access, index: str | None) -> View:
        if access.buffer not in self.memory:
            view = view_of(access, self.storage[access.buffer], index, self.params, write=access.mode.writes)
            host_view = self.driver.host_view
            return lambda i: host_view(view(i))
        where, driver = self._where(access, index), self.driver

        def device_view(i: int) -> Any:
            memory, part, offset = where(i)
            return driver.view(memory, queue, part, offset)

        return device_view

    def _copy(self, queue: Any, source: Access, target: Access, index: str | None) -> Call:
        from_, to = self._where(source, index), self._where(target, index)
        driver = self.driver

        def copy(i: int) -> None:
            memory, part, offset = from_(i)
            target_memory, target_part, target_offset = to(i)
            size, starts, target_starts = find_runs(part, target_part)
            for start, target_start in zip(starts, target_starts, strict=True):
                if memory is None:
                    driver.to_device(queue, target_memory, target_offset + target_start, _bytes_at(part, start, size))
                elif target_memory is None:
                    driver.to_host(queue, _bytes_at(target_part, target_start, size), memory, offset + start)
                else:
                    driver.on_device(queue, target_memory, target_offset + target_start, memory, offset + start, size)

        return copy

    def _fill(self, queue: Any, target: Access, value: int, index: str | None) -> Call:
        where, driver = self._where(target, index), self.driver

        def fill(i: int) -> None:
            memory, part, offset = where(i)
            size, starts, _ = find_runs(part, part)
            for start in starts:
                driver.fill(queue, memory, offset + start, size, value)

        return fill


def find_runs(a: Array, b: Array) -> tuple[int, list[int], list[int]]:
    """How two regions of equal size are copied: contiguous runs of so many bytes, and where they begin in both."""
    if a.nbytes != b.nbytes:
        raise ValueError(f"the copy is from {a.nbytes:,} bytes to {b.nbytes:,}")
    size = gcd(_run(a)[0], _run(b)[0])
    return size, _starts(a, size), _starts(b, size)


def _run(array: Array) -> tuple[int, int]:
    """Bytes that lie together from the beginning of a row on, and how many trailing axes these are."""
    run, axes = array.itemsize, 0
    for extent, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if extent != 1 and stride != run:
            break
        run, axes = run * extent, axes + 1
    return run, axes


def _starts(array: Array, size: int) -> list[int]:
    """Where runs of ``size`` bytes, which divides the region's own runs, begin in row-major order."""
    run, axes = _run(array)
    starts = np.zeros(1, np.int64)
    for axis in range(array.ndim - axes):
        steps = np.arange(array.shape[axis], dtype=np.int64) * array.strides[axis]
        starts = (starts[:, None] + steps).reshape(-1)
    within = np.arange(run // size, dtype=np.int64) * size
    return [int(start) for start in (starts[:, None] + within).reshape(-1)]


def _bytes_at(array: Array, start: int, size: int) -> NDArray[np.uint8]:
    """Contiguous bytes of host memory, ``start`` bytes behind an array's first element."""
    first = array[(slice(0, 1),) * array.ndim].reshape(-1).view(np.uint8)
    bytes_: NDArray[np.uint8] = np.lib.stride_tricks.as_strided(first, (start + size,), (1,))
    return bytes_[start:]


def _flat(array: Array) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)
