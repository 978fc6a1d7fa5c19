"""The shape of a schedule file, as pydantic models: the only place where the keys of the schedule language are listed.

The JSON schema is generated from these models. What the values mean (accesses, indices, guards) is read by
``dagsched.schedule.reader``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from dagsched.diagnostics import closest
from dagsched.file_models import FileModel, Given, absent, complaint

Slots = Annotated[int, Field(ge=1, le=2**31 - 1)]
AccessText = Annotated[str, Field(min_length=1)]
IndexedText = Annotated[str, Field(min_length=1)]
Address = Annotated[int, Field(ge=0, le=2**62)]


def _check_version(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value != 1:
        raise complaint("this version of the schedule language is not known", remedy="write `dagsched-schedule: 1`")
    return value


class StreamEntry(FileModel):
    """A stream; one that is only named in steps needs no entry."""

    nonblocking: bool = Field(
        default=False, description="Does not synchronise with CUDA's legacy default stream.", examples=[True]
    )
    host: bool = Field(default=False, description="A host thread that acts as a stream.", examples=[True])
    engine: Given[str] = Field(default_factory=absent, description="Where its ops run.", examples=["h2d"])
    priority: Given[int] = Field(default_factory=absent, description="Lower runs first.", examples=[0])


class EventEntry(FileModel):
    """An event; one that is only named in steps has a handle for every index."""

    ring: Given[Slots] = Field(
        default_factory=absent, description="`E@x` is handle `x mod ring`.", examples=[2]
    )


class StorageEntry(FileModel):
    """A buffer's storage."""

    place: Given[Literal["host", "device"]] = Field(
        default_factory=absent, description="Where the memory is.", examples=["device"]
    )
    ring: Slots = Field(default=1, description="Version v lives in slot `v mod ring`.", examples=[2])
    space: Given[str] = Field(default_factory=absent, description="The memory that `at` counts in.", examples=["ub"])
    at: Given[Annotated[list[Address], Field(min_length=2, max_length=2)]] = Field(
        default_factory=absent,
        description="First address and the one behind the last; buffers of one space overlap by address.",
        examples=[[0, 4096]],
    )
    alias: Given[str] = Field(
        default_factory=absent, description="Another buffer whose storage this is.", examples=["din"]
    )
    size: Given[Annotated[int, Field(ge=1)]] = Field(
        default_factory=absent, description="Bytes of one slot.", examples=[4096]
    )
    shape: Given[list[Annotated[int, Field(ge=1)]]] = Field(
        default_factory=absent, min_length=1, max_length=32, description="Elements along each axis.", examples=[[3, 4]]
    )
    dtype: Given[str] = Field(default_factory=absent, description="The type of the elements.", examples=["float16"])


class ProtectedEntry(FileModel):
    """A hazard that a wait is there for."""

    before: str = Field(description="The op instance that comes first.", examples=["infer@i-2"])
    after: str = Field(description="The op instance that waits for it.", examples=["upload@i"])
    buffer: Given[str] = Field(default_factory=absent, description="What both use.", examples=["image"])
    kind: Literal["RAW", "WAR", "WAW", "AFTER"] = Field(description="The kind of hazard.", examples=["WAR"])


class StepEntry(FileModel):
    """What all steps share."""

    when: Given[str] = Field(
        default_factory=absent, description="The step is done only where this holds.", examples=["i >= 1"]
    )
    label: Given[str] = Field(default_factory=absent, description="A name to refer to the step by.", examples=["W1"])


class AccessingEntry(StepEntry):
    """What steps with accesses share."""

    reads: list[AccessText] = Field(default=[], description="What it reads.", examples=[["din@i"]])
    writes: list[AccessText] = Field(default=[], description="What it overwrites.", examples=[["out"]])
    updates: list[AccessText] = Field(default=[], description="What it reads and writes.", examples=[["state"]])
    accumulates: list[AccessText] = Field(default=[], description="What it adds to.", examples=[["sums"]])


