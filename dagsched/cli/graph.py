"""``dagsched graph FILE -o x.svg``: a picture of a plan's schedule, or of a schedule somebody wrote."""

from __future__ import annotations

import argparse
from pathlib import Path

from dagsched.cli.arguments import Parser, choice, with_ending
from dagsched.cli.console import Console
from dagsched.cli.inputs import schedule_of
from dagsched.diagnostics import Diagnostic, UsageError
from dagsched.view.render import FORMATS, draw_picture
from dagsched.view.terminal import escape


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("file", metavar="FILE", help="a plan or a schedule, or - for stdin")
    parser.add_effort()
    parser.add_argument("-o", "--output", metavar="FILE", help="ends in .svg, .png or .dot (default: stdout)")
    parser.add_argument(
        "--format", type=choice("format", FORMATS), metavar="|".join(FORMATS),
        help="the picture's format (default: what the output's name ends in, or dot)",
    )  # fmt: skip


def run(args: argparse.Namespace, console: Console) -> int:
    """Draw, and write the picture whole or not at all."""
    from dagsched.output import write_files
    from dagsched.view.graph import schedule_dot

    output = Path(args.output) if args.output and args.output != "-" else None
    format = args.format or picture_format(output)
    if output is None and format == "png" and console.stdout.isatty():
        headline = "a PNG picture is no text for a terminal"
        raise UsageError([Diagnostic("U006", headline, help="name a file with `-o x.png`")])
    schedule, compiled = schedule_of(args.file, console, args.effort)
    hazards, plan = (compiled.hazards, compiled.resolved) if compiled else (None, None)
    picture = draw_picture(schedule_dot(schedule, hazards, plan), format)
    for note in picture.notes:
        console.say(f"{console.talk('note', 'blue')}: {escape(note)}")
    if output is None:
        console.write_bytes(picture.data) if format == "png" else console.write(picture.data.decode())
    else:
        write_files(output.parent, {output.name: picture.data})
        console.say(f"wrote {escape(str(output))}")
    return 0


def picture_format(output: Path | None) -> str:
    """The format that a picture's name asks for (``dot`` for stdout); raises :class:`UsageError` (U005) for none."""
    if output is None:
        return "dot"
    ending = output.suffix.removeprefix(".").lower()
    if ending in FORMATS:
        return ending
    headline = f"the format of `{output}` is not clear: its name ends in none of .{', .'.join(FORMATS)}"
    raise UsageError([Diagnostic("U005", headline, help=f"`-o {with_ending(output)}`")])
