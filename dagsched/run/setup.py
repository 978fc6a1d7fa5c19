"""What an executor works out once, before its first run: programs, calls, counters, locks, and who waits for whom."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from dagsched.compiled import Compiled
from dagsched.plan.model import Plan
from dagsched.run.backend import Backend
from dagsched.run.board import Board
from dagsched.run.exclusive import find_exclusive
from dagsched.run.follow import Part, find_sleepers
from dagsched.run.functions import Functions, Plug, plug_functions
from dagsched.run.program import OpPoint, Program, StreamProgram, split_streams
from dagsched.run.steps import Desk


@dataclass(slots=True)
class Setup:
    """``points`` and ``stream_of`` are by op; an op's number is its place in ``names``.

    ``delivered`` and ``taken`` count results for a consumer, whose bed is ``consumer``, ``pulled`` the items of each
    parameter's source. ``params`` holds the values of the run that goes on.
    """

    compiled: Compiled
    backend: Backend
    program: Program
    plugs: dict[str, Plug]
    points: dict[str, OpPoint]
    stream_of: dict[str, StreamProgram]
    names: tuple[str, ...]
    board: Board
    desk: Desk
    params: dict[str, int]
    delivered: int
    taken: int
    consumer: int
    pulled: dict[str, int]
    sleepers: dict[int, tuple[int, ...]]
    locks: dict[str, list[AbstractContextManager[Any]]]
    kept: list[list[Part]] | None = field(default=None)

    @property
    def plan(self) -> Plan:
        """The resolved plan."""
        return self.program.plan


def set_up(compiled: Compiled, functions: Functions | None, backend: Backend) -> Setup:
    """Work all of it out; raises :class:`UsageError` for functions that do not fit and schedules that cannot be run."""
    program = split_streams(compiled)
    plugs = {} if functions is None else plug_functions(program.plan, functions, backend.handle)
    points: dict[str, OpPoint] = {}
    stream_of: dict[str, StreamProgram] = {}
    for stream in program.streams:
        for point in (point for _, part in stream.parts for point in part if isinstance(point, OpPoint)):
            points[point.op.name] = point
            stream_of[point.op.name] = stream
    streams, records = len(program.streams), len(program.records) + len(program.twins)
    pulled = {param: records + 2 + n for n, param in enumerate(program.plan.params)}
    board = Board(records + 2 + len(pulled), streams + 1)
    params: dict[str, int] = {}
    numbers = {name: number for number, name in enumerate(points)}
    backend.open(program, board, params)
    return Setup(
        compiled=compiled,
        backend=backend,
        program=program,
        plugs=plugs,
        points=points,
        stream_of=stream_of,
        names=tuple(points),
        board=board,
        desk=Desk(board, params, numbers, [-1] * streams, [0] * streams, before=[-1] * streams),
        params=params,
        delivered=records,
        taken=records + 1,
        consumer=streams,
        pulled=pulled,
        sleepers=find_sleepers(program),
        locks=_make_locks(program),
    )


def _make_locks(program: Program) -> dict[str, list[AbstractContextManager[Any]]]:
    """By op the locks that it holds while it runs: one for each buffer, always taken in one order."""
    groups = find_exclusive(program)
    held: dict[str, list[AbstractContextManager[Any]]] = {}
    for name in sorted(groups):
        lock = threading.Lock()
        for op in groups[name]:
            held.setdefault(op, []).append(lock)
    return held
