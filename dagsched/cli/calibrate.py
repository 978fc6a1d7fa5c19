"""``dagsched calibrate PLAN --trace FILE -o PLAN2``: measured times into a plan's own text."""

from __future__ import annotations

import argparse
import shlex
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from dagsched.cli.arguments import Parser, choice
from dagsched.cli.console import Console
from dagsched.cli.inputs import read_text
from dagsched.cli.report import print_json
from dagsched.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from dagsched.calibrate.match import Calibration
    from dagsched.calibrate.traces import Trace

_SHOWN = 12
_UNREAD = 5


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("plan", metavar="PLAN", help="the plan's file, or - for stdin")
    parser.add_argument(
        "--trace", metavar="FILE", required=True,
        help="what a profiler wrote: Chrome trace JSON (of `dagsched run`, torch, Ascend) or Ascend's CSV",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write the plan (default: standard output)")
    parser.add_argument(
        "--statistic", default="median", type=choice("statistic", ("median", "mean", "min", "max")),
        metavar="median|mean|min|max", help="what stands for many runs of an op (default median)",
    )  # fmt: skip
    parser.add_argument(
        "--map", action="append", default=[], metavar="OP=EVENT",
        help="the events that are runs of an op, where names differ; EVENT may hold `*`; may be given several times",
    )  # fmt: skip
    parser.add_format(("text", "json"))


def run(args: argparse.Namespace, console: Console) -> int:
    """Match, write, and list what was found and what was not."""
    from dagsched.calibrate.match import match_trace
    from dagsched.calibrate.rewrite import write_times
    from dagsched.calibrate.traces import read_trace
    from dagsched.output import write_files
    from dagsched.plan.reader import read_plan

    if args.format == "json" and args.output is None:
        raise UsageError([Diagnostic("U002", "with `--format json` the plan needs a file", help="add `-o PLAN`")])
    source = read_text(args.plan, console)
    plan = read_plan(source)
    trace = read_trace(_read(args.trace), args.trace)
    found = match_trace(plan, trace.samples, args.statistic, dict(_pair(text) for text in args.map))
    text = write_times(source, {timing.op: timing.seconds for timing in found.timings})
    if args.output is None:
        console.write(text)
        console.stderr.write(_report(found, trace, args.statistic))
        return 0
    path = Path(args.output)
    write_files(path.parent, {path.name: text})
    if args.format == "json":
        print_json(console, _data(found, trace, args.output))
    else:
        console.write(_report(found, trace, args.statistic))
    return 0


def _read(name: str) -> str:
    """A trace's text, unpacked where it is a gzip file (as torch writes); these files may be far larger than plans."""
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError([Diagnostic("U001", f"`{name}` cannot be read: {reason}")]) from None
    try:
        if data.startswith(b"\x1f\x8b"):
            import gzip

            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error):
        raise UsageError([Diagnostic("K101", f"`{name}` is a gzip file that cannot be unpacked")]) from None
    except ValueError:
        raise UsageError([Diagnostic("K101", f"`{name}` is no trace that is known: it is not UTF-8 text")]) from None


def _pair(text: str) -> tuple[str, str]:
    op, equals, event = text.partition("=")
    if not (op and equals and event):
        raise UsageError(
            [Diagnostic("U002", f"`--map {text}` does not say which events", help="write `--map OP=EVENT`")]
        )
    return op, event


def _report(found: Calibration, trace: Trace, statistic: str) -> str:
    from dagsched.view.terminal import escape, pad, width_of
    from dagsched.view.units import interval_text

    width = max(width_of(escape(timing.op)) for timing in found.timings)
    lines = [f"{len(found.timings)} op{'s' if len(found.timings) > 1 else ''} timed by the {statistic} of all runs"]
    for timing in found.timings:
        before = "no time" if timing.before is None else interval_text(timing.before, 4)
        ends = f", {interval_text(timing.shortest, 4)} to {interval_text(timing.longest, 4)}"
        spread = ends if timing.runs > 1 else ""
        runs = f"{timing.runs} run" + ("s" if timing.runs != 1 else "")
        lines.append(
            f"  {pad(escape(timing.op), width)}  {interval_text(timing.seconds, 4)}, was {before} ({runs}{spread})"
        )
    for title, names in (("no run of", found.missing), ("of no op", found.unused)):
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            lines.append(f"  {title}: {', '.join(escape(name) for name in names[:_SHOWN])}{more}")
    for op, event in found.likely[:_SHOWN]:
        lines.append(f"  of {escape(op)}, maybe: --map {shlex.quote(f'{escape(op)}={escape(event)}')}")
    if trace.unread:
        lines.append(f"  not read: {len(trace.unread)} of {len(trace.unread) + len(trace.samples)}")
        lines += [f"    {escape(text)}" for text in trace.unread[:_UNREAD]]
    return "\n".join(lines) + "\n"


def _data(found: Calibration, trace: Trace, output: str) -> dict[str, object]:
    return {
        "dagsched": "calibrate/1",
        "file": output,
        "times": [
            {
                "op": timing.op, "time": timing.seconds, "before": timing.before, "runs": timing.runs,
                "shortest": timing.shortest, "longest": timing.longest,
            }
            for timing in found.timings
        ],
        "missing": list(found.missing),
        "unused": list(found.unused),
        "likely": [{"op": op, "event": event} for op, event in found.likely],
        "unread": list(trace.unread),
    }  # fmt: skip
