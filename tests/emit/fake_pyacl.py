"""A small pyACL for tests: streams are threads, events are those of create_event_ex_with_flag, callbacks block.

``install()`` puts it into ``sys.modules`` as ``acl``. What would be silent corruption on a device is an error here:
freeing memory or destroying a stream while work is queued, copying out of bounds, a callback without a subscription.
"""

from __future__ import annotations

import ctypes
import queue
import random
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

Task = Callable[[], int]
REPORT_TIMEOUT = 507012


class Stream(threading.Thread):
    """A queue of tasks and the thread that executes them."""

    def __init__(self, number: int, runtime: FakeAcl) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.runtime = runtime
        self.tasks: queue.Queue[Task | None] = queue.Queue()
        self.error = 0
        self.reporter: int | None = None
        self.start()

    def run(self) -> None:
        """Execute tasks in order, each after a pause that depends on the seed."""
        chance = random.Random(self.runtime.seed * 1000 + self.number)
        while (task := self.tasks.get()) is not None:
            if self.runtime.seed:
                slow = self.number + 1 == self.runtime.seed
                time.sleep(0.002 if slow else chance.random() * 0.0001)
            code = task()
            self.error = self.error or code
            self.tasks.task_done()
        self.tasks.task_done()

    def idle(self) -> bool:
        """Whether nothing is queued or executed."""
        return self.tasks.unfinished_tasks == 0


