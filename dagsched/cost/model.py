"""What a device can do: its engines, what calls cost, and its limits, as data (``devices.py`` reads the files)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dagsched.plan.model import Memory

EngineKind = Literal["h2d", "d2h", "d2d", "compute", "host"]


@dataclass(frozen=True, slots=True)
class Engine:
    """A hardware unit that runs ``lanes`` ops at once.

    ``bandwidth`` is in bytes per second and ``latency`` in seconds (copy engines); ``cores`` are shared by ops that
    state how many they need. ``flops`` are peak operations a second of all cores together, by dtype (``""``: of any),
    ``memory_bandwidth`` is in bytes a second: from them follows the time of ops that state their work.
    """

    name: str
    kind: EngineKind
    lanes: int = 1
    bandwidth: float | None = None
    latency: float = 0.0
    cores: int | None = None
    flops: Mapping[str, float] = field(default_factory=dict)
    memory_bandwidth: float | None = None


@dataclass(frozen=True, slots=True)
class CallCosts:
    """Host seconds per call of the runtime."""

    issue: float = 0.0
    record: float = 0.0
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What the device can hold; ``None`` where no limit is known. ``queue_depth`` counts tasks of one stream."""

    streams: int | None = None
    events: int | None = None
    queue_depth: int | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """A device profile. Engines keep the order of the file; the first of a kind is that kind's default."""

    name: str
    engines: dict[str, Engine]
    calls: CallCosts = CallCosts()
    limits: Limits = Limits()
    memory: Memory = field(default_factory=Memory)
    description: str = ""
    sources: tuple[str, ...] = field(default=())

    def default_engine(self, kind: EngineKind) -> Engine | None:
        """The engine that runs ops of a kind unless an op says otherwise."""
        return next((engine for engine in self.engines.values() if engine.kind == kind), None)
