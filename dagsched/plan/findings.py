"""What a reader gathers as it goes: diagnostics of one source, raised together at the end of a stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dagsched.diagnostics import Diagnostic, Label, Severity, Source, Where, closest


@dataclass(slots=True)
class Findings:
    """Diagnostics of one source; ``errors`` and ``warnings`` keep the order of the file."""

    source: Source
    found: list[Diagnostic] = field(default_factory=list)

    def report(
        self,
        code: str,
        headline: str,
        where: Where | None,
        *,
        labels: Iterable[Label] = (),
        notes: Iterable[str] = (),
        remedy: str | None = None,
        severity: Severity = "error",
    ) -> None:
        """Add one finding."""
        found = Diagnostic(code, headline, where, self.source, tuple(labels), tuple(notes), remedy, severity)
        self.found.append(found)

    def unknown(
        self, code: str, what: str, name: str, known: Iterable[str], where: Where | None, remedy: str | None = None
    ) -> None:
        """Add that no ``what`` is called ``name``, with the closest name that there is, or those that there are."""
        names = list(known)
        near = next((other for other in names if other.lower() == name.lower()), None) or closest(name, names)
        listed = ", ".join(f"`{known_name}`" for known_name in names[:8]) + (", ..." if len(names) > 8 else "")
        notes = [f"known here: {listed}"] if names and not near else []
        self.report(code, f"unknown {what} `{name}`", where, notes=notes, remedy=f"write `{near}`" if near else remedy)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """What stands in the way."""
        return self._of("error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the author should look at."""
        return self._of("warning")

    def _of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        chosen = [finding for finding in self.found if finding.severity == severity]
        return tuple(sorted(chosen, key=lambda finding: finding.where or Where(1, 1)))
