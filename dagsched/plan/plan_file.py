"""The shape of a plan file, as pydantic models: the only place where the keys of the plan language are listed.

The JSON schema is generated from these models, so each field carries its description and an example. What a value
means (units, accesses, names) is read by ``dagsched.plan.reader``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from dagsched.file_models import FileModel, Given, absent, complaint, kind_of, require_kind


def _need_unit(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise complaint(f"the time `{value}` has no unit", remedy=f"write `{value} ms` (or `s`, `us`, `ns`)")
    return value


def _check_version(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value != 1:
        raise complaint("this version of the plan language is not known", remedy="write `dagsched: 1`")
    return value


def _check_ring(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and value != "auto" and not isinstance(value, dict):
        headline = "a ring is a number of slots, `auto`, or bounds for `auto`"
        raise complaint(headline, remedy="write `ring: auto`, `ring: 2` or `ring: {min: 1, max: 4}`")
    if isinstance(value, dict) and not value:
        raise complaint("a ring's bounds are missing", remedy="write `ring: auto` or `ring: {min: 1, max: 4}`")
    return value


def _ring_kind(value: Any) -> str:
    return "(auto)" if isinstance(value, str) else "(bounds)" if isinstance(value, dict | RingBounds) else "(depth)"


_QUANTITY = r"^\s*[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?\s*"
_SIZE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": _QUANTITY + "(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?\\s*$"},
    ]
}

Slots = Annotated[int, Field(ge=1, le=2**31 - 1)]
Time = Annotated[
    str, BeforeValidator(_need_unit), Field(json_schema_extra={"pattern": _QUANTITY + "(s|ms|us|µs|μs|ns)\\s*$"})
]
AccessText = Annotated[str, Field(min_length=1)]
"""``NAME``, ``NAME@EXPR`` (a version) or ``NAME[lo:hi]`` (a region), or both."""


Flop = Annotated[
    int | float | str,
    Field(
        json_schema_extra={
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": _QUANTITY + "(FLOP|kFLOP|MFLOP|GFLOP|TFLOP|PFLOP)\\s*$"},
            ]
        }
    ),
]


def _check_work(value: Any) -> Any:
    if isinstance(value, dict) and not {"flop", "bytes"} & set(value) and not set(value) - {"dtype"}:
        raise complaint("`work` says neither operations nor bytes", remedy="write `work: {flop: 12.3e9, bytes: 4MiB}`")
    return value


class RingBounds(FileModel):
    """Bounds for the number of slots that the compiler picks."""

    min: Slots = Field(default=1, description="The fewest slots.", examples=[1])
    max: Given[Slots] = Field(default_factory=absent, description="The most slots.", examples=[4])


RingEntry = Annotated[
    Annotated[
        Annotated[Slots, Tag("(depth)")]
        | Annotated[Literal["auto"], Tag("(auto)")]
        | Annotated[RingBounds, Tag("(bounds)")],
        Discriminator(_ring_kind),
    ],
    BeforeValidator(_check_ring),
]


class BufferEntry(FileModel):
    """A memory block: `size`, or `shape` and `dtype`."""

    place: Literal["host", "device"] = Field(description="Where the memory is.", examples=["device"])
    size: Given[int | str] = Field(
        default_factory=absent,
        description="Bytes, or a number with a unit (kB, MB, GB, KiB, MiB, GiB).",
        examples=["48MiB"],
        json_schema_extra=_SIZE_SCHEMA,
    )
    shape: Given[list[Annotated[int, Field(ge=1)]]] = Field(
        default_factory=absent,
        min_length=1,
        max_length=32,
        description="Elements along each axis; regions then count elements.",
        examples=[[1, 3, 640, 640]],
    )
    dtype: Given[str] = Field(default_factory=absent, description="The type of the elements.", examples=["float16"])
    ring: RingEntry = Field(
        default=1,
        description="How many versions are kept: a number, `auto` (the compiler picks), or bounds for `auto`.",
        examples=["auto"],
    )
    pageable: bool = Field(default=False, description="Host memory that is not page-locked.", examples=[True])
    input: bool = Field(default=False, description="Holds contents before the plan starts.", examples=[True])
    output: bool = Field(default=False, description="Its contents are used after the plan ends.", examples=[True])
    dynamic: bool = Field(
        default=False, description="The size is the most it can hold; iterations may use less.", examples=[True]
    )


class CopyEnds(FileModel):
    """From which buffer (or region) to which."""

    source: AccessText = Field(alias="from", description="What is read.", examples=["frame"])
    target: AccessText = Field(alias="to", description="What is written.", examples=["image"])


class FillEntry(FileModel):
    """What is set to which byte."""

    target: AccessText = Field(alias="to", description="What is written.", examples=["sums"])
    value: int = Field(default=0, ge=0, le=255, description="The value of every byte.", examples=[0])


class OpEntry(FileModel):
    """What all ops share."""

    name: Given[str] = Field(
        default_factory=absent,
        description="The op's name; a compute or host op without one has its function's.",
        examples=["upload"],
    )
    after: list[AccessText] = Field(
        default=[],
        description="Ops that must come before, where no buffer shows it; `op@i-1` is the one an iteration earlier.",
        examples=[["upload"]],
    )
    engine: Given[str] = Field(
        default_factory=absent, description="The engine of the device that runs it.", examples=["core"]
    )
    stream: Given[str] = Field(
        default_factory=absent, description="Pins the op to a stream of this name.", examples=["main"]
    )
    time: Given[Time] = Field(
        default_factory=absent, description="How long it takes, with a unit.", examples=["1.4 ms"]
    )
    priority: Given[int] = Field(
        default_factory=absent, ge=-(2**31), le=2**31 - 1, description="Lower runs first.", examples=[0]
    )


class CopyEntry(OpEntry):
    """A copy; its direction follows from the places of its buffers."""

    ends: CopyEnds = Field(
        alias="copy", description="What is copied where.", examples=[{"from": "frame", "to": "image"}]
    )


class FillOpEntry(OpEntry):
    """Sets every byte of a buffer or region."""

    fill: FillEntry = Field(description="What is set to which byte.", examples=[{"to": "sums", "value": 0}])


class FunctionEntry(OpEntry):
    """What compute and host ops share."""

    reads: list[AccessText] = Field(default=[], description="What the function reads.", examples=[["image"]])
    writes: list[AccessText] = Field(default=[], description="What it overwrites.", examples=[["tensor"]])
    updates: list[AccessText] = Field(default=[], description="What it reads and writes.", examples=[["state"]])
    accumulates: list[AccessText] = Field(
        default=[], description="What it adds to; the order of accumulates does not matter.", examples=[["sums"]]
    )
    args: dict[str, str] = Field(
        default={}, description="Parameter names of the function, where they differ from the buffers'.",
        examples=[{"x": "image"}],
    )  # fmt: skip
    cores: Given[int] = Field(
        default_factory=absent, ge=1, description="How many cores of the engine it needs.", examples=[8]
    )


class WorkEntry(FileModel):
    """What a compute op does; the device's peaks say how long that takes."""

    flop: Given[Flop] = Field(
        default_factory=absent, description="Arithmetic operations, as a number or with a unit.", examples=[12.3e9]
    )
    bytes: Given[int | str] = Field(
        default_factory=absent,
        description="Bytes of device memory that it reads and writes, or a number with a unit.",
        examples=["4MiB"],
        json_schema_extra=_SIZE_SCHEMA,
    )
    dtype: Given[str] = Field(
        default_factory=absent, description="The type it computes in, where the peak depends on it.",
        examples=["float16"],
    )  # fmt: skip


