"""What the adversary found, as diagnostics: the failure, the waits that nothing needs, what was left out."""

from __future__ import annotations

from dagsched.diagnostics import Diagnostic, Label, Where
from dagsched.plan.model import Plan
from dagsched.proof.adversary_model import Attempt, Failure, WaitTrial
from dagsched.schedule.model import Schedule

_CODES = {"race": "S201", "deadlock": "S301", "freed": "S202", "fault": "V201"}


def attempt_diagnostics(attempt: Attempt, schedule: Schedule, plan: Plan | None = None) -> tuple[Diagnostic, ...]:
    """The findings, the worst first. Places are those of the schedule, or of the plan that it was compiled from."""
    source = plan.source if plan is not None else schedule.source
    found = []
    if attempt.failure is not None:
        found.append(_failure(attempt.failure, plan is not None))
    needless = [wait for wait in attempt.waits if wait.result == "needless"]
    found += [_needless(wait) for wait in needless]
    if attempt.explored.gaps and attempt.failure is None:
        found.append(
            Diagnostic(
                "S302",
                "not every interleaving was explored",
                notes=attempt.explored.gaps[:2],
                help="give it more time: `--time-limit 120`, or smaller counts: `--counts 0,1,2`",
                severity="warning",
            )
        )
    if source is None:
        return tuple(found)
    return tuple(Diagnostic(d.code, d.headline, d.where, source, d.labels, d.notes, d.help, d.severity) for d in found)


def _failure(failure: Failure, compiled: bool) -> Diagnostic:
    where: Where | None = None
    labels: list[Label] = []
    notes: tuple[str, ...] = failure.texts[:2]
    first, second = failure.first, failure.second
    if failure.kind in ("race", "freed") and first is not None and second is not None:
        where = second.where
        if first.where is not None and first.where != second.where:
            labels.append(Label(first.where, f"`{first.op}` stands here"))
        if failure.kind == "race":
            notes = (_race_text(failure), *failure.texts[:1])
    elif failure.heads:
        where = failure.heads[0].where
        labels = [
            Label(head.where, f"`{head.step}` is stuck {_on(head.stream)}: {head.why}")
            for head in failure.heads[1:]
            if head.where is not None
        ]
    if compiled:
        help_ = "this is a bug in dagsched: report it with the plan"
        return Diagnostic("V201", failure.headline, where, None, tuple(labels), notes[:1], help_)
    return Diagnostic(_CODES[failure.kind], failure.headline, where, None, tuple(labels), notes, failure.help)


def _race_text(failure: Failure) -> str:
    """What ``dagsched check`` calls the race."""
    first, second = failure.first, failure.second
    assert first is not None and second is not None
    if failure.buffer == "after":
        return f"the plan says so with `after: [{first.op}]`"
    at = ""
    if failure.distance is not None:
        distance = failure.distance
        at = f", {distance} iteration{'s' if distance > 1 else ''} later" if distance else ", in the same iteration"
    return (
        f"a race of `{first.op}` {_on(first.stream)} and `{second.op}` {_on(second.stream)}{at}: "
        f"{', '.join(failure.kinds)} on `{failure.buffer}`"
    )


def _on(stream: str | None) -> str:
    return f"on stream `{stream}`" if stream is not None else "on the issuing thread"


def _needless(wait: WaitTrial) -> Diagnostic:
    return Diagnostic(
        "S501",
        f"`{wait.text}` was dropped, and nothing broke at the counts tried",
        wait.where,
        help="drop it, if `dagsched check` agrees for every count",
        severity="note",
    )
