"""From a compiled schedule to one program for each stream, which its own thread can follow without an issuing thread.

A stream's program is the part of the schedule that concerns it: its ops, its waits and its records, in issue order.
Every record step has a number; once the stream has passed it in iteration i its *progress* is i + 1, and a wait is a
number that a record's progress must exceed. So no event handle is needed, and none can be reused too early.

Invariant: a wait is bound as the event model ``latch`` says, to the record of its handle that is issued last before it
(:mod:`dagsched.run.bindings` works out which that is from the order of the steps).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from dagsched.compiled import Compiled
from dagsched.diagnostics import Where
from dagsched.plan.expressions import Condition, Expr, Int, Name, evaluate, expression_text, linear_in, names_in
from dagsched.plan.model import Loop, Op, Plan
from dagsched.run.errors import refuse
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Protected,
    Schedule,
    Step,
    SyncStep,
    WaitStreamStep,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a step stands: in which section of the schedule, and at which position within it."""

    section: int
    position: int


@dataclass(frozen=True, slots=True)
class RecordPoint:
    """A record step: ``event`` at ``index`` (None: its only handle) after ``op``, by ``stream``."""

    number: int
    event: str
    index: Expr | None
    when: Condition
    stream: int
    op: str
    place: Place


@dataclass(frozen=True, slots=True)
class WaitPoint:
    """A wait step of a stream."""

    event: str
    index: Expr | None
    when: Condition
    protects: tuple[Protected, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class OpPoint:
    """An op of a stream; ``iteration`` is its own loop's index in terms of the section's (None outside loops)."""

    op: Op
    loop: Loop | None
    iteration: Expr | None
    when: Condition

    def own(self, i: int) -> int | None:
        """The op's own iteration in iteration i of the schedule's loop; None outside loops."""
        if self.iteration is None:
            return None
        return evaluate(self.iteration, dict.fromkeys(names_in(self.iteration), i))

    def issued(self, own: int | None) -> int:
        """The iteration of the schedule's loop in which the op's own iteration is issued; 0 outside loops."""
        if own is None or self.iteration is None:
            return 0
        return own - sum(linear_shift(self.iteration, name) for name in names_in(self.iteration))


def linear_shift(expr: Expr, index: str) -> int:
    """``c`` of an iteration ``index + c``."""
    linear = linear_in(expr, index)
    return linear[1].value if linear is not None and isinstance(linear[1], Int) else 0


Point = OpPoint | WaitPoint | RecordPoint


@dataclass(frozen=True, slots=True)
class Section:
    """A loop of the schedule, or the steps between two loops (``index`` is None); ``where`` is the plan's loop."""

    number: int
    index: str | None
    lo: Expr
    hi: Expr
    loop: Loop | None

    @property
    def counted(self) -> str | None:
        """The parameter that is the number of the loop's iterations, where it is one parameter's value."""
        count = self.loop.count if self.loop is not None and self.index is not None else None
        moves = isinstance(count, Name) and linear_in(self.hi, count.name) is not None and self.lo == Int(0)
        return count.name if isinstance(count, Name) and moves else None

    @property
    def late(self) -> int:
        """How many rounds more than iterations such a loop has, as some of its ops are issued so many rounds late."""
        return linear_shift(self.hi, self.counted) if self.counted is not None else 0


@dataclass(frozen=True, slots=True)
class StreamProgram:
    """What one stream does in each section; sections without a part of the stream are left out."""

    number: int
    name: str
    host: bool
    engine: str | None
    priority: int | None
    parts: tuple[tuple[Section, tuple[Point, ...]], ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A whole schedule by stream.

    ``by_event`` has the record steps of each event in the order of the steps, ``rings`` the lengths of the events'
    rings (None: a handle for each index).
    ``twins`` numbers, behind all records, a second counter for each record of a loop whose ops are issued late
    (:mod:`dagsched.run.rounds` says what for).
    """

    plan: Plan
    schedule: Schedule
    sections: tuple[Section, ...]
    streams: tuple[StreamProgram, ...]
    records: tuple[RecordPoint, ...]
    by_event: dict[str, list[RecordPoint]]
    rings: dict[str, int | None]
    twins: dict[int, int]


def split_streams(compiled: Compiled) -> Program:
    """The programs of a compiled schedule's streams; raises :class:`UsageError` (R101) for hand-written steps."""
    return _Splitter(compiled).split()


class _Splitter:
    """One walk over the steps, with what has been found for each stream."""

    def __init__(self, compiled: Compiled) -> None:
        self.plan, self.schedule = compiled.resolved, compiled.schedule
        self.ops: dict[str, tuple[Op, Loop | None]] = {}
        for item in self.plan.items:
            if isinstance(item, Op):
                self.ops[item.name] = (item, None)
            else:
                self.ops |= {op.name: (op, item) for op in item.body if isinstance(op, Op)}
        self.numbers: dict[str, int] = {}
        self.found: list[list[tuple[Section, list[Point]]]] = []
        self.records: list[RecordPoint] = []
        self.sections: list[Section] = []
        self.op_before: dict[int, str] = {}
        self.synced: Step | None = None

    def split(self) -> Program:
        if self.schedule.event_model != "latch":
            self.refuse(f"events of the model `{self.schedule.event_model}`", None)
        for name in self.schedule.streams:
            self.stream(name)
        straight: list[AnyStep] = []
        for step in self.schedule.steps:
            if isinstance(step, LoopStep):
                self.straight(straight)
                straight = []
                self.loop(step)
            else:
                straight.append(step)
        self.straight(straight)
        streams = tuple(
            StreamProgram(number, name, *self.kind(name), tuple((s, tuple(points)) for s, points in self.found[number]))
            for name, number in self.numbers.items()
        )
        by_event: dict[str, list[RecordPoint]] = {}
        for record in self.records:
            by_event.setdefault(record.event, []).append(record)
        rings = {event: self.ring(event) for event in by_event}
        late = [record.number for record in self.records if self.sections[record.place.section].late]
        twins = {number: len(self.records) + place for place, number in enumerate(late)}
        sections, records = tuple(self.sections), tuple(self.records)
        return Program(self.plan, self.schedule, sections, streams, records, by_event, rings, twins)

    def kind(self, name: str) -> tuple[bool, str | None, int | None]:
        declared = self.schedule.streams.get(name)
        return (declared.host, declared.engine, declared.priority) if declared else (False, None, None)

    def ring(self, event: str) -> int | None:
        declared = self.schedule.events.get(event)
        return declared.ring if declared else None

    def straight(self, steps: list[AnyStep]) -> None:
        if steps:
            self.section(Section(len(self.sections), None, Int(0), Int(1), None), steps)

    def loop(self, step: LoopStep) -> None:
        if step.when:
            self.refuse("a loop with a condition", step.where)
        names = [inner.op.split("@")[0] if inner.op not in self.ops else inner.op
                 for inner in step.steps if isinstance(inner, OpStep)]  # fmt: skip
        loops = [self.ops[name][1] for name in names if name in self.ops]
        plan_loop = next((loop for loop in loops if loop is not None), None)
        self.section(Section(len(self.sections), step.index, step.lo, step.hi, plan_loop), list(step.steps))

    def section(self, section: Section, steps: list[AnyStep]) -> None:
        self.sections.append(section)
        for position, step in enumerate(steps):
            self.step(section, Place(section.number, position), step)

    def step(self, section: Section, place: Place, step: AnyStep) -> None:
        if isinstance(step, SyncStep) and section.index is None:
            self.synced = step
            return
        if self.synced is not None:
            self.refuse("a sync before the end", self.synced.where)
        if isinstance(step, OpStep):
            self.add(section, self.target(step.stream, step), self.op_point(section, step))
            self.op_before[self.target(step.stream, step)] = step.op
        elif isinstance(step, EventStep) and step.stream is not None and step.action == "wait":
            wait = WaitPoint(step.event.name, step.event.index, step.when, step.protects, place)
            self.add(section, self.target(step.stream, step), wait)
        elif isinstance(step, EventStep) and step.stream is not None and step.action == "record":
            stream = self.target(step.stream, step)
            op = self.op_before.get(stream, self.schedule.name)
            record = RecordPoint(
                len(self.records), step.event.name, step.event.index, step.when, stream, op, place
            )  # fmt: skip
            self.records.append(record)
            self.add(section, stream, record)
        else:
            self.refuse(kind_of(step), step.where)

    def op_point(self, section: Section, step: OpStep) -> OpPoint:
        name, iteration = step.op, step.iteration
        if name not in self.ops:
            self.refuse(f"the op `{step.op}`, which the plan does not have", step.where)
        op, loop = self.ops[name]
        if loop is not None and iteration is None:
            iteration = Int(0) if section.index is None else Name(section.index)
        return OpPoint(op, loop, iteration, step.when)

    def target(self, stream: Indexed, step: Step) -> int:
        if stream.index is not None:
            self.refuse(f"the indexed stream `{stream.name}@{expression_text(stream.index)}`", step.where)
        return self.stream(stream.name)

    def stream(self, name: str) -> int:
        number = self.numbers.setdefault(name, len(self.numbers))
        if number == len(self.found):
            self.found.append([])
        return number

    def add(self, section: Section, stream: int, point: Point) -> None:
        parts = self.found[stream]
        if not parts or parts[-1][0].number != section.number:
            parts.append((section, []))
        parts[-1][1].append(point)

    def refuse(self, what: str, where: Where | None) -> NoReturn:
        headline = f"a schedule with {what} cannot be run"
        source = self.schedule.source or self.plan.source  # a compiled schedule's places are the plan's
        help_ = "write the work as a plan, and run what `dagsched.compile` makes of it"
        raise refuse("R101", headline, where, source if where else None, help=help_)


def kind_of(step: Step) -> str:
    """A step that no backend runs, by the key that it has in a file."""
    match step:
        case EventStep() | FlagStep():
            return f"the step `{step.action}`{'' if step.stream else ' without a stream'}"
        case HostStep():
            return "the step `host`, which the issuing thread does itself,"
        case FreeStep():
            return "the step `free`"
        case WaitStreamStep():
            return "the step `wait_stream`"
        case _:
            return "a sync or a loop inside a loop"
