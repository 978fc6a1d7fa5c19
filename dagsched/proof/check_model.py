"""What the checker says about a hand-written schedule, as data.

A :class:`Verdict` is a fact about a file: the races, the stuck queue heads, which waits do nothing. It prints nothing;
``as_data`` gives the JSON form and ``diagnostics`` the findings in the common shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from dagsched.diagnostics import Diagnostic, Source, Where

KINDS = ("RAW", "WAR", "WAW")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two accesses of a race. ``stream`` is None for a host action; ``index`` is the loop around both."""

    op: str
    stream: str | None
    where: Where | None
    index: str | None = None

    @property
    def line(self) -> int | None:
        return self.where.line if self.where else None

    def as_data(self) -> dict[str, Any]:
        return {"op": self.op, "stream": self.stream, "line": self.line}


@dataclass(frozen=True, slots=True)
class Race:
    """Two conflicting accesses that nothing orders; ``first`` is issued before ``second``.

    ``distance`` is the smallest iteration distance at which the pair races, None outside a common loop.
    ``record_after`` and ``wait_before`` name the op instances between which an order is missing; ``sure``
    says, for one pair of instances, what the second is certain to come after. ``slots`` says so where the two name
    different versions of a buffer that has one slot.
    """

    buffer: str
    kinds: tuple[str, ...]
    distance: int | None
    first: Side
    second: Side
    record_after: str
    wait_before: str
    sure: str | None = None
    slots: str | None = None

    def as_data(self) -> dict[str, Any]:
        return {
            "buffer": self.buffer,
            "kinds": list(self.kinds),
            "distance": self.distance,
            "first": self.first.as_data(),
            "second": self.second.as_data(),
            "fix": {"record_after": self.record_after, "wait_before": self.wait_before},
        }


@dataclass(frozen=True, slots=True)
class StuckHead:
    """The head of a queue that never runs; ``stream`` is None for the issuing thread, ``step`` is its text,
    ``why`` says what it waits for."""

    stream: str | None
    step: str
    where: Where | None
    why: str = ""

    def as_data(self) -> dict[str, Any]:
        return {"stream": self.stream, "step": self.step, "line": self.where.line if self.where else None}


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A state in which nothing can run: its queue heads, and the steps (in order) that lead there."""

    heads: tuple[StuckHead, ...]
    trail: tuple[str, ...] = ()
    help: str | None = None


@dataclass(frozen=True, slots=True)
class WaitFact:
    """A wait that can go.

    ``forbids`` says which ops it keeps from overlapping (``copy@i with compute@i-1``); ``streams`` names the two
    streams of which it forbids *all* overlap, where it does. ``number`` counts all steps in the order of
    ``Schedule.walk``.
    """

    label: str | None
    text: str
    where: Where | None
    forbids: tuple[str, ...] = ()
    streams: tuple[str, str] | None = None
    number: int = -1

    def as_data(self) -> dict[str, Any]:
        return {"label": self.label, "line": self.where.line if self.where else None}


@dataclass(frozen=True, slots=True)
class Waits:
    """``redundant``: dropping one leaves the order of the ops unchanged; ``removable``: it leaves no race."""

    total: int = 0
    redundant: tuple[WaitFact, ...] = ()
    removable: tuple[WaitFact, ...] = ()

    def as_data(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "redundant": [wait.as_data() for wait in self.redundant],
            "removable": [wait.as_data() for wait in self.removable],
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The whole answer. ``counts_text`` says for which loop counts it holds; ``limited`` that a limit was hit.

    ``findings`` are the diagnostics that are neither a race, a deadlock nor a needless wait, without their source.
    """

    verdict: Literal["ok", "race", "deadlock", "invalid"]
    races: tuple[Race, ...] = ()
    deadlock: Deadlock | None = None
    waits: Waits = Waits()
    findings: tuple[Diagnostic, ...] = ()
    counts_text: str = "the counts in the file"
    limited: bool = False

    def as_data(self, file: str) -> dict[str, Any]:
        """The JSON form that ``dagsched check --format json`` prints."""
        return {
            "dagsched": "check/1",
            "file": file,
            "verdict": self.verdict,
            "races": [race.as_data() for race in self.races],
            "deadlock": [head.as_data() for head in self.deadlock.heads] if self.deadlock else None,
            "waits": self.waits.as_data(),
        }

    def diagnostics(self, source: Source | None = None) -> tuple[Diagnostic, ...]:
        """Everything found, the worst first."""
        from dagsched.proof.check_report import report

        return tuple(replace(diagnostic, source=source) for diagnostic in report(self))
