"""pyACL on the emulator: ``install()`` gives a process ``acl``; ``python -m dagsched.emulator.pyacl FILE`` runs one.

Conventions are pyACL's: pointers and handles are integers, functions that yield a value return ``(value, ret)``, others
``ret``. Beyond pyACL, ``acl.emulator`` has ``launch`` (a Python function as a kernel), ``device`` (where a kernel can
touch a device address), ``get`` and ``set`` (any memory, from the host), ``note`` and ``access`` (for the trace),
``contents``, ``breathe``, ``log``, ``seed``, ``inject``, ``leave_out``, ``alive``, ``trace`` and ``start_over``: the
functions of ``dagsched_emulator.h``.

Invariant: a Python function that the device still may call is kept alive until it has been called.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import runpy
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from dagsched.diagnostics import UsageError
from dagsched.emulator.build import build_emulator

I32, U32, I64, U64 = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
SIZE, POINTER = ctypes.c_size_t, ctypes.c_void_p
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, POINTER)
_CALLBACK = ctypes.CFUNCTYPE(None, POINTER)
KERNEL_RAISED = 507015
"""What a kernel that raises is to the device: ACL_ERROR_RT_AICORE_EXCEPTION."""

_PLAIN: dict[str, tuple[str, tuple[Any, ...]]] = {
    "set_device": ("aclrtSetDevice", (I32,)), "reset_device": ("aclrtResetDevice", (I32,)),
    "destroy_context": ("aclrtDestroyContext", (POINTER,)), "set_context": ("aclrtSetCurrentContext", (POINTER,)),
    "destroy_stream": ("aclrtDestroyStream", (POINTER,)), "synchronize_device": ("aclrtSynchronizeDevice", ()),
    "synchronize_stream": ("aclrtSynchronizeStream", (POINTER,)),
    "synchronize_stream_with_timeout": ("aclrtSynchronizeStreamWithTimeout", (POINTER, I32)),
    "set_stream_failure_mode": ("aclrtSetStreamFailureMode", (POINTER, U64)),
    "destroy_event": ("aclrtDestroyEvent", (POINTER,)), "record_event": ("aclrtRecordEvent", (POINTER, POINTER)),
    "stream_wait_event": ("aclrtStreamWaitEvent", (POINTER, POINTER)),
    "reset_event": ("aclrtResetEvent", (POINTER, POINTER)), "synchronize_event": ("aclrtSynchronizeEvent", (POINTER,)),
    "free": ("aclrtFree", (POINTER,)), "free_host": ("aclrtFreeHost", (POINTER,)),
    "memcpy": ("aclrtMemcpy", (POINTER, SIZE, POINTER, SIZE, I32)),
    "memcpy_async": ("aclrtMemcpyAsync", (POINTER, SIZE, POINTER, SIZE, I32, POINTER)),
    "memset": ("aclrtMemset", (POINTER, SIZE, I32, SIZE)),
    "memset_async": ("aclrtMemsetAsync", (POINTER, SIZE, I32, SIZE, POINTER)),
    "subscribe_report": ("aclrtSubscribeReport", (U64, POINTER)),
    "unsubscribe_report": ("aclrtUnSubscribeReport", (U64, POINTER)), "process_report": ("aclrtProcessReport", (I32,)),
}  # fmt: skip
"""Functions that return ``ret``: the C name and the types of the arguments."""

_YIELDING: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "get_device": ("aclrtGetDevice", I32, ()), "get_context": ("aclrtGetCurrentContext", POINTER, ()),
    "create_context": ("aclrtCreateContext", POINTER, (I32,)), "create_stream": ("aclrtCreateStream", POINTER, ()),
    "create_stream_with_config": ("aclrtCreateStreamWithConfig", POINTER, (U32, U32)),
    "create_event": ("aclrtCreateEvent", POINTER, ()),
    "create_event_with_flag": ("aclrtCreateEventWithFlag", POINTER, (U32,)),
    "create_event_ex_with_flag": ("aclrtCreateEventExWithFlag", POINTER, (U32,)),
    "malloc": ("aclrtMalloc", POINTER, (SIZE, I32)), "malloc_host": ("aclrtMallocHost", POINTER, (SIZE,)),
    "event_elapsed_time": ("aclrtEventElapsedTime", ctypes.c_float, (POINTER, POINTER)),
}  # fmt: skip
"""Functions that return ``(value, ret)``; C takes the value's place as its first argument."""

