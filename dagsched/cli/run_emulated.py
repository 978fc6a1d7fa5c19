"""``dagsched run PLAN --backend emulated``: build the emitted program, run it on the emulator, judge what it did.

Every seed is one interleaving. Each run is compared with the sequential meaning of the plan and its trace is checked;
with ``--inject`` the program must instead report the fault, return its code and leave nothing behind.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagsched.cli.arguments import Parser, choice
from dagsched.cli.console import Console
from dagsched.cli.report import print_diagnostics, print_json
from dagsched.diagnostics import Diagnostic, UsageError, closest

if TYPE_CHECKING:
    from dagsched.cli.inputs import ReadPlan
    from dagsched.compiled import Compiled

SEEDS = (0, 1, 2, 3)
TARGETS = ("acl-cpp", "cuda-cpp", "acl-graph", "cuda-graph", "pyacl")
COUNT = 7
"""The value of a parameter that has neither a default nor a ``--count``."""

LONG = 3600.0
"""Seconds that a run may take where no ``--timeout`` is given."""


def add_options(parser: Parser) -> None:
    """The options that only this backend knows."""
    group = parser.add_argument_group("with --backend emulated")
    group.add_argument(
        "--seed", action="append", type=_seed, default=[], metavar="N",
        help="an interleaving; may be given several times (default 0, 1, 2 and 3)",
    )  # fmt: skip
    group.add_argument(
        "--target", type=choice("target", TARGETS), metavar="NAME",
        help="what to emit and run: acl-cpp (the default), cuda-cpp, acl-graph, cuda-graph or pyacl",
    )  # fmt: skip
    group.add_argument("--tsan", action="store_true", help="build with ThreadSanitizer, which sees every race")
    group.add_argument("--asan", action="store_true", help="build with AddressSanitizer and LeakSanitizer")
    group.add_argument(
        "--inject", metavar="OP@I:CODE",
        help="let the op's call fail with this error code, a number or a name, in iteration I (`upload@3:507015`; "
        "outside of loops `load:507015`; what is created: `buffer image:207001`, `stream NAME:…`, `event NAME:…`). "
        "Codes of the device come back at a later call, others from the call itself; `:call`, `:task` or `:lost` (the "
        "device is gone) behind the code decides",
    )  # fmt: skip
    group.add_argument("--keep", metavar="DIR", help="leave the program, its results and its traces there")


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that the chosen backend would not heed."""
    emulated = {
        "--seed": args.seed, "--target": args.target, "--tsan": args.tsan, "--asan": args.asan,
        "--inject": args.inject, "--keep": args.keep,
    }  # fmt: skip
    others = {"--functions": args.functions, "--trace": args.trace, "--repeat": args.repeat != 1}
    given = [name for name, value in (others if args.backend == "emulated" else emulated).items() if value]
    if args.backend == "emulated" and not given:
        return _check_sanitizers(args)
    if not given:
        return None
    if args.backend == "emulated":
        help_ = "the emulated backend makes up functions; `--keep DIR` leaves its traces"
        raise UsageError([Diagnostic("U002", f"`{given[0]}` is not for `--backend emulated`", help=help_)])
    raise UsageError(
        [Diagnostic("U002", f"`{given[0]}` is for `--backend emulated` only", help="add `--backend emulated`")]
    )


def _check_sanitizers(args: argparse.Namespace) -> None:
    given = [name for name, value in (("--tsan", args.tsan), ("--asan", args.asan)) if value]
    if len(given) == 2:
        raise UsageError([Diagnostic("U002", "`--tsan` and `--asan` do not go together", help="run twice")])
    if given and args.target == "pyacl":
        headline = f"`{given[0]}` is for emitted C++: Python is not compiled, and cannot be built with a sanitizer"
        note = "results and traces of `--target pyacl` are checked all the same"
        help_ = f"leave out `{given[0]}`, or take `--target acl-cpp`"
        raise UsageError([Diagnostic("U002", headline, notes=(note,), help=help_)])


