"""The shape of a schedule file, as pydantic models: the only place where the keys of the schedule language are listed.

The JSON schema is generated from these models, so each field carries its description and an example, and texts with a
grammar carry a pattern. What the values mean (accesses, indices, guards) is read by ``dagsched.schedule.reader``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from dagsched.diagnostics import closest
from dagsched.file_models import FileModel, Given, absent, complaint, kind_of, require_kind
from dagsched.plan.model import DTYPES
from dagsched.plan.units import SIZES

INDEXED_PATTERN = r"^[^@\[\]]+(@[^\[\]]+)?$"
ACCESS_PATTERN = r"^[^@\[\]]+(@[^\[\]]+)?(\[[^\[\]]+\]\s*)?$"
_SIZE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": rf"^\s*[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?\s*({'|'.join(SIZES)})?\s*$"},
    ]
}

Text = Annotated[str, Field(min_length=1)]
AccessText = Annotated[str, Field(min_length=1, json_schema_extra={"pattern": ACCESS_PATTERN})]
"""``NAME``, ``NAME@EXPR`` (a version) or ``NAME[lo:hi]`` (a region), or both."""
IndexedText = Annotated[str, Field(min_length=1, json_schema_extra={"pattern": INDEXED_PATTERN})]
"""``NAME`` or ``NAME@EXPR``: everything behind the first ``@`` is the index."""
Slots = Annotated[int, Field(ge=1, le=2**31 - 1)]
Address = Annotated[int, Field(ge=0, le=2**62)]
Bound = Annotated[int | Text, Field(description="An integer, or an expression over parameters and loop indices.")]


def _check_version(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value != 1:
        raise complaint("this version of the schedule language is not known", remedy="write `dagsched-schedule: 1`")
    return value


def _check_finite(value: Any) -> Any:
    """Refuse what JSON cannot say, anywhere inside plain data."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise complaint(f"`{item}` is no finite number", remedy="write a number")
        rest += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return value


class StreamEntry(FileModel):
    """A stream; one that is only named in steps needs no entry."""

    nonblocking: bool = Field(
        default=False, description="Does not synchronise with the legacy default stream.", examples=[True]
    )
    host: bool = Field(default=False, description="A host thread that acts as a stream.", examples=[True])
    engine: Given[Text] = Field(
        default_factory=absent, description="The engine that runs its ops (compiled schedules).", examples=["h2d"]
    )
    priority: Given[int] = Field(
        default_factory=absent, ge=-(2**31), le=2**31 - 1, description="Lower runs first.", examples=[0]
    )


class EventEntry(FileModel):
    """An event; one that is only named in steps has a handle for each value of its index."""

    ring: Given[Slots] = Field(
        default_factory=absent, description="`E@x` is handle `x mod ring`; without it, one for each x.", examples=[2]
    )


class StorageEntry(FileModel):
    """A buffer. One that is only named in steps is a block of its own."""

    place: Given[Literal["host", "device"]] = Field(
        default_factory=absent, description="Where the memory is.", examples=["device"]
    )
    ring: Slots = Field(default=1, description="Version v lives in slot `v mod ring`.", examples=[2])
    space: Given[Text] = Field(
        default_factory=absent, description="The memory space whose addresses `at` counts.", examples=["ub"]
    )
    at: Given[Annotated[list[Address], Field(min_length=2, max_length=2)]] = Field(
        default_factory=absent,
        description="First address, and the one behind the last; buffers of one space can overlap.",
        examples=[[0, 4096]],
    )
    alias: Given[Text] = Field(
        default_factory=absent, description="The buffer whose storage this is, under another name.", examples=["din"]
    )
    size: Given[int | str] = Field(
        default_factory=absent,
        description="Bytes of one slot, or a number with a unit (kB, MB, GB, KiB, MiB, GiB).",
        examples=[4096],
        json_schema_extra=_SIZE_SCHEMA,
    )
    shape: Given[list[Annotated[int, Field(ge=1)]]] = Field(
        default_factory=absent,
        min_length=1,
        max_length=32,
        description="Elements along each axis; regions then count elements.",
        examples=[[1, 3, 640, 640]],
    )
    dtype: Given[Text] = Field(
        default_factory=absent,
        description="The type of the elements.",
        examples=["float16"],
        json_schema_extra={"enum": list(DTYPES)},
    )


