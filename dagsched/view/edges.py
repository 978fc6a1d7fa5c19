"""Which lines a picture of a schedule has: waits, stream order, and hazards that these two already imply.

Reads the steps as the device would: the op that an event stands for is the last one on the recording stream, the op
that a wait holds back is the next one on the waiting stream. So a picture shows what the schedule does, not what it
was meant to do, and works for schedules that people wrote by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dagsched.hazards.model import Hazard, Hazards
from dagsched.plan.expressions import Expr, Int, combine, linear_in
from dagsched.schedule.model import AnyStep, EventStep, HostStep, LoopStep, OpStep, Schedule, WaitStreamStep

EdgeKind = Literal["wait", "order", "implied"]


@dataclass(frozen=True, slots=True)
class Edge:
    """One line. ``distance`` counts iterations where it crosses some; ``texts`` say why it is there (``RAW image``)."""

    kind: EdgeKind
    before: str
    after: str
    distance: int = 0
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Ops of one loop (or of none) in the order issued, each with the stream it is on."""

    loop: LoopStep | None
    ops: tuple[tuple[str, str], ...]


def groups_of(schedule: Schedule) -> tuple[Group, ...]:
    """The ops of a schedule by the outermost loop that holds them, in the order issued; each op once."""
    groups: list[Group] = []
    seen: set[str] = set()
    for loop, steps in _sections(schedule.steps):
        ops = []
        for step in _flat(steps):
            name, stream = _op_of(step)
            if name is not None and name not in seen:
                seen.add(name)
                ops.append((name, stream))
        if ops:
            groups.append(Group(loop, tuple(ops)))
    return tuple(groups)


def edges_of(schedule: Schedule, hazards: Hazards | None = None) -> tuple[Edge, ...]:
    """All lines of the picture: waits, stream order, and hazards between streams that need no wait of their own."""
    waits = _waits(schedule, hazards)
    order = _stream_order(schedule)
    drawn = {(edge.before, edge.after, edge.distance) for edge in (*waits, *order)}
    return (*waits, *order, *_implied(hazards, drawn, _stream_of(schedule)))


def _sections(steps: Iterable[AnyStep]) -> Iterator[tuple[LoopStep | None, tuple[AnyStep, ...]]]:
    """Runs of steps outside loops, and loops, in order."""
    run: list[AnyStep] = []
    for step in steps:
        if isinstance(step, LoopStep):
            yield None, tuple(run)
            yield step, step.steps
            run = []
        else:
            run.append(step)
    yield None, tuple(run)


def _flat(steps: Iterable[AnyStep]) -> Iterator[AnyStep]:
    for step in steps:
        yield step
        if isinstance(step, LoopStep):
            yield from _flat(step.steps)


def _op_of(step: AnyStep) -> tuple[str | None, str]:
    """The op that a step issues and its stream; host actions of the issuing thread are on the stream ````."""
    if isinstance(step, OpStep):
        return step.op, step.stream.name
    return (step.host, "") if isinstance(step, HostStep) else (None, "")


def _stream_of(schedule: Schedule) -> dict[str, str]:
    pairs = (_op_of(step) for step in schedule.walk())
    return {name: stream for name, stream in pairs if name is not None}


def _stream_order(schedule: Schedule) -> tuple[Edge, ...]:
    """Each op and the next one on its stream, once a pair."""
    last: dict[str, str] = {}
    found: dict[tuple[str, str], None] = {}
    for step in schedule.walk():
        name, stream = _op_of(step)
        if name is None:
            continue
        if last.get(stream, name) != name:
            found[last[stream], name] = None
        last[stream] = name
    return tuple(Edge("order", before, after) for before, after in found)


@dataclass(frozen=True, slots=True)
class _Record:
    op: str
    loop: LoopStep | None
    index: Expr | None


