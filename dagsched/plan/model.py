"""The plan: buffers, ops and loops, as data.

A plan means what it does when its ops are executed one after another in the order written. Two forms share these
types: a plan *as written* (nested loops, rings to be chosen, names without versions) and a plan *resolved* by
``dagsched.plan.resolve``, in which loops hold ops only, every ring has a depth, and every access of a ring buffer
names its version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from typing import Any

from dagsched.diagnostics import Source, Where
from dagsched.plan.expressions import Expr

DTYPES: dict[str, int] = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes per element."""


class Place(StrEnum):
    HOST = "host"
    DEVICE = "device"


class Mode(StrEnum):
    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    ACCUMULATE = "accumulate"

    @property
    def reads(self) -> bool:
        """Whether the access depends on the old contents."""
        return self is not Mode.WRITE

    @property
    def writes(self) -> bool:
        """Whether the access changes the contents."""
        return self is not Mode.READ


class OpKind(StrEnum):
    COPY = "copy"
    COMPUTE = "compute"
    HOST = "host"
    FILL = "fill"


@dataclass(frozen=True, slots=True)
class Slice:
    """Half-open bounds on one axis; ``None`` means the axis's own end."""

    lo: Expr | None = None
    hi: Expr | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """What an op touches.

    ``version`` is ``None`` where the plan says just ``NAME``; ``region`` has one :class:`Slice` per leading axis, and
    is empty for the whole buffer. Bounds count bytes, or elements of each axis where the buffer has a ``shape``.
    """

    buffer: str
    mode: Mode
    version: Expr | None = None
    region: tuple[Slice, ...] = ()
    where: Where | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Ring:
    """How many slots a buffer has: ``depth``, or ``None`` for a depth that the compiler picks in [min, max]."""

    depth: int | None = 1
    min: int = 1
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A memory block of ``size`` bytes (per slot; the most it can hold where ``dynamic``)."""

    name: str
    place: Place
    size: int
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    ring: Ring = Ring()
    pageable: bool = False
    input: bool = False
    output: bool = False
    dynamic: bool = False
    where: Where | None = field(default=None, compare=False)

    @property
    def extents(self) -> tuple[int, ...]:
        """The length of each axis that a region can name: the shape in elements, or the size in bytes."""
        return self.shape if self.shape is not None else (self.size,)

    @property
    def itemsize(self) -> int:
        """Bytes per element of :attr:`extents` (1 where there is no shape)."""
        return self.size // prod(self.shape) if self.shape else 1


@dataclass(frozen=True, slots=True)
class After:
    """``after: [op]``: an order that no buffer shows.

    ``distance`` counts iterations back in a common loop (``op@i-1``: 1).
    """

    op: str
    distance: int = 0
    where: Where | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Work:
    """What a compute op does, from which a device's peaks give its time: operations, bytes of device memory moved.

    ``dtype`` is the type that it computes in, where the device's peak depends on that.
    """

    flop: float = 0.0
    bytes: int = 0
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Op:
    """One copy, compute, host or fill operation.

    A copy has exactly two accesses, the read first. ``function`` is the compute or host function's name, ``args`` maps
    its parameter names to buffers where they differ, ``value`` is a fill's byte, ``time`` is in seconds (or ``work``
    says from what it follows).
    ``indices`` holds the values of unrolled inner loops, outermost first.
    """

    name: str
    kind: OpKind
    accesses: tuple[Access, ...]
    function: str | None = None
    args: tuple[tuple[str, str], ...] = ()
    value: int = 0
    after: tuple[After, ...] = ()
    engine: str | None = None
    stream: str | None = None
    cores: int | None = None
    time: float | None = None
    work: Work | None = None
    priority: int | None = None
    indices: tuple[tuple[str, int], ...] = ()
    where: Where | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """``count`` runs of ``body`` with ``index`` = 0, 1, ...; the count may name parameters."""

    index: str
    count: Expr
    body: tuple[Op | Loop, ...]
    where: Where | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """``policy`` is ``auto``, ``engine``, ``concurrent`` or ``single``."""

    max: int | None = None
    policy: str = "auto"


@dataclass(frozen=True, slots=True)
class Memory:
    """The most bytes that all buffers of a place may take together; ``None``: no limit is known."""

    host: int | None = None
    device: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan. ``device`` is a profile's name or path, or an inline profile as plain data."""

    name: str
    buffers: dict[str, Buffer]
    items: tuple[Op | Loop, ...]
    device: str | dict[str, Any] = "ascend-910b"
    params: dict[str, int | None] = field(default_factory=dict)
    streams: StreamOptions = StreamOptions()
    memory: Memory = Memory()
    source: Source | None = field(default=None, compare=False)

    def ops(self) -> Iterator[Op]:
        """All ops in the order written, those in loops included."""
        stack = [iter(self.items)]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, Loop):
                stack.append(iter(item.body))
            else:
                yield item