class FakeAcl:
    """The runtime; ``module`` is what programs import as ``acl``."""

    def __init__(self) -> None:
        self.seed = 0
        self.fault: tuple[str, int, int] = ("", 0, 0)
        self.message = ""
        self.next_handle = 1000
        self.streams: dict[int, Stream] = {}
        self.events: dict[int, threading.Event | None] = {}
        self.blocks: dict[int, tuple[str, ctypes.Array[ctypes.c_char]]] = {}
        self.threads: dict[int, threading.Thread] = {}
        self.reports: dict[int, queue.Queue[tuple[Callable[[list[int]], None], list[int], threading.Event]]] = {}
        self.context = threading.local()
        self.lock = threading.Lock()
        self.problems: list[str] = []
        self.waits_left_out: tuple[int, int] = (-1, 1)
        self.waited = 0
        names = [name.removeprefix("rt_") for name in dir(self) if name.startswith("rt_")]
        rt = SimpleNamespace(**{name: self._guard(name, getattr(self, f"rt_{name}")) for name in names})
        self.module = ModuleType("acl")
        members = {
            "rt": rt,
            "util": SimpleNamespace(start_thread=self.start_thread, stop_thread=self.stop_thread),
            "init": lambda: 0,
            "finalize": lambda: 0,
            "get_recent_err_msg": self.get_recent_err_msg,
        }
        vars(self.module).update(members)

    def install(self) -> None:
        """Let programs import this runtime."""
        sys.modules["acl"] = self.module

    def alive(self) -> int:
        """Streams, events, blocks and threads that have not been released."""
        return len(self.streams) + len(self.events) + len(self.blocks) + len(self.threads)

    def launch(self, stream: int, kernel: Callable[[], None]) -> int:
        """Queue a kernel, which may raise: that is an asynchronous error of the stream."""

        def task() -> int:
            try:
                kernel()
            except ValueError:
                return 507015
            return 0

        self.streams[stream].tasks.put(task)
        return 0

    def get_recent_err_msg(self) -> str:
        """The newest message, once."""
        message, self.message = self.message, ""
        return message

    def _guard(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def guarded(*arguments: object) -> object:
            wanted, number, code = self.fault
            if wanted == name and number > 0:
                self.fault = (wanted, number - 1, code)
                if number == 1:
                    self.message = f"EI0001: injected into {name}"
                    yields = name.startswith(("create_", "malloc", "get_"))
                    return (0, code) if yields else code
            if not getattr(self.context, "value", 0) and not name.endswith(("_context", "_device")):
                return 107002
            return function(*arguments)

        guarded.__qualname__ = name
        return guarded

    def _handle(self) -> int:
        with self.lock:
            self.next_handle += 1
            return self.next_handle

    def rt_set_device(self, _: int) -> int:
        self.context.value = 1
        return 0

    def rt_reset_device(self, _: int) -> int:
        self.context.value = 0
        return 0

    def rt_get_context(self) -> tuple[int, int]:
        value = getattr(self.context, "value", 0)
        return value, 0 if value else 107002

    def rt_set_context(self, context: int) -> int:
        self.context.value = context
        return 0

    def rt_create_stream(self) -> tuple[int, int]:
        handle = self._handle()
        self.streams[handle] = Stream(len(self.streams), self)
        return handle, 0

    def rt_create_stream_with_config(self, priority: int, _: int) -> tuple[int, int]:
        return self.rt_create_stream() if 0 <= priority <= 7 else (0, 107000)

    def rt_destroy_stream(self, handle: int) -> int:
        self._require_idle("a stream is destroyed while work is queued")
        stream = self.streams.pop(handle)
        if stream.reporter is not None:
            self.problems.append("a stream is destroyed with a subscription")
        stream.tasks.put(None)
        stream.join()
        return 0

    def rt_synchronize_stream(self, handle: int) -> int:
        stream = self.streams[handle]
        stream.tasks.join()
        code, stream.error = stream.error, 0
        if code:
            self.message = "a task of the stream failed"
        return code

    def rt_synchronize_device(self) -> int:
        return max([self.rt_synchronize_stream(handle) for handle in list(self.streams)], default=0)

    def rt_create_event_ex_with_flag(self, flag: int) -> tuple[int, int]:
        if flag != 1:
            return 0, 207000
        handle = self._handle()
        self.events[handle] = None
        return handle, 0

    def rt_destroy_event(self, handle: int) -> int:
        del self.events[handle]
        return 0

    def rt_record_event(self, event: int, stream: int) -> int:
        token = self.events[event] = threading.Event()

        def task() -> int:
            token.set()
            return 0

        self.streams[stream].tasks.put(task)
        return 0

    def rt_stream_wait_event(self, stream: int, event: int) -> int:
        token = self.events[event]
        wait, of = self.waits_left_out
        self.waited += 1
        if token is not None and (self.waited - 1) % of != wait:
            self.streams[stream].tasks.put(lambda: 0 if token.wait(20) else 507899)
        return 0

    def rt_synchronize_event(self, event: int) -> int:
        token = self.events[event]
        return 0 if token is None or token.wait(20) else 507899

    def rt_malloc(self, size: int, policy: int) -> tuple[int, int]:
        return self._allocate("device", size) if policy == 0 else (0, 107000)

    def rt_malloc_host(self, size: int) -> tuple[int, int]:
        return self._allocate("pinned", size)

    def rt_free(self, address: int) -> int:
        return self._free("device", address)

    def rt_free_host(self, address: int) -> int:
        return self._free("pinned", address)

    def _allocate(self, kind: str, size: int) -> tuple[int, int]:
        if size <= 0:
            return 0, 107000
        block = ctypes.create_string_buffer(b"\xa5" * size, size)
        self.blocks[ctypes.addressof(block)] = (kind, block)
        return ctypes.addressof(block), 0

    def _free(self, kind: str, address: int) -> int:
        self._require_idle("memory is freed while work is queued")
        if self.blocks.pop(address, ("", None))[0] != kind:
            self.problems.append("freed twice, or never allocated")
        return 0

    def _require_idle(self, problem: str) -> None:
        if not all(stream.idle() for stream in self.streams.values()):
            self.problems.append(problem)

    def _kind(self, address: int, size: int) -> str:
        """Which kind of memory holds all of [address, address + size)."""
        for start, (kind, block) in self.blocks.items():
            if start <= address and address + size <= start + len(block):
                return kind
        return "pageable"

    def rt_memcpy_async(self, to: int, room: int, source: int, size: int, kind: int, stream: int) -> int:
        if size > room:
            return 107000
        ends = {1: ("host", "device"), 2: ("device", "host"), 3: ("device", "device")}.get(kind)
        if ends is None:
            return 207000
        found = self._kind(source, size), self._kind(to, size)
        for wanted, have in zip(ends, found, strict=True):
            if (wanted == "device") != (have == "device"):
                self.problems.append(f"a copy of {size} bytes leaves {wanted} memory")
        self.streams[stream].tasks.put(lambda: 0 * ctypes.memmove(to, source, size))
        return self.rt_synchronize_stream(stream) if "pageable" in found else 0

    def rt_memset_async(self, to: int, room: int, value: int, size: int, stream: int) -> int:
        if size > room or self._kind(to, size) != "device":
            self.problems.append("a fill leaves device memory")
            return 107000
        self.streams[stream].tasks.put(lambda: 0 * ctypes.memset(to, value, size))
        return 0

    def rt_launch_callback(
        self, function: Callable[[list[int]], None], data: list[int], block: int, handle: int
    ) -> int:
        stream = self.streams[handle]
        if stream.reporter is None:
            return 107015
        if block != 1:
            self.problems.append("a callback does not block its stream")
        reports = self.reports[stream.reporter]

        def task() -> int:
            done = threading.Event()
            reports.put((function, data, done))
            return 0 if done.wait(20) else 507899

        stream.tasks.put(task)
        return 0

    def rt_subscribe_report(self, thread: int, stream: int) -> int:
        self.streams[stream].reporter = thread
        return 0

    def rt_unsubscribe_report(self, thread: int, stream: int) -> int:
        if self.streams[stream].reporter != thread:
            return 107000
        self.streams[stream].reporter = None
        return 0

    def rt_process_report(self, timeout: int) -> int:
        try:
            function, data, done = self.reports[threading.get_ident()].get(timeout=timeout / 1000)
        except queue.Empty:
            return REPORT_TIMEOUT
        context, self.context.value = self.context.value, 0  # no call of the runtime inside a callback
        function(data)
        self.context.value = context
        done.set()
        return 0

    def start_thread(self, function: Callable[[list[object]], None], arguments: list[object]) -> tuple[int, int]:
        """A thread that can be subscribed to callbacks."""
        wanted, number, code = self.fault
        if wanted == "start_thread" and number == 1:
            self.fault = ("", 0, 0)
            return 0, code
        started = threading.Event()

        def run() -> None:
            self.reports[threading.get_ident()] = queue.Queue()
            started.set()
            function(arguments)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        started.wait()
        assert thread.ident is not None
        self.threads[thread.ident] = thread
        return thread.ident, 0

    def stop_thread(self, ident: int) -> int:
        """Wait for its end."""
        thread = self.threads.pop(ident)
        thread.join(20)
        if thread.is_alive():
            self.problems.append("a thread does not end")
        return 0
