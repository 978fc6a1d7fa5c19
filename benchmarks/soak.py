"""Runs for a long time and looks whether anything grows: ``python -m benchmarks.soak`` (a minute or so).

One run of a million iterations with a trace and a source, then many short runs, some of which fail. Memory, threads
and open files are printed as it goes; the exit status is 1 where they grew.
"""

from __future__ import annotations

import argparse
import gc
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagsched
from benchmarks.executor import make_plan, nothing_2

SLACK = 4 << 20
"""Bytes that memory may grow by after a warm-up: allocators round up."""


def memory() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def files() -> int:
    """Open file handles."""
    return len(list(Path("/proc/self/fd").iterdir()))


def line(text: str) -> tuple[int, int, int]:
    gc.collect()
    found = memory(), threading.active_count(), files()
    print(f"{text:32}{found[0] / 2**20:8.1f} MiB{found[1]:4} threads{found[2]:4} files", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--iterations", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1_000)
    args = parser.parse_args()
    broken = False

    def read(item: int, a: object) -> None:
        if broken and item == 30:
            raise ValueError("broken")

    def write(b: object) -> None:
        return None

    seen: list[tuple[int, int, int]] = []

    def source() -> Iterator[int]:
        for number in range(args.iterations):
            if number % (args.iterations // 10) == 0 and number:
                seen.append(line(f"{number:,} iterations"))
            yield number

    functions = {"read": read, "work": nothing_2, "write": write}
    begin = time.perf_counter()
    with dagsched.compile(make_plan(8)).executor(functions, trace=10_000) as executor:
        result = executor.run(n=source())
        assert result.iterations == args.iterations
        del result
        seconds = time.perf_counter() - begin
        print(f"{args.iterations:,} iterations of 3 ops in {seconds:.1f} s", flush=True)
        for number in range(args.runs):
            broken = number % 3 == 0
            try:
                executor.run(n=iter(range(50)))
            except dagsched.ExecutionError:
                assert broken
            if number % (args.runs // 5) == args.runs // 10:
                seen.append(line(f"{number:,} runs"))
    first, last = seen[1], seen[-1]
    grown = last[0] > first[0] + SLACK or last[1] > first[1] or last[2] > first[2]
    print("something grew" if grown else "nothing grew")
    return int(grown)


if __name__ == "__main__":
    sys.exit(main())