class OpStepEntry(AccessingEntry):
    """An op on a stream."""

    stream: IndexedText = Field(description="The stream, as `NAME` or `NAME@EXPR`.", examples=["compute"])
    op: str = Field(description="The op's name.", examples=["infer"])


class HostStepEntry(AccessingEntry):
    """An action of the issuing thread."""

    host: str = Field(description="The action's name.", examples=["fill"])


class FreeStepEntry(StepEntry):
    """The issuing thread destroys a buffer's contents; this orders nothing."""

    free: AccessText = Field(description="The buffer.", examples=["tmp"])


class RecordStepEntry(StepEntry):
    """Records an event on a stream, or by the issuing thread itself."""

    stream: Given[IndexedText] = Field(default_factory=absent, description="The stream.", examples=["copy"])
    record: IndexedText = Field(description="The event, as `NAME` or `NAME@EXPR`.", examples=["ready@i"])


class WaitStepEntry(StepEntry):
    """Lets a stream, or the issuing thread itself, wait for an event."""

    stream: Given[IndexedText] = Field(default_factory=absent, description="The stream.", examples=["compute"])
    wait: IndexedText = Field(description="The event, as `NAME` or `NAME@EXPR`.", examples=["ready@i"])
    protects: list[ProtectedEntry] = Field(
        default=[], alias="for", description="The hazards that the wait is there for.",
        examples=[[{"before": "infer@i-2", "after": "upload@i", "buffer": "image", "kind": "WAR"}]],
    )  # fmt: skip


class ResetStepEntry(StepEntry):
    """Clears an event's flag."""

    stream: Given[IndexedText] = Field(default_factory=absent, description="The stream.", examples=["compute"])
    reset: IndexedText = Field(description="The event.", examples=["ready"])


class WaitStreamStepEntry(StepEntry):
    """Lets a stream wait for all that was issued to another one so far."""

    stream: IndexedText = Field(description="The stream that waits.", examples=["compute"])
    wait_stream: IndexedText = Field(description="The stream that it waits for.", examples=["copy"])


class SyncStreamEntry(FileModel):
    """Lets the host wait for a stream."""

    stream: IndexedText = Field(description="The stream.", examples=["compute"])


class SyncEventEntry(FileModel):
    """Lets the host wait for an event's newest record."""

    event: IndexedText = Field(description="The event.", examples=["ready@i"])


def _check_sync(value: Any) -> Any:
    if value == "device" or (isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("stream", "event")):
        return value
    remedy = "write `sync: {stream: NAME}`, `sync: {event: NAME}` or `sync: device`"
    raise complaint("a sync names a stream, an event or the device", remedy=remedy)


def _sync_kind(value: Any) -> str:
    if isinstance(value, dict):
        return "(event)" if "event" in value else "(stream)"
    return "(event)" if isinstance(value, SyncEventEntry) else "(stream)" if isinstance(value, SyncStreamEntry) else "(device)"


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
    """Lets the host wait."""

    sync: SyncEntry = Field(description="What the host waits for.", examples=[{"stream": "compute"}])


class FlagStepEntry(StepEntry):
    """What counting flags and locks share."""

    stream: Given[IndexedText] = Field(default_factory=absent, description="The stream.", examples=["mte2"])


class SetStepEntry(FlagStepEntry):
    """Adds one to a counting flag."""

    set: IndexedText = Field(description="The flag.", examples=["F"])


class TakeStepEntry(FlagStepEntry):
    """Waits until a counting flag is above zero, and takes one."""

    take: IndexedText = Field(description="The flag.", examples=["F"])


class AcquireStepEntry(FlagStepEntry):
    """Takes a lock."""

    acquire: IndexedText = Field(description="The lock.", examples=["L"])


class ReleaseStepEntry(FlagStepEntry):
    """Gives a lock back."""

    release: IndexedText = Field(description="The lock.", examples=["L"])


