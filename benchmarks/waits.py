"""How many waits a layered graph takes, and how long it takes to find them: ``python -m benchmarks.waits``.

The graph is random and reproducible: ops in layers, each reading one to four outputs of the few layers before it, on
streams round robin. Beside the exact minimum stand the three rules that other schedulers use:

* *edge*: a wait for every edge between two streams (Taskflow's capturer, ONNX Runtime);
* *pair*: per op and stream, only the newest op to wait for (pairwise pruning, as in GE's stream allocator);
* *direct*: also none for what the stream has itself waited for before (a direct clock per pair of streams: CUDASTF,
  tinygrad); order through a third stream is not seen.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Access, Buffer, Mode, Op, OpKind, Place, Plan
from dagsched.schedule.waits import find_needs


def make_plan(ops: int, width: int, seed: int) -> Plan:
    """A plan whose op k writes buffer k and reads buffers of the three layers before."""
    rng = random.Random(seed)
    buffers = {f"b{k}": Buffer(f"b{k}", Place.DEVICE, 64) for k in range(ops)}
    items = []
    for k in range(ops):
        layer = k // width * width
        pool = range(max(0, layer - 3 * width), layer)
        reads = rng.sample(pool, min(len(pool), rng.randint(1, 4))) if pool else []
        accesses = (*tuple(Access(f"b{r}", Mode.READ) for r in sorted(reads)), Access(f"b{k}", Mode.WRITE))
        items.append(Op(f"o{k}", OpKind.COMPUTE, accesses, function="f"))
    return Plan("layered", buffers, tuple(items))


def edges_of(plan: Plan) -> list[list[int]]:
    """The predecessors of each op (every buffer has one writer)."""
    return [[int(a.buffer[1:]) for a in op.accesses if a.mode is Mode.READ] for op in plan.ops()]


def count_edge(edges: list[list[int]], stream_of: list[int]) -> int:
    """A wait for every edge between two streams."""
    return sum(stream_of[a] != stream_of[b] for b, row in enumerate(edges) for a in row)


def count_pair(edges: list[list[int]], stream_of: list[int]) -> int:
    """The newest per op and stream."""
    return sum(len({stream_of[a] for a in row} - {stream_of[b]}) for b, row in enumerate(edges))


def count_direct(edges: list[list[int]], stream_of: list[int]) -> int:
    """As *pair*, less what the same stream has waited for already."""
    known: dict[tuple[int, int], int] = {}
    waits = 0
    for b, row in enumerate(edges):
        for a in sorted(row, reverse=True):
            pair = stream_of[b], stream_of[a]
            if pair[0] != pair[1] and known.get(pair, -1) < a:
                known[pair] = a
                waits += 1
    return waits


def timed(run: Callable[[], int]) -> tuple[int, float]:
    """A result with the seconds that it took."""
    start = time.perf_counter()
    return run(), time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    plan = make_plan(options.ops, options.width, options.seed)
    edges = edges_of(plan)
    rng = random.Random(options.seed + 1)
    stream_of = [rng.randrange(options.streams) for _ in edges]

    def exact() -> int:
        return sum(map(len, find_needs(Sweep(plan), stream_of).by_pair.values()))

    waits, seconds = timed(exact)
    rows = [("edge", lambda: count_edge(edges, stream_of)), ("pair", lambda: count_pair(edges, stream_of))]
    rows.append(("direct", lambda: count_direct(edges, stream_of)))
    print(f"{options.ops:,} ops, {options.streams} streams, seed {options.seed}")
    print(f"{'rule':<8}{'waits':>10}{'of exact':>10}{'seconds':>9}")
    for name, run in rows:
        count, taken = timed(run)
        print(f"{name:<8}{count:>10,}{count / waits:>10.3f}{taken:>9.2f}")
    print(f"{'exact':<8}{waits:>10,}{1:>10.3f}{seconds:>9.2f}")


if __name__ == "__main__":
    main()
