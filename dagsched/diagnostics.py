"""What dagsched says about a file: one shape for errors and warnings, wherever they arise.

A :class:`Diagnostic` carries data only; ``dagsched.view.diagnostics`` turns it into text, JSON, GitHub
annotations or SARIF. Exceptions carry diagnostics, so a library user gets what a terminal user gets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """A place in a file; ``line`` and ``column`` count from 1, ``width`` is in characters."""

    line: int
    column: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read: the name to print and the whole text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that a diagnostic talks about, with what is to be said of it."""

    where: Where
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    ``code`` is stable (``P101``), ``headline`` stands alone (lower case, names in backticks, no full stop),
    ``notes`` explain (two at the most), ``help`` is one change that the user can type.
    """

    code: str
    headline: str
    where: Where | None = None
    source: Source | None = None
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = "error"

    def __str__(self) -> str:
        place = self.source.name if self.source else "<plan>"
        if self.where:
            place = f"{place}:{self.where.line}:{self.where.column}"
        return f"{place}: {self.severity}[{self.code}]: {self.headline}"


class DagschedError(Exception):
    """The base of all errors that dagsched raises on purpose; ``diagnostics`` says everything as data."""

    exit_status = 1

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__()

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics)


class PlanError(DagschedError):
    """The plan is wrong (exit status 1)."""


class ScheduleError(DagschedError):
    """The schedule is wrong: malformed, racing or stuck (exit status 1)."""


class UsageError(DagschedError):
    """The command line is wrong or a file cannot be read (exit status 2)."""

    exit_status = 2


class LimitError(DagschedError):
    """The device cannot hold the schedule (exit status 2)."""

    exit_status = 2


class ProofError(DagschedError):
    """A schedule that dagsched made does not prove: a bug in dagsched (exit status 3)."""

    exit_status = 3


def one_a_place(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Of findings with one code at one place only the first, with a note on the others.

    The copies that an inner loop unrolls to share a line: what is wrong with one is wrong with all.
    """
    groups: dict[object, list[Diagnostic]] = {}
    for number, found in enumerate(diagnostics):
        groups.setdefault((found.code, found.source, found.where) if found.where else number, []).append(found)
    kept = []
    for first, *others in groups.values():
        more = f"and {len(others):,} more like it from the same line, unrolled"
        kept.append(replace(first, notes=(*first.notes, more)) if others else first)
    return kept


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to a misspelt one, or None."""
    found = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None