class LoopStepEntry(StepEntry):
    """Does `steps` once for each value of the index."""

    loop: str = Field(description="The name of the index.", examples=["i"])
    count: Given[int | str] = Field(
        default_factory=absent, description="The index runs from 0 to below this.", examples=["n"]
    )
    range: Given[Annotated[list[int | str], Field(min_length=2, max_length=2)]] = Field(
        default_factory=absent, description="The first value, and the one behind the last.", examples=[[1, "n"]]
    )
    steps: list[AnyStepEntry] = Field(description="The steps of one iteration, in order.", examples=[[]])


KINDS = (
    "op", "record", "wait", "wait_stream", "reset", "sync", "host", "free", "set", "take", "acquire", "release", "loop",
)  # fmt: skip
"""The keys that say what a step is."""


def _check_step(value: Any) -> Any:
    if not isinstance(value, dict):
        return value  # refused as not a mapping by every member
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) > 1:
        named = " and ".join(f"`{kind}`" for kind in kinds[:2])
        raise complaint(f"one step cannot be {named} at once", remedy="make them steps of their own", key=kinds[1])
    if not kinds:
        known = {"stream", "when", "label", "for", "reads", "writes", "updates", "accumulates", "count", "range", "steps"}
        guesses = [(key, closest(str(key), KINDS)) for key in value if key not in known]
        guess = next(((str(key), near) for key, near in guesses if near), None)
        headline = "a step needs one of " + ", ".join(f"`{kind}`" for kind in KINDS)
        remedy = f"write `{guess[1]}` for `{guess[0]}`" if guess else "for example `{stream: s, op: infer}`"
        raise complaint(headline, remedy=remedy, key=guess[0] if guess else None)
    if "loop" in value and ("count" in value) == ("range" in value):
        raise complaint("a loop has either a `count` or a `range`", remedy="for example `count: n`", key="loop")
    return value


def _step_kind(value: Any) -> str:
    kinds = [kind for kind in KINDS if isinstance(value, dict) and kind in value]
    return f"({kinds[0]})" if kinds else "(op)"


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

    name: str = Field(description="Its name.", examples=["detector"])
    digest: str = Field(description="What identifies it.", examples=["0123abcd"])


class ScheduleFile(FileModel):
    """A schedule: streams, events, and the exact order in which the host issues everything."""

    model_config = ConfigDict(title="dagsched schedule")

    version: Annotated[int, BeforeValidator(_check_version)] = Field(
        alias="dagsched-schedule", description="The version of the language.", examples=[1]
    )
    name: Given[str] = Field(default_factory=absent, description="The schedule's name.", examples=["double-buffer"])
    plan: Given[PlanReference] = Field(
        default_factory=absent, description="The plan that it was compiled from.", examples=[{"name": "p", "digest": "0"}]
    )
    device: Given[str | dict[str, Any]] = Field(
        default_factory=absent, description="A device profile: its name, path, or contents.", examples=["ascend-910b"]
    )
    event_model: Literal["latch", "flag", "reevaluate"] = Field(
        default="latch", description="What a wait looks at.", examples=["latch"]
    )
    default_stream: Literal["none", "legacy"] = Field(
        default="none", description="`legacy`: the stream `default` synchronises with blocking ones.", examples=["none"]
    )
    params: dict[str, int | None] = Field(
        default={}, description="Values known when the program runs.", examples=[{"n": None}]
    )
    streams: dict[str, StreamEntry] = Field(
        default={}, description="Streams with properties.", examples=[{"compute": {"nonblocking": True}}]
    )
    events: dict[str, EventEntry] = Field(
        default={}, description="Events with rings of handles.", examples=[{"ready": {"ring": 2}}]
    )
    buffers: dict[str, StorageEntry] = Field(
        default={}, description="Buffers with their storage.", examples=[{"din": {"place": "device", "ring": 2}}]
    )
    predicted: Given[dict[str, Any]] = Field(
        default_factory=absent, description="What the cost model says.", examples=[{"makespan": 0.01}]
    )
    steps: list[AnyStepEntry] = Field(description="The steps, in issue order.", examples=[[]])
