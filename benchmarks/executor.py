"""What an op costs beside its own time: ``python -m benchmarks.executor``.

Three streams (read, work, write) in a loop over rings, each op a function that does nothing, 100,000 ops in all. The
same graph, with the same room between the stages, is run

* as a plain loop, which orders everything;
* by threads with bounded queues, as people write them (two queues forward, and nothing for anything else);
* by ``concurrent.futures``: one pool of one thread for each stream, where an op waits for the futures that it needs;
* by dask's threaded scheduler, with a task for each op;
* by the executor, with and without a trace.

With ``--pace`` it also runs the examples dry and compares their rates with the predicted ones.
"""

from __future__ import annotations

import argparse
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import dagsched

EXAMPLES = Path(__file__).parent.parent / "examples"


def make_plan(depth: int) -> dagsched.Plan:
    """Three stages on three host streams, rings of ``depth`` between them."""
    plan = dagsched.Plan("stages", device="host", params={"n": None})
    for name in ("a", "b"):
        plan.buffer(name, place="host", size=64, ring=depth)
    with plan.loop("i", "n"):
        plan.host("read", writes=["a"], stream="reader", time="1 us")
        plan.host("work", reads=["a"], writes=["b"], stream="worker", time="1 us")
        plan.host("write", reads=["b"], stream="writer", time="1 us")
    return plan


def nothing_1(a: object) -> None:
    """A stage of one buffer."""


def nothing_2(a: object, b: object) -> None:
    """A stage of two buffers."""


def run_loop(count: int, depth: int) -> None:
    slots_a, slots_b = [object() for _ in range(depth)], [object() for _ in range(depth)]
    for i in range(count):
        a, b = slots_a[i % depth], slots_b[i % depth]
        nothing_1(a)
        nothing_2(a, b)
        nothing_1(b)


def run_queues(count: int, depth: int) -> None:
    first: queue.Queue[int] = queue.Queue(depth)
    second: queue.Queue[int] = queue.Queue(depth)

    def reader() -> None:
        for i in range(count):
            nothing_1(i)
            first.put(i)

    def worker() -> None:
        for _ in range(count):
            i = first.get()
            nothing_2(i, i)
            second.put(i)

    def writer() -> None:
        for _ in range(count):
            nothing_1(second.get())

    threads = [threading.Thread(target=target) for target in (reader, worker, writer)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_futures(count: int, depth: int) -> None:
    pools = [ThreadPoolExecutor(1) for _ in range(3)]
    done: list[list[Future[None]]] = [[], [], []]

    def op(needed: tuple[Future[None], ...], function: Callable[..., None], *views: object) -> None:
        for future in needed:
            future.result()
        function(*views)

    for i in range(count):
        back = i - depth
        free_a = (done[1][back],) if back >= 0 else ()
        free_b = (done[2][back],) if back >= 0 else ()
        done[0].append(pools[0].submit(op, free_a, nothing_1, i))
        done[1].append(pools[1].submit(op, (done[0][i], *free_b), nothing_2, i, i))
        done[2].append(pools[2].submit(op, (done[1][i],), nothing_1, i))
    for pool in pools:
        pool.shutdown()


def run_dask(count: int, depth: int) -> None:
    from dask.threaded import get

    def op(function: Callable[..., None], views: int, *needed: object) -> None:
        function(*range(views))

    graph: dict[object, object] = {}
    for i in range(count):
        back = i - depth
        before = [(stage, i - 1) for stage in range(3)] if i else [None] * 3
        free_a, free_b = ((1, back), (2, back)) if back >= 0 else (None, None)
        graph[0, i] = (op, nothing_1, 1, before[0], free_a)
        graph[1, i] = (op, nothing_2, 2, (0, i), before[1], free_b)
        graph[2, i] = (op, nothing_1, 1, (1, i), before[2])
    get(graph, [(stage, count - 1) for stage in range(3)], num_workers=3)


def prepare_executor(count: int, depth: int, trace: int) -> Callable[[], object]:
    """A run; the executor is made beforehand and has run once, as in a service."""
    functions = {"read": nothing_1, "work": nothing_2, "write": lambda b: None}
    executor = dagsched.compile(make_plan(depth)).executor(functions, trace=trace)
    executor.run(n=10)
    return lambda: executor.run(n=count)


def measure(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def overhead(ops: int, depth: int, times: int) -> None:
    count = ops // 3
    rows: dict[str, Callable[[], object]] = {
        "plain loop": lambda: run_loop(count, depth),
        "executor": prepare_executor(count, depth, 0),
        "executor, with trace": prepare_executor(count, depth, 100_000),
        "threads and queues": lambda: run_queues(count, depth),
        "concurrent.futures": lambda: run_futures(count, depth),
    }
    try:
        import dask
    except ImportError:
        print("dask is not installed: pip install dagsched[bench]\n", file=sys.stderr)
    else:
        rows[f"dask {dask.__version__}, threaded"] = lambda: run_dask(count, depth)
    print(f"{ops:,} ops that do nothing, 3 streams, rings of {depth}; best of {times}")
    print(f"{'':28}{'us an op':>10}{'executor is':>16}")
    found = {name: min(measure(call) for _ in range(times)) / ops * 1e6 for name, call in rows.items()}
    own = found["executor"]
    for name, micros in found.items():
        ratio = (
            ""
            if name == "executor"
            else f"{micros / own:.1f} x faster"
            if micros > own
            else f"{own / micros:.0f} x slower"
        )
        print(f"{name:28}{micros:10.2f}{ratio:>16}")
    print()


def pace() -> None:
    print("dry runs against the model (iterations a second)")
    print(f"{'':16}{'predicted':>10}{'measured':>10}{'of it':>9}")
    for name, count in (("video", 500), ("detector", 300), ("dynamic_shape", 300)):
        schedule = dagsched.compile(EXAMPLES / f"{name}.yaml")
        [param] = schedule.compiled.plan.params
        with schedule.executor() as executor:
            interval = executor.run(counts={param: count}).usage.interval
        predicted = (schedule.model.predicted or {})["initiation_interval"]
        assert interval is not None
        print(f"{name:16}{1 / predicted:10.1f}{1 / interval:10.1f}{predicted / interval:9.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ops", type=int, default=100_000)
    parser.add_argument("--depth", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--pace", action="store_true")
    args = parser.parse_args()
    for depth in args.depth:
        overhead(args.ops, depth, args.times)
    if args.pace:
        pace()


if __name__ == "__main__":
    main()
