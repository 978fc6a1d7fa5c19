"""``dagsched compile PLAN``: the schedule, its proof and the targets' files, written whole or not at all."""

from __future__ import annotations

import argparse
from pathlib import Path

from dagsched.cli.arguments import Parser, choice
from dagsched.cli.console import Console
from dagsched.cli.inputs import compile_read, read_plan_file
from dagsched.cli.report import print_diagnostics, print_json
from dagsched.diagnostics import Diagnostic, UsageError

DEFAULT_TARGETS = ("acl-cpp",)


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("plan", metavar="PLAN", help="the plan's file, or - for stdin")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write (default build/NAME)")
    parser.add_argument(
        "--target", action="append", metavar="NAME",
        help="what to emit besides the schedule: acl-cpp (the default), acl-graph, cuda-cpp, cuda-graph, pyacl, calls, "
        "or schedule for nothing else; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--explain-rings", action="store_true",
        help="also print how the depths of rings trade memory for speed",
    )  # fmt: skip
    parser.add_argument(
        "--sync", default="order", type=choice("sync", ("order", "fewest")), metavar="order|fewest",
        help="fewest: save waits by adding order where the model shows no loss (default order: add none)",
    )  # fmt: skip
    parser.add_effort()
    parser.add_format()


def run(args: argparse.Namespace, console: Console) -> int:
    """Compile, write, and say what came of it."""
    from dataclasses import replace

    from dagsched.emit.names import file_stem
    from dagsched.library import schedule_files
    from dagsched.output import write_files

    if args.output in ("", "-"):
        headline = f"`-o {args.output or chr(34) * 2}` names no directory, and compile writes several files"
        raise UsageError([Diagnostic("U002", headline, help="`-o build/mine`, or leave `-o` away")])
    read = read_plan_file(args.plan, console)
    compiled, warnings = compile_read(read, args.effort, ring_table=args.explain_rings, sync=args.sync)
    compiled = replace(compiled, warnings=warnings)
    files = schedule_files(compiled, args.target or DEFAULT_TARGETS)
    directory = Path(args.output) if args.output else Path("build") / file_stem(compiled.plan.name)
    paths = write_files(directory, files)
    if args.format == "json":
        from dagsched.view.summary import summary_data

        data = {**summary_data(compiled), "files": [str(path) for path in paths]}
        if args.explain_rings:
            from dagsched.view.rings import ring_table_data

            data["ring_table"] = ring_table_data(compiled)
        print_json(console, data)
    elif args.format == "text":
        from dagsched.view.summary import summary_text
        from dagsched.view.terminal import escape, wrap_names

        print_diagnostics(console, warnings, "text")
        console.write(summary_text(compiled, paint=console.paint, width=console.width))
        names = wrap_names([escape(path.name) for path in paths], console.width, 15)
        console.write(f"  written    {escape(str(directory))}/\n               {names}\n")
        if args.explain_rings:
            from dagsched.view.rings import ring_table_text

            console.write(f"\n{ring_table_text(compiled, paint=console.paint, width=console.width)}")
    else:
        print_diagnostics(console, warnings, args.format)
    return 0
