"""What a run yields: counts, times, outputs, and on demand the timeline, the shares and a summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dagsched.compiled import Compiled
from dagsched.output import write_files
from dagsched.run.usage import Usage, find_usage
from dagsched.timeline import Timeline


@dataclass(frozen=True)
class Result:
    """One run. ``seconds`` is its wall-clock time, ``iterations`` the count of the plan's longest loop.

    ``counts`` are the parameters' values, ``outputs`` copies of the ``output: true`` buffers by name (of a ring: the
    version that the plan writes last), ``trace`` what ran when (the last ops, where a run had more than the executor's
    ``trace`` option keeps).
    """

    compiled: Compiled = field(repr=False)
    backend: str
    counts: dict[str, int]
    iterations: int
    seconds: float
    trace: Trace = field(repr=False)
    outputs: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The plan's name."""
        return self.compiled.plan.name

    @cached_property
    def usage(self) -> Usage:
        """Busy times by engine, stream and kind, overlap, and what was waited for, as data."""
        return find_usage(self.compiled, self.trace.timeline, self.iterations, self.seconds)

    @property
    def utilisation(self) -> dict[str, float]:
        """The share of the traced time that each engine was busy, from 0 to 1 (lanes counted)."""
        return dict(self.usage.engines)

    def summary(self) -> str:
        """What was fast, what was slow, and against what, for people."""
        from dagsched.run.report import usage_text

        return usage_text(self)


class Trace:
    """A measured (or simulated) timeline, made when it is first looked at."""

    def __init__(self, make: Any) -> None:
        self._make = make

    @cached_property
    def timeline(self) -> Timeline:
        """Spans by stream and the waits between them."""
        made: Timeline = self._make()
        return made

    @property
    def spans(self) -> tuple[Any, ...]:
        """Every op instance with its start and end, in seconds from the beginning of the run."""
        return self.timeline.spans

    def to_json(self) -> str:
        """Chrome trace JSON."""
        from dagsched.view.trace import trace_json

        return trace_json(self.timeline)

    def save(self, path: Any) -> None:
        """Write Chrome trace JSON, which Perfetto, chrome://tracing and MindStudio Insight open."""
        from pathlib import Path

        target = Path(path)
        write_files(target.parent, {target.name: self.to_json()})

    def __len__(self) -> int:
        return len(self.timeline.spans)

    def __repr__(self) -> str:
        return f"<Trace of {self.timeline.name!r}: {len(self.timeline.spans)} ops>"
