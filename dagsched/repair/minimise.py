"""Drop every wait that can go, with the records that nothing waits for afterwards.

Waits are dropped together where that leaves the schedule right, else in ever smaller groups, those that the repair
itself has added first: two waits of which either can go are not both dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dagsched.proof.check import Examined
from dagsched.proof.check_needless import find_needless
from dagsched.repair.draft import Added, Built
from dagsched.repair.trial import Trial, is_no_worse, try_draft
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, Schedule, SyncStep

MARK = "\0added"
"""The label that makes an added sync count as a wait; no file can hold it."""


@dataclass(frozen=True, slots=True)
class Minimised:
    """``untried``: there were too many waits to try all of them."""

    trial: Trial
    untried: bool = False


def drop_needless(trial: Trial, own_only: bool = False) -> Minimised:
    """The draft without the waits that can go; ``own_only`` keeps those of the file."""
    while True:
        found, untried = _needless(trial, own_only)
        if not found:
            return Minimised(trial, untried)
        smaller = _drop_some(trial, found)
        if smaller is None:
            return Minimised(trial, untried)
        trial = smaller


def _drop_some(trial: Trial, numbers: list[tuple[int, str]]) -> Trial | None:
    """The draft without as many of the waits as one group allows; None where none can go."""
    draft = trial.draft
    for number, reason in numbers:
        draft = draft.drop(trial.built.origins[number], reason)
    after = try_draft(draft.tidy())
    if after is not None and is_no_worse(after.examined, trial.examined):
        return after
    if len(numbers) == 1:
        return None
    half = (len(numbers) + 1) // 2
    return _drop_some(trial, numbers[:half]) or _drop_some(trial, numbers[half:])


def _needless(trial: Trial, own_only: bool) -> tuple[list[tuple[int, str]], bool]:
    """The waits that can go, by number, with the reason, the repair's own first."""
    examined = _with_marks(trial)
    if examined.largest is None:
        return [], True
    needless = find_needless(examined.counts, examined.largest, examined.verdict == "ok")
    reasons = {fact.number: "without it the order of all work is the same" for fact in needless.redundant}
    reasons.update({fact.number: "no two accesses that conflict need it" for fact in needless.removable})
    origins = trial.built.origins
    own = [number for number in reasons if isinstance(origins[number], Added)]
    others = [] if own_only else [number for number in reasons if not isinstance(origins[number], Added)]
    group = own or others
    return [(number, reasons[number]) for number in group], needless.untried


def _with_marks(trial: Trial) -> Examined:
    """The examined schedule, with labels on the syncs that were added so that they count as waits."""
    origins = trial.built.origins
    steps = tuple(trial.built.schedule.walk())
    marked = [
        isinstance(origin, Added) and origin.moved is None and _is_bare_block(step)
        for origin, step in zip(origins, steps, strict=True)
    ]
    if not any(marked):
        return trial.examined
    numbers = iter(range(len(steps)))

    def mark(body: tuple[AnyStep, ...]) -> tuple[AnyStep, ...]:
        out: list[AnyStep] = []
        for step in body:
            number = next(numbers)
            if isinstance(step, LoopStep):
                out.append(replace(step, steps=mark(step.steps)))
            else:
                out.append(replace(step, label=MARK) if marked[number] else step)
        return tuple(out)

    schedule: Schedule = replace(trial.built.schedule, steps=mark(trial.built.schedule.steps))
    again = try_draft(trial.draft, Built(schedule, origins))
    return trial.examined if again is None else again.examined


def _is_bare_block(step: AnyStep) -> bool:
    if isinstance(step, SyncStep):
        return True
    return isinstance(step, EventStep) and step.action == "wait" and step.stream is None
