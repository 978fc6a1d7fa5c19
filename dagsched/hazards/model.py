"""Hazards: which ops must keep their order, and why, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HazardKind = Literal["RAW", "WAR", "WAW", "AFTER"]


@dataclass(frozen=True, slots=True, order=True)
class Hazard:
    """``before`` must precede ``after``.

    ``distance`` counts iterations between the two where a common loop holds both (0: the same iteration), and is
    ``None`` elsewhere. ``buffer`` is ``None`` for an order that the plan states with ``after:`` (kind ``AFTER``).
    """

    before: str
    after: str
    buffer: str | None
    kind: HazardKind
    distance: int | None


@dataclass(frozen=True, slots=True)
class Hazards:
    """The dependency graph of a plan: ops in the order written, and the hazards between them.

    Hazards that others imply through an op on the same buffer are left out (last writer and readers since); the
    transitive closure is that of all conflicting pairs.
    """

    ops: tuple[str, ...]
    entries: tuple[Hazard, ...]

    def __str__(self) -> str:
        lines = []
        for hazard in self.entries:
            distance = "" if hazard.distance is None else f" distance {hazard.distance}"
            lines.append(f"{hazard.before} -> {hazard.after}: {hazard.kind} {hazard.buffer or ''}{distance}")
        return "\n".join(lines)
