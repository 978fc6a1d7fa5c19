"""A run as a picture shows it: which op ran where, from when to when, and which waits joined them.

One shape for runs that were predicted (``view/predicted.py``) and runs that were measured (an executor), so that every
writer (``view/trace.py``, ``view/timeline_*.py``) serves both. Times are seconds from the start of the run.
Invariant: the spans of one track do not overlap, and flows name spans of the same timeline.
"""

from __future__ import annotations

from dataclasses import dataclass

HOST_TRACK = "host"
"""The track of what the issuing thread does itself."""


@dataclass(frozen=True, slots=True)
class Span:
    """One op instance. ``track`` is the stream's name (:data:`HOST_TRACK` for the issuing thread).

    ``iteration`` is the innermost loop's index, None outside loops; ``engine`` is the unit that ran it, where known;
    ``issued`` is when the host had issued it, where known; ``causes`` say in words why it did not start earlier.
    """

    track: str
    name: str
    start: float
    end: float
    iteration: int | None = None
    engine: str | None = None
    issued: float | None = None
    causes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The instance as it is written everywhere: ``infer@3``, or ``load`` outside loops."""
        return self.name if self.iteration is None else f"{self.name}@{self.iteration}"


@dataclass(frozen=True, slots=True)
class Flow:
    """A wait: span number ``after`` waited for a record behind span number ``before``.

    ``event`` is the event as written (``done@2``), ``binds`` whether the wait is what ``after`` started upon.
    """

    before: int
    after: int
    event: str = ""
    binds: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """A whole run.

    ``tracks`` are the rows of a picture from the top, every span's track among them. ``end`` is when everything, the
    host included, was done. ``source`` says where the figures come from (``predicted for ascend-910b``, ``measured on
    cpu``), ``notes`` what a reader must know about them.
    """

    name: str
    tracks: tuple[str, ...]
    spans: tuple[Span, ...]
    flows: tuple[Flow, ...] = ()
    end: float = 0.0
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = {span.track for span in self.spans} - set(self.tracks)
        if unknown:
            raise ValueError(f"spans are on tracks that the timeline does not have: {', '.join(sorted(unknown))}")
        count = len(self.spans)
        if not all(0 <= flow.before < count and 0 <= flow.after < count for flow in self.flows):
            raise ValueError("a flow names a span that is not there")

    @property
    def makespan(self) -> float:
        """Seconds until everything was done."""
        return max([self.end, *(span.end for span in self.spans)])
