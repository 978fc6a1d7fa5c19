"""``dagsched check FILE...``: whether plans and schedules are right. Nothing is written.

A plan is compiled in memory and its schedule proved; a schedule is checked as it stands.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.inputs import STDIN, ReadPlan, compile_read, read_costs, read_either, read_text
from dagsched.cli.report import print_diagnostics, print_json
from dagsched.cost.model import Device
from dagsched.diagnostics import DagschedError, Diagnostic, ProofError, ScheduleError, UsageError
from dagsched.edits import Edit
from dagsched.plan.model import Plan
from dagsched.schedule.model import Schedule
from dagsched.view.terminal import escape

if TYPE_CHECKING:
    from dagsched.choice.choose import Effort
    from dagsched.cli.repairs import Proposal
    from dagsched.view.annotations import Fix

_COLOURS = {"ok": "green", "race": "red", "deadlock": "red", "invalid": "red"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one file: exit status, findings, the JSON form, and one line; ``proposal`` is its repair."""

    status: int
    diagnostics: tuple[Diagnostic, ...]
    data: dict[str, Any]
    line: str
    proposal: Proposal | None = None


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="a plan or a schedule, or - for stdin")
    parser.add_argument(
        "--costs", metavar="PLAN",
        help="also predict how long schedules take, with the device and the times that a plan gives for their ops",
    )  # fmt: skip
    parser.add_argument(
        "--fix", action="store_true", help="propose the smallest edit that makes a schedule right, and write nothing"
    )
    parser.add_effort()
    parser.add_format()


def run(args: argparse.Namespace, console: Console) -> int:
    """Check each file; the exit status is that of the worst."""
    if args.files.count("-") > 1:
        raise UsageError([Diagnostic("U002", "only one of the files can be stdin")])
    costs = None if args.costs is None else read_costs(args.costs, console)
    worst = 0
    found: list[Diagnostic] = []
    proposals: list[Proposal] = []
    for number, name in enumerate(args.files, 1):
        console.progress(f"checking {number} of {len(args.files)}: {name}")
        answer = _check(name, console, costs, args)
        console.progress("")
        worst = max(worst, answer.status)
        found += answer.diagnostics
        proposals += [] if answer.proposal is None else [answer.proposal]
        if args.format == "json":
            print_json(console, answer.data)
        elif args.format == "text":
            print_diagnostics(console, answer.diagnostics, "text", talk=False)
            verdict = answer.data["verdict"]
            gap = "\n" if answer.diagnostics else ""
            shown = escape(answer.data["file"])
            console.write(f"{gap}{shown}: {console.paint(verdict, _COLOURS[verdict])}{answer.line}\n")
            if answer.proposal is not None:
                _print_proposal(answer.proposal, console)
            console.write("\n" if number < len(args.files) and answer.diagnostics else "")
        console.stdout.flush()
    if args.format in ("github", "sarif"):
        print_diagnostics(console, found, args.format, fixes=[fix for fix in map(_fix_of, proposals) if fix])
    return worst


def _check(name: str, console: Console, costs: tuple[Plan, Device] | None, args: argparse.Namespace) -> Answer:
    shown = STDIN if name == "-" else name
    try:
        source = read_text(name, console)
        read = read_either(source)
        if isinstance(read, ReadPlan):
            return _check_plan(shown, read, args.effort)
        answer = _check_schedule(shown, read, costs)
        return _with_proposal(answer, read, console, args.format == "text") if args.fix else answer
    except ProofError:
        raise
    except DagschedError as error:
        return _invalid(shown, error)


def _check_plan(name: str, read: ReadPlan, effort: Effort) -> Answer:
    compiled, warnings = compile_read(read, effort)
    streams = len(set(compiled.streams.values()))
    line = (
        f": {_counted(len(compiled.hazards.ops), 'op')} on {_counted(streams, 'stream')}, "
        f"{_counted(compiled.waits_kept, 'wait')}, proved for {compiled.proof.counts}"
    )
    data = _data(name, "ok", compiled.waits_kept)
    return Answer(0, warnings, _with_diagnostics(data, warnings), line)


