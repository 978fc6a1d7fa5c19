"""A stream's program as a list of small functions of the loop index: which steps it takes in which section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from dagsched.plan.expressions import Int, names_in
from dagsched.run.backend import Backend, Call
from dagsched.run.functions import Plug
from dagsched.run.numbers import as_test
from dagsched.run.program import OpPoint, Point, Program, Section, StreamProgram, WaitPoint, linear_shift
from dagsched.run.rounds import Rounds
from dagsched.run.sources import Feed, names_of_part
from dagsched.run.steps import Desk, Step, guarded, op_step, record_step, wait_step


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a stream: the steps of one iteration, and the ``names`` that their expressions use.

    ``rounds`` takes the place of the steps where a source feeds a loop whose ops are issued late.
    """

    section: Section
    steps: tuple[Step, ...]
    names: frozenset[str]
    rounds: Rounds | None = None


def follow_stream(
    program: Program,
    stream: StreamProgram,
    desk: Desk,
    backend: Backend,
    plugs: Mapping[str, Plug],
    locks: Mapping[str, Sequence[AbstractContextManager[Any]]],
    take: Callable[[str], Callable[[int], Any] | None],
    looks: Mapping[str, tuple[str, ...]],
    sleepers: Mapping[int, tuple[int, ...]],
    feeds: Iterable[Feed] = (),
) -> list[Part]:
    """The parts of a stream; ``locks`` are what an op holds while it runs, ``looks`` buffers whose copies it yields."""
    late = {feed.section.number: feed for feed in feeds if feed.section.late}
    parts = []
    stamp = backend.stamp(stream)
    for section, points in stream.parts:
        behind = _ops_behind(points, desk)
        steps: list[Step] = []
        feed, rounds = late.get(section.number), None
        if feed is not None:
            leads = feed.leader == stream.number
            rounds = Rounds(program, stream, section, feed.source, leads, desk, backend, sleepers)
        for number, point in enumerate(points):
            if isinstance(point, OpPoint):
                plug = plugs.get(point.op.name)
                call = backend.call(stream, point, plug, take(point.op.name))
                names = looks.get(point.op.name)
                if names:
                    call = _then(call, backend.look(names, point))
                held, returned = locks.get(point.op.name, ()), backend.returned(point)
                step = op_step(section, stream, point, desk, call, held, stamp, returned)
                if rounds is not None:
                    rounds.add_op(step, -linear_shift(point.iteration or Int(0), section.index or ""))
                steps.append(guarded(step, as_test(point.when, section.index, desk.params)))
            elif rounds is not None:
                rounds.add_wait(point, behind[number]) if isinstance(point, WaitPoint) else rounds.add_record(point)
            elif isinstance(point, WaitPoint):
                waiting = wait_step(program, stream, section, point, desk, backend, behind[number])
                if waiting is not None:
                    steps.append(waiting)
            else:
                steps.append(record_step(stream, point, desk, backend, sleepers.get(point.number, ())))
        used = names_of_part(section, points) | _names_before(program, section, points)
        parts.append(Part(section, tuple(steps), used, rounds))
    return parts


def _names_before(program: Program, section: Section, points: Sequence[Point]) -> frozenset[str]:
    """What must be known to find which iteration of an earlier loop a wait means."""
    found = {wait.event for wait in points if isinstance(wait, WaitPoint)}
    records = [record for event in found for record in program.by_event.get(event, ())]
    homes = [program.sections[record.place.section] for record in records]
    return frozenset().union(*(names_in(home.hi) for home in homes if home.number < section.number))


def _then(call: Call, look: Call) -> Call:
    def both(i: int) -> object:
        call(i)
        return look(i)

    return both


def find_sleepers(program: Program) -> dict[int, tuple[int, ...]]:
    """By record number: the streams that may wait for it (all that wait for its event, in any section)."""
    waiting: dict[str, dict[int, None]] = {}
    for stream in program.streams:
        for _, points in stream.parts:
            for point in points:
                if isinstance(point, WaitPoint):
                    waiting.setdefault(point.event, {})[stream.number] = None
    return {
        record.number: tuple(stream for stream in waiting.get(record.event, ()) if stream != record.stream)
        for record in program.records
    }


def _ops_behind(points: Sequence[Point], desk: Desk) -> list[int]:
    """For each point the op at or behind it (the last one where none follows)."""
    ops = [desk.numbers[point.op.name] if isinstance(point, OpPoint) else -1 for point in points]
    last = next((op for op in reversed(ops) if op >= 0), -1)
    for number in range(len(ops) - 1, -1, -1):
        last = ops[number] if ops[number] >= 0 else last
        ops[number] = last
    return ops
