"""What a generated Python driver does: hooks that mix what they read into what they write, and a run around them.

Kernels and host functions do on NumPy what ``hooks.hpp`` does in C++, so that one sequential meaning (``meaning.py``)
judges both. The emitted module is used as it is; only its functions ``call`` and ``create``, through which all of its
calls go, are told to note for the emulator whose call it is.

Invariant: a hook touches exactly the bytes of its views, and tells the trace of each of them.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy

from dagsched.emulator.meaning import MASK, Bytes, digest_of, key_of, size_of, stream_of

__all__ = ["Block", "compute", "drive", "host", "size_of"]

INVALID_PARAM = 100000
MODES = {"read": 0, "write": 1, "update": 2, "accumulate": 3}
"""What the emulator calls them."""

Part = tuple[str, Any, str]
"""A parameter: its name, its view, and how it is accessed."""

_adding = threading.Lock()


@dataclass(frozen=True, slots=True)
class Block:
    """A buffer of the pipeline; ``accessor`` is the method that yields its view, for inputs and outputs."""

    name: str
    size: int
    slots: int = 1
    accessor: str | None = None
    input: bool = False
    output: bool = False
    pageable: bool = False


def compute(function: str, indices: tuple[int, ...], parts: Sequence[Part], stream: int) -> int:
    """Launch a kernel that mixes; returns the runtime's code."""
    emulator = _emulator()
    return int(emulator.launch(stream, lambda: _mix(function, indices, parts, emulator.device, log=False), function))


def host(function: str, indices: tuple[int, ...], parts: Sequence[Part]) -> None:
    """Mix at once, and log what was seen."""
    _mix(function, indices, parts, lambda address: address, log=True)


def drive(plan: Any, hooks: Any, folder: str, counts: Mapping[str, int], blocks: Sequence[Block]) -> int:
    """Run the pipeline once, save every block's contents into the folder, and print how it went as JSON."""
    acl = import_module("acl")
    emulator = acl.emulator
    note_ops(plan)
    acl.init()
    acl.rt.set_device(0)
    code, failure = 0, ""
    try:
        with plan.Pipeline() as pipeline:
            emulator.note("", -1)
            _fill(pipeline, blocks)
            pipeline.run(hooks, **counts)
            emulator.note("", -1)
            _save(pipeline, blocks, Path(folder))
    except plan.PipelineError as error:
        code, failure = error.code, str(error)
    except ValueError as error:  # a count that the pipeline refuses
        code, failure = INVALID_PARAM, str(error)
    alive = emulator.alive()
    acl.rt.reset_device(0)
    acl.finalize()
    answer = {"code": code, "failure": failure, "alive": alive, "complaints": emulator.complaints()}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def note_ops(plan: Any) -> None:
    """Let traces, faults and reports use the plan's names."""
    emulator = _emulator()

    def noting(function: Callable[..., Any], iteration_of: Callable[..., int | None]) -> Callable[..., Any]:
        @wraps(function)
        def noted(*arguments: Any) -> Any:
            iteration = iteration_of(*arguments)
            emulator.note(arguments[0], -1 if iteration is None else iteration)
            return function(*arguments)

        return noted

    plan.call = noting(plan.call, lambda _op, iteration, *_: iteration)
    plan.create = noting(plan.create, lambda *_: None)


def _emulator() -> Any:
    return import_module("acl").emulator  # not ours to import: the process may have another


def _fill(pipeline: Any, blocks: Sequence[Block]) -> None:
    for block in blocks:
        if block.input and block.accessor:
            data = stream_of(key_of(block.name), block.size).tobytes()
            for slot in range(block.slots):
                view = getattr(pipeline, block.accessor)(slot)
                _emulator().set(view.address, data, f"fill {block.name}")


def _save(pipeline: Any, blocks: Sequence[Block], folder: Path) -> None:
    """Outputs as the host reads them; other blocks as they are, save pageable ones, which only the program knows."""
    emulator = _emulator()
    for number, block in enumerate(blocks):
        for slot in range(block.slots):
            data: bytes | None = None
            if block.output and block.accessor:
                view = getattr(pipeline, block.accessor)(slot)
                data = emulator.get(view.address, view.nbytes, f"read {block.name}")
            elif not block.pageable:
                data = emulator.contents(block.name, slot, block.size)
            if data is not None:
                (folder / f"{number}.{slot}").write_bytes(data)


def _mix(
    function: str, indices: tuple[int, ...], parts: Sequence[Part], place: Callable[[int], int], *, log: bool
) -> None:
    emulator = _emulator()
    mix = key_of(function)
    for index in indices:
        mix = (mix * 31 + index) & MASK
    for name, view, mode in parts:
        if mode in ("read", "update"):
            mix = (mix + digest_of(_read(view, mode, place), key_of(name))) & MASK
    emulator.breathe()
    if log:
        emulator.log(" ".join(map(str, (function, *indices, mix))))
    for name, view, mode in parts:
        if mode != "read":
            _write(view, mode, place, (mix + key_of(name)) & MASK)


def _runs(view: Any) -> list[tuple[int, int]]:
    """The contiguous parts of a view: address and size."""
    if not hasattr(view, "run"):
        return [(view.address, view.nbytes)]
    starts = [view.address]
    for count, stride in zip(view.count, view.stride, strict=True):
        starts = [start + n * stride for start in starts for n in range(count)]
    return [(start, view.run) for start in starts]


def _bytes_at(address: int, size: int) -> Bytes:
    return numpy.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _read(view: Any, mode: str, place: Callable[[int], int]) -> Bytes:
    found = []
    for address, size in _runs(view):
        _emulator().access(address, size, MODES[mode])
        found.append(_bytes_at(place(address), size))
    return numpy.concatenate(found) if len(found) != 1 else found[0]


def _write(view: Any, mode: str, place: Callable[[int], int], start: int) -> None:
    """In two halves, between which other streams may make their steps; sums in one, and one after another."""
    emulator = _emulator()
    runs = _runs(view)
    add = mode == "accumulate"
    values = stream_of(start, sum(size for _, size in runs))
    done = 0
    with _adding if add else nullcontext():
        for number, (address, size) in enumerate(runs):
            if mode != "update":
                emulator.access(address, size, MODES[mode])
            target, part = _bytes_at(place(address), size), values[done : done + size]
            done += size
            if add:
                target += part
                continue
            half = size // 2
            target[:half] = part[:half]
            if number == len(runs) // 2:
                emulator.breathe()
            target[half:] = part[half:]