def _waits(schedule: Schedule, hazards: Hazards | None) -> tuple[Edge, ...]:
    """One edge for each pair of ops that a wait orders directly, with what it is for."""
    records = _records(schedule)
    reasons = _reasons(hazards)
    found: dict[tuple[str, str, int], dict[str, None]] = {}
    for loop, steps in _sections(schedule.steps):
        pending: dict[str, list[tuple[str, int, tuple[str, ...]]]] = {}
        for step in _flat(steps):
            if isinstance(step, EventStep) and step.action == "wait":
                stream = step.stream.name if step.stream else ""
                texts = tuple(f"{entry.kind} {entry.buffer}" if entry.buffer else entry.kind for entry in step.protects)
                for record in records.get(step.event.name, ()):
                    distance = _distance(record, loop, step.event.index)
                    pending.setdefault(stream, []).append((record.op, distance, texts))
            elif isinstance(step, WaitStreamStep):
                source = _last_before(schedule, step)
                if source:
                    pending.setdefault(step.stream.name, []).append((source, 0, ()))
            name, stream = _op_of(step)
            if name is None:
                continue
            for before, distance, texts in pending.pop(stream, ()):
                why = found.setdefault((before, name, distance), {})
                why.update(dict.fromkeys(reasons.get((before, name, distance), texts)))
        # A wait at the end of its section holds back the first op that follows on its stream.
        for stream, waiting in pending.items():
            target = _first_after(schedule, loop, steps, stream)
            for before, distance, texts in waiting if target else ():
                found.setdefault((before, target or "", distance), {}).update(dict.fromkeys(texts))
    return tuple(Edge("wait", *pair, texts=tuple(why)) for pair, why in found.items() if pair[0] != pair[1] or pair[2])


def _records(schedule: Schedule) -> dict[str, list[_Record]]:
    """For each event, the ops that its records stand behind."""
    records: dict[str, list[_Record]] = {}
    last: dict[str, str] = {}
    for loop, steps in _sections(schedule.steps):
        for step in _flat(steps):
            name, stream = _op_of(step)
            if name is not None:
                last[stream] = name
            if isinstance(step, EventStep) and step.action == "record":
                stream = step.stream.name if step.stream else ""
                if stream in last:
                    records.setdefault(step.event.name, []).append(_Record(last[stream], loop, step.event.index))
    return records


def _distance(record: _Record, loop: LoopStep | None, waited: Expr | None) -> int:
    """Iterations between a record and a wait of one loop; 0 elsewhere and where the index does not say."""
    if loop is None or record.loop is not loop or record.index is None or waited is None:
        return 0
    ours, theirs = linear_in(record.index, loop.index), linear_in(waited, loop.index)
    if ours is None or theirs is None or ours[0] != theirs[0] or ours[0] == 0:
        return 0
    difference = combine("-", ours[1], theirs[1])
    return max(0, difference.value // ours[0]) if isinstance(difference, Int) else 0


def _last_before(schedule: Schedule, step: WaitStreamStep) -> str | None:
    last = None
    for other in schedule.walk():
        if other is step:
            return last
        name, stream = _op_of(other)
        if name is not None and stream == step.target.name:
            last = name
    return None


def _first_after(schedule: Schedule, loop: LoopStep | None, steps: tuple[AnyStep, ...], stream: str) -> str | None:
    """The first op on a stream after a section; at a loop's end that is its own first op, one iteration later."""
    if loop is not None:
        inside = (name for name, on in map(_op_of, _flat(steps)) if name is not None and on == stream)
        return next(inside, None)
    passed = not steps
    for step in schedule.walk():
        name, on = _op_of(step)
        if passed and name is not None and on == stream:
            return name
        passed = passed or step is steps[-1]
    return None


def _reasons(hazards: Hazards | None) -> dict[tuple[str, str, int], tuple[str, ...]]:
    texts: dict[tuple[str, str, int], dict[str, None]] = {}
    for hazard in hazards.entries if hazards else ():
        texts.setdefault((hazard.before, hazard.after, hazard.distance or 0), {})[_reason(hazard)] = None
    return {pair: tuple(why) for pair, why in texts.items()}


def _reason(hazard: Hazard) -> str:
    return f"{hazard.kind} {hazard.buffer}" if hazard.buffer else hazard.kind


def _implied(hazards: Hazards | None, drawn: set[tuple[str, str, int]], streams: dict[str, str]) -> Iterator[Edge]:
    for (before, after, distance), texts in _reasons(hazards).items():
        between = before in streams and after in streams and streams[before] != streams[after]
        if between and (before, after, distance) not in drawn:
            yield Edge("implied", before, after, distance, texts)
