"""A dry run: every op sleeps for its duration, on the lanes of its engine, so that one sees what overlaps.

Durations, engines and shares are the cost model's. An engine's lanes are handed out in the order in which ops come; one
that finds none free begins when the first is, and sleeps until its own end.
An op that waited for nothing begins when the one before it on its stream was to end, not when the thread woke up:
timers are coarse, and real ops do not oversleep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from heapq import heapreplace
from time import monotonic
from typing import TYPE_CHECKING, Any

from dagsched.compiled import Compiled
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.engines import engine_capacity
from dagsched.run.backend import Call
from dagsched.run.errors import refuse
from dagsched.run.functions import Plug
from dagsched.run.program import OpPoint, Program, StreamProgram

if TYPE_CHECKING:
    from dagsched.run.board import Board


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

    def open(self, program: Program, board: Board, params: Mapping[str, int]) -> None:
        self.board = board
        self.ends = [0.0] * len(program.streams)

    def put(self, inputs: Mapping[str, Any]) -> None:
        if inputs:
            raise refuse("R113", "a dry run has no buffers to put inputs into", help="write executor(functions=...)")

    def outputs(self) -> dict[str, Any]:
        return {}

    def begin(self) -> None:
        self.ends[:] = [monotonic()] * len(self.ends)
        self.board.slept[:] = [True] * len(self.ends)  # a thread's first op begins when the thread does
        for lanes in self.lanes.values():
            lanes.free()

    def call(self, stream: StreamProgram, point: OpPoint, plug: Plug | None, take: Callable[[int], Any] | None) -> Call:
        cost = self.costs[point.op.name]
        lanes, seconds, share = self.lanes[cost.engine.name], cost.seconds, cost.share
        me, ends, nap, slept = stream.number, self.ends, self.board.nap, self.board.slept

        def doze(i: int) -> None:
            ready = monotonic() if slept[me] else ends[me]
            slept[me] = False
            end = ends[me] = lanes.reserve(ready, seconds, share)
            nap(me, end)

        return doze

    def returned(self, point: OpPoint) -> Callable[[object], None] | None:
        return None

    def look(self, buffers: tuple[str, ...], point: OpPoint) -> Call:
        return lambda i: {}

    def record(self, stream: StreamProgram, number: int) -> None:
        return None

    def wait(self, stream: StreamProgram, number: int) -> None:
        return None

    def stamp(self, stream: StreamProgram) -> Callable[[], Any] | None:
        return None

    def time(self, stamp: Any) -> int:
        return int(stamp)

    def finish(self, stream: StreamProgram) -> None:
        return None

    def close(self) -> None:
        return None
