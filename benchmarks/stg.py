"""How near to the optimum ``compile`` comes on task graphs: ``python -m benchmarks.stg --data FILE``.

FILE is JSON: ``{graph: {"times": [...], "predecessors": [[...], ...], "optimal_makespan": {processors: optimum}}}``,
where an optimum is a whole number or, for an open one, ``[lower, upper]`` (the Standard Task Graph set has such
figures).
Each graph is made a plan, each edge a buffer, and compiled on as many equal lanes as there are processors, calls free.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagsched.choice.choose import EFFORTS, Effort
from dagsched.compiler import compile_plan
from dagsched.cost.devices import load_device
from dagsched.plan.model import Access, Buffer, Mode, Op, OpKind, Place, Plan


@dataclass(frozen=True, slots=True)
class Row:
    """One graph on so many processors; times in the file's units."""

    graph: str
    processors: int
    lower: float
    upper: float
    ours: float
    bound: float
    seconds: float

    @property
    def known(self) -> bool:
        """Whether the optimum is."""
        return self.lower == self.upper

    @property
    def ratio(self) -> float:
        """How long ours takes, of the best known."""
        return self.ours / self.upper if self.upper else 1.0


def make_plan(name: str, times: list[int], predecessors: list[list[int]], processors: int) -> Plan:
    """A plan whose op k writes buffer k and reads those of its predecessors."""
    buffers = {f"b{k}": Buffer(f"b{k}", Place.DEVICE, 64, output=True) for k in range(len(times))}
    ops = []
    for k, (seconds, row) in enumerate(zip(times, predecessors, strict=True)):
        accesses = (*(Access(f"b{p}", Mode.READ) for p in sorted(row)), Access(f"b{k}", Mode.WRITE))
        ops.append(Op(f"t{k}", OpKind.COMPUTE, accesses, function="task", time=float(seconds)))
    device = {"name": "lanes", "engines": {"core": {"kind": "compute", "lanes": processors}}}
    return Plan(name, buffers, tuple(ops), device=device)


def run_graph(name: str, graph: dict[str, Any], effort: Effort, known: bool = False) -> Iterator[Row]:
    """A row for each number of processors; ``known``: only where the optimum is."""
    for processors, optimum in graph["optimal_makespan"].items():
        lower, upper = optimum if isinstance(optimum, list) else (optimum, optimum)
        if known and lower != upper:
            continue
        plan = make_plan(name, graph["times"], graph["predecessors"], int(processors))
        start = time.perf_counter()
        predicted = compile_plan(plan, device=load_device(plan.device), effort=effort).schedule.predicted
        seconds = time.perf_counter() - start
        assert predicted is not None
        yield Row(name, int(processors), lower, upper, predicted["makespan"], predicted["bound"], seconds)


def main() -> None:
    """Print the table and the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FILE", help="the graphs, as JSON")
    parser.add_argument("--effort", choices=EFFORTS, default="normal", help="as of `dagsched compile` (default normal)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only graphs whose names contain this")
    parser.add_argument("--known", action="store_true", help="only rows whose optimum is known")
    parser.add_argument("--brief", action="store_true", help="print only rows that miss their optimum, and the totals")
    options = parser.parse_args()
    rows: list[Row] = []
    print(f"{'graph':<16}{'P':>3}{'optimum':>12}{'ours':>9}{'bound':>9}{'ratio':>8}{'seconds':>9}")
    for name, graph in json.loads(options.data.read_text(encoding="utf-8")).items():
        for row in run_graph(name, graph, options.effort, options.known) if options.only in name else ():
            rows.append(row)
            if not options.brief or row.ours > row.lower:
                optimum = f"{row.lower:g}" if row.known else f"{row.lower:g}..{row.upper:g}"
                print(
                    f"{row.graph:<16}{row.processors:>3}{optimum:>12}{row.ours:>9g}{row.bound:>9g}"
                    f"{row.ratio:>8.4f}{row.seconds:>9.2f}"
                )
    known = [row for row in rows if row.known]
    met = sum(row.ours <= row.upper for row in known)
    proved = sum(row.ours <= row.bound for row in rows)
    worst = max((row.ratio for row in known), default=1.0)
    better = sum(row.ours < row.lower for row in rows)
    print(f"\n{len(rows)} rows at effort {options.effort}, {sum(row.seconds for row in rows):.1f} s")
    if known:
        print(f"optimum met in {met} of {len(known)} ({100 * met / len(known):.2f} %), at worst {worst:.4f} of it")
    print(f"met the bound, and so proved the optimum, in {proved} of {len(rows)}")
    print(
        f"open ones: {sum(row.ours <= row.upper for row in rows if not row.known)} of {len(rows) - len(known)} "
        "are no worse than the best known"
    )
    if better:
        print(f"{better} rows beat a lower limit of the file: its figures or ours are wrong")


if __name__ == "__main__":
    main()
