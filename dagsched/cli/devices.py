"""``dagsched devices [NAME]``: the built-in device profiles, or all that one says."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.report import print_json
from dagsched.cost.devices import device_names, load_device, profile_text
from dagsched.cost.model import Device, Engine
from dagsched.diagnostics import Diagnostic, UsageError
from dagsched.view.terminal import escape, pad, width_of
from dagsched.view.units import size_text, time_text


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="a built-in profile, or a path to one")
    parser.add_format(("text", "json", "yaml"))


def run(args: argparse.Namespace, console: Console) -> int:
    """List the profiles, or show one; as YAML it is a file to begin a profile of one's own with."""
    if args.format == "yaml":
        if not args.name:
            help_ = "write `dagsched devices ascend-910b --format yaml`"
            raise UsageError([Diagnostic("U002", "only one profile at a time can be written as YAML", help=help_)])
        console.write(profile_text(args.name))
        return 0
    devices = [load_device(args.name)] if args.name else [load_device(name) for name in device_names()]
    if args.format == "json":
        for device in devices:
            print_json(console, asdict(device))
    elif args.name:
        console.write(_device_text(devices[0]))
    else:
        rows = [[escape(device.name), escape(device.description)] for device in devices]
        console.write("".join(f"{line}\n" for line in _aligned(rows)))
    return 0


def _device_text(device: Device) -> str:
    limits = device.limits
    bounds = [("streams", limits.streams), ("events", limits.events), ("queue depth", limits.queue_depth)]
    calls = device.calls
    sizes = [("host", device.memory.host), ("device", device.memory.device)]
    memory = [f"{place} {size_text(size)}" for place, size in sizes if size is not None]
    lines = [
        f"{escape(device.name)}: {escape(device.description)}" if device.description else escape(device.name),
        "  engines",
        *(f"    {line}" for line in _aligned(_engine_row(engine) for engine in device.engines.values())),
        f"  calls     issue {time_text(calls.issue)}, record {time_text(calls.record)}, wait {time_text(calls.wait)}",
        f"  limits    {', '.join(f'{name} {most:,}' for name, most in bounds if most is not None) or 'none known'}",
        *([f"  memory    {', '.join(memory)}"] if memory else []),
        *(f"  source    {escape(source)}" for source in device.sources),
    ]
    return "\n".join(lines) + "\n"


def _engine_row(engine: Engine) -> list[str]:
    facts = [f"{engine.lanes} lane" + ("s" if engine.lanes != 1 else "")]
    if engine.bandwidth is not None:
        facts.append(f"{engine.bandwidth / 1e9:g} GB/s")
    if engine.latency:
        facts.append(f"latency {time_text(engine.latency)}")
    if engine.cores is not None:
        facts.append(f"{engine.cores} cores")
    facts += [f"{peak / 1e12:g} TFLOP/s" + (f" ({dtype})" if dtype else "") for dtype, peak in engine.flops.items()]
    if engine.memory_bandwidth is not None:
        facts.append(f"memory {engine.memory_bandwidth / 1e9:g} GB/s")
    return [escape(engine.name), engine.kind, ", ".join(facts)]


def _aligned(rows: Iterable[list[str]]) -> list[str]:
    """Rows as lines, their columns two spaces apart."""
    table = list(rows)
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(pad, row, widths)).rstrip() for row in table]
