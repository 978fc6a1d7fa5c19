"""From a run's tape to a timeline: spans by stream, and an arrow for every wait from the op recorded to the op behind.

An arrow ``binds`` where the stream slept in its wait; the span behind it says for what and for how long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dagsched.cost.engines import engine_for
from dagsched.cost.model import Device
from dagsched.plan.expressions import Expr
from dagsched.run.bindings import Bound, Fixed, bind_wait
from dagsched.run.errors import instance
from dagsched.run.numbers import as_number, as_test
from dagsched.run.program import OpPoint, Program, Section, StreamProgram, WaitPoint
from dagsched.run.tape import Tape
from dagsched.timeline import Flow, Span, Timeline

_Key = tuple[int, int]
"""Op number and the index of the schedule's loop."""


def make_timeline(
    program: Program, device: Device, tape: Tape, counts: Mapping[str, int], start: int, seconds: float, source: str
) -> Timeline:
    """The timeline of a run that began at ``start`` (nanoseconds of the clock that the tape used)."""
    points = [p for s in program.streams for _, part in s.parts for p in part if isinstance(p, OpPoint)]
    engines = [engine_for(point.op, program.plan, device).name for point in points]
    numbers = {point.op.name: number for number, point in enumerate(points)}
    causes = _causes(program, points, tape)
    spans: list[Span] = []
    place: dict[_Key, int] = {}
    for stream in program.streams:
        for op, i, began, ended in tape.ops[stream.number]:
            place[op, i] = len(spans)
            point = points[op]
            own = point.own(i)
            spans.append(
                Span(
                    track=stream.name,
                    name=point.op.name,
                    start=(began - start) / 1e9,
                    end=(ended - start) / 1e9,
                    iteration=own,
                    engine=engines[op],
                    causes=tuple(causes.get((op, i), ())),
                )
            )
    slept = {(op, i, record) for marks in tape.waits for op, i, record, *_ in marks}

    def binds(op: int, i: int, record: int, before: int, after: int) -> bool:
        return (op, i, record) in slept

    flows = find_flows(program, numbers, place, counts, binds)
    dropped = any(len(marks) == tape.limit for marks in tape.ops)
    notes = (f"only the last {tape.limit:,} ops of a stream were kept",) if dropped else ()
    tracks = tuple(stream.name for stream in program.streams)
    return Timeline(program.plan.name, tracks, tuple(spans), flows, seconds, source, notes)


def _causes(program: Program, points: list[OpPoint], tape: Tape) -> dict[_Key, list[str]]:
    """What ops had to wait for, in words."""
    found: dict[_Key, list[str]] = {}
    owners = {point.op.name: point for point in points}
    for marks in tape.waits:
        for op, i, record, needed, began, ended in marks:
            if record < len(program.records):
                point = program.records[record]
                looped = program.sections[point.place.section].index is not None
                own = owners[point.op].own(needed) if looped and point.op in owners else None
                name = instance(point.op, own)
                text = f"waited {(ended - began) / 1e3:.1f} us for {name} on {program.streams[point.stream].name}"
                found.setdefault((op, i), []).append(text)
    return found


def find_flows(
    program: Program,
    numbers: Mapping[str, int],
    place: Mapping[_Key, int],
    counts: Mapping[str, int],
    binds: Callable[[int, int, int, int, int], bool],
) -> tuple[Flow, ...]:
    """An arrow for every wait between two spans.

    ``place`` says which span an op (by number) has in an iteration; ``binds`` is asked with op, iteration, record and
    the two spans.
    """
    flows: list[Flow] = []
    iterations: dict[int, list[int]] = {}
    for op, i in place:
        iterations.setdefault(op, []).append(i)
    for stream in program.streams:
        for section, wait, op in _waits(stream, numbers):
            bound = bind_wait(program, wait, section, counts)
            if bound is None:
                continue
            test = as_test(wait.when, section.index, counts)
            for i in iterations.get(op, ()):
                found = _resolve(bound, i)
                if found is None or (test is not None and not test(i)):
                    continue
                record, needed = found
                before = place.get((numbers.get(program.records[record].op, -1), needed))
                if before is not None:
                    event = _event_text(wait.event, wait.index, section, counts, i)
                    after = place[op, i]
                    flows.append(Flow(before, after, event, binds(op, i, record, before, after)))
    return tuple(sorted(flows, key=lambda flow: (flow.after, flow.before)))


def _waits(stream: StreamProgram, numbers: Mapping[str, int]) -> list[tuple[Section, WaitPoint, int]]:
    """Every wait of a stream with the op behind it in the same section."""
    found = []
    for section, points in stream.parts:
        pending: list[WaitPoint] = []
        for point in points:
            if isinstance(point, WaitPoint):
                pending.append(point)
            elif isinstance(point, OpPoint):
                found += [(section, wait, numbers[point.op.name]) for wait in pending]
                pending = []
    return found


def _resolve(bound: Fixed | Bound, i: int) -> tuple[int, int] | None:
    if not isinstance(bound, Fixed):
        return bound(i)
    if i + bound.back >= bound.lo:
        return bound.number, i + bound.back
    return bound.early(i) if bound.early is not None else None


def _event_text(event: str, index: Expr | None, section: Section, counts: Mapping[str, int], i: int) -> str:
    return event if index is None else f"{event}@{as_number(index, section.index, counts)(i)}"
