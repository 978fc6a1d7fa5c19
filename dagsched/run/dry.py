"""A dry run: every op sleeps for its duration, on the lanes of its engine, so that one sees what overlaps.

Durations, engines and shares are the cost model's. An engine's lanes are handed out in the order in which ops come; one
that finds none free begins when the first is, and sleeps until its own end.
An op that waited for nothing begins when the one before it on its stream was to end, not when the thread woke up:
timers are coarse, and real ops do not oversleep. So each stream has a clock of its own, which may be behind the real
one while it catches up; records hand it on to who waits, and the trace has its times. (By the real clock, ops that
catch up would seem to take no time, and a loop to run faster than its device can.)

Invariant: an op begins no sooner than what it waited for was to end, on any clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from heapq import heapreplace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dagsched.compiled import Compiled
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.engines import engine_capacity
from dagsched.run.backend import Call
from dagsched.run.errors import refuse
from dagsched.run.exclusive import find_exclusive
from dagsched.run.functions import Plug
from dagsched.run.program import OpPoint, Program, StreamProgram

if TYPE_CHECKING:
    from dagsched.run.board import Board


_KEPT = 1024
"""Records of an event that are remembered: whoever waits for an older one was far behind, and begins later anyway."""


class Lanes:
    """An engine's capacity: when each unit of it is free again."""

    def __init__(self, capacity: int) -> None:
        self._free = [0.0] * capacity
        self._lock = threading.Lock()

    def free(self) -> None:
        """Nothing is taken any more."""
        self._free[:] = [0.0] * len(self._free)

    def reserve(self, ready: float, seconds: float, share: int) -> float:
        """Take ``share`` units for so long, from ``ready`` on or as soon as they are free; when they are free again."""
        with self._lock:
            start = max(ready, sorted(self._free)[share - 1]) if share > 1 else max(ready, self._free[0])
            for _ in range(share):
                heapreplace(self._free, start + seconds)
            return start + seconds


class Dry:
    """Ops as sleeps."""

    name = "cpu, dry"
    handle: str | None = None

    def __init__(self, compiled: Compiled) -> None:
        self.costs: dict[str, OpCost] = op_costs(compiled.resolved, compiled.device)
        self.lanes = {cost.engine.name: Lanes(engine_capacity(cost.engine)) for cost in self.costs.values()}
        self.ends: list[float] = []
        self.recorded: list[dict[int, float]] = []
        self.alone: dict[str, list[Lanes]] = {}

    def open(self, program: Program, board: Board, params: Mapping[str, int]) -> None:
        self.board = board
        self.ends = [0.0] * len(program.streams)
        self.recorded = [{} for _ in range(len(program.records) + len(program.twins))]
        for _, ops in sorted(find_exclusive(program).items()):
            lane = Lanes(1)
            for op in ops:
                self.alone.setdefault(op, []).append(lane)

    def put(self, inputs: Mapping[str, Any]) -> None:
        if inputs:
            raise refuse("R113", "a dry run has no buffers to put inputs into", help="write executor(functions=...)")

    def outputs(self) -> dict[str, Any]:
        return {}

    def begin(self) -> None:
        self.ends[:] = [perf_counter()] * len(self.ends)
        self.board.slept[:] = [True] * len(self.ends)  # a thread's first op begins when the thread does
        for moments in self.recorded:
            moments.clear()
        for lanes in (*self.lanes.values(), *(lane for own in self.alone.values() for lane in own)):
            lanes.free()

    def call(self, stream: StreamProgram, point: OpPoint, plug: Plug | None, take: Callable[[int], Any] | None) -> Call:
        cost = self.costs[point.op.name]
        lanes, seconds, share = self.lanes[cost.engine.name], cost.seconds, cost.share
        me, ends, nap, slept = stream.number, self.ends, self.board.nap, self.board.slept
        alone, now = self.alone.get(point.op.name, ()), self._clock(stream)

        def doze(i: int) -> None:
            ready = max(now(), *(lane.reserve(0.0, 0.0, 1) for lane in alone)) if alone else now()
            slept[me] = False
            end = ends[me] = lanes.reserve(ready, seconds, share)
            for lane in alone:  # the executor holds their locks meanwhile
                lane.reserve(end, 0.0, 1)
            nap(me, end)

        return doze

    def _clock(self, stream: StreamProgram) -> Callable[[], float]:
        """The stream's own time: when its last op was to end, or what it slept for has come."""
        me, ends, slept = stream.number, self.ends, self.board.slept
        return lambda: perf_counter() if slept[me] else ends[me]

    def returned(self, point: OpPoint) -> Callable[[object], None] | None:
        return None

    def look(self, buffers: tuple[str, ...], point: OpPoint) -> Call:
        return lambda i: {}

    def record(self, stream: StreamProgram, number: int) -> Callable[[int], None]:
        moments, now = self.recorded[number], self._clock(stream)

        def note(i: int) -> None:
            moments[i] = now()
            moments.pop(i - _KEPT, None)

        return note

    def wait(self, stream: StreamProgram, number: int) -> Callable[[int], None]:
        me, ends, moments = stream.number, self.ends, self.recorded[number]

        def meet(i: int) -> None:
            ends[me] = max(ends[me], moments.get(i, 0.0))

        return meet

    def stamp(self, stream: StreamProgram) -> Callable[[], float]:
        return self._clock(stream)

    def time(self, stamp: Any) -> int:
        return int(stamp * 1e9)

    def finish(self, stream: StreamProgram) -> None:
        return None

    def close(self) -> None:
        return None