def run(read: ReadPlan, args: argparse.Namespace, counts: dict[str, Any], console: Console) -> int:
    """Build, run, judge; 1 where something is wrong."""
    from dagsched.cli.inputs import compile_read
    from dagsched.emulator.faults import read_fault
    from dagsched.emulator.run import build_program, judge, judge_fault, run_program

    target = args.target or TARGETS[0]
    compiled, warnings = compile_read(read)
    values = _values(compiled, counts)
    fault = read_fault(args.inject, compiled, values, target) if args.inject else None
    sanitizer = "thread" if args.tsan else "address" if args.asan else None
    if args.format == "text":
        print_diagnostics(console, warnings, "text")
    with nullcontext(args.keep) if args.keep else tempfile.TemporaryDirectory(prefix="dagsched-") as folder:
        console.progress(f"{compiled.plan.name}: building for the emulator")
        program = build_program(compiled, Path(folder).resolve(), target, sanitizer)
        meaning = program.meaning(values)
        found: list[Diagnostic] = []
        runs: list[dict[str, Any]] = []
        for seed in args.seed or SEEDS:
            console.progress(f"{compiled.plan.name}: running with seed {seed}")
            told = fault.text if fault else None
            outcome = run_program(program, values, seed, inject=told, timeout=args.timeout or LONG)
            findings = judge(program, meaning, outcome) if fault is None else judge_fault(outcome, fault.code)
            found += findings
            runs.append({"seed": seed, "right": not findings, "code": outcome.code, "failure": outcome.failure or None})
        console.progress("")
    if args.format == "json":
        _print_data(console, compiled, values, runs, found)
    else:
        print_diagnostics(console, found, "text")
        _print_text(console, compiled, values, runs, sanitizer, args.inject)
    return 1 if found else 0


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"`{text}` is no number from 0 up")
    return int(text)


def _values(compiled: Compiled, counts: dict[str, Any]) -> dict[str, int]:
    params = compiled.plan.params
    for name, value in counts.items():
        if name not in params:
            near = closest(name, params) or next(iter(params), None)
            help_ = f"write `--count {near}={value}`" if near else "the plan has no parameters"
            raise UsageError([Diagnostic("R103", f"the plan has no parameter `{name}`", help=help_)])
    return {name: counts.get(name, COUNT if default is None else default) for name, default in params.items()}


def _print_text(
    console: Console,
    compiled: Compiled,
    values: dict[str, int],
    runs: list[dict[str, Any]],
    sanitizer: str | None,
    fault: str | None,
) -> None:
    from dagsched.view.terminal import escape

    counts = ", ".join(f"{name} = {value}" for name, value in values.items())
    right = sum(one["right"] for one in runs)
    what = (
        "took the fault and left nothing behind" if fault else "equal to the sequential meaning, traces without a race"
    )
    colour = "green" if right == len(runs) else "red"
    ran = f"{len(runs)} run{'s' if len(runs) != 1 else ''} on the emulator"
    console.write(f"{escape(compiled.plan.name)}: {ran}{f', {escape(counts)}' if counts else ''}\n")
    if sanitizer:
        console.write(f"  built with {sanitizer.capitalize()}Sanitizer\n")
    console.write(f"  {console.paint(f'{right} of {len(runs)}', colour)} {what}\n")
    failure = next((one["failure"] for one in runs if one["failure"]), None)
    if fault and failure:
        console.write(f"  reported: {escape(re.sub(r'^[^:]*/', '', failure))}\n")


def _print_data(
    console: Console, compiled: Compiled, values: dict[str, int], runs: list[dict[str, Any]], found: list[Diagnostic]
) -> None:
    from dagsched.view.annotations import diagnostic_data

    print_json(
        console,
        {
            "dagsched": "emulated/1",
            "plan": compiled.plan.name,
            "counts": values,
            "runs": runs,
            "diagnostics": [diagnostic_data(diagnostic) for diagnostic in found],
        },
    )
