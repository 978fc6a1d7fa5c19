"""``dagsched schema plan|schedule|device``: the JSON schema that editors check files with."""

from __future__ import annotations

import argparse

from dagsched.cli.arguments import Parser, choice
from dagsched.cli.console import Console

LANGUAGES = ("plan", "schedule", "device")


def add_arguments(parser: Parser) -> None:
    """Operands of the command."""
    parser.add_argument(
        "language", metavar="plan|schedule|device", type=choice("language", LANGUAGES), help="which one"
    )


def run(args: argparse.Namespace, console: Console) -> int:
    """Print the schema."""
    from dagsched.schemas import SCHEMAS, schema_text

    console.write(schema_text(SCHEMAS[args.language]()))
    return 0
