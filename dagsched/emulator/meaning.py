"""The meaning of a plan as written: its ops executed one after another, on plain bytes.

Functions mix what they read into what they write, as the hooks of ``hooks.hpp`` do, by words of eight bytes, so that
NumPy is quick enough for real sizes. Nothing here knows of rings that the compiler picks, of streams or of schedules.

Invariant: equal runs of the emitted program and of this give equal bytes wherever the plan defines them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

from dagsched.diagnostics import Diagnostic, UsageError
from dagsched.emit.functions import name_parameters
from dagsched.plan.access import access_text
from dagsched.plan.expressions import Int, Name, evaluate
from dagsched.plan.model import Access, Loop, Mode, Op, OpKind, Plan

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
CHUNK = 1 << 20
"""Words that are mixed at once."""

Bytes = NDArray[numpy.uint8]
Words = NDArray[numpy.uint64]
Key = tuple[str, int]


def key_of(text: str) -> int:
    """FNV-1a, 64 bits: a number for a name."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def mixed(value: int) -> int:
    """One step of SplitMix64."""
    value = (value + GOLDEN) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def _mixed_words(values: Words) -> Words:
    values = values + numpy.uint64(GOLDEN)
    values = (values ^ (values >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return values ^ (values >> numpy.uint64(31))


def digest_of(data: Bytes, start: int) -> int:
    """What a function makes of bytes that it reads."""
    padded = numpy.zeros((len(data) + 7) // 8 * 8, numpy.uint8)
    padded[: len(data)] = data
    words = padded.view("<u8")
    total = (start + mixed(len(data))) & MASK
    for first in range(0, len(words), CHUNK):
        part = words[first : first + CHUNK]
        places = numpy.arange(first + 1, first + 1 + len(part), dtype=numpy.uint64) * numpy.uint64(GOLDEN)
        total = (total + int(_mixed_words(part + places).sum(dtype=numpy.uint64))) & MASK
    return total


def stream_of(start: int, size: int) -> Bytes:
    """The bytes that a function writes."""
    words = numpy.empty((size + 7) // 8, numpy.uint64)
    for first in range(0, len(words), CHUNK):
        last = min(first + CHUNK, len(words))
        words[first:last] = _mixed_words(numpy.arange(first, last, dtype=numpy.uint64) + numpy.uint64(start))
    return words.astype("<u8").view(numpy.uint8)[:size]


def size_of(buffer: str, index: int, capacity: int) -> int:
    """How much of a dynamic buffer the generated hooks use."""
    return 1 + (key_of(buffer) + 37 * index & MASK) % capacity


@dataclass(slots=True)
class Block:
    """One version of a buffer; ``written`` marks what its newest iteration has written, ``used`` bytes hold data."""

    data: Bytes
    written: NDArray[numpy.bool_]
    used: int


@dataclass(slots=True)
class Meaning:
    """What executing a plan once comes to; ``log`` has every call of a host function with what it saw.

    In the n-th loop of the plan compute functions are told the iteration modulo ``phases[n]``, where that is given: so
    they are in loops that are captured in a graph.
    """

    plan: Plan
    counts: Mapping[str, int]
    memory: dict[Key, Block] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    versioned: frozenset[str] = frozenset()
    phases: Mapping[int, int] = field(default_factory=dict)
    phase: int | None = None


def execute(plan: Plan, counts: Mapping[str, int], phases: Mapping[int, int] | None = None) -> Meaning:
    """Execute a plan as written for given parameters, and phases of loops that are captured (see :class:`Meaning`).

    Raises :class:`UsageError` (R310) where these parameters let a region leave its buffer.
    """
    versioned = frozenset(a.buffer for op in plan.ops() for a in op.accesses if a.version is not None)
    meaning = Meaning(plan, counts, versioned=versioned, phases=phases or {})
    loops = 0
    with numpy.errstate(over="ignore"):
        for item in plan.items:
            meaning.phase = meaning.phases.get(loops) if isinstance(item, Loop) else None
            loops += isinstance(item, Loop)
            _item(meaning, item, {})
    return meaning


def final(meaning: Meaning, buffer: str, depth: int) -> tuple[int, Block] | None:
    """The slot of a ring of that depth that holds a buffer's newest version, and the version; None: never written."""
    if buffer not in meaning.last:
        return None
    return meaning.last[buffer] % depth, meaning.memory[buffer, meaning.newest[buffer]]


def _item(meaning: Meaning, item: Op | Loop, indices: dict[str, int]) -> None:
    if isinstance(item, Op):
        _op(meaning, item, indices)
        return
    for value in range(evaluate(item.count, {**meaning.counts, **indices})):
        for inner in item.body:
            _item(meaning, inner, {**indices, item.index: value})


def _key(meaning: Meaning, access: Access, indices: Mapping[str, int]) -> Key:
    if access.buffer not in meaning.versioned:
        return access.buffer, 0
    if access.version is not None:
        return access.buffer, evaluate(access.version, {**meaning.counts, **indices})
    return access.buffer, next(iter(indices.values()), meaning.newest.get(access.buffer, -1))


def _block(meaning: Meaning, key: Key) -> Block:
    block = meaning.memory.get(key)
    if block is None:
        buffer = meaning.plan.buffers[key[0]]
        data = numpy.full(buffer.size, 0xA5, numpy.uint8)
        used = buffer.size
        if buffer.input:
            data = stream_of(key_of(buffer.name), buffer.size).copy()
            if buffer.dynamic:
                used = size_of(buffer.name, key[1] % (buffer.ring.depth or 1), buffer.size)
        block = meaning.memory[key] = Block(data, numpy.zeros(buffer.size, numpy.bool_), used)
    return block


def _part(
    meaning: Meaning, access: Access, indices: Mapping[str, int], data: NDArray[numpy.generic], used: int
) -> NDArray[numpy.generic]:
    """The part of a block's bytes (or marks) that an access touches, as a view."""
    buffer = meaning.plan.buffers[access.buffer]
    if buffer.dynamic:
        return data[:used]
    env = {**meaning.counts, **indices}
    slices = []
    for axis, extent in enumerate(buffer.extents):
        part = access.region[axis] if axis < len(access.region) else None
        lo = evaluate((part and part.lo) or Int(0), env)
        hi = evaluate((part and part.hi) or Int(extent), env)
        slices.append(slice(lo, hi))
    return data.reshape((*buffer.extents, buffer.itemsize))[tuple(slices)]


def _get(meaning: Meaning, access: Access, key: Key, indices: Mapping[str, int]) -> Bytes:
    block = _block(meaning, key)
    part = _part(meaning, access, indices, block.data, block.used)
    return numpy.ascontiguousarray(part).reshape(-1).view(numpy.uint8)


def _put(meaning: Meaning, access: Access, key: Key, indices: Mapping[str, int], values: Bytes) -> None:
    block = _block(meaning, key)
    part = _part(meaning, access, indices, block.data, block.used)
    part[...] = values.reshape(-1)[: part.size].reshape(part.shape)
    _part(meaning, access, indices, block.written, block.used)[...] = True


def _check_regions(meaning: Meaning, op: Op, indices: Mapping[str, int]) -> None:
    """Refuse what an emitted program would refuse: a region that is empty, or leaves its buffer."""
    env = {**meaning.counts, **indices}
    for access in op.accesses:
        extents = meaning.plan.buffers[access.buffer].extents
        for part, extent in zip(access.region, extents, strict=False):
            lo, hi = evaluate(part.lo or Int(0), env), evaluate(part.hi or Int(extent), env)
            if 0 <= lo < hi <= extent:
                continue
            at = next(iter(indices.values()), None)
            place = op.name if at is None else f"{op.name}@{at}"
            what = "is empty" if lo >= hi else "leaves its buffer"
            given = ", ".join(f"{name} = {value}" for name, value in meaning.counts.items())
            headline = f"a region of `{place}` {what}{f' with {given}' if given else ''}"
            note = f"`{access_text(access)}` is [{lo}:{hi}] there, and the axis has {extent:,} elements"
            help_ = _fewer(meaning.plan, op, at)
            where, source = access.where or op.where, meaning.plan.source
            raise UsageError([Diagnostic("R310", headline, where, source, notes=(note,), help=help_)])


def _fewer(plan: Plan, op: Op, at: int | None) -> str:
    """The count with which an op's loop ends before an iteration, where a parameter says it."""
    counts = (loop.count for loop in plan.items if isinstance(loop, Loop) and any(op is inner for inner in loop.body))
    count = next(counts, None)
    if at and isinstance(count, Name):
        return f"write `--count {count.name}={at}`"
    return "run it with another `--count`"


def _op(meaning: Meaning, op: Op, indices: dict[str, int]) -> None:
    _check_regions(meaning, op, indices)
    keys = [_key(meaning, access, indices) for access in op.accesses]
    for access, (name, version) in zip(op.accesses, keys, strict=True):
        if access.mode.writes:
            _begin_write(meaning, name, version, indices)
    if op.kind is OpKind.COPY:
        source, target = op.accesses
        data = _get(meaning, source, keys[0], indices)
        if meaning.plan.buffers[target.buffer].dynamic:
            _block(meaning, keys[1]).used = len(data)
        _put(meaning, target, keys[1], indices, data)
    elif op.kind is OpKind.FILL:
        size = len(_get(meaning, op.accesses[0], keys[0], indices))
        _put(meaning, op.accesses[0], keys[0], indices, numpy.full(size, op.value, numpy.uint8))
    else:
        _call(meaning, op, keys, indices)


def _begin_write(meaning: Meaning, name: str, version: int, indices: Mapping[str, int]) -> None:
    turn = version if name in meaning.versioned else next(iter(indices.values()), meaning.last.get(name, -1))
    if meaning.last.get(name) != turn or meaning.newest.get(name) != version:
        _block(meaning, (name, version)).written[:] = False
    meaning.newest[name] = version
    meaning.last[name] = turn


def _call(meaning: Meaning, op: Op, keys: list[Key], indices: dict[str, int]) -> None:
    function = op.function or op.name
    mix = key_of(function)
    told = list(indices.values())
    if told and meaning.phase is not None and op.kind is OpKind.COMPUTE:
        told[0] %= meaning.phase
    for value in told:
        mix = (mix * 31 + value) & MASK
    names = name_parameters(op)
    parts = list(zip(op.accesses, keys, names, strict=True))
    for access, key, _ in parts:
        buffer = meaning.plan.buffers[access.buffer]
        if access.mode is Mode.WRITE and buffer.dynamic:
            index = key[1] if access.buffer in meaning.versioned else next(iter(indices.values()), 0)
            _block(meaning, key).used = size_of(buffer.name, index, buffer.size)
    for access, key, name in parts:
        if access.mode in (Mode.READ, Mode.UPDATE):
            mix = (mix + digest_of(_get(meaning, access, key, indices), key_of(name))) & MASK
    if op.kind is OpKind.HOST:
        meaning.log.append(" ".join(map(str, (function, *indices.values(), mix))))
    for access, key, name in parts:
        if not access.mode.writes:
            continue
        old = _get(meaning, access, key, indices)
        values = stream_of((mix + key_of(name)) & MASK, len(old))
        _put(meaning, access, key, indices, old + values if access.mode is Mode.ACCUMULATE else values)
