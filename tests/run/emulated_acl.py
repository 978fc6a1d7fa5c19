"""Kernels for backend ``acl`` on the emulator: Python functions on arrays over device memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from dagsched.run.acl_device import DeviceView


def array_of(acl: Any, view: Any, writes: bool) -> Any:
    """In a kernel: the elements of device memory; host arrays as they are."""
    if not isinstance(view, DeviceView):
        return view
    span = view.dtype.itemsize + sum((n - 1) * step for n, step in zip(view.shape, view.strides, strict=True))
    memory: Any = (ctypes.c_uint8 * span).from_address(acl.emulator.device(view.address))
    array: Any = np.ndarray(view.shape, view.dtype, memory, strides=view.strides)
    array.flags.writeable = writes
    return array


def as_kernel(acl: Any, function: Callable[..., Any], modes: list[bool]) -> Any:
    """The NumPy function as a kernel that is enqueued on the stream that it is given."""

    def enqueue(*views: Any, stream: int, i: Any = None, j: Any = None) -> Any:
        def kernel() -> None:
            arrays = [array_of(acl, view, writes) for view, writes in zip(views, modes, strict=True)]
            function(*arrays, i=i, **({} if j is None else {"j": j}))

        return acl.emulator.launch(stream, kernel)

    return enqueue
