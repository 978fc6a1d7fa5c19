"""Which lines a picture of a schedule has: waits, stream order, and hazards that these two already imply.

Waits come from ``issue.py``, which goes through the steps as the host would. So a picture shows what the schedule does,
not what it was meant to do, and works for schedules that people wrote by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dagsched.hazards.model import Hazards
from dagsched.schedule.model import AnyStep, LoopStep, Schedule
from dagsched.view.issue import op_of, wait_pairs

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
            name, stream = op_of(step)
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


def _stream_of(schedule: Schedule) -> dict[str, str]:
    pairs = (op_of(step) for step in schedule.walk())
    return {name: stream for name, stream in pairs if name is not None}


def _stream_order(schedule: Schedule) -> tuple[Edge, ...]:
    """Each op and the next one on its stream, once a pair."""
    last: dict[str, str] = {}
    found: dict[tuple[str, str], None] = {}
    for step in schedule.walk():
        name, stream = op_of(step)
        if name is None:
            continue
        if last.get(stream, name) != name:
            found[last[stream], name] = None
        last[stream] = name
    return tuple(Edge("order", before, after) for before, after in found)


def _waits(schedule: Schedule, hazards: Hazards | None) -> tuple[Edge, ...]:
    """One edge for each pair of ops that a wait orders directly, with what it is for."""
    reasons = _reasons(hazards)
    found: dict[tuple[str, str, int], dict[str, None]] = {}
    for pair in wait_pairs(schedule):
        key = pair.before, pair.after, pair.distance
        said = tuple(dict.fromkeys(_text_of(entry.kind, entry.buffer) for entry in pair.protects))
        found.setdefault(key, {}).update(dict.fromkeys(reasons.get(key, said)))
    return tuple(Edge("wait", *key, texts=tuple(why)) for key, why in found.items())


def _reasons(hazards: Hazards | None) -> dict[tuple[str, str, int], tuple[str, ...]]:
    texts: dict[tuple[str, str, int], dict[str, None]] = {}
    for hazard in hazards.entries if hazards else ():
        pair = hazard.before, hazard.after, hazard.distance or 0
        texts.setdefault(pair, {})[_text_of(hazard.kind, hazard.buffer)] = None
    return {pair: tuple(why) for pair, why in texts.items()}


def _text_of(kind: str, buffer: str | None) -> str:
    return f"{kind} {buffer}" if buffer else kind


def _implied(hazards: Hazards | None, drawn: set[tuple[str, str, int]], streams: dict[str, str]) -> Iterator[Edge]:
    for (before, after, distance), texts in _reasons(hazards).items():
        between = before in streams and after in streams and streams[before] != streams[after]
        if between and (before, after, distance) not in drawn:
            yield Edge("implied", before, after, distance, texts)
