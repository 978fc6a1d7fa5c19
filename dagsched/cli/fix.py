"""``dagsched fix FILE -o OUT``: write a schedule without its races, deadlocks and needless waits.

OUT is written whole or not at all, and only if the checker finds nothing in it. Comments and layout of FILE stay.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.inputs import ReadPlan, read_either, read_text
from dagsched.cli.report import print_diagnostics
from dagsched.diagnostics import Diagnostic, ScheduleError, Source
from dagsched.view.terminal import escape


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("file", metavar="FILE", help="a schedule, or - for stdin")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="where to write it: FILE itself will do; - for stdout"
    )
    parser.add_argument(
        "--keep-waits", action="store_true", help="leave waits that can go; only repair what is wrong"
    )  # fmt: skip


def run(args: argparse.Namespace, console: Console) -> int:
    """Repair and write; 1 where the schedule cannot be made right, and then nothing is written."""
    from dagsched.cli.repairs import findings_of, propose, reasons_of
    from dagsched.output import write_files
    from dagsched.schedule.writer import schedule_json

    source = read_text(args.file, console)
    read = read_either(source)
    if isinstance(read, ReadPlan):
        headline = "this is a plan: it has no records and waits that could be wrong"
        help_ = f"`dagsched compile {source.name}` writes its schedule, with exactly the waits that it needs"
        raise ScheduleError([Diagnostic("S100", headline, None, source, help=help_)])
    proposal = propose(read, console, keep_waits=args.keep_waits)
    repair = proposal.repair
    if not repair.is_right:
        print_diagnostics(console, (*repair.before.diagnostics(source), *findings_of(proposal)), "text")
        console.say(f"\n{escape(source.name)}: {console.talk('not repaired', 'red')}, nothing is written")
        return 1
    text = source.text if proposal.rewritten is None else proposal.rewritten.text
    if args.output == "-":
        console.write(text)
    else:
        output = Path(args.output)
        if output.suffix.lower() == ".json" and not _is_json(source):
            console.say(f"{console.talk('note', 'blue')}: {escape(output.name)} is written as JSON, without comments")
            text = schedule_json(repair.schedule)
        write_files(output.parent, {output.name: text})
    console.stderr.write(reasons_of(proposal))
    count = len(proposal.changes)
    done = f"{count} change{'s' if count != 1 else ''}" if count else "nothing to repair"
    waits = repair.after.waits.total
    spare = ""
    if waits and not repair.untried and not args.keep_waits:
        spare = ", which cannot go" if waits == 1 else ", none of which can go"
    where = "" if args.output == "-" else f"wrote {escape(args.output)}: "
    counted = f"{waits} wait{'s' if waits != 1 else ''}"
    console.say(f"{where}{done}; ok with {counted}{spare}, checked for {repair.after.counts_text}")
    return 0


def _is_json(source: Source) -> bool:
    """Whether a file that was read holds JSON, which YAML readers take as well."""
    from dagsched.json_nodes import compose_json

    root, findings = compose_json(source)
    return root is not None and not findings
