"""What every stream is at just now, read from the outside while it goes on: a snapshot, good enough for people."""

from __future__ import annotations

from dagsched.run.errors import Head, instance
from dagsched.run.program import StreamProgram
from dagsched.run.rounds import twin_round
from dagsched.run.setup import Setup
from dagsched.run.sources import ENDLESS

DONE = -2
"""The op number of a stream that has come to its end (-1: it has not begun an op)."""


def list_heads(setup: Setup, besides: int | None = None) -> tuple[Head, ...]:
    """The head of every stream, but for the one numbered ``besides``."""
    return tuple(find_head(setup, stream) for stream in setup.program.streams if stream.number != besides)


def heads_text(heads: tuple[Head, ...]) -> str:
    """All that are not done, in one line."""
    return "; ".join(str(head) for head in heads if head.state != "is done")


def find_head(setup: Setup, stream: StreamProgram) -> Head:
    """Which op a stream runs, or before which op it waits, and for what."""
    number, desk = stream.number, setup.desk
    op, record, iteration = desk.op[number], setup.board.asleep_on[number], desk.iteration[number]
    if op == DONE:
        return Head(stream.name, "is done")
    if record >= 0:
        before = desk.before[number]
        name = setup.names[before] if before >= 0 else None
        awaited = _awaited(setup, record, setup.board.needs[number])
        return Head(stream.name, "waits for", name, _own(setup, name, iteration), awaited)
    if op < 0:
        return Head(stream.name, "begins")
    name = setup.names[op]
    return Head(stream.name, "runs", name, _own(setup, name, iteration))


def _own(setup: Setup, name: str | None, iteration: int) -> int | None:
    return None if name is None else setup.points[name].own(iteration)


def _awaited(setup: Setup, record: int, needed: int) -> str:
    program = setup.program
    original = next((number for number, twin in program.twins.items() if twin == record), None)
    if original is not None:
        record, needed = original, twin_round(needed)
    if record < len(program.records):
        point = program.records[record]
        looped = program.sections[point.place.section].index is not None
        own = setup.points[point.op].own(needed) if looped and point.op in setup.points else None
        return f"`{instance(point.op, own)}` on `{program.streams[point.stream].name}`"
    if record == setup.taken:
        return "somebody to fetch results"
    param = next(param for param, number in setup.pulled.items() if number == record)
    return f"item {needed} of `{param}`" if needed < ENDLESS - 1 else f"the end of `{param}`"