def _check_schedule(name: str, schedule: Schedule, costs: tuple[Plan, Device] | None) -> Answer:
    from dagsched.proof.check import check_schedule

    verdict = check_schedule(schedule)
    diagnostics = verdict.diagnostics(schedule.source)
    waits = verdict.waits
    parts = [
        *([_counted(len(verdict.races), "race")] if verdict.races else []),
        _counted(waits.total, "wait"),
        *([f"{len(waits.redundant)} redundant"] if waits.redundant else []),
        *([f"{len(waits.removable)} removable"] if waits.removable else []),
        f"checked for {verdict.counts_text}",
    ]
    data = verdict.as_data(name)
    line = f": {', '.join(parts)}"
    unsaid: tuple[Diagnostic, ...] = ()
    if costs is not None and verdict.verdict == "ok":
        predicted, unsaid = _predict(schedule, *costs)
        diagnostics = (*diagnostics, *unsaid)
        data = {**data, **({"predicted": predicted} if predicted else {})}
        line += _predicted_lines(predicted)
    if verdict.findings or unsaid:
        data = _with_diagnostics(data, diagnostics)
    return Answer(0 if verdict.verdict == "ok" else 1, diagnostics, data, line)


def _predict(schedule: Schedule, plan: Plan, device: Device) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
    """What a schedule takes; what cannot be simulated is a warning, since the schedule may be right all the same."""
    from dagsched.cost.predict import predict_by_hand

    try:
        return predict_by_hand(schedule, plan, device), ()
    except ScheduleError as error:
        return {}, tuple(replace(found, severity="warning") for found in error.diagnostics)


def _predicted_lines(predicted: dict[str, Any]) -> str:
    from dagsched.view.summary import predicted_lines

    lines = predicted_lines(predicted)
    return "\n  predicted  " + f"\n{' ' * 13}".join(lines) if lines else ""


def _with_proposal(answer: Answer, schedule: Schedule, console: Console, answer_in_text: bool) -> Answer:
    from dagsched.cli.repairs import edits_data, findings_of, propose

    proposal = propose(schedule, console)
    said = findings_of(proposal)
    data = {**answer.data, "edits": edits_data(proposal)}
    if not proposal.repair.is_right:
        data = _with_diagnostics(data, (*answer.diagnostics, *said))
    if answer_in_text and proposal.repair.is_right:
        said = ()  # The diff says it better.
    return replace(answer, diagnostics=(*answer.diagnostics, *said), data=data, proposal=proposal)


def _print_proposal(proposal: Proposal, console: Console) -> None:
    from dagsched.cli.repairs import patch_of

    patch = patch_of(proposal, console, talk=False)
    if patch:
        name = escape(proposal.source.name)
        command = f"dagsched fix {name} -o {name}" if name != STDIN else "dagsched fix - -o OUT"
        console.write(f"\n{patch}\nwith {_counted(len(proposal.changes), 'change')}: ")
        console.write(f"{console.paint('ok', 'green')}, {_counted(proposal.repair.after.waits.total, 'wait')}; ")
        console.write(f"`{command}` makes {'it' if len(proposal.changes) == 1 else 'them'}\n")


def _fix_of(proposal: Proposal) -> Fix | None:
    from dagsched.view.annotations import Fix

    source, rewritten = proposal.source, proposal.rewritten
    if rewritten is None:
        return None
    edits = rewritten.edits if rewritten.edits is not None else (Edit(0, len(source.text), rewritten.text),)
    return Fix(source, "the smallest edit that makes the schedule right", edits)


def _invalid(name: str, error: DagschedError) -> Answer:
    data = _with_diagnostics(_data(name, "invalid", 0), error.diagnostics)
    faults = sum(diagnostic.severity == "error" for diagnostic in error.diagnostics)
    return Answer(error.exit_status, error.diagnostics, data, f": {_counted(faults, 'error')}")


def _data(name: str, verdict: str, waits: int) -> dict[str, Any]:
    return {
        "dagsched": "check/1",
        "file": name,
        "verdict": verdict,
        "races": [],
        "deadlock": None,
        "waits": {"total": waits, "redundant": [], "removable": []},
    }


def _with_diagnostics(data: dict[str, Any], diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    """Findings that the fixed keys cannot say."""
    from dagsched.view.annotations import diagnostic_data

    return {**data, "diagnostics": [diagnostic_data(found) for found in diagnostics]} if diagnostics else data


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