class ComputeEntry(FunctionEntry):
    """A function on the device."""

    compute: str = Field(description="The function's name.", examples=["resize"])
    work: Given[Annotated[WorkEntry, BeforeValidator(_check_work)]] = Field(
        default_factory=absent,
        description="What it does, instead of a time: the device's peaks say how long that takes.",
        examples=[{"flop": 12.3e9, "bytes": "4MiB"}],
    )


class HostEntry(FunctionEntry):
    """A function on the host."""

    host: str = Field(description="The function's name.", examples=["decode_frame"])


class LoopEntry(FileModel):
    """Runs `ops` `count` times."""

    loop: str = Field(description="The name of the index, which counts from 0.", examples=["i"])
    count: int | str = Field(description="A number, or an expression over parameters.", examples=["frames"])
    ops: list[ItemEntry] = Field(description="The ops of one iteration, in order.", examples=[[{"compute": "resize"}]])


KINDS = ("copy", "compute", "host", "fill", "loop")
"""The keys that say what an item of ``ops`` is."""


_OTHER_KEYS = frozenset({*OpEntry.model_fields, *FunctionEntry.model_fields})


def _check_item(value: Any) -> Any:
    if isinstance(value, dict):  # else refused as not a mapping by every member
        require_kind(value, KINDS, _OTHER_KEYS, one="op", article="an", example="compute: resize")
    return value


