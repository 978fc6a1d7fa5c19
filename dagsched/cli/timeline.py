"""``dagsched timeline FILE``: when each op of a plan's schedule, or of any schedule, would run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dagsched.cli.arguments import Parser, choice, with_ending
from dagsched.cli.console import Console
from dagsched.cli.inputs import read_costs, schedule_of
from dagsched.diagnostics import Diagnostic, UsageError, closest
from dagsched.view.terminal import escape

if TYPE_CHECKING:
    from dagsched.schedule.model import Schedule

FORMATS = ("text", "svg", "html", "json")
_ENDINGS = {"txt": "text", "htm": "html", "trace": "json"}


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("file", metavar="FILE", help="a plan or a schedule, or - for stdin")
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="ends in .svg, .html, .json (a trace for Perfetto or chrome://tracing) or .txt (default: stdout)",
    )  # fmt: skip
    parser.add_argument(
        "--count", action="append", default=[], metavar="[NAME=]N",
        help="the value of a parameter; a bare N is that of all that have none (default 8), or of the only one",
    )  # fmt: skip
    parser.add_argument(
        "--plan", metavar="PLAN", help="the plan that says what a schedule's ops cost (else each takes 1 ms)"
    )
    parser.add_argument(
        "--format", type=choice("format", FORMATS), metavar="|".join(FORMATS),
        help="how to draw (default: what the output's name ends in, or text)",
    )  # fmt: skip


def run(args: argparse.Namespace, console: Console) -> int:
    """Simulate, draw, and write the picture whole or not at all."""
    from dagsched.output import write_files
    from dagsched.view.predicted import predict_timeline
    from dagsched.view.timelines import draw_timeline

    output = Path(args.output) if args.output and args.output != "-" else None
    format = args.format or _format_of(output)
    if args.plan == args.file == "-":
        raise UsageError([Diagnostic("U002", "only one of the files can be stdin")])
    schedule, compiled = schedule_of(args.file, console)
    plan, device = (compiled.resolved, compiled.device) if compiled else (None, None)
    if args.plan is not None:
        if compiled is not None:
            headline = f"`--plan` is for schedules, and `{args.file}` is a plan"
            raise UsageError([Diagnostic("U002", headline, help="drop `--plan`")])
        plan, device = read_costs(args.plan, console)
    timeline = predict_timeline(schedule, plan, device, _counts(args.count, schedule))
    if output is None and format == "text":
        console.write(draw_timeline(timeline, "text", width=console.width, paint=console.paint))
    elif output is None:
        console.write(draw_timeline(timeline, format))
    else:
        write_files(output.parent, {output.name: draw_timeline(timeline, format)})
        console.say(f"wrote {escape(str(output))}")
    return 0


def _counts(words: list[str], schedule: Schedule) -> dict[str, int]:
    """``--count 4`` and ``--count n=4`` as parameter values."""
    counts: dict[str, int] = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        try:
            value = int(number)
        except ValueError:
            value = -1
        if value < 0:
            headline = f"`--count {word}` is no number from 0 up"
            raise UsageError([Diagnostic("U002", headline, help="for example `--count 4` or `--count frames=4`")])
        if not equals:
            counts = dict.fromkeys(_meant(word, schedule), value) | counts
        elif name in schedule.params:
            counts[name] = value
        else:
            near = closest(name, schedule.params)
            known = ", ".join(f"`{param}`" for param in schedule.params) or "none"
            help_ = f"write `--count {near}={value}`" if near else f"the parameters are {known}"
            raise UsageError([Diagnostic("U002", f"there is no parameter `{name}`", help=help_)])
    return counts


def _meant(word: str, schedule: Schedule) -> list[str]:
    """The parameters that a number without a name is for; refused where it would say nothing."""
    params = schedule.params
    unset = [param for param, given in params.items() if given is None]
    if unset or len(params) == 1:
        return unset or list(params)
    if not params:
        headline = f"`--count {word}` needs a parameter, and the file has none"
        raise UsageError([Diagnostic("U002", headline, help="write `params: {n: null}` and `count: n`")])
    headline = f"`--count {word}` does not say which parameter it is for: all have a default"
    known = tuple(f"{param} = {given}" for param, given in params.items())
    help_ = f"write `--count {next(iter(params))}={word}`"
    raise UsageError([Diagnostic("U002", headline, notes=(f"the defaults are {', '.join(known)}",), help=help_)])


def _format_of(output: Path | None) -> str:
    if output is None:
        return "text"
    ending = output.suffix.removeprefix(".").lower()
    ending = _ENDINGS.get(ending, ending)
    if ending in FORMATS:
        return ending
    headline = f"the format of `{output}` is not clear: its name ends in none of .svg, .html, .json, .txt"
    raise UsageError([Diagnostic("U005", headline, help=f"`-o {with_ending(output)}`, or add `--format svg`")])
