"""The changes of a draft as a list: what is done, at which line, to which step, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dagsched.diagnostics import Where
from dagsched.proof.check_text import step_text
from dagsched.repair.draft import Draft
from dagsched.repair.plain import plain_text
from dagsched.schedule.model import AnyStep, LoopStep
from dagsched.schedule.writer import step_data

Action = Literal["add", "drop", "move", "change", "ring", "retire"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    ``where`` is the step that is dropped or changed, or beside which one is put, and ``beside`` says on which side of
    what; ``step`` is the new step as plain data. A ring or a retired event has no place of its own.
    """

    action: Action
    text: str
    reason: str
    where: Where | None = None
    beside: str | None = None
    step: dict[str, Any] | None = None

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        line = self.where.line if self.where else None
        return {
            "action": self.action,
            "text": self.text,
            "line": line,
            "beside": self.beside,
            "step": self.step,
            "reason": self.reason,
        }

    def sentence(self, *, with_line: bool = True) -> str:
        """``add `{...}` after `upload` (line 7)``."""
        line = f" (line {self.where.line})" if self.where and with_line else ""
        if self.action in ("add", "move"):
            return f"{self.action} `{self.text}` {self.beside}{line}"
        if self.action == "ring":
            return self.text
        if self.action == "change":
            return f"write `{self.text}`{line}"
        return f"drop {self.text}" if self.action == "retire" else f"drop `{self.text}`{line}"


def list_changes(draft: Draft) -> tuple[Change, ...]:
    """Every change, in the order of the file; the tables at the top come first."""
    steps = tuple(draft.original.walk())
    tops = [Change("ring", _ring_text(draft, name, ring), reason) for name, (ring, reason) in draft.rings.items()]
    tops += [Change("retire", f"the event `{name}`", "no step names it any more") for name in sorted(draft.retired)]
    moved = {added.moved for added in draft.added}
    found: list[tuple[tuple[int, int], Change]] = []
    for number, reason in draft.drops.items():
        if number not in moved:
            found.append(((number, 1), Change("drop", short_text(steps[number]), reason, steps[number].where)))
    for number, (step, reason) in draft.changed.items():
        data = step_data(step)
        change = Change("change", plain_text(data), reason, steps[number].where, None, data)
        found.append(((number, 1), change))
    for added in draft.added:
        anchor = steps[added.anchor]
        data = step_data(added.step)
        beside = f"{added.side} `{step_text(anchor)}`"
        action: Action = "add" if added.moved is None else "move"
        place = (added.anchor, 0 if added.side == "before" else 2)
        found.append((place, Change(action, short_text(added.step), added.reason, anchor.where, beside, data)))
    return (*tops, *(change for _, change in sorted(found, key=lambda entry: entry[0])))


def _ring_text(draft: Draft, name: str, ring: int) -> str:
    if name in draft.original.events:
        return f"give the event `{name}` a `ring` of {ring}"
    return f"declare the event `{name}` with a `ring` of {ring}"


def short_text(step: AnyStep) -> str:
    """A step on one line, as it is typed, without what it protects."""
    data = step_data(step)
    data.pop("for", None)
    return step_text(step) if isinstance(step, LoopStep) else plain_text(data)
