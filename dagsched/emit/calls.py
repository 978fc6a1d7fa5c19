"""The calls of a program, neutral of the runtime: what every target prints in its own words.

Invariant: executing ``body`` from top to bottom issues exactly what the schedule issues, in the same order; every
version, offset and event index is an expression over the parameters and the indices of the loops around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from dagsched.emit.blocks import Block
from dagsched.emit.functions import Function
from dagsched.plan.expressions import Condition, Expr, condition_text, expression_text
from dagsched.plan.model import Buffer, Mode, OpKind
from dagsched.schedule.model import Protected

Direction = Literal["host to device", "device to host", "device to device", "host to host"]


@dataclass(frozen=True, slots=True)
class Queue:
    """A stream; ``host`` marks one that runs host functions, ``engine`` is for people."""

    name: str
    host: bool
    engine: str | None
    priority: int | None


@dataclass(frozen=True, slots=True)
class Handles:
    """A group of event handles: number x mod ``ring`` serves index x."""

    name: str
    ring: int


@dataclass(frozen=True, slots=True)
class EventRef:
    name: str
    index: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``when`` guards a call; ``iteration`` is the value of the loop index that its op belongs to."""

    when: Condition = ()
    iteration: Expr | None = None


@dataclass(frozen=True, slots=True)
class Launch(Call):
    """Call a function: a compute function enqueues work on the stream, a host function is itself enqueued.

    ``arguments`` follow the function's parameters, ``indices`` its indices.
    """

    op: str
    stream: str
    function: Function
    arguments: tuple[Block, ...]
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Copy(Call):
    op: str
    stream: str
    source: Block
    target: Block
    direction: Direction


@dataclass(frozen=True, slots=True)
class Fill(Call):
    """Set every byte of ``target`` to ``value``; ``host`` where it is host memory."""

    op: str
    stream: str
    target: Block
    value: int
    host: bool


@dataclass(frozen=True, slots=True)
class Record(Call):
    event: EventRef
    stream: str
    op: str


@dataclass(frozen=True, slots=True)
class Wait(Call):
    """The stream waits for the event's newest record, for the sake of the hazards in ``protects``."""

    stream: str
    event: EventRef
    protects: tuple[Protected, ...]
    op: str


@dataclass(frozen=True, slots=True)
class Sync(Call):
    """The issuing thread waits for a stream, an event (``event``) or, where both are None, the device."""

    stream: str | None = None
    event: EventRef | None = None


@dataclass(frozen=True, slots=True)
class Repeat(Call):
    """``body`` once for each value of ``index`` in [lo, hi)."""

    index: str
    lo: Expr
    hi: Expr
    body: tuple[AnyCall, ...]


AnyCall = Launch | Copy | Fill | Record | Wait | Sync | Repeat


@dataclass(frozen=True, slots=True)
class CallList:
    """A whole program.

    ``params`` maps loop counts to their defaults; no count above ``max_count`` can be run, nor one above that in
    ``proved``, which has the counts at which the schedule's proof ends.
    """

    name: str
    digest: str
    version: str
    params: dict[str, int | None]
    max_count: int
    queues: tuple[Queue, ...]
    handles: tuple[Handles, ...]
    buffers: tuple[Buffer, ...]
    functions: tuple[Function, ...]
    body: tuple[AnyCall, ...]
    proved: dict[str, int] = field(default_factory=dict)

    def walk(self) -> Iterator[AnyCall]:
        """Every call in order, loops before what they hold."""
        return walk_calls(self.body)

    def __str__(self) -> str:
        lines = [f"calls of {self.name}", f"  digest {self.digest}, dagsched {self.version}"]
        lines += [f"param {n}" + (f" = {d}" if d is not None else "") for n, d in self.params.items()]
        lines += [f"at most {name} = {most}, where the proof ends" for name, most in self.proved.items()]
        lines += [_queue(queue) for queue in self.queues]
        lines += [f"event {group.name} x {group.ring}" for group in self.handles]
        lines += [_buffer(buffer) for buffer in self.buffers]
        lines += [f"function {_signature(function)}" for function in self.functions]
        return "\n".join([*lines, *_print(self.body, 0)]) + "\n"


def walk_calls(calls: tuple[AnyCall, ...]) -> Iterator[AnyCall]:
    """Every call in order, loops before what they hold."""
    for call in calls:
        yield call
        if isinstance(call, Repeat):
            yield from walk_calls(call.body)


def _queue(queue: Queue) -> str:
    engine = f" on {queue.engine}" if queue.engine else ""
    priority = f", priority {queue.priority}" if queue.priority is not None else ""
    return f"stream {queue.name}{engine}{' (host functions)' if queue.host else ''}{priority}"


def _buffer(buffer: Buffer) -> str:
    words = [f"buffer {buffer.name}: {buffer.place.value}, {buffer.size} bytes x {buffer.ring.depth or 1}"]
    words += [word for word in ("pageable", "input", "output", "dynamic") if getattr(buffer, word)]
    return ", ".join(words)


def _signature(function: Function) -> str:
    parameters = [f"{parameter.mode.value} {parameter.name}" for parameter in function.parameters]
    kind = "compute" if function.kind is OpKind.COMPUTE else "host"
    return f"{kind} {function.name}({', '.join([*parameters, *function.indices])})"


def _print(calls: tuple[AnyCall, ...], depth: int) -> Iterator[str]:
    for call in calls:
        guard = f"when {condition_text(call.when)}: " if call.when else ""
        yield "  " * depth + guard + _line(call)
        if isinstance(call, Repeat):
            yield from _print(call.body, depth + 1)


def _line(call: AnyCall) -> str:
    if isinstance(call, Repeat):
        return f"loop {call.index} in [{expression_text(call.lo)}, {expression_text(call.hi)})"
    if isinstance(call, Sync):
        return f"sync {call.stream or (event_text(call.event) if call.event else 'the device')}"
    if isinstance(call, Record):
        return f"{call.stream}: record {event_text(call.event)}"
    if isinstance(call, Wait):
        reasons = "; ".join(reason_text(reason) for reason in call.protects)
        return f"{call.stream}: wait for {event_text(call.event)}" + (f"  # {reasons}" if reasons else "")
    if isinstance(call, Copy):
        return f"{call.stream}: {call.op}: copy {call.source.text} to {call.target.text}, {call.direction}"
    if isinstance(call, Fill):
        return f"{call.stream}: {call.op}: fill {call.target.text} with {call.value}"
    arguments = [
        f"{parameter.name}={block.text}{' (out)' if parameter.mode is not Mode.READ else ''}"
        for parameter, block in zip(call.function.parameters, call.arguments, strict=True)
    ]
    indices = [f"{n}={expression_text(x)}" for n, x in zip(call.function.indices, call.indices, strict=True)]
    return f"{call.stream}: {call.op}: call {call.function.name}({', '.join([*arguments, *indices])})"


def event_text(event: EventRef) -> str:
    """``upload.done@i-2``."""
    return f"{event.name}@{expression_text(event.index)}"


def reason_text(reason: Protected) -> str:
    """``infer@i-2 before upload@i (WAR on image)``."""
    on = f" on {reason.buffer}" if reason.buffer is not None else ""
    return f"{reason.before} before {reason.after} ({reason.kind}{on})"
