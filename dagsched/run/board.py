"""How far every stream has come, and how a thread sleeps until another has come far enough.

``progress[k]`` is what record k has passed: a thread that needs iteration x of it goes on once ``progress[k] > x``. It
looks before it sleeps, so that a wait for what is done already costs one comparison; and whoever records looks whether
somebody sleeps on that very record and needs no more than this, so that nobody is woken for nothing.

Invariant: a thread says what it sleeps on before it looks a last time, and a record is written down before it is
looked whether somebody sleeps; so one of the two sees the other. That holds where the interpreter runs one thread at a
time; in a free-threaded build sleepers also look again now and then.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter

Record = Callable[[int], None]
"""Called behind an op in iteration i: lets go on whoever needs that."""


class Halt(BaseException):
    """Raised in a stream's thread when the run is to end; no error of its own."""


_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
LOOK_AGAIN = -1.0 if _GIL else 0.02
"""Seconds after which a sleeper looks again by itself; -1: never, it will be woken."""


class Board:
    """Progress of ``records`` counters, and a bed for each of ``threads`` threads."""

    def __init__(self, records: int, threads: int) -> None:
        self.progress = [0] * records
        self.asleep_on = [-1] * threads
        self.needs = [0] * threads
        self.restless = [False] * threads  # whether a thread wants to know when another item has come
        self.slept = [False] * threads  # whether a thread has slept in a wait since it last looked here
        self.halted: list[bool] = []
        self._beds = [threading.Lock() for _ in range(threads)]
        for bed in self._beds:
            bed.acquire()

    def reset(self) -> None:
        """Forget all progress; no thread may be running."""
        self.progress[:] = [0] * len(self.progress)
        self.asleep_on[:] = [-1] * len(self.asleep_on)
        self.restless[:] = [False] * len(self.restless)
        self.halted.clear()
        for bed in self._beds:
            bed.acquire(blocking=False)

    def halt(self) -> None:
        """Let every thread end at its next op or wait."""
        self.halted.append(True)
        for thread in range(len(self._beds)):
            self.wake(thread)

    def wake(self, thread: int) -> None:
        """Let a thread look again."""
        with suppress(RuntimeError):  # it has been called already and not looked yet
            self._beds[thread].release()

    def await_record(self, thread: int, record: int, needed: int) -> None:
        """Sleep until ``progress[record] > needed``; raises :class:`Halt`."""
        progress = self.progress
        while progress[record] <= needed:
            self.needs[thread] = needed
            self.asleep_on[thread] = record
            if progress[record] > needed:
                break
            if self.halted:
                self.asleep_on[thread] = -1
                raise Halt
            self._beds[thread].acquire(timeout=LOOK_AGAIN)
            self.slept[thread] = True
        self.asleep_on[thread] = -1
        if self.halted:
            raise Halt

    def await_either(self, thread: int, record: int, needed: int, pulled: int, come: int) -> bool:
        """Sleep until ``progress[record] > needed`` (True), or ``pulled`` has left ``come`` (False); raises Halt."""
        progress = self.progress
        self.restless[thread] = True
        while progress[record] <= needed and progress[pulled] == come:
            self.needs[thread] = needed
            self.asleep_on[thread] = record
            if progress[record] > needed or progress[pulled] != come or self.halted:
                break
            self._beds[thread].acquire(timeout=LOOK_AGAIN)
            self.slept[thread] = True
        self.restless[thread] = False
        self.asleep_on[thread] = -1
        if self.halted:
            raise Halt
        return progress[record] > needed

    def doze(self, thread: int, record: int, needed: int, timeout: float | None) -> None:
        """Sleep until ``progress[record] > needed``, somebody calls, or so many seconds have passed."""
        self.needs[thread] = needed
        self.asleep_on[thread] = record
        if self.progress[record] <= needed and not self.halted:
            pause = -1.0 if timeout is None else max(0.0, timeout)
            if LOOK_AGAIN > 0:
                pause = LOOK_AGAIN if pause < 0 else min(pause, LOOK_AGAIN)
            self._beds[thread].acquire(timeout=pause)
        self.asleep_on[thread] = -1

    def nap(self, thread: int, end: float) -> None:
        """Sleep until ``time.perf_counter()`` is ``end``; raises :class:`Halt` where the run ends before."""
        while not self.halted:
            left = end - perf_counter()
            if left <= 0:
                return
            self._beds[thread].acquire(timeout=left)  # a call that came too late for an earlier sleep may end this one
        raise Halt

    def recorder(self, record: int, sleepers: tuple[int, ...]) -> Record:
        """What a stream calls to record; ``sleepers`` are the threads that may wait for it."""
        progress, asleep_on, needs, wake = self.progress, self.asleep_on, self.needs, self.wake
        if not sleepers:

            def note(i: int) -> None:
                progress[record] = i + 1

            return note
        if len(sleepers) == 1:
            only = sleepers[0]

            def note_one(i: int) -> None:
                progress[record] = i + 1
                if asleep_on[only] == record and needs[only] <= i:
                    asleep_on[only] = -1
                    wake(only)

            return note_one

        def note_all(i: int) -> None:
            progress[record] = i + 1
            for thread in sleepers:
                if asleep_on[thread] == record and needs[thread] <= i:
                    asleep_on[thread] = -1
                    wake(thread)

        return note_all
