"""The shape of a device profile, as pydantic models: the only place where the keys of a profile are listed.

A profile is a file of its own or stands in a plan under ``device:``. The JSON schema is generated from these models.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from dagsched.cost.quantities import parse_bandwidth, parse_flops
from dagsched.diagnostics import closest
from dagsched.file_models import FileModel, Given, absent, complaint
from dagsched.plan.access import AccessError, check_name
from dagsched.plan.model import DTYPES
from dagsched.plan.units import UnitError, parse_size, parse_time

_NUMBER = r"^\s*[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?\s*"


def _need_finite(value: int | float, what: str, example: str) -> None:
    if not 0 <= value < inf:
        raise complaint(f"`{value}` is not {what}", remedy=f"for example `{example}`")


def _need_text(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        _need_finite(value, "a time", "5 us")
        raise complaint(f"the time `{value}` has no unit", remedy=f"write `{value} us` (or `s`, `ms`, `ns`)")
    return value


def _readable(parse: Callable[[Any], float]) -> Callable[[Any], Any]:
    """A validator that keeps the text and refuses what ``parse`` refuses."""

    def check(value: Any) -> Any:
        try:
            parse(value)
        except UnitError as error:
            raise complaint(error.message, remedy=error.remedy) from None
        return value

    return check


def _need_per_second(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        _need_finite(value, "a bandwidth", "25 GB/s")
        raise complaint(f"the bandwidth `{value}` has no unit", remedy=f"write `{value} GB/s`")
    return value


Time = Annotated[
    str,
    BeforeValidator(_need_text),
    AfterValidator(_readable(parse_time)),
    Field(json_schema_extra={"pattern": _NUMBER + "(s|ms|us|µs|μs|ns)\\s*$"}),
]
Bandwidth = Annotated[
    str,
    BeforeValidator(_need_per_second),
    AfterValidator(_readable(parse_bandwidth)),
    Field(json_schema_extra={"pattern": _NUMBER + "(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)/s\\s*$"}),
]


def _need_peak(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        _need_finite(value, "a peak", "256 TFLOP/s")
        raise complaint(f"the peak `{value}` has no unit", remedy=f"write `{value} TFLOP/s`")
    return value


Peak = Annotated[
    str,
    BeforeValidator(_need_peak),
    AfterValidator(_readable(parse_flops)),
    Field(json_schema_extra={"pattern": _NUMBER + "(FLOP|kFLOP|MFLOP|GFLOP|TFLOP|PFLOP)/s\\s*$"}),
]


def _check_peaks(value: dict[str, Any]) -> dict[str, Any]:
    for name in value:
        if name not in DTYPES:
            near = closest(name, DTYPES)
            raise complaint(f"there is no dtype `{name}`", remedy=f"write `{near or 'float16'}`", key=name)
    return value


def _peak_kind(value: Any) -> str:
    return "(by dtype)" if isinstance(value, dict) else "(any)"


Peaks = Annotated[
    Annotated[Peak, Tag("(any)")]
    | Annotated[Annotated[dict[str, Peak], AfterValidator(_check_peaks)], Tag("(by dtype)")],
    Discriminator(_peak_kind),
]
Size = Annotated[
    int | str,
    AfterValidator(_readable(parse_size)),
    Field(
        json_schema_extra={
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": _NUMBER + "(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?\\s*$"},
            ]
        }
    ),
]


def _check_device_name(value: str) -> str:
    try:
        check_name(value, "a device's name")
    except AccessError as error:
        raise complaint(error.message, remedy=error.remedy) from None
    return value


def _check_engines(engines: dict[str, Any]) -> dict[str, Any]:
    """Streams are named after engines, so an engine's name must be one that every file can hold."""
    if not engines:
        raise complaint("a device needs an engine", remedy="for example `engines: {core: {kind: compute, lanes: 4}}`")
    for name in engines:
        try:
            check_name(name, "an engine's name")
        except AccessError as error:
            raise complaint(error.message, remedy=error.remedy, key=name) from None
    return engines


Count = Annotated[int, Field(ge=1, le=2**31 - 1)]


