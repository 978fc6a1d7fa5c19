"""What ``check --fix`` and ``fix`` share: repair a schedule, and say what is proposed or why nothing is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dagsched.cli.console import Console
from dagsched.cli.inputs import STDIN
from dagsched.diagnostics import Diagnostic, Label, Source
from dagsched.proof.check_model import Verdict
from dagsched.repair.changes import Change, list_changes
from dagsched.repair.repair import Repair, repair_schedule
from dagsched.repair.rewrite import Rewritten, rewrite_source
from dagsched.schedule.model import Schedule
from dagsched.view.patch import patch_text
from dagsched.view.terminal import escape


@dataclass(frozen=True, slots=True)
class Proposal:
    """A repair of one file, with its new text (None where nothing is proposed) and its changes as a list."""

    schedule: Schedule
    repair: Repair
    rewritten: Rewritten | None
    changes: tuple[Change, ...]

    @property
    def source(self) -> Source:
        """The file that the schedule was read from."""
        assert self.schedule.source is not None
        return self.schedule.source


def propose(schedule: Schedule, console: Console, *, keep_waits: bool = False) -> Proposal:
    """The proposal for a schedule that was read from a file."""
    repair = repair_schedule(schedule, keep_waits=keep_waits, report=console.progress)
    console.progress("")
    rewritten = None
    if repair.draft and schedule.source is not None:
        rewritten = rewrite_source(schedule.source, repair.draft)
    return Proposal(schedule, repair, rewritten, list_changes(repair.draft))


def patch_of(proposal: Proposal, console: Console, *, talk: bool) -> str:
    """The proposal as a diff, followed by a line of reason for each change."""
    source = proposal.source
    if proposal.rewritten is None:
        return ""
    paint = console.talk if talk else console.paint
    text = patch_text(source.text, proposal.rewritten.text, escape(source.name), paint=paint)
    return f"{text}\n{reasons_of(proposal)}"


def reasons_of(proposal: Proposal) -> str:
    """What each change is, and below it why; changes of one reason stand together."""
    lines: list[str] = []
    groups: dict[str, list[str]] = {}
    for change in proposal.changes:
        groups.setdefault(change.reason, []).append(escape(change.sentence()))
    for reason, sentences in groups.items():
        lines += [f"  {sentence}" for sentence in sentences]
        lines.append(f"      {escape(reason)}")
    if proposal.rewritten is not None and proposal.rewritten.edits is None:
        lines.append(f"  the whole file is written anew, without its comments: {proposal.rewritten.reason}")
    return "".join(f"{line}\n" for line in lines)


def findings_of(proposal: Proposal) -> tuple[Diagnostic, ...]:
    """The proposal as a finding for programs, or why there is none."""
    source = proposal.source
    repair = proposal.repair
    if not repair.is_right:
        return (_without_way(proposal),)
    if not proposal.changes:
        return ()
    labels = tuple(
        Label(change.where, f"{change.sentence(with_line=False)}: {change.reason}")
        for change in proposal.changes
        if change.where
    )
    first = min((label.where for label in labels), default=None)
    count = len(proposal.changes)
    headline = f"{count} change{'s' if count > 1 else ''} would make it right, with no wait to spare"
    name = "FILE" if source.name == STDIN else source.name
    help_ = f"dagsched fix {name} -o {name}"
    return (Diagnostic("S420", headline, first, source, labels, help=help_, severity="note"),)


def _without_way(proposal: Proposal) -> Diagnostic:
    """Why nothing is proposed: what would be left after all that could be done."""
    repair = proposal.repair
    before, left = repair.before, repair.remaining or repair.after
    notes: list[str] = []
    help_ = None
    where = None
    if left.deadlock is not None:
        head = left.deadlock.heads[0]
        where = head.where
        on = f"on stream `{head.stream}`" if head.stream is not None else "on the issuing thread"
        notes.append(f"`{head.step}` {on} would still block for ever: {head.why}")
        help_ = left.deadlock.help
    elif left.races:
        race = left.races[0]
        where = race.second.where
        notes.append(f"`{race.record_after}` and `{race.wait_before}` would still race on `{race.buffer}`")
    else:
        finding = next((finding for finding in left.findings if finding.severity == "error"), None)
        if finding is not None:
            where, help_ = finding.where, finding.help
            notes.append(finding.headline)
    done = _count(before) - _count(left)
    if done > 0:
        notes.append(f"{done} of {_count(before)} faults could be repaired, but half a repair is none")
    headline = "no change of records, waits and syncs is known that makes it right"
    return Diagnostic("S421", headline, where, proposal.source, notes=tuple(notes), help=help_)


def _count(verdict: Verdict) -> int:
    errors = sum(finding.severity == "error" for finding in verdict.findings)
    return len(verdict.races) + (verdict.deadlock is not None) + errors


def edits_data(proposal: Proposal) -> list[dict[str, Any]]:
    """The changes as JSON."""
    return [change.as_data() for change in proposal.changes]
