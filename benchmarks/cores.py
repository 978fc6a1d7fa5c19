"""How near the limit is where ops share an engine by cores: ``python -m benchmarks.cores``.

Random task graphs whose ops need from one to all of an engine's cores, calls free. For each size: how much longer the
schedules are than the plain limit (the longest chain, or the work in cores) and than the one that ``compile`` reports,
on average, and how many are proved optimal by each. Figures are the model's; nothing here is measured on a device.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random
from statistics import mean

from dagsched.choice.choose import EFFORTS
from dagsched.compiler import compile_plan
from dagsched.cost.devices import load_device
from dagsched.plan.model import Access, Buffer, Mode, Op, OpKind, Place, Plan

SIZES = ((12, 8), (12, 20), (20, 8), (20, 20), (40, 8), (40, 20))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=8, metavar="N", help="plans of each size (default 8)")
    parser.add_argument("--effort", choices=EFFORTS, default="normal", help="as of `dagsched compile` (default normal)")
    args = parser.parse_args()
    rows = [("ops", "cores", "over plain limit", "over limit", "ratio", "proved plain", "proved", "a plan in")]
    for ops, cores in SIZES:
        rng = Random(ops * 100 + cores)
        plain, ours, begun = [], [], time.perf_counter()
        for _ in range(args.plans):
            plan = make_plan(ops, cores, rng)
            predicted = compile_plan(plan, device=load_device(plan.device), effort=args.effort).schedule.predicted or {}
            plain.append(predicted["makespan"] / plain_limit(plan, cores))
            ours.append(predicted["makespan"] / predicted["bound"])
        took = (time.perf_counter() - begun) / args.plans
        optimal = [sum(ratio < 1 + 1e-9 for ratio in each) for each in (plain, ours)]
        gaps = [mean(each) - 1 for each in (plain, ours)]
        rows.append((
            str(ops), str(cores), f"{gaps[0]:.1%}", f"{gaps[1]:.1%}", f"{gaps[1] / gaps[0]:.2f}" if gaps[0] else "",
            f"{optimal[0]} of {args.plans}", f"{optimal[1]} of {args.plans}", f"{took:.2f} s",
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")


def make_plan(count: int, cores: int, rng: Random) -> Plan:
    """A plan in which op k writes buffer k and reads some of the earlier ones, up to one and a half on average."""
    buffers = {f"b{k}": Buffer(f"b{k}", Place.DEVICE, 64, output=True) for k in range(count)}
    ops = []
    for k in range(count):
        reads = tuple(Access(f"b{p}", Mode.READ) for p in range(k) if rng.random() < 1.5 / count)
        accesses = (*reads, Access(f"b{k}", Mode.WRITE))
        milliseconds, share = rng.randint(1, 20), rng.randint(1, cores)
        ops.append(Op(f"t{k}", OpKind.COMPUTE, accesses, function="f", time=milliseconds / 1000, cores=share))
    device = {"name": "cores", "engines": {"core": {"kind": "compute", "cores": cores}}}
    return Plan("cores", buffers, tuple(ops), device=device)


def plain_limit(plan: Plan, cores: int) -> float:
    """Seconds of the longest chain, or of the work in cores over all cores."""
    end: dict[str, float] = {}
    work = 0.0
    for op in plan.ops():
        assert op.time is not None and op.cores is not None
        begun = max((end[access.buffer] for access in op.accesses if access.mode is Mode.READ), default=0.0)
        end[op.accesses[-1].buffer] = begun + op.time
        work += op.time * op.cores
    return max(work / cores, *end.values())


if __name__ == "__main__":
    main()
