"""The buffers of a run as NumPy arrays: a ring is a list of slots, a version is a slot, a region is a view.

A buffer with a ``shape`` is an array of its dtype (``bfloat16``, which NumPy does not know, as ``uint16``), any other
one of bytes. Slots begin as zeros and live as long as the executor.
Invariant: a view never reaches outside its slot; a region that would is an :class:`OutsideError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import lcm

import numpy as np
from numpy.typing import NDArray

from dagsched.plan.access import access_text
from dagsched.plan.expressions import Expr, Int
from dagsched.plan.model import Access, Buffer, Mode
from dagsched.run.errors import refuse
from dagsched.run.numbers import as_number, offset_of

Array = NDArray[np.generic]
View = Callable[[int], Array]
"""The part of a buffer that an op touches in the iteration of its own loop."""

LONGEST_TABLE = 64
"""Views that repeat after at most so many iterations are made once and kept."""


class OutsideError(IndexError):
    """A region reaches outside its buffer in this iteration."""


def dtype_of(buffer: Buffer) -> np.dtype[np.generic]:
    """The element type that functions see."""
    if buffer.shape is None or buffer.dtype is None:
        return np.dtype(np.uint8)
    return np.dtype("uint16" if buffer.dtype == "bfloat16" else buffer.dtype)


class Storage:
    """All slots of one buffer: ``slots`` as functions see them, ``used`` the actual shape of each (dynamic buffers)."""

    def __init__(self, buffer: Buffer, make: Callable[..., Array] = np.zeros) -> None:
        self.buffer = buffer
        self.depth = buffer.ring.depth or 1
        shape = buffer.extents
        dtype = dtype_of(buffer)
        self.slots: list[Array] = [make(shape, dtype) for _ in range(self.depth)]
        self.read_only = [_read_only(slot) for slot in self.slots]
        self.used: list[tuple[int, ...]] = [shape] * self.depth
        self.filled = False  # whether somebody gave an `input: true` buffer its contents

    def put(self, value: object, source: str) -> None:
        """Give every slot (or, with one axis more, each slot its own) contents; raises :class:`UsageError` (R110).

        An array of the buffer's shape is converted to its dtype where that is of the same kind; bytes of the
        buffer's size are taken as they are; what a dynamic buffer gets is what is in use of it.
        """
        try:
            array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
            if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
                raise ValueError("some of its elements are masked")
        except (TypeError, ValueError) as error:
            shape = list(self.buffer.extents)
            headline = f"`{source}` is no array for buffer `{self.buffer.name}`: {error}"
            raise refuse("R110", headline, help=f"give an array of shape {shape}") from error
        apart = self.depth > 1 and array.ndim == len(self.buffer.extents) + 1 and array.shape[0] == self.depth
        for slot in range(self.depth):
            self._put_slot(slot, array[slot] if apart else array, source)
        self.filled = True

    def _put_slot(self, slot: int, array: Array, source: str) -> None:
        target = self.slots[slot]
        kind = np.can_cast(array.dtype, target.dtype, "same_kind")
        if kind and self.buffer.dynamic and self.fits(array.shape):
            self.used[slot] = array.shape
            np.copyto(self.actual(slot), array, casting="same_kind")
        elif kind and array.shape == target.shape:
            np.copyto(target, array, casting="same_kind")
        elif array.nbytes == target.nbytes and np.uint8 in (array.dtype, target.dtype):
            copied = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            np.copyto(target.reshape(-1).view(np.uint8), copied)
        else:
            wanted = f"shape {list(target.shape)} and dtype {target.dtype}"
            raise refuse(
                "R110",
                f"`{source}` has shape {list(array.shape)} and dtype {array.dtype}, and buffer `{self.buffer.name}` "
                f"has {wanted}",
                help=f"give an array of {wanted}",
            )

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape is within the capacity of a dynamic buffer."""
        return int(np.prod(shape, dtype=np.int64)) <= self.slots[0].size

    def actual(self, slot: int) -> Array:
        """What a slot of a dynamic buffer holds."""
        shape = self.used[slot]
        return self.slots[slot].reshape(-1)[: int(np.prod(shape, dtype=np.int64))].reshape(shape)


