"""Orders that no access shows: a wait that says it is there for ``after:`` gets its record back where it lost it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dagsched.repair.draft import Draft
from dagsched.repair.places import back
from dagsched.repair.trial import Trial
from dagsched.schedule.model import EventStep, Indexed, LoopStep, OpStep

_INSTANCE = re.compile(r"(?P<op>.+?)(?:@\s*(?P<index>[A-Za-z_]\w*)\s*(?:-\s*(?P<back>\d+))?)?\Z", re.DOTALL)


def record_for_order(trial: Trial) -> Iterator[Draft]:
    """Drafts with a record each for a wait that protects an ``after:`` and binds to nothing."""
    gathered = trial.examined.gathered
    for number in sorted(gathered.seen - gathered.bound):
        wait = trial.family.steps[number]
        if not isinstance(wait, EventStep) or wait.action != "wait":
            continue
        for protected in wait.protects:
            found = _INSTANCE.match(protected.before)
            if protected.kind != "AFTER" or found is None:
                continue
            for at, step in enumerate(trial.family.steps):
                if isinstance(step, OpStep) and step.op == found["op"]:
                    event = _event(trial, wait.event, at, found["index"], int(found["back"] or 0))
                    record = EventStep(action="record", event=event, stream=step.stream)
                    reason = f"`{protected.before}` must come before `{protected.after}`, as the wait for it says"
                    yield trial.draft.add(record, "after", trial.origin(at), reason)


def _event(trial: Trial, wanted: Indexed, op: int, index: str | None, distance: int) -> Indexed:
    """The event as the record beside an op has to name it."""
    loops = trial.family.loops_around(op)
    if not loops or index is None or wanted.index is None:
        return wanted
    loop = trial.family.steps[loops[-1]]
    if isinstance(loop, LoopStep) and loop.index == index:
        return Indexed(wanted.name, back(wanted.index, index, -distance))
    return wanted
