"""``dagsched run FILE``: compile, run on a backend, say where the time went; without functions a dry run.

A schedule written by hand is run as it is, with the operations of the plan that ``--costs`` names.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dagsched.cli import run_emulated
from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.inputs import ReadPlan, compile_read, read_costs, read_either, read_plan_file, read_text
from dagsched.cli.report import print_diagnostics, print_json
from dagsched.diagnostics import Diagnostic, UsageError

if TYPE_CHECKING:
    from dagsched.compiled import Compiled
    from dagsched.plan.model import Plan
    from dagsched.run.errors import Head

STALL = 10.0
"""Seconds without any movement after which the heads of the streams are printed."""


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("plan", metavar="FILE", help="the file of a plan or of a schedule, or - for stdin")
    parser.add_argument(
        "--backend", default="cpu", metavar="NAME",
        help="where to run: `cpu` (threads of this machine, the default), `simulate` (the device's model), `opencl` "
        "(an OpenCL device), `acl` (an Ascend NPU), `torch` (PyTorch's accelerator), `emulated` (the emitted program "
        "with made-up functions, on an emulator of the runtime)",
    )  # fmt: skip
    parser.add_argument(
        "--functions", metavar="MODULE",
        help="the Python module (my.module, or a path ending in .py) that has the plan's functions, and, where the "
        "plan needs them, `inputs` and `sources`: mappings by name, or functions that return them; importing it runs "
        "its code. Without it ops sleep for their time",
    )  # fmt: skip
    parser.add_argument(
        "--count", action="append", default=[], metavar="NAME=N",
        help="the value of a parameter; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--costs", metavar="PLAN",
        help="for a schedule: the plan that has its operations, with their functions, their times and their buffers",
    )  # fmt: skip
    parser.add_argument("--trace", metavar="FILE", help="write the timeline as Chrome trace JSON")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="stop a run that takes longer")
    parser.add_argument("--repeat", type=_repeats, default=1, metavar="N", help="run N times; report on the last one")
    run_emulated.add_options(parser)
    parser.add_format(("text", "json"))


def run(args: argparse.Namespace, console: Console) -> int:
    """Compile, run, report."""
    from pathlib import Path

    run_emulated.check_options(args)
    if args.backend == "emulated":
        if args.costs is not None:
            raise UsageError([Diagnostic("U002", "`--costs` is not for `--backend emulated`", help="drop it")])
        return run_emulated.run(read_plan_file(args.plan, console), args, _read_counts(args.count), console)

    from dagsched.library import Schedule
    from dagsched.output import write_files
    from dagsched.run.backend import BACKENDS, require_backend
    from dagsched.run.modules import load_module
    from dagsched.run.report import result_data, usage_text

    require_backend(args.backend, (*BACKENDS, "emulated"))
    compiled, warnings = _read(args, console)
    counts: dict[str, Any] = _read_counts(args.count)
    if args.format == "text":
        print_diagnostics(console, warnings, "text")
    module = load_module(args.functions) if args.functions is not None else None
    sources = module.sources() if module else {}
    _require_counts(compiled.plan, {**sources, **counts})
    with Schedule(compiled).executor(
        module.functions if module else None, args.backend, trace=10**9 if args.trace else 100_000
    ) as executor:
        for number in range(args.repeat):
            result = executor.run(
                inputs=module.inputs() if module and not number else None,
                timeout=args.timeout,
                watchdog=STALL,
                on_stall=_stall_teller(console),
                on_progress=_progress_teller(console, compiled.plan.name),
                **{**(module.sources() if module and number else sources), **counts},
            )
            console.progress("")
    if args.trace:
        path = Path(args.trace)
        write_files(path.parent, {path.name: result.trace.to_json()})
    if args.format == "json":
        print_json(console, result_data(result))
    else:
        console.write(usage_text(result, paint=console.paint))
        if args.trace:
            console.say(f"written to {args.trace}")
    return 0


def _read(args: argparse.Namespace, console: Console) -> tuple[Compiled, tuple[Diagnostic, ...]]:
    """What to run, and what to look at."""
    if args.plan == args.costs == "-":
        raise UsageError([Diagnostic("U002", "only one of the files can be stdin")])
    read = read_either(read_text(args.plan, console))
    if isinstance(read, ReadPlan):
        if args.costs is not None:
            headline = f"`--costs` is for schedules, and `{args.plan}` is a plan"
            raise UsageError([Diagnostic("U002", headline, help="drop `--costs`")])
        return compile_read(read)
    if args.costs is None:
        headline = f"`{args.plan}` is a schedule, which does not say what its operations do and how long they take"
        help_ = "add `--costs PLAN`, a plan that has operations of the same names"
        raise UsageError([Diagnostic("U002", headline, help=help_)])
    from dagsched.run.by_hand import adopt_schedule

    return adopt_schedule(read, *read_costs(args.costs, console)), ()


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of seconds above 0")
    return value


def _repeats(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of runs from 1 up")
    return int(text)


def _read_counts(texts: list[str]) -> dict[str, int]:
    counts = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip().isdecimal() or len(value) > 18:
            headline = f"`--count {text}` is no parameter with a number from 0 up"
            raise UsageError([Diagnostic("U002", headline, help="write `--count frames=100`")])
        counts[name.strip()] = int(value)
    return counts


def _require_counts(plan: Plan, given: Mapping[str, Any]) -> None:
    if not given.keys() <= plan.params.keys():
        return  # a name is misspelt, and the run will say which one
    missing = [name for name, default in plan.params.items() if default is None and name not in given]
    if missing:
        headline = f"the run needs a value for `{missing[0]}`"
        raise UsageError([Diagnostic("R105", headline, help=f"add `--count {missing[0]}=100`")])


def _stall_teller(console: Console) -> Callable[[tuple[Head, ...]], None]:
    from dagsched.view.terminal import escape

    def tell(heads: tuple[Head, ...]) -> None:
        console.progress("")
        console.say(f"nothing has moved for {STALL:g} s:")
        for head in heads:
            console.say(f"  {escape(str(head))}")

    return tell


def _progress_teller(console: Console, name: str) -> Callable[[int, float], None] | None:
    """A line with iterations and their rate, for a terminal; None where nobody would see it."""
    if not console.stderr.isatty():
        return None

    def tell(iterations: int, seconds: float) -> None:
        rate = iterations / seconds if seconds > 0 else 0.0
        console.progress(f"{name}: {iterations:,} iterations, {rate:,.1f} a second")

    return tell
