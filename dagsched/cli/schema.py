"""``dagsched schema plan|schedule``: the JSON schema that editors check files with."""

from __future__ import annotations

import argparse

from dagsched.cli.arguments import Parser, choice
from dagsched.cli.console import Console

LANGUAGES = ("plan", "schedule")


def add_arguments(parser: Parser) -> None:
    """Operands of the command."""
    parser.add_argument("language", metavar="plan|schedule", type=choice("language", LANGUAGES), help="which one")


def run(args: argparse.Namespace, console: Console) -> int:
    """Print the schema."""
    from dagsched.schemas import schema_text

    console.write(schema_text(args.language))
    return 0
