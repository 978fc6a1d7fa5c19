"""``dagsched explain CODE``: what a diagnostic means."""

from __future__ import annotations

import argparse

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.report import print_json
from dagsched.diagnostics import Diagnostic, UsageError, closest
from dagsched.view.codes import CODES


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("codes", metavar="CODE", nargs="*", help="a code such as P101 (default: all of them)")
    parser.add_format(("text", "json"))


def run(args: argparse.Namespace, console: Console) -> int:
    """Print a line for each code."""
    codes = [code.upper() for code in args.codes] or sorted(CODES)
    unknown = [code for code in codes if code not in CODES]
    if unknown:
        raise UsageError([_unknown(code) for code in unknown])
    if args.format == "json":
        print_json(console, {code: CODES[code] for code in codes})
    else:
        for code in codes:
            console.write(f"{console.paint(code, 'bold')}  {CODES[code]}\n")
    return 0


def _unknown(code: str) -> Diagnostic:
    near = closest(code, CODES)
    help_ = f"did you mean `dagsched explain {near}`?" if near else "`dagsched explain` lists them"
    return Diagnostic("U007", f"there is no code `{code}`", help=help_)
