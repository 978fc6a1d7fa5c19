"""A stand-in for what backend ``torch`` uses of PyTorch: tensors on NumPy, streams that are threads, events.

What is enqueued on a stream runs later, after a random pause, in order; ``wait_event`` holds a stream back until the
event's record has run. It says nothing of PyTorch itself: it is written after its documentation, and the backend's own
logic is all that it tests. ``calls`` records what was called.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np


class Tensor:
    def __init__(self, array: Any, kind: str = "cpu") -> None:
        self.array = array
        self.kind = kind

    def numpy(self) -> Any:
        return self.array

    def as_strided(self, shape: Any, strides: Any, offset: int) -> Tensor:
        flat = self.array.reshape(-1)[offset:]
        step = self.array.itemsize
        return Tensor(np.lib.stride_tricks.as_strided(flat, shape, [s * step for s in strides]), self.kind)

    def reshape(self, shape: Any) -> Tensor:
        return Tensor(self.array.reshape(shape), self.kind)

    def view(self, dtype: Any) -> Tensor:
        return Tensor(self.array.view(dtype), self.kind)

    def __getitem__(self, part: Any) -> Tensor:
        return Tensor(self.array[part], self.kind)

    def copy_(self, source: Tensor, non_blocking: bool) -> None:
        assert non_blocking
        enqueue(lambda: np.copyto(self.array, source.array))

    def fill_(self, value: int) -> None:
        enqueue(lambda: self.array.fill(value))


_local = threading.local()


def enqueue(work: Callable[[], None]) -> None:
    """What an asynchronous operator does."""
    _local.stream.give(work)


class Event:
    def __init__(self, enable_timing: bool = False) -> None:
        self.timing = enable_timing
        self.happened = threading.Event()
        self.at = 0.0

    def record(self, stream: Stream) -> None:
        def happen() -> None:
            self.at = time.perf_counter()
            self.happened.set()

        stream.give(happen)

    def synchronize(self) -> None:
        self.happened.wait()

    def elapsed_time(self, other: Event) -> float:
        assert self.timing and other.timing and self.happened.is_set() and other.happened.is_set()
        return (other.at - self.at) * 1e3


class Stream:
    everyone: ClassVar[list[Stream]] = []

    def __init__(self, priority: int = 0) -> None:
        self.work: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self.random = random.Random(len(Stream.everyone))
        Stream.everyone.append(self)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while (work := self.work.get()) is not None:
            pause = self.random.choice([0, 0, 0.0005])
            if pause:
                time.sleep(pause)
            work()

    def give(self, work: Callable[[], None]) -> None:
        self.work.put(work)

    def wait_event(self, event: Event) -> None:
        self.give(event.synchronize)

    def synchronize(self) -> None:
        event = Event()
        event.record(self)
        event.synchronize()


class Accelerator:
    Stream = Stream
    Event = Event

    def __init__(self, available: bool = True) -> None:
        self.available = available
        self.default = Stream()

    def is_available(self) -> bool:
        return self.available

    def current_stream(self) -> Any:
        return getattr(_local, "stream", self.default)

    def synchronize(self) -> None:
        for stream in Stream.everyone:
            stream.synchronize()

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        before, _local.stream = self.current_stream(), stream
        try:
            yield
        finally:
            _local.stream = before


class Torch:
    """The module."""

    def __init__(self, **kinds: bool) -> None:
        for kind, available in kinds.items():
            setattr(self, kind, Accelerator(available))
        self.bfloat16 = np.dtype([("bfloat16", "uint16")])
        for name in ("uint8", "uint16", "int64", "float32", "float16", "int32"):
            setattr(self, name, np.dtype(name))

    def zeros(self, shape: Any, dtype: Any, device: str = "cpu", pin_memory: bool = False) -> Tensor:
        return Tensor(np.zeros(shape, dtype), device)

    def from_numpy(self, array: Any) -> Tensor:
        return Tensor(array)
