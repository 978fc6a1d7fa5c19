"""``dagsched diff OLD NEW``: what changed between two schedules (a plan stands for the schedule it compiles to)."""

from __future__ import annotations

import argparse

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.inputs import schedule_of
from dagsched.cli.report import print_json
from dagsched.diagnostics import Diagnostic, UsageError


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("old", metavar="OLD", help="a schedule or a plan, or - for stdin")
    parser.add_argument("new", metavar="NEW", help="a schedule or a plan, or - for stdin")
    parser.add_effort()
    parser.add_format(("text", "json"))


def run(args: argparse.Namespace, console: Console) -> int:
    """Compare and print; the exit status is 0 whether or not they differ."""
    from dagsched.view.difference import difference_data, difference_text

    if args.old == args.new == "-":
        raise UsageError([Diagnostic("U002", "only one of the two files can be stdin")])
    old, _ = schedule_of(args.old, console, args.effort)
    new, _ = schedule_of(args.new, console, args.effort)
    if args.format == "json":
        print_json(console, difference_data(old, new))
    else:
        console.write(difference_text(old, new, paint=console.paint))
    return 0