class ProtectedEntry(FileModel):
    """A hazard that a wait is there for."""

    before: IndexedText = Field(description="The op instance that comes first.", examples=["infer@i-2"])
    after: IndexedText = Field(description="The op instance that waits for it.", examples=["upload@i"])
    buffer: Given[Text] = Field(
        default_factory=absent,
        description="What both touch; not given where the plan says `after`.",
        examples=["image"],
    )
    kind: Literal["RAW", "WAR", "WAW", "AFTER"] = Field(description="The kind of hazard.", examples=["WAR"])


class StepEntry(FileModel):
    """What all steps share."""

    when: Given[Text] = Field(
        default_factory=absent,
        description="Comparisons, joined by `and`; the step is done only where all hold.",
        examples=["i >= 1"],
    )
    label: Given[Text] = Field(default_factory=absent, description="A name that reports use.", examples=["W1"])


class AccessingEntry(StepEntry):
    """What steps with accesses share."""

    reads: list[AccessText] = Field(
        default_factory=list, description="What it reads. `NAME` is version 0.", examples=[["din@i"]]
    )
    writes: list[AccessText] = Field(default_factory=list, description="What it overwrites.", examples=[["out"]])
    updates: list[AccessText] = Field(
        default_factory=list, description="What it reads and writes.", examples=[["state"]]
    )
    accumulates: list[AccessText] = Field(
        default_factory=list,
        description="What it adds to; the order of accumulates does not matter.",
        examples=[["sums"]],
    )


class OpStepEntry(AccessingEntry):
    """An op on a stream."""

    stream: IndexedText = Field(description="The stream: `NAME` or `NAME@EXPR`.", examples=["compute"])
    op: Text = Field(
        description="The op's name; `op@i-1` where it is another iteration than the loop's.", examples=["infer"]
    )


class HostStepEntry(AccessingEntry):
    """An action of the issuing thread."""

    host: Text = Field(description="The action's name.", examples=["fill"])


class FreeStepEntry(StepEntry):
    """The issuing thread destroys the contents of a buffer; this orders nothing."""

    free: AccessText = Field(description="The buffer.", examples=["tmp"])


class RecordStepEntry(StepEntry):
    """Records an event on a stream, or by the issuing thread itself."""

    stream: Given[IndexedText] = Field(
        default_factory=absent, description="The stream; without it the issuing thread.", examples=["copy"]
    )
    record: IndexedText = Field(description="The event: `NAME` or `NAME@EXPR`.", examples=["ready@i"])


class WaitStepEntry(StepEntry):
    """Makes a stream, or the issuing thread itself, wait for an event."""

    stream: Given[IndexedText] = Field(
        default_factory=absent, description="The stream; without it the issuing thread.", examples=["compute"]
    )
    wait: IndexedText = Field(description="The event: `NAME` or `NAME@EXPR`.", examples=["ready@i"])
    protects: list[ProtectedEntry] = Field(
        default_factory=list,
        alias="for",
        description="The hazards that the wait is there for; compiled schedules say them.",
        examples=[[{"before": "infer@i-2", "after": "upload@i", "buffer": "image", "kind": "WAR"}]],
    )


class ResetStepEntry(StepEntry):
    """Clears an event (event model `flag`)."""

    stream: Given[IndexedText] = Field(
        default_factory=absent, description="The stream; without it the issuing thread.", examples=["compute"]
    )
    reset: IndexedText = Field(description="The event: `NAME` or `NAME@EXPR`.", examples=["ready"])


class WaitStreamStepEntry(StepEntry):
    """Makes a stream wait for all that was issued to another one so far."""

    stream: IndexedText = Field(description="The stream that waits.", examples=["compute"])
    wait_stream: IndexedText = Field(description="The stream that it waits for.", examples=["copy"])


class SyncStreamEntry(FileModel):
    """The issuing thread waits for a stream."""

    stream: IndexedText = Field(description="The stream: `NAME` or `NAME@EXPR`.", examples=["compute"])


class SyncEventEntry(FileModel):
    """The issuing thread waits for an event's newest record."""

    event: IndexedText = Field(description="The event: `NAME` or `NAME@EXPR`.", examples=["ready@i"])


def _check_sync(value: Any) -> Any:
    if value == "device" or (isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("stream", "event")):
        return value
    remedy = "write `sync: {stream: NAME}`, `sync: {event: NAME}` or `sync: device`"
    if isinstance(value, dict) and len(value) == 1:
        near = closest(str(next(iter(value))), ("stream", "event"))
        remedy = f"write `{near}`" if near else remedy
    raise complaint("a sync names one stream, one event, or the device", remedy=remedy)