def _item_kind(value: Any) -> str:
    return f"({kind_of(value, KINDS) or 'compute'})"


ItemEntry = Annotated[
    Annotated[
        Annotated[CopyEntry, Tag("(copy)")]
        | Annotated[ComputeEntry, Tag("(compute)")]
        | Annotated[HostEntry, Tag("(host)")]
        | Annotated[FillOpEntry, Tag("(fill)")]
        | Annotated[LoopEntry, Tag("(loop)")],
        Discriminator(_item_kind),
    ],
    BeforeValidator(_check_item),
]


class StreamsEntry(FileModel):
    """How ops are put on streams."""

    max: Given[int] = Field(default_factory=absent, ge=1, description="The most streams.", examples=[6])
    policy: Literal["auto", "engine", "concurrent", "single"] = Field(
        default="auto",
        description="`engine`: one per engine; `concurrent`: independent ops apart; `single`; `auto` picks.",
        examples=["engine"],
    )


class MemoryEntry(FileModel):
    """The most memory that all buffers together may take, by place."""

    host: Given[int | str] = Field(
        default_factory=absent,
        description="Bytes of host memory, or a number with a unit.",
        examples=["8GiB"],
        json_schema_extra=_SIZE_SCHEMA,
    )
    device: Given[int | str] = Field(
        default_factory=absent,
        description="Bytes of device memory, or a number with a unit.",
        examples=["64MiB"],
        json_schema_extra=_SIZE_SCHEMA,
    )


class PlanFile(FileModel):
    """A dagsched plan: buffers, and ops that mean what they do when executed one after another as written."""

    dagsched: Annotated[Literal[1], BeforeValidator(_check_version)] = Field(
        description="The version of the plan language.", examples=[1]
    )
    name: Given[str] = Field(
        default_factory=absent, description="The plan's name; the file's by default.", examples=["detector"]
    )
    device: str | dict[str, Any] = Field(
        default="ascend-910b",
        description="A built-in device profile, a path to one, or an inline profile.",
        examples=["ascend-910b"],
    )
    params: dict[str, int | None] = Field(
        default={},
        description="Numbers that are known when the program runs; an integer is the default.",
        examples=[{"frames": None}],
    )
    streams: StreamsEntry = Field(
        default=StreamsEntry(), description="How ops are put on streams.", examples=[{"max": 6}]
    )
    memory: MemoryEntry = Field(
        default=MemoryEntry(),
        description="How much memory the buffers may take; rings of automatic depth stay within it.",
        examples=[{"device": "64MiB"}],
    )
    buffers: dict[str, BufferEntry] = Field(
        description="The memory that ops touch, by name.", examples=[{"image": {"place": "device", "size": "6MB"}}]
    )
    ops: list[ItemEntry] = Field(description="Ops and loops, in order.", examples=[[{"compute": "resize"}]])


LoopEntry.model_rebuild()
PlanFile.model_rebuild()
