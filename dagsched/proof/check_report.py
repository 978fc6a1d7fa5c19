"""A verdict as diagnostics: what is wrong, where, what is missing, and what to type."""

from __future__ import annotations

from collections.abc import Iterable

from dagsched.diagnostics import Diagnostic, Label
from dagsched.proof.check_model import Deadlock, Race, Side, Verdict, WaitFact

NAMES = {"RAW": "read after write", "WAR": "write after read", "WAW": "write after write"}


def report(verdict: Verdict) -> Iterable[Diagnostic]:
    """Races, a deadlock, the other findings, then waits that can go."""
    yield from (finding for finding in verdict.findings if finding.severity == "error")
    if verdict.deadlock is not None:
        yield _deadlock(verdict.deadlock)
    for race in verdict.races:
        yield _race(race)
    yield from (finding for finding in verdict.findings if finding.severity != "error")
    idle = {finding.where for finding in verdict.findings if finding.code == "S402" and finding.where}
    for wait in verdict.waits.redundant:
        if wait.where not in idle:
            yield _redundant(wait, verdict.verdict == "ok")
    for wait in verdict.waits.removable:
        yield _removable(wait)


def _place(side: Side) -> str:
    return f"on stream `{side.stream}`" if side.stream is not None else "on the host"


def _race(race: Race) -> Diagnostic:
    first, second = race.first, race.second
    kinds = " and ".join(NAMES[kind] for kind in race.kinds)
    away = "" if not race.distance else f", {race.distance} iteration{'s' if race.distance > 1 else ''} apart"
    labels = []
    if first.where is not None:
        labels.append(Label(first.where, f"`{race.record_after}` {_place(first)}"))
    missing = f"no record and wait, sync or shared stream leads from `{race.record_after}` to `{race.wait_before}`"
    notes = [missing]
    if race.sure is not None:
        notes.append(race.sure)
    if race.slots is not None:
        notes.append(race.slots)
    return Diagnostic(
        "S201",
        f"`{race.record_after}` and `{race.wait_before}` race on `{race.buffer}` ({kinds}{away})",
        second.where,
        labels=tuple(labels),
        notes=tuple(notes),
        help=race_help(race),
    )


def race_help(race: Race) -> str:
    """The steps that would order a race."""
    first, second = race.first, race.second
    before = f"before `{second.op}`" + (f" (line {second.line})" if second.line else "")
    after = f"after `{first.op}`" + (f" (line {first.line})" if first.line else "")
    looped = race.distance is not None and first.index
    event = f"{first.op}_done"
    back = f"-{race.distance}" if race.distance else ""
    record, wait = (f"{event}@{first.index}", f"{event}@{first.index}{back}") if looped else (event, event)
    if second.stream is None and not looped:
        return f"add `{{sync: {{stream: {first.stream}}}}}` {before}"
    recording = f"add `{{stream: {first.stream}, record: {record}}}` {after}"
    if second.stream is None:
        return f"{recording} and `{{sync: {{event: {wait}}}}}` {before}"
    return f"{recording} and `{{stream: {second.stream}, wait: {wait}}}` {before}"


def _deadlock(deadlock: Deadlock) -> Diagnostic:
    first, *others = deadlock.heads
    labels = [
        Label(head.where, f"`{head.step}` is stuck on {_stuck_on(head.stream)}: {head.why}")
        for head in others
        if head.where
    ]
    notes = [f"{first.why}"]
    if deadlock.trail:
        notes.append("it hangs where the steps run in this order: " + ", ".join(f"`{s}`" for s in deadlock.trail[-8:]))
    return Diagnostic(
        "S301",
        f"the schedule can hang: `{first.step}` blocks {_stuck_on(first.stream)} for ever",
        first.where,
        labels=tuple(labels),
        notes=tuple(notes),
        help=deadlock.help or "issue what unblocks it earlier, or on a stream that is not stuck behind it",
    )


def _stuck_on(stream: str | None) -> str:
    return f"stream `{stream}`" if stream is not None else "the issuing thread"


def _redundant(wait: WaitFact, ok: bool) -> Diagnostic:
    return Diagnostic(
        "S403",
        f"`{wait.text}` is redundant",
        wait.where,
        notes=("without it the order of all work is the same",),
        help="drop it" if ok else "drop it, or let it wait for the work that it is meant for",
        severity="warning",
    )


def _removable(wait: WaitFact) -> Diagnostic:
    notes = ["no two accesses that conflict need it"]
    if wait.streams is not None:
        one, other = wait.streams
        such = f" (such as {wait.forbids[0]})" if wait.forbids else ""
        notes.append(
            f"it forbids all overlap of `{one}` with `{other}`{such}: no two of their ops can ever run at once"
        )
    elif wait.forbids:
        notes.append("it forbids overlap of " + ", ".join(wait.forbids))
    return Diagnostic(
        "S404",
        f"`{wait.text}` can go: nothing races without it",
        wait.where,
        notes=tuple(notes),
        help="drop it",
        severity="warning",
    )