class Room:
    """A dynamic buffer that a function writes: ``room.take(shape)`` says how much of it this iteration uses.

    A function that never calls it uses the whole ``capacity`` (a shape, like that of ``room.all``).
    """

    __slots__ = ("_slot", "_storage", "all", "capacity")

    def __init__(self, storage: Storage, slot: int) -> None:
        self._storage = storage
        self._slot = slot
        self.all: Array = storage.slots[slot]
        self.capacity = storage.buffer.extents
        storage.used[slot] = self.capacity

    def take(self, shape: int | tuple[int, ...]) -> Array:
        """The array to write, of that shape; raises :class:`ValueError` where the buffer is smaller."""
        wanted = (shape,) if isinstance(shape, int) else tuple(shape)
        if min(wanted, default=0) < 0 or not self._storage.fits(wanted):
            capacity = list(self.capacity)
            raise ValueError(f"shape {list(wanted)} does not fit into `{self._storage.buffer.name}` of {capacity}")
        self._storage.used[self._slot] = wanted
        return self._storage.actual(self._slot)


def _read_only(array: Array) -> Array:
    view = array[...]
    view.flags.writeable = False
    return view


def allocate(buffers: Mapping[str, Buffer]) -> dict[str, Storage]:
    """Storage for all buffers; raises :class:`UsageError` (R111) where memory does not suffice."""
    try:
        return {name: Storage(buffer) for name, buffer in buffers.items()}
    except MemoryError:
        total = sum(buffer.size * (buffer.ring.depth or 1) for buffer in buffers.values())
        headline = f"the buffers take {total:,} bytes, and this machine does not have so much memory"
        raise refuse("R111", headline, help="use shorter rings or smaller buffers") from None


def slot_of(access: Access, storage: Storage, index: str | None, params: Mapping[str, int]) -> Callable[[int], int]:
    """The slot that an access means, for each iteration."""
    depth = storage.depth
    if depth == 1:
        return lambda i: 0
    version = as_number(access.version or Int(0), index, params)
    return lambda i: version(i) % depth


def period_of(access: Access, storage: Storage, index: str | None) -> int | None:
    """After how many iterations an access touches the same bytes again; None where it never does, or not evenly."""
    if storage.buffer.dynamic or any(not _constant(bound) for part in access.region for bound in (part.lo, part.hi)):
        return None
    if storage.depth == 1 or isinstance(access.version or Int(0), Int):
        return 1
    return storage.depth if offset_of(access.version, index) is not None else None


def _constant(bound: Expr | None) -> bool:
    return bound is None or isinstance(bound, Int)


def view_of(
    access: Access, storage: Storage, index: str | None, params: Mapping[str, int], *, write: bool | None = None
) -> View:
    """The array that an access means, for each iteration; read-only where the op only reads.

    A dynamic buffer yields the part in use, or its :class:`Room` where the op (over)writes it.
    """
    slot = slot_of(access, storage, index, params)
    changes = access.mode.writes if write is None else write
    arrays = storage.slots if changes else storage.read_only
    if storage.buffer.dynamic:
        if access.mode is Mode.WRITE and write is None:
            return lambda i: Room(storage, slot(i))  # type: ignore[return-value]
        if changes:
            return lambda i: storage.actual(slot(i))
        return lambda i: _read_only(storage.actual(slot(i)))
    if not access.region:
        if storage.depth == 1:
            only = arrays[0]
            return lambda i: only
        return lambda i: arrays[slot(i)]
    box = box_of(access, storage.buffer, index, params)
    return lambda i: arrays[slot(i)][box(i)]


def box_of(
    access: Access, buffer: Buffer, index: str | None, params: Mapping[str, int]
) -> Callable[[int], tuple[slice, ...]]:
    """The slices of a region, checked, for each iteration."""
    bounds = [
        (
            as_number(part.lo if part.lo is not None else Int(0), index, params),
            as_number(part.hi if part.hi is not None else Int(extent), index, params),
            extent,
        )
        for part, extent in zip(access.region, buffer.extents, strict=False)
    ]

    def box(i: int) -> tuple[slice, ...]:
        found = []
        for lo, hi, extent in bounds:
            low, high = lo(i), hi(i)
            if not 0 <= low < high <= extent:
                text = access_text(access)
                raise OutsideError(f"`{text}` is [{low}:{high}] here, and the axis has {extent} elements")
            found.append(slice(low, high))
        return tuple(found)

    return box


def common_period(periods: list[int | None]) -> int | None:
    """After how many iterations several accesses repeat together, if that is soon."""
    known = [period for period in periods if period is not None]
    if len(known) < len(periods):
        return None
    together = lcm(*known)
    return together if together <= LONGEST_TABLE else None


def bytes_of(array: Array) -> NDArray[np.uint8]:
    """The same memory as bytes, with one axis more (the bytes of an element)."""
    if array.dtype == np.uint8:
        return array[..., np.newaxis]  # type: ignore[return-value]
    return array[..., np.newaxis].view(np.uint8)