def _sync_kind(value: Any) -> str:
    if isinstance(value, str):
        return "(device)"
    return (
        "(event)" if isinstance(value, SyncEventEntry) or (isinstance(value, dict) and "event" in value) else "(stream)"
    )


SyncEntry = Annotated[
    Annotated[
        Annotated[SyncStreamEntry, Tag("(stream)")]
        | Annotated[SyncEventEntry, Tag("(event)")]
        | Annotated[Literal["device"], Tag("(device)")],
        Discriminator(_sync_kind),
    ],
    BeforeValidator(_check_sync),
]


class SyncStepEntry(StepEntry):
    """The issuing thread waits."""

    sync: SyncEntry = Field(description="What it waits for.", examples=[{"stream": "compute"}])


class FlagStepEntry(StepEntry):
    """What counting flags and locks share."""

    stream: Given[IndexedText] = Field(
        default_factory=absent, description="The stream; without it the issuing thread.", examples=["mte2"]
    )


class SetStepEntry(FlagStepEntry):
    """Adds one to a counting flag."""

    set: IndexedText = Field(description="The flag: `NAME` or `NAME@EXPR`.", examples=["F"])


class TakeStepEntry(FlagStepEntry):
    """Waits until a counting flag is above zero, and takes one from it."""

    take: IndexedText = Field(description="The flag: `NAME` or `NAME@EXPR`.", examples=["F"])


class AcquireStepEntry(FlagStepEntry):
    """Waits until a lock is free, and holds it."""

    acquire: IndexedText = Field(description="The lock: `NAME` or `NAME@EXPR`.", examples=["L"])


class ReleaseStepEntry(FlagStepEntry):
    """Gives a lock back."""

    release: IndexedText = Field(description="The lock: `NAME` or `NAME@EXPR`.", examples=["L"])


