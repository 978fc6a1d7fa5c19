"""``dagsched prove FILE``: an adversary runs whatever may run next, and contents are compared. Nothing is written.

A plan is compiled first, and its schedule is held to what the plan means; a schedule is held to the order of its steps.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.inputs import STDIN, ReadPlan, compile_read, read_either, read_text
from dagsched.cli.report import print_diagnostics, print_json
from dagsched.diagnostics import Diagnostic, ScheduleError, UsageError
from dagsched.view.terminal import escape

if TYPE_CHECKING:
    from dagsched.plan.model import Plan
    from dagsched.proof.adversary import Options
    from dagsched.proof.adversary_model import Attempt
    from dagsched.schedule.model import Schedule

_BAR = 20
MOST_COUNT = 10_000
MOST_COUNTS = 64


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("file", metavar="FILE", help="a plan or a schedule, or - for stdin")
    parser.add_argument(
        "--examples", type=_number("examples", 0, 10_000_000), default=200, metavar="N",
        help="attacks that hypothesis draws, beside those that are always made (default 200)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=_number("seed", 0, 2**63 - 1), default=0, metavar="N",
        help="where drawing starts; the same seed makes the same attacks (default 0)",
    )  # fmt: skip
    parser.add_argument(
        "--time-limit", type=_seconds, default=20.0, metavar="SECONDS",
        help="stop after so long, and say what was left out (default 20)",
    )  # fmt: skip
    parser.add_argument(
        "--counts", type=_counts, default=(), metavar="N,N,...",
        help="values for every parameter (default 0, 1, 2, 3, and some that let the longest ring come round)",
    )  # fmt: skip
    parser.add_argument("--no-waits", action="store_true", help="do not drop each wait in turn")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the interleaving that breaks without each wait"
    )
    parser.add_format()


def run(args: argparse.Namespace, console: Console) -> int:
    """Attack, and say what came of it."""
    from dagsched.proof.adversary import Options

    options = Options(args.counts, args.examples, args.seed, args.time_limit, not args.no_waits)
    shown = STDIN if args.file == "-" else args.file
    console.progress("reading")
    read = read_either(read_text(args.file, console))
    warnings: tuple[Diagnostic, ...] = ()
    plan: Plan | None = None
    if isinstance(read, ReadPlan):
        console.progress("compiling")
        compiled, warnings = compile_read(read)
        schedule, plan = compiled.schedule, compiled.plan
    else:
        schedule = read
    if args.counts and not schedule.params:
        headline = "`--counts` needs a parameter, and the file has none"
        raise UsageError([Diagnostic("U002", headline, help="write `params: {n: null}` and `count: n`")])
    attempt = _attack(schedule, plan, options, console)
    console.progress("")
    from dagsched.view.attempts import attempt_diagnostics

    found = attempt_diagnostics(attempt, schedule, plan)
    if args.format == "json":
        print_json(console, attempt.as_data(shown))
    elif args.format == "text":
        print_diagnostics(console, warnings, "text")
        _print_text(console, shown, attempt, found, plan is not None, args.verbose)
    else:
        print_diagnostics(console, (*warnings, *found), args.format)
    if attempt.failure is None:
        return 0
    return 1 if plan is None else 3


def _attack(schedule: Schedule, plan: Plan | None, options: Options, console: Console) -> Attempt:
    from dagsched.plan.expressions import ExpressionError
    from dagsched.proof.adversary import attack_schedule

    def progress(text: str, done: float) -> None:
        full = round(_BAR * done)
        console.progress(f"[{'#' * full}{'.' * (_BAR - full)}] {text}")

    try:
        return attack_schedule(schedule, plan, options, progress)
    except ExpressionError as error:
        where = next((step.where for step in schedule.walk() if step.where), None)
        headline = f"an expression has no value: {error.message}"
        raise ScheduleError([Diagnostic("S408", headline, where, schedule.source)]) from None


def _print_text(
    console: Console, name: str, attempt: Attempt, found: tuple[Diagnostic, ...], is_plan: bool, verbose: bool
) -> None:
    from dagsched.view.interleaving import explored_lines, failure_text, waits_lines

    print_diagnostics(console, found, "text", talk=False)
    console.write("\n" if found else "")
    failure = attempt.failure
    if failure is not None and failure.steps:
        at = ", ".join(f"{name} = {value}" for name, value in failure.env)
        shortest = "the steps that lead there" if failure.kind == "deadlock" else "the shortest interleaving that fails"
        console.write(f"{shortest}{f' (with {escape(at)})' if at else ''}:\n\n")
        console.write(failure_text(failure, paint=console.paint, width=console.width, indent="  ") + "\n")
    colour = "green" if attempt.verdict == "ok" else "red"
    meant = "the plan's meaning" if is_plan else "the order of its steps"
    says = f": no interleaving departs from {meant}" if attempt.verdict == "ok" else ""
    console.write(f"{escape(name)}: {console.paint(attempt.verdict, colour)}{says}\n")
    lines = explored_lines(attempt.explored)
    console.write(f"  explored  {lines[0]}\n" + "".join(f"            {line}\n" for line in lines[1:]))
    if attempt.waits_tried:
        rows = waits_lines(attempt, paint=console.paint, width=console.width - 4, verbose=verbose)
        needed = sum(wait.result == "needed" for wait in attempt.waits)
        console.write(f"  waits     {len(attempt.waits)} dropped in turn, {needed} needed\n")
        console.write("".join(f"    {row}".rstrip() + "\n" for row in rows))


def _number(what: str, least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not text.isascii() or len(text) > 20 or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"`{text}` is no number of {what}; write one from {least} to {most:,}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"`{text}` is no time in seconds; write one such as 20 or 0.5")
    return value


def _counts(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    fine = all(part.isdecimal() and part.isascii() and len(part) < 10 for part in parts)
    values = tuple(sorted({int(part) for part in parts})) if fine else ()
    if not values or values[-1] > MOST_COUNT or len(values) > MOST_COUNTS:
        raise argparse.ArgumentTypeError(f"`{text}` is no list of counts up to {MOST_COUNT:,}; write 0,1,2,8")
    return values
