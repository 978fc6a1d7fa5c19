"""How long large plans without loops take, stage by stage: ``python -m benchmarks.compile --ops 2000 20000``.

Three shapes: layers of random width-to-width dependencies, eight long chains, and one op that all others read and
that one last op gathers; a buffer for every op, on four equal lanes. Seconds are of processor time (the machine may be
busy), ``us/op`` is their sum over the ops: it stays about the same from size to size where every stage is linear.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from itertools import pairwise
from random import Random

from dagsched.choice.choose import EFFORTS
from dagsched.cli.main import few_collections
from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.library import schedule_files
from dagsched.plan.reader import read_plan

SHAPES = ("layered", "chains", "wide")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", type=int, nargs="+", default=[2_000, 20_000], help="sizes (default 2000 20000)")
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--effort", choices=EFFORTS, default="fast")
    args = parser.parse_args()
    row = "{:8}  {:>8}  {:>7}  {:>8}  {:>7}  {:>7}  {:>6}  {:>9}  {:>8}\n"
    sys.stdout.write(row.format("shape", "ops", "read", "compile", "files", "in all", "us/op", "peak MiB", "output"))
    with few_collections():
        for shape in args.shape:
            for ops in args.ops:
                text = plan_text(shape, ops)
                clock = [time.process_time()]
                plan = read_plan(Source("big.yaml", text))
                clock.append(time.process_time())
                compiled = compile_plan(plan, effort=args.effort)
                clock.append(time.process_time())
                files = schedule_files(compiled, ("acl-cpp",))
                clock.append(time.process_time())
                parts = [f"{after - before:.2f}" for before, after in pairwise(clock)]
                whole = clock[-1] - clock[0]
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                size = f"{sum(map(len, files.values())) / 2**20:.1f} MiB"
                cells = (shape, f"{ops:,}", *parts, f"{whole:.2f}", f"{whole / ops * 1e6:.0f}", f"{peak:.0f}", size)
                sys.stdout.write(row.format(*cells))
                sys.stdout.flush()


def plan_text(shape: str, ops: int) -> str:
    """The plan, with times from 1 to 20 us."""
    rng = Random(1)
    width = max(4, int(ops**0.5))
    lines = [
        "dagsched: 1",
        f"name: {shape}",
        "device: {name: lanes, engines: {core: {kind: compute, lanes: 4}}, calls: {issue: 1 us}}",
        "buffers:",
        *(f"  b{op}: {{place: device, size: 64}}" for op in range(ops)),
        "ops:",
    ]
    for op in range(ops):
        reads: list[int] = []
        if shape == "layered" and op >= width:
            low = (op // width - 1) * width
            reads = sorted({rng.randrange(low, low + width) for _ in range(rng.randint(1, 3))})
        elif shape == "chains" and op >= 8:
            reads = [op - 8]
        elif shape == "wide" and op:
            reads = [0] if op < ops - 1 else list(range(1, op))
        names = ", ".join(f"b{read}" for read in reads)
        lines.append(f"  - {{compute: o{op}, reads: [{names}], writes: [b{op}], time: {rng.randint(1, 20)} us}}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
