"""The schedule: streams, events and the exact order in which the host issues everything, as data.

Three things share this model: what people wrote by hand, what ``compile`` writes, and what a capture of a real run
yields. Nothing is implied here: an access without a version is version 0, an op belongs to the stream that its step
names, and the only order is the one that section "Meaning" of ``docs/schedule.md`` lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from dagsched.diagnostics import Source, Where
from dagsched.plan.expressions import Condition, Expr
from dagsched.plan.model import Access, Place

EventModel = Literal["latch", "flag", "reevaluate"]


@dataclass(frozen=True, slots=True)
class Indexed:
    """A name with an optional index: the stream ``s@i%2``, the event ``done@i-2``."""

    name: str
    index: Expr | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """``engine`` says where a compiled schedule's stream runs; ``host`` marks a host thread that acts as a stream."""

    name: str
    nonblocking: bool = False
    host: bool = False
    engine: str | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """``ring`` m: ``E@x`` is handle ``x mod m``; ``None``: one handle for every value of x."""

    name: str
    ring: int | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """A buffer of a schedule.

    ``alias`` names the buffer whose storage this is; ``at`` places it at [lo, hi) of ``space``, so that two buffers of
    one space can overlap. ``size``, ``shape`` and ``dtype`` are known in compiled schedules only.
    """

    name: str
    place: Place | None = None
    ring: int = 1
    space: str | None = None
    at: tuple[int, int] | None = None
    alias: str | None = None
    size: int | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    where: Where | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Protected:
    """A hazard that a wait protects: ``before`` and ``after`` are op instances as text (``infer@i-2``)."""

    before: str
    after: str
    buffer: str | None
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What all steps share: a guard, a name to refer to it by, and its place in the file."""

    when: Condition = ()
    label: str | None = None
    where: Where | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class OpStep(Step):
    """A device op (or a host function on a host stream).

    ``iteration`` says which of the plan's iterations it is (``op: download@i-1``); None: that of the loop around it.
    """

    stream: Indexed
    op: str
    accesses: tuple[Access, ...] = ()
    iteration: Expr | None = None


@dataclass(frozen=True, slots=True)
class HostStep(Step):
    """A host action on the issuing thread, named by its ``host:`` value."""

    host: str
    accesses: tuple[Access, ...] = ()


@dataclass(frozen=True, slots=True)
class FreeStep(Step):
    """A host action that destroys the contents of a buffer; it orders nothing."""

    access: Access


@dataclass(frozen=True, slots=True)
class EventStep(Step):
    """``record``, ``wait`` or ``reset`` of an event; without a stream the issuing thread does it itself."""

    action: Literal["record", "wait", "reset"]
    event: Indexed
    stream: Indexed | None = None
    protects: tuple[Protected, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitStreamStep(Step):
    """Record on ``target`` now; ``stream`` waits for that."""

    stream: Indexed
    target: Indexed


@dataclass(frozen=True, slots=True)
class SyncStep(Step):
    """The host waits for a stream, for an event's newest record, or for everything (``target`` is None)."""

    kind: Literal["stream", "event", "device"]
    target: Indexed | None = None


@dataclass(frozen=True, slots=True)
class FlagStep(Step):
    """``set``/``take`` of a counting flag pair, ``acquire``/``release`` of a lock."""

    action: Literal["set", "take", "acquire", "release"]
    flag: Indexed
    stream: Indexed | None = None


@dataclass(frozen=True, slots=True)
class LoopStep(Step):
    """``steps`` once for each value of ``index`` in [lo, hi)."""

    index: str
    lo: Expr
    hi: Expr
    steps: tuple[AnyStep, ...]


AnyStep = OpStep | HostStep | FreeStep | EventStep | WaitStreamStep | SyncStep | FlagStep | LoopStep


@dataclass(frozen=True, slots=True)
class Schedule:
    """A whole schedule.

    ``streams`` and ``events`` hold what was declared (a name used in a step needs no declaration). A compiled schedule
    carries ``plan`` (``{"name": ..., "digest": ...}``) and ``predicted``, where the cost model gave figures.
    """

    name: str
    steps: tuple[AnyStep, ...]
    event_model: EventModel = "latch"
    default_stream: Literal["none", "legacy"] = "none"
    params: dict[str, int | None] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    events: dict[str, Event] = field(default_factory=dict)
    buffers: dict[str, Storage] = field(default_factory=dict)
    plan: dict[str, str] | None = None
    device: str | dict[str, Any] | None = None
    predicted: dict[str, Any] | None = None
    source: Source | None = field(default=None, compare=False)

    def walk(self) -> Iterator[AnyStep]:
        """Every step in the order written, loops before what they hold."""
        stack = [iter(self.steps)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            yield step
            if isinstance(step, LoopStep):
                stack.append(iter(step.steps))
