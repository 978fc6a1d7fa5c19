"""The meaning of a plan as written: its ops executed one after another, on plain bytes.

The oracle for emitted programs. It knows nothing of rings that the compiler picks, of streams or of schedules.
Functions mix their inputs into their outputs; the generated hooks in ``driver.py`` do the same in C++.
"""

from __future__ import annotations

from itertools import product
from math import prod

from dagsched.emit.functions import name_parameters
from dagsched.plan.expressions import Int, evaluate
from dagsched.plan.model import Access, Buffer, Loop, Mode, Op, OpKind, Plan

MASK = 2**64 - 1


def fnv(data: bytes, start: int = 0xCBF29CE484222325) -> int:
    """FNV-1a, 64 bits."""
    value = start
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def splitmix(value: int) -> int:
    """One step of SplitMix64."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def input_bytes(buffer: str, size: int) -> bytes:
    """What the driver fills every slot of an input with."""
    key = fnv(buffer.encode())
    return bytes(splitmix(key + n) & 0xFF for n in range(size))


def size_of(buffer: str, index: int, capacity: int) -> int:
    """The actual size that the generated hooks give a dynamic buffer."""
    return 1 + (fnv(buffer.encode()) + 37 * index) % capacity


class Sequential:
    """Executes a plan for given counts; ``memory`` and ``log`` are the result."""

    def __init__(self, plan: Plan, counts: dict[str, int], phases: dict[str, int] | None = None) -> None:
        self.plan, self.counts = plan, counts
        self.phases = phases or {}  # functions that are told their iteration modulo something
        self.versioned = {a.buffer for op in plan.ops() for a in op.accesses if a.version is not None}
        self.memory: dict[tuple[str, int], bytearray] = {}
        self.used: dict[tuple[str, int], int] = {}
        self.newest: dict[str, int] = {}
        self.last: dict[str, int] = {}  # the iteration of the last write, wherever the plan keeps the version
        self.log: list[tuple[str, tuple[int, ...], int]] = []
        for item in plan.items:
            self._item(item, {})

    def _item(self, item: Op | Loop, indices: dict[str, int]) -> None:
        if isinstance(item, Op):
            self._op(item, indices)
            return
        for value in range(evaluate(item.count, {**self.counts, **indices})):
            for inner in item.body:
                self._item(inner, {**indices, item.index: value})

    def _key(self, access: Access, indices: dict[str, int]) -> tuple[str, int]:
        if access.buffer not in self.versioned:
            return access.buffer, 0
        if access.version is not None:
            return access.buffer, evaluate(access.version, {**self.counts, **indices})
        return access.buffer, next(iter(indices.values()), self.newest.get(access.buffer, -1))

    def final(self, buffer: str, depth: int) -> tuple[int, bytes] | None:
        """The slot of a ring of that depth that holds a buffer's newest version, and its bytes; None: never written."""
        if buffer not in self.last:
            return None
        key = (buffer, self.newest[buffer])
        return self.last[buffer] % depth, bytes(self.memory[key][: self.used[key]])

    def block(self, key: tuple[str, int]) -> bytearray:
        """The bytes of one version."""
        buffer = self.plan.buffers[key[0]]
        if key not in self.memory:
            slot = key[1] % (buffer.ring.depth or 1)
            self.memory[key] = bytearray(
                input_bytes(buffer.name, buffer.size) if buffer.input else b"\xa5" * buffer.size
            )
            self.used[key] = size_of(buffer.name, slot, buffer.size) if buffer.input and buffer.dynamic else buffer.size
        return self.memory[key]

    def _places(self, access: Access, key: tuple[str, int], indices: dict[str, int]) -> list[int]:
        """Positions of the bytes of an access, in row-major order."""
        buffer: Buffer = self.plan.buffers[access.buffer]
        self.block(key)
        if buffer.dynamic:
            return list(range(self.used[key]))
        env = {**self.counts, **indices}
        ranges = []
        for axis, extent in enumerate(buffer.extents):
            part = access.region[axis] if axis < len(access.region) else None
            lo = evaluate((part and part.lo) or Int(0), env)
            hi = evaluate((part and part.hi) or Int(extent), env)
            ranges.append(range(lo, hi))
        strides = [prod(buffer.extents[axis + 1 :]) for axis in range(len(buffer.extents))]
        places: list[int] = []
        for point in product(*ranges):
            base = sum(x * stride for x, stride in zip(point, strides, strict=True)) * buffer.itemsize
            places += range(base, base + buffer.itemsize)
        return places

    def _op(self, op: Op, indices: dict[str, int]) -> None:
        keys = [self._key(access, indices) for access in op.accesses]
        if op.kind is OpKind.COPY:
            source, target = op.accesses
            data = [self.block(keys[0])[n] for n in self._places(source, keys[0], indices)]
            if self.plan.buffers[target.buffer].dynamic:
                self.block(keys[1])
                self.used[keys[1]] = len(data)
            for place, value in zip(self._places(target, keys[1], indices), data, strict=False):
                self.block(keys[1])[place] = value
        elif op.kind is OpKind.FILL:
            for place in self._places(op.accesses[0], keys[0], indices):
                self.block(keys[0])[place] = op.value
        else:
            self._call(op, keys, indices)
        for access, (name, version) in zip(op.accesses, keys, strict=True):
            if access.mode.writes:
                self.newest[name] = version
                self.last[name] = (
                    version if name in self.versioned else next(iter(indices.values()), self.last.get(name, -1))
                )

    def _call(self, op: Op, keys: list[tuple[str, int]], indices: dict[str, int]) -> None:
        assert op.function is not None
        mix = fnv(op.function.encode())
        told = list(indices.values())
        if op.function in self.phases and told:
            told[0] %= self.phases[op.function]
        for value in told:
            mix = (mix * 31 + value) & MASK
        names = name_parameters(op)
        for access, key in zip(op.accesses, keys, strict=True):
            buffer = self.plan.buffers[access.buffer]
            if access.mode is Mode.WRITE and buffer.dynamic:
                index = key[1] if access.buffer in self.versioned else next(iter(indices.values()), 0)
                self.block(key)
                self.used[key] = size_of(buffer.name, index, buffer.size)
        all_places = [self._places(access, key, indices) for access, key in zip(op.accesses, keys, strict=True)]
        for access, key, name, places in zip(op.accesses, keys, names, all_places, strict=True):
            if access.mode in (Mode.READ, Mode.UPDATE):
                data = bytes(self.block(key)[place] for place in places)
                mix = (mix + fnv(data, fnv(name.encode()))) & MASK
        if op.kind is OpKind.HOST:
            self.log.append((op.function, tuple(indices.values()), mix))
        for access, key, name, places in zip(op.accesses, keys, names, all_places, strict=True):
            if access.mode.writes:
                start = mix + fnv(name.encode())
                for n, place in enumerate(places):
                    value = splitmix((start + n) & MASK) & 0xFF
                    old = self.block(key)[place] if access.mode is Mode.ACCUMULATE else 0
                    self.block(key)[place] = (old + value) & 0xFF
