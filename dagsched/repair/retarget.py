"""Write an added wait into the place of a dropped one: a corrected name is a smaller edit than a line that goes and one
that comes, and the label and the comment of the line stay."""

from __future__ import annotations

from dataclasses import replace

from dagsched.repair.draft import Added, Draft
from dagsched.repair.places import Family, family_of
from dagsched.repair.trial import Trial, try_draft
from dagsched.schedule.model import AnyStep, EventStep, SyncStep, WaitStreamStep


def merge_waits(trial: Trial) -> Trial:
    """The same schedule, or an equal one, with fewer lines changed."""
    family = family_of(trial.draft.original)
    for added in trial.draft.added:
        if added.moved is not None:
            continue
        for number in trial.draft.drops:
            merged = _merge(trial, family, added, number)
            if merged is not None:
                trial = merged
                break
    return trial


def _merge(trial: Trial, family: Family, added: Added, number: int) -> Trial | None:
    """The trial with a dropped step changed into an added one, where that leaves the schedule right."""
    old, new = family.steps[number], added.step
    if not _is_alike(old, new) or not _is_near(trial.draft, family, added.anchor, number):
        return None
    reason = added.reason
    step = replace(new, label=old.label, where=old.where)
    draft = trial.draft.keep(number).drop(added, "").change(number, step, reason)
    if len(draft.added) == len(trial.draft.added):
        return None
    after = try_draft(draft)
    if after is None or after.examined.verdict != "ok" or after.examined.gathered.reused:
        return None
    return after


def _is_alike(old: AnyStep, new: AnyStep) -> bool:
    if isinstance(old, EventStep) and isinstance(new, EventStep):
        return old.action == new.action == "wait" and old.stream == new.stream
    if isinstance(old, WaitStreamStep) and isinstance(new, WaitStreamStep):
        return old.stream == new.stream
    return isinstance(old, SyncStep) and isinstance(new, SyncStep) and old.kind == new.kind


def _is_near(draft: Draft, family: Family, anchor: int, number: int) -> bool:
    """Whether the two places are in one body, with no other step of the stream between them."""
    steps = family.steps
    if family.parents[anchor] != family.parents[number]:
        return False
    old = steps[number]
    stream = getattr(old, "stream", None)
    low, high = (number + 1, anchor) if number < anchor else (anchor, number)
    between = [at for at in range(low, high) if at not in draft.drops]
    return all(getattr(steps[at], "stream", None) != stream and not hasattr(steps[at], "steps") for at in between)