class LoopStepEntry(StepEntry):
    """Issues `steps` once for each value of the index."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["count"]}, {"required": ["range"]}]})

    loop: Text = Field(description="The name of the index.", examples=["i"])
    count: Given[Bound] = Field(
        default_factory=absent, description="The index runs from 0 to below this.", examples=["n"]
    )
    range: Given[Annotated[list[Bound], Field(min_length=2, max_length=2)]] = Field(
        default_factory=absent, description="The first value, and the one behind the last.", examples=[[1, "n"]]
    )
    steps: list[AnyStepEntry] = Field(
        description="The steps of one iteration, in order.", examples=[[{"stream": "s", "op": "infer"}]]
    )


KINDS = (
    "op", "record", "wait", "wait_stream", "reset", "sync", "host", "free", "set", "take", "acquire", "release", "loop",
)  # fmt: skip
"""The keys that say what a step is."""

_ON_NO_STREAM = {
    "host": "write `op` for `host` if it runs on that stream, else remove `stream`",
    "free": "remove `stream`; a free is done by the issuing thread",
    "sync": "remove `stream`, or write `wait` for `sync` if the stream is to wait",
    "loop": "remove `stream`, and name it in each step",
}
_OTHER_KEYS = frozenset(
    ("stream", "when", "label", "for", "reads", "writes", "updates", "accumulates", "count", "range", "steps")
)


def _check_step(value: Any) -> Any:
    if not isinstance(value, dict):
        return value  # refused as not a mapping by every member
    kind = require_kind(value, KINDS, _OTHER_KEYS, one="step", article="a", example="{stream: s, op: infer}")
    if kind in _ON_NO_STREAM and "stream" in value:
        raise complaint(f"a step `{kind}` stands on no stream", remedy=_ON_NO_STREAM[kind], key="stream")
    if kind == "loop" and ("count" in value) == ("range" in value):
        both = "count" in value
        remedy = "remove one of them" if both else "for example `count: n` or `range: [1, n]`"
        said = "both a `count` and a `range`" if both else "neither a `count` nor a `range`"
        raise complaint(f"the loop `{value['loop']}` has {said}", remedy=remedy, key="range" if both else "loop")
    return value


def _step_kind(value: Any) -> str:
    return f"({kind_of(value, KINDS) or 'op'})"


AnyStepEntry = Annotated[
    Annotated[
        Annotated[OpStepEntry, Tag("(op)")]
        | Annotated[RecordStepEntry, Tag("(record)")]
        | Annotated[WaitStepEntry, Tag("(wait)")]
        | Annotated[WaitStreamStepEntry, Tag("(wait_stream)")]
        | Annotated[ResetStepEntry, Tag("(reset)")]
        | Annotated[SyncStepEntry, Tag("(sync)")]
        | Annotated[HostStepEntry, Tag("(host)")]
        | Annotated[FreeStepEntry, Tag("(free)")]
        | Annotated[SetStepEntry, Tag("(set)")]
        | Annotated[TakeStepEntry, Tag("(take)")]
        | Annotated[AcquireStepEntry, Tag("(acquire)")]
        | Annotated[ReleaseStepEntry, Tag("(release)")]
        | Annotated[LoopStepEntry, Tag("(loop)")],
        Discriminator(_step_kind),
    ],
    BeforeValidator(_check_step),
]


class PlanReference(FileModel):
    """The plan that a compiled schedule is for."""

    name: Text = Field(description="The plan's name.", examples=["detector"])
    digest: Text = Field(description="SHA-256 of what the plan says.", examples=["9f86d081884c7d65"])


class Predicted(FileModel):
    """What the cost model says of a compiled schedule; times in seconds."""

    makespan: Given[float] = Field(default_factory=absent, ge=0, description="The time of one run.", examples=[0.01])
    initiation_interval: Given[float] = Field(
        default_factory=absent,
        ge=0,
        description="The time between two iterations in the steady state.",
        examples=[0.006],
    )
    serial: Given[float] = Field(
        default_factory=absent, ge=0, description="The same, one op after another.", examples=[0.009]
    )
    bound: Given[float] = Field(
        default_factory=absent, ge=0, description="What no schedule can be faster than.", examples=[0.005]
    )
    binds: Given[Text] = Field(default_factory=absent, description="What the bound comes from.", examples=["ai_core"])
    held: Given[Text] = Field(
        default_factory=absent, description="What holds a loop up that is slower than its bound.",
        examples=["infer@i -> download@i -> upload@i+1 (stream copy) -> infer@i+1"],
    )  # fmt: skip
    unknown: list[Text] = Field(default=[], description="Ops that no time is known for.", examples=[["infer"]])
    estimated: bool = Field(default=False, description="No steady state was reached.", examples=[True])
    optimal: bool = Field(default=False, description="The makespan is proved to be the least.", examples=[True])


class ScheduleFile(FileModel):
    """A dagsched schedule: streams, events, and the exact order in which the host issues everything."""

    version: Annotated[Literal[1], BeforeValidator(_check_version)] = Field(
        alias="dagsched-schedule", description="The version of the schedule language.", examples=[1]
    )
    name: Given[Text] = Field(
        default_factory=absent, description="The schedule's name; the file's by default.", examples=["double-buffer"]
    )
    plan: Given[PlanReference] = Field(
        default_factory=absent,
        description="The plan that it was compiled from.",
        examples=[{"name": "detector", "digest": "9f86d081884c7d65"}],
    )
    device: Given[Annotated[Text | dict[str, Any], BeforeValidator(_check_finite)]] = Field(
        default_factory=absent,
        description="A built-in device profile, a path to one, or an inline profile.",
        examples=["ascend-910b"],
    )
    predicted: Given[Predicted] = Field(
        default_factory=absent, description="What the cost model says.", examples=[{"makespan": 0.01}]
    )
    event_model: Literal["latch", "flag", "reevaluate"] = Field(
        default="latch",
        description="What a wait waits for. `latch`: the record of its handle issued last before it. `flag`: a bit "
        "that a record sets and a reset clears. `reevaluate`: the newest record at the moment when it runs.",
        examples=["latch"],
    )
    default_stream: Literal["none", "legacy"] = Field(
        default="none",
        description="`legacy`: the stream `default` synchronises with all blocking streams.",
        examples=["legacy"],
    )
    params: dict[str, int | None] = Field(
        default={},
        description="Numbers that are known when the program runs; an integer is the default.",
        examples=[{"n": None}],
    )
    streams: dict[str, StreamEntry] = Field(
        default={}, description="Properties of streams, by name.", examples=[{"compute": {"nonblocking": True}}]
    )
    events: dict[str, EventEntry] = Field(
        default={}, description="Rings of event handles, by the event's name.", examples=[{"ready": {"ring": 2}}]
    )
    buffers: dict[str, StorageEntry] = Field(
        default={},
        description="The memory that steps touch, by name.",
        examples=[{"din": {"place": "device", "ring": 2}}],
    )
    steps: list[AnyStepEntry] = Field(
        description="Everything that the host issues, in order.", examples=[[{"stream": "s", "op": "infer"}]]
    )


LoopStepEntry.model_rebuild()
ScheduleFile.model_rebuild()
