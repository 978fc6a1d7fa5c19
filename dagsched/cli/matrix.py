"""``dagsched matrix PLAN``: which op must precede which, and why."""

from __future__ import annotations

import argparse

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.inputs import compile_read, read_plan_file
from dagsched.cli.report import print_diagnostics


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("plan", metavar="PLAN", help="the plan's file, or - for stdin")
    parser.add_format(("text", "csv", "json"))


def run(args: argparse.Namespace, console: Console) -> int:
    """Compile, and print the hazards."""
    from dagsched.view.matrix import matrix_csv, matrix_json, matrix_table

    read = read_plan_file(args.plan, console)
    hazards = compile_read(read)[0].hazards  # their distances depend on the depths that rings are given
    print_diagnostics(console, read.warnings, "text")
    if args.format == "json":
        console.write(matrix_json(hazards, read.plan.name))
    elif args.format == "csv":
        console.write(matrix_csv(hazards))
    else:
        console.write(matrix_table(hazards, console.width))
    return 0