class EngineEntry(FileModel):
    """A hardware unit. The first engine of a kind runs the ops of that kind that name none."""

    kind: Literal["h2d", "d2h", "d2d", "compute", "host"] = Field(
        description="What it runs: copies in one direction, compute ops, or host ops.", examples=["compute"]
    )
    lanes: Count = Field(default=1, description="How many ops it runs at once.", examples=[1])
    bandwidth: Given[Bandwidth] = Field(
        default_factory=absent, description="Bytes a second that a copy on it moves.", examples=["25 GB/s"]
    )
    latency: Time = Field(default="0 s", description="What a copy takes beyond its bytes.", examples=["150 ns"])
    cores: Given[Count] = Field(
        default_factory=absent,
        description="Cores that ops with `cores:` share; a multiple of `lanes`. An op without takes one lane's part.",
        examples=[20],
    )

    flops: Given[Peaks] = Field(
        default_factory=absent,
        description="Peak operations a second of all cores together, of any type or by dtype: for ops with `work:`.",
        examples=[{"float16": "256 TFLOP/s"}],
    )
    memory_bandwidth: Given[Bandwidth] = Field(
        default_factory=absent,
        description="Bytes a second that compute ops move from and to device memory: for ops with `work:`.",
        examples=["1.2 TB/s"],
    )

    @model_validator(mode="after")
    def _whole_lanes(self) -> EngineEntry:
        if self.cores is not None and self.cores % self.lanes:
            near = max(1, round(self.cores / self.lanes)) * self.lanes
            headline = f"{self.cores} cores cannot be split evenly into {self.lanes} lanes"
            raise complaint(headline, remedy=f"write `cores: {near}`", key="cores", code="D106")
        return self


class CallsEntry(FileModel):
    """Host time of each call of the runtime; what is not given is zero."""

    issue: Time = Field(default="0 s", description="Issuing a copy or a kernel.", examples=["5 us"])
    record: Time = Field(default="0 s", description="Recording an event.", examples=["2 us"])
    wait: Time = Field(default="0 s", description="Making a stream wait for an event.", examples=["2 us"])


class LimitsEntry(FileModel):
    """What the device can hold; what is not given has no limit."""

    streams: Given[Count] = Field(default_factory=absent, description="The most streams.", examples=[1984])
    events: Given[Count] = Field(default_factory=absent, description="The most event handles.", examples=[65536])
    queue_depth: Given[Count] = Field(
        default_factory=absent,
        description="Unfinished tasks of a stream that block the issuing thread.",
        examples=[2013],
    )


class MemoryEntry(FileModel):
    """How much memory there is for buffers; what is not given has no limit."""

    host: Given[Size] = Field(default_factory=absent, description="Bytes of host memory.", examples=["8GiB"])
    device: Given[Size] = Field(default_factory=absent, description="Bytes of device memory.", examples=["64GiB"])


class DeviceFile(FileModel):
    """A device profile: what runs ops, what calls cost the host, and how much the device can hold."""

    version: Given[Literal[1]] = Field(
        default_factory=absent, alias="dagsched-device", description="The version of this format.", examples=[1]
    )
    name: Given[Annotated[str, AfterValidator(_check_device_name)]] = Field(
        default_factory=absent, description="The device's name; the file's by default.", examples=["lanes"]
    )
    description: str = Field(default="", description="What this device is, in a line.", examples=["four equal lanes"])
    engines: Annotated[dict[str, EngineEntry], AfterValidator(_check_engines)] = Field(
        description="The hardware units, by name.",
        examples=[{"core": {"kind": "compute", "lanes": 4}}],
        json_schema_extra={"minProperties": 1},
    )
    calls: CallsEntry = Field(
        default=CallsEntry(), description="What calls cost the host.", examples=[{"issue": "5 us"}]
    )
    limits: LimitsEntry = Field(
        default=LimitsEntry(), description="What the device can hold.", examples=[{"streams": 1984}]
    )
    memory: MemoryEntry = Field(
        default=MemoryEntry(), description="How much memory buffers can take.", examples=[{"device": "64GiB"}]
    )
    sources: list[str] = Field(default=[], description="Where the figures come from.", examples=[["our own benchmark"]])


def device_schema() -> dict[str, Any]:
    """The JSON schema of a device profile, as pydantic makes it (the caller sets the draft and the title)."""
    return DeviceFile.model_json_schema(by_alias=True, mode="validation")
