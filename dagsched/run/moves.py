"""Copies and fills on NumPy arrays. Both let other threads run while they move more than a few hundred bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dagsched.run.storage import Array, Storage, View, bytes_of


def copier(source: View, target: View, constant: int | None) -> Callable[[int], None]:
    """A function that copies in iteration i; the views repeat after ``constant`` iterations, if at all."""
    if constant is None:
        return lambda i: copy_bytes(target(i), source(i))
    pairs = [_matched(target(i), source(i)) for i in range(constant)]
    copyto = np.copyto
    if any(pair is None for pair in pairs):
        return lambda i: copy_bytes(target(i), source(i))
    table = [pair for pair in pairs if pair is not None]
    if constant == 1:
        to, from_ = table[0]
        return lambda i: copyto(to, from_)

    def copy(i: int) -> None:
        to, from_ = table[i % constant]
        copyto(to, from_)

    return copy


def _matched(target: Array, source: Array) -> tuple[Array, Array] | None:
    """The two as arrays of one type and shape, so that copying is one call; None where that takes a buffer between."""
    if target.dtype == source.dtype and target.shape == source.shape:
        return target, source
    if target.flags.c_contiguous and source.flags.c_contiguous and target.nbytes == source.nbytes:
        return target.reshape(-1).view(np.uint8), source.reshape(-1).view(np.uint8)
    return None


def copy_bytes(target: Array, source: Array) -> None:
    """Copy between regions of equal size in bytes, whatever their shapes and types, in row-major order."""
    matched = _matched(target, source)
    if matched is not None:
        np.copyto(*matched)
        return
    to, from_ = bytes_of(target), bytes_of(source)
    if to.size != from_.size:
        raise ValueError(f"the copy is from {from_.size:,} bytes to {to.size:,}")
    np.copyto(to, np.ascontiguousarray(from_).reshape(to.shape))


def move_dynamic(
    source: Storage, source_slot: Callable[[int], int], target: Storage, target_slot: Callable[[int], int]
) -> Callable[[int], None]:
    """Copy of a buffer whose size varies: as much as is in use, which is then in use in the target."""

    def move(i: int) -> None:
        from_ = source.actual(source_slot(i))
        slot = target_slot(i)
        if from_.nbytes > target.slots[slot].nbytes:
            raise ValueError(f"{from_.nbytes:,} bytes do not fit into `{target.buffer.name}`")
        if target.buffer.dynamic:
            same = target.slots[slot].itemsize == from_.itemsize
            target.used[slot] = from_.shape if same else (from_.nbytes // target.slots[slot].itemsize,)
            copy_bytes(target.actual(slot), from_)
        else:
            flat = target.slots[slot].reshape(-1).view(np.uint8)
            copy_bytes(flat[: from_.nbytes], from_)

    return move


def filler(target: View, value: int) -> Callable[[int], None]:
    """A function that sets every byte."""

    def fill(i: int) -> None:
        array = target(i)
        if array.flags.c_contiguous:
            array.reshape(-1).view(np.uint8).fill(value)
        else:
            bytes_of(array)[...] = value

    return fill
