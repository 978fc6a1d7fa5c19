"""A predicted run: when each op instance was issued, started and ended, as data for reports and pictures."""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.cost.queues import TICKS


@dataclass(frozen=True, slots=True)
class Span:
    """One op instance (or an action of the issuing thread: ``stream`` is None, ``engine`` is ``host``).

    ``iteration`` is the innermost loop's index, or None outside loops. Times are in ticks (picoseconds), whole
    numbers, from the start of the run; the properties give seconds. ``ready_ticks`` is when the op lacked nothing but
    its engine.
    """

    op: str
    iteration: int | None
    stream: str | None
    engine: str
    issued_ticks: int
    ready_ticks: int
    start_ticks: int
    end_ticks: int

    @property
    def start(self) -> float:
        """Seconds from the start of the run."""
        return self.start_ticks / TICKS

    @property
    def end(self) -> float:
        """Seconds from the start of the run."""
        return self.end_ticks / TICKS


@dataclass(frozen=True, slots=True)
class Timeline:
    """A whole run, in issue order. ``makespan`` includes the host's last call; ``unknown`` names ops without a time."""

    spans: tuple[Span, ...]
    makespan_ticks: int
    engines: dict[str, int]
    unknown: tuple[str, ...] = ()

    @property
    def makespan(self) -> float:
        """Seconds from the first call to the end of everything."""
        return self.makespan_ticks / TICKS

    def __str__(self) -> str:
        lines = []
        for span in self.spans:
            iteration = "" if span.iteration is None else f"@{span.iteration}"
            lines.append(
                f"{span.start * 1e3:12.6f} {span.end * 1e3:12.6f} ms  {span.stream or 'host'}: {span.op}{iteration}"
            )
        return "\n".join([*lines, f"makespan {self.makespan * 1e3:.6f} ms"])
