"""One thread for each stream, kept from run to run: asleep between runs, and gone when the executor is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

Job = Callable[[], None]
"""What a thread does in one run; it must not raise."""


class Crew:
    """Threads called after the streams. One run at a time; ``names`` are what debuggers and profilers show."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._jobs: list[Job | None] = [None] * len(names)
        self._calls = [threading.Lock() for _ in names]
        self._over = threading.Lock()
        self._count = threading.Lock()
        self._busy = 0
        self._closed = False
        for call in (*self._calls, self._over):
            call.acquire()
        self._threads: list[threading.Thread] = []
        self._at_end: Job | None = None

    def start(self, jobs: Sequence[Job], over: Callable[[], None]) -> None:
        """Let every thread do its job; ``over`` is called by the last that ends."""
        self._closed = False
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._work, args=(n,), name=f"dagsched:{name}", daemon=True)
                for n, name in enumerate(self.names)
            ]
            for thread in self._threads:
                thread.start()
        self._over.acquire(blocking=False)
        self._busy = len(jobs)
        self._at_end = over
        if not jobs:
            over()
            self._over.release()
        self._jobs[:] = jobs
        for call in self._calls:
            call.release()

    @property
    def busy(self) -> bool:
        """Whether some thread is still at its job."""
        return self._busy > 0

    @property
    def is_here(self) -> bool:
        """Whether the calling thread is one of these."""
        return threading.current_thread() in self._threads

    def join(self, timeout: float = -1) -> bool:
        """Wait until all jobs are done (for so many seconds at most); whether they are."""
        if not self._over.acquire(timeout=timeout):
            return False
        self._over.release()
        return True

    def close(self, timeout: float) -> bool:
        """End the threads; whether all of them ended in time (those that did not end once their op returns)."""
        if not self._closed:
            self._closed = True
            self._jobs[:] = [None] * len(self._jobs)
            for call in self._calls:
                if call.locked():
                    call.release()
        for thread in self._threads:
            thread.join(timeout)
        ended = not any(thread.is_alive() for thread in self._threads)
        if ended:
            self._threads = []
        return ended

    def _work(self, number: int) -> None:
        call, jobs = self._calls[number], self._jobs
        while True:
            call.acquire()
            job = jobs[number]
            if job is None:
                return
            job()
            del job
            jobs[number] = None
            with self._count:
                self._busy -= 1
                last = not self._busy
            if last:
                end, self._at_end = self._at_end, None
                if end is not None:
                    end()
                del end  # a sleeping thread must keep nothing of the run, which knows its executor
                self._over.release()
