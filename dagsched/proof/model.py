"""What the verifier says, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One way in which a schedule is not right for its plan; ``code`` is stable, ``text`` is for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict on a schedule for a plan.

    ``problems`` is empty exactly where the schedule is right. ``counts`` says for which loop counts that holds
    (``every count from 0 up``, or the constants), ``hazards`` how many hazards were checked, and ``document`` is
    the witness as plain data (``proof.json``), to be re-checked by ``dagsched.proof.recheck``.
    ``complete``: no count that can occur is left unproved.
    """

    problems: tuple[Problem, ...]
    counts: str
    hazards: int
    document: dict[str, Any]
    complete: bool = True

    @property
    def holds(self) -> bool:
        """Whether the schedule is right for the plan."""
        return not self.problems
