"""Runs a plan on backend ``cpu`` with functions that mix bytes, and says what the plan's sequential meaning would be.

The functions are those of ``tests/emit/sequential.py``: what they write depends on all that they read, on the iteration
and on their name, so that a view of the wrong slot, or an op that starts too early, shows in the contents.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from dagsched.compiled import Compiled
from dagsched.emit.functions import name_parameters
from dagsched.plan.model import Mode, Op, OpKind, Plan
from dagsched.run.storage import Room
from tests.emit.sequential import MASK, Sequential, fnv, input_bytes, size_of, splitmix

Log = list[tuple[str, tuple[int, ...], int]]


class Functions:
    """A plan's functions, by name; ``pause`` sleeps a random time before and within each call."""

    def __init__(self, plan: Plan, seed: int | None) -> None:
        self.log: Log = []
        self.lock = threading.Lock()
        self.random = None if seed is None else Random(seed)
        self.functions: dict[str, Callable[..., Any]] = {}
        ops: dict[str, Op] = {}
        for op in plan.ops():
            if op.kind in (OpKind.COMPUTE, OpKind.HOST):
                ops.setdefault(op.function or op.name, op)
        for name, op in ops.items():
            self.functions[name] = self.function(plan, name, op)

    def pause(self) -> None:
        if self.random is not None:
            with self.lock:
                pause = self.random.choice([0.0, 0.0, 0.0, 0.0001, 0.0004])
            if pause:
                time.sleep(pause)

    def function(self, plan: Plan, name: str, op: Op) -> Callable[..., Any]:
        modes = {parameter: access.mode for parameter, access in zip(name_parameters(op), op.accesses, strict=True)}
        buffers = dict(zip(modes, (access.buffer for access in op.accesses), strict=True))

        def call(views: tuple[Any, ...], indices: list[int]) -> None:
            self.pause()
            given = dict(zip(modes, views, strict=True))
            mix = fnv(name.encode())
            for value in indices:
                mix = (mix * 31 + value) & MASK
            for parameter, view in given.items():
                if isinstance(view, Room):
                    capacity = int(np.prod(view.capacity))
                    given[parameter] = view.take(size_of(buffers[parameter], indices[0] if indices else 0, capacity))
            for parameter, mode in modes.items():
                assert given[parameter].flags.writeable == mode.writes
                if mode in (Mode.READ, Mode.UPDATE):
                    mix = (mix + fnv(given[parameter].tobytes(), fnv(parameter.encode()))) & MASK
            self.pause()
            if op.kind is OpKind.HOST:
                with self.lock:
                    self.log.append((name, tuple(indices), mix))
            for parameter, mode in modes.items():
                if mode.writes:
                    view = given[parameter]
                    start = mix + fnv(parameter.encode())
                    new = [splitmix((start + n) & MASK) & 0xFF for n in range(view.nbytes)]
                    values = np.array(new, np.uint8).view(view.dtype).reshape(view.shape)
                    if mode is Mode.ACCUMULATE:
                        old = view.copy()
                        self.pause()
                        values = old + values
                    view[...] = values

        inner = [index for index, _ in op.indices]
        source = f"def function(*views, {', '.join(f'{index}=None' for index in ['i', *inner])}):\n"
        source += f"    call(views, [x for x in ({', '.join(['i', *inner])},) if x is not None])\n"
        scope: dict[str, Any] = {"call": call}
        exec(source, scope)
        made: Callable[..., Any] = scope["function"]
        return made


def inputs_of(plan: Plan) -> dict[str, Any]:
    """Contents for every input, the same in every slot."""
    return {
        buffer.name: np.frombuffer(input_bytes(buffer.name, buffer.size), np.uint8)
        for buffer in plan.buffers.values()
        if buffer.input
    }


def require_meaning(compiled: Compiled, counts: dict[str, int], log: Log, outputs: dict[str, Any]) -> None:
    """The host functions saw, and the outputs hold, what the plan means."""
    meaning = Sequential(compiled.plan, counts)
    assert sorted(log) == sorted(meaning.log)
    for buffer in compiled.resolved.buffers.values():
        final = meaning.final(buffer.name, buffer.ring.depth or 1)
        if buffer.output and final is not None:
            found = outputs[buffer.name].tobytes()  # bytes that nothing wrote: 0 here, 0xA5 there
            wanted = bytes(0 if old == 0xA5 and new == 0 else old for old, new in zip(final[1], found, strict=True))
            assert found == wanted, f"{buffer.name} for {counts}"
