"""``dagsched init [NAME]``: a commented plan to start from; an existing file is never touched."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.diagnostics import Diagnostic, UsageError
from dagsched.view.terminal import escape

_ENDINGS = (".yaml", ".yml")

STARTER = """\
# A plan for dagsched: what each operation touches, in the order that makes sense one after another.
# dagsched finds out what must be ordered, and does the rest at once.
dagsched: 1
name: {name}
device: ascend-910b            # `dagsched devices` lists the profiles

params:
  batches: null                # a loop count that is known only when the program runs; an integer is its default

buffers:                       # place: host or device; size in bytes or with a unit, or shape and dtype
  input:  {{place: host,   size: 4MiB, ring: auto}}    # ring: how many versions at once; auto: dagsched picks
  x:      {{place: device, shape: [1024, 1024], dtype: float32, ring: auto}}
  y:      {{place: device, shape: [1024, 1024], dtype: float32, ring: auto}}
  output: {{place: host,   size: 4MiB, ring: auto}}
  # table: {{place: device, size: 1MiB, input: true}}  # input: true - filled by somebody else before the plan runs

ops:                           # in loops, a buffer's name means its version of this iteration; x@i-1 the one before
  - loop: i
    count: batches
    ops:
      - {{name: fill,     host: fill_input, writes: [input], time: 0.5 ms}}
      - {{name: upload,   copy: {{from: input, to: x}}}}       # how long a copy takes follows from size and device
      - {{name: work,     compute: my_kernel, reads: [x], writes: [y], time: 1 ms}}
      - {{name: download, copy: {{from: y, to: output}}}}
      - {{name: use,      host: use_output, reads: [output], time: 0.2 ms}}
"""


def add_arguments(parser: Parser) -> None:
    """Operands of the command."""
    parser.add_argument(
        "name", metavar="NAME", nargs="?", default="plan", help="the plan's name, a .yaml file's, or - for stdout"
    )


def run(args: argparse.Namespace, console: Console) -> int:
    """Write the starter."""
    if args.name == "-":
        console.write(STARTER.format(name='"plan"'))
        return 0
    path = Path(args.name)
    if path.suffix.lower() not in _ENDINGS:
        path = path.with_name(f"{path.name}.dagsched.yaml") if path.name else Path("plan.dagsched.yaml")
    name = path.name.removesuffix(path.suffix).removesuffix(".dagsched") or "plan"
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(STARTER.format(name=json.dumps(name, ensure_ascii=False)))
    except FileExistsError:
        headline = f"`{path}` is there already and stays as it is"
        raise UsageError([Diagnostic("U008", headline, help="name another file: `dagsched init NAME`")]) from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError([Diagnostic("U010", f"`{path}` cannot be written: {reason}", help=_how(path))]) from None
    console.write(f"{escape(str(path))}\n")
    console.say(f"wrote {escape(str(path))}; next: dagsched compile {escape(shlex.quote(str(path)))}")
    return 0


def _how(path: Path) -> str:
    missing = not path.parent.exists()
    return f"mkdir -p {shlex.quote(str(path.parent))}" if missing else "name another place: `dagsched init NAME`"
