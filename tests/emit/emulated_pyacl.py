"""pyACL on the emulator, with the handles that tests want: seeds, faults, waits left out, and what went wrong."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from dagsched.emulator import pyacl


class EmulatedAcl:
    """``module`` is what programs import as ``acl``."""

    def __init__(self) -> None:
        self.module: Any = pyacl.make_module()
        self.emulator = self.module.emulator
        self.in_kernel = threading.local()
        self.start_thread_code = 0
        start = self.module.util.start_thread

        def start_thread(function: Callable[[Any], object], arguments: Any) -> tuple[int, int]:
            code, self.start_thread_code = self.start_thread_code, 0
            return (0, code) if code else start(function, arguments)

        self.module.util.start_thread = start_thread

    def install(self) -> None:
        """Let programs import this runtime, as if nothing had run on it before."""
        import sys

        sys.modules["acl"] = self.module
        self.emulator.start_over()
        self.module.init()

    def seed(self, seed: int) -> None:
        """Choose an interleaving."""
        self.emulator.seed(seed)

    def fault(self, function: str = "", number: int = 0, code: int = 0) -> None:
        """The number-th call of a function from now on fails; without arguments none does."""
        self.emulator.inject("")
        self.start_thread_code = code if function == "start_thread" else 0
        if function and function != "start_thread":
            known = {**pyacl._PLAIN, **pyacl._YIELDING, "launch_callback": ("aclrtLaunchCallback",)}
            assert self.emulator.inject(f"{known[function][0]}#{number}:{code}") == 0

    def alive(self) -> int:
        """Streams, events, blocks and threads that have not been released."""
        return int(self.emulator.alive())

    @property
    def complaints(self) -> int:
        """Misuse of the runtime so far."""
        return int(self.emulator.complaints())

    def launch(self, stream: int, kernel: Callable[[], None]) -> int:
        """Queue a kernel."""

        def run() -> None:
            self.in_kernel.now = True
            kernel()

        return int(self.emulator.launch(stream, run))

    def read(self, address: int, size: int) -> bytes:
        """Bytes of any memory, in a kernel, a callback or the host."""
        if getattr(self.in_kernel, "now", False):
            return ctypes.string_at(self.emulator.device(address), size)
        return self.emulator.get(address, size)  # type: ignore[no-any-return]

    def write(self, address: int, data: bytes) -> None:
        """The same for writing."""
        if getattr(self.in_kernel, "now", False):
            ctypes.memmove(self.emulator.device(address), data, len(data))
        else:
            self.emulator.set(address, data)