_ASKING = {
    "query_event_status": "aclrtQueryEventStatus", "query_event_wait_status": "aclrtQueryEventWaitStatus",
    "query_event": "aclrtQueryEvent", "stream_query": "aclrtStreamQuery",
}  # fmt: skip
"""Functions of one handle that return ``(status, ret)``."""


class _Runtime:
    """The library, and the Python functions that it has been given."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(build_emulator().path))
        self.library.aclGetRecentErrMsg.restype = ctypes.c_char_p
        self.library.dagsched_emulator_device.restype = POINTER
        self.kept: dict[int, tuple[Any, ...]] = {}
        self.numbers = itertools.count(1)
        self.threads: dict[int, threading.Thread] = {}
        self.released = _CALLBACK(lambda key: self.kept.pop(key or 0, None) and None)

    def plain(self, name: str, types: Sequence[Any]) -> Callable[..., int]:
        """A function that returns ``ret``."""
        function = self.library[name]
        function.argtypes = list(types)
        function.restype = I32

        def call(*arguments: Any) -> int:
            return int(function(*arguments))

        return call

    def yielding(self, name: str, value: Any, types: Sequence[Any]) -> Callable[..., tuple[Any, int]]:
        """A function that returns ``(value, ret)``."""
        function = self.library[name]
        function.argtypes = [ctypes.POINTER(value), *types]
        function.restype = I32

        def call(*arguments: Any) -> tuple[Any, int]:
            place = value()
            ret = int(function(ctypes.byref(place), *arguments))
            return (place.value or 0), ret

        return call

    def asking(self, name: str) -> Callable[[int], tuple[int, int]]:
        """A function that returns ``(status, ret)``."""
        function = self.library[name]
        function.argtypes = [POINTER, ctypes.POINTER(I32)]

        def call(handle: int) -> tuple[int, int]:
            status = I32()
            ret = int(function(handle, ctypes.byref(status)))
            return status.value, ret

        return call

    def launch(self, stream: int, kernel: Callable[[], object], name: str = "kernel") -> int:
        """Queue a Python function as a kernel; one that raises is an error of the device."""

        def run(_: int) -> int:
            try:
                kernel()
            except Exception as error:  # noqa: BLE001 - whatever a kernel raises is the device's failure
                sys.stderr.write(f"emulator: kernel {name} raised {type(error).__name__}: {error}\n")
                return KERNEL_RAISED
            return 0

        key = next(self.numbers)
        self.kept[key] = (_KERNEL(run),)
        function = self.library.dagsched_emulator_launch
        function.argtypes = [POINTER, ctypes.c_char_p, _KERNEL, POINTER, _CALLBACK]
        return int(function(stream, name.encode(), self.kept[key][0], key, self.released))

    def launch_callback(self, function: Callable[[Any], object], data: Any, block: int, stream: int) -> int:
        """``acl.rt.launch_callback``: the function gets the user's data."""
        key = next(self.numbers)

        def run(_: int) -> None:
            try:
                function(data)
            finally:
                self.kept.pop(key, None)

        self.kept[key] = (_CALLBACK(run),)
        launch = self.library.aclrtLaunchCallback
        launch.argtypes = [_CALLBACK, POINTER, I32, POINTER]
        ret = int(launch(self.kept[key][0], None, block, stream))
        if ret != 0:
            self.kept.pop(key, None)
        return ret

    def start_thread(self, function: Callable[[Any], object], arguments: Any) -> tuple[int, int]:
        """``acl.util.start_thread``: the thread's number is what ``subscribe_report`` wants."""
        ready = threading.Event()

        def run() -> None:
            ready.set()
            function(arguments)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        ready.wait()
        number = thread.ident or 0
        self.threads[number] = thread
        return number, 0

    def stop_thread(self, number: int) -> int:
        """``acl.util.stop_thread``: waits for the thread's end."""
        thread = self.threads.pop(number, None)
        if thread is None:
            return 107000
        thread.join()
        return 0

    def message(self) -> str:
        """``acl.get_recent_err_msg``."""
        return (self.library.aclGetRecentErrMsg() or b"").decode("utf-8", "replace")

    def get(self, address: int, size: int, name: str = "get") -> bytes:
        """The issuing thread reads any memory at once."""
        place = ctypes.create_string_buffer(size)
        self.library.dagsched_emulator_get(place, POINTER(address), SIZE(size), name.encode())
        return place.raw

    def set(self, address: int, data: bytes, name: str = "set") -> None:
        """The issuing thread writes any memory at once."""
        self.library.dagsched_emulator_set(POINTER(address), data, SIZE(len(data)), name.encode())

    def contents(self, name: str, number: int, size: int) -> bytes | None:
        """What a block holds: the number-th that was allocated for a buffer of that name; None where there is none."""
        place = ctypes.create_string_buffer(size)
        self.library.dagsched_emulator_contents.restype = I64
        found = self.library.dagsched_emulator_contents(name.encode(), I32(number), place, SIZE(size))
        return place.raw if found >= 0 else None

    def note(self, op: str, iteration: int) -> None:
        """The calls that this thread makes from now on are an op's; "" and -1: nobody's."""
        self.library.dagsched_emulator_note(op.encode(), I64(iteration))

    def access(self, address: int, size: int, mode: int) -> None:
        """In a kernel or a callback: what it touches, for the trace (0 read, 1 write, 2 update, 3 accumulate)."""
        self.library.dagsched_emulator_access(POINTER(address), SIZE(size), I32(mode))

    def device(self, address: int) -> int:
        """Where a kernel can touch a device address."""
        return int(self.library.dagsched_emulator_device(POINTER(address)) or 0)


def make_module() -> ModuleType:
    """A module that programs can use as ``acl``; raises :class:`UsageError` where the emulator cannot be built."""
    runtime = _Runtime()
    library = runtime.library
    module = ModuleType("acl", "pyACL on dagsched's emulator")
    rt: dict[str, Callable[..., Any]] = {
        **{name: runtime.plain(function, types) for name, (function, types) in _PLAIN.items()},
        **{name: runtime.yielding(function, value, types) for name, (function, value, types) in _YIELDING.items()},
        **{name: runtime.asking(function) for name, function in _ASKING.items()},
    }

    def launch_callback(function: Callable[[Any], object], data: Any, block: int, stream: int) -> int:
        return runtime.launch_callback(function, data, block, stream)

    rt["launch_callback"] = launch_callback
    for name, call in rt.items():  # programs report which function failed
        call.__name__ = call.__qualname__ = name
    members: dict[str, Any] = {
        "rt": SimpleNamespace(**rt),
        "util": SimpleNamespace(start_thread=runtime.start_thread, stop_thread=runtime.stop_thread),
        "init": lambda config=None: int(library.aclInit(config and os.fsencode(config))),
        "finalize": runtime.plain("aclFinalize", ()),
        "get_recent_err_msg": runtime.message,
        "emulator": SimpleNamespace(
            launch=runtime.launch,
            device=runtime.device,
            get=runtime.get,
            set=runtime.set,
            contents=runtime.contents,
            note=runtime.note,
            access=runtime.access,
            breathe=library.dagsched_emulator_breathe,
            log=lambda line: library.dagsched_emulator_log(line.encode()),
            seed=lambda seed: library.dagsched_emulator_seed(U64(seed)),
            inject=lambda fault: int(library.dagsched_emulator_inject(fault.encode())),
            leave_out=library.dagsched_emulator_leave_out,
            trace=lambda path: library.dagsched_emulator_trace(os.fsencode(path)),
            write_trace=library.dagsched_emulator_write_trace,
            alive=lambda: int(library.dagsched_emulator_alive()) + len(runtime.threads),
            complaints=lambda: int(library.dagsched_emulator_complaints()),
            start_over=library.dagsched_emulator_start_over,
        ),
    }
    vars(module).update(members)
    return module


def install() -> ModuleType:
    """Let programs of this process ``import acl``."""
    module = make_module()
    sys.modules["acl"] = module
    return module


def main(words: list[str]) -> int:
    """Run a Python program with the arguments behind it, as ``python PROGRAM`` would: it imports what is beside it."""
    if not words:
        sys.stderr.write("usage: python -m dagsched.emulator.pyacl PROGRAM [ARGUMENT ...]\n")
        return 2
    if not Path(words[0]).is_file():
        sys.stderr.write(f"`{words[0]}` is no file\n")
        return 2
    try:
        install()
    except UsageError as error:
        sys.stderr.writelines(f"{found.headline}: {found.help}\n" for found in error.diagnostics)
        return 2
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    runpy.run_path(words[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
