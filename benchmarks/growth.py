"""What large files take, against a quarter of them: ``python -m benchmarks.growth``.

Each case is gone through at a size and at four times that size in the same run; seconds are of processor time, and
``growth`` is how much more an element takes in the larger one (1.0: linear). The last rows are plans that cannot be
compiled, with the time until they are refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from random import Random

from benchmarks.compile import plan_text
from dagsched.cli.main import few_collections
from dagsched.compiler import compile_plan
from dagsched.diagnostics import DagschedError, Source
from dagsched.plan.reader import read_plan
from dagsched.proof.check import check_schedule
from dagsched.schedule.reader import read_schedule

ENGINES = ", ".join(f"e{n}: {{kind: compute}}" for n in range(4))
HEAD = f"dagsched: 1\nname: p\ndevice: {{name: d, engines: {{{ENGINES}}}}}\nparams: {{n: null}}\nbuffers:\n"
LOOP = "ops:\n  - loop: i\n    count: n\n    ops:\n"


def layered_loop(ops: int) -> str:
    """Layers of ten ops, each of which reads a few results of the layer before; one in twenty its own last one."""
    rng = Random(1)
    buffers, body = ["  x: {place: device, size: 64, input: true}"], []
    for k in range(ops):
        low = (k // 10 - 1) * 10
        reads = ["x"] if k < 10 else sorted({f"b{rng.randrange(low, low + 10)}" for _ in range(rng.randint(1, 3))})
        reads += [f"b{k}@i-1"] if rng.random() < 0.05 else []
        buffers.append(f"  b{k}: {{place: device, size: {8 * rng.randint(1, 16)}, ring: auto, input: true}}")
        body.append(op_text(k, reads, f"b{k}", rng.randint(1, 20)))
    return HEAD + "\n".join([*buffers, LOOP + "\n".join(body)]) + "\n"


def pipeline_loop(ops: int) -> str:
    """Chains of twenty ops, each of which hands a ring to the next."""
    buffers, body = ["  x: {place: device, size: 64, input: true}"], []
    for k in range(ops):
        buffers.append(f"  b{k}: {{place: device, size: {8 * (1 + k % 7)}, ring: auto}}")
        body.append(op_text(k, ["x" if k % 20 == 0 else f"b{k - 1}"], f"b{k}", 1 + k * 7 % 11))
    return HEAD + "\n".join([*buffers, LOOP + "\n".join(body)]) + "\n"


def shared_loop(ops: int) -> str:
    """One buffer that all ops of a loop read, and one that each of them writes."""
    buffers = "  x: {place: device, size: 64, input: true}\n  y: {place: device, size: 64}\n"
    return HEAD + buffers + LOOP + "\n".join(op_text(k, ["x"], "y", 1) for k in range(ops)) + "\n"


def op_text(number: int, reads: list[str], writes: str, time_us: int) -> str:
    names = ", ".join(reads)
    where = f"engine: e{number % 4}, time: {time_us} us"
    return f"      - {{name: o{number}, compute: f, reads: [{names}], writes: [{writes}], {where}}}"


def two_setters(takes: int) -> str:
    """Two threads set the flag that one takes."""
    lines = []
    for k in range(takes // 2):
        lines += [f"{{stream: a, op: p{k}, writes: [x{k % 3}]}}", "{stream: a, set: E}", "{stream: c, set: E}"]
        lines += ["{stream: b, take: E}", "{stream: b, take: E}", f"{{stream: b, op: q{k}, reads: [x{k % 3}]}}"]
        lines += ["{stream: b, set: F}", "{stream: a, take: F}"]
    return schedule_text(lines)


def recorded_anew(records: int) -> str:
    """One handle for all iterations, where a wait looks at it as late as it runs."""
    lines = []
    for k in range(records):
        lines += [f"{{stream: a, op: p{k}, writes: [x]}}", "{stream: a, record: E}", "{stream: b, wait: E}"]
        lines += [f"{{stream: b, op: q{k}, reads: [x]}}", "{stream: b, record: F}", "{stream: a, wait: F}"]
    return schedule_text(lines, "event_model: reevaluate\n")


def schedule_text(lines: list[str], head: str = "") -> str:
    return f"dagsched-schedule: 1\nname: s\n{head}steps:\n" + "".join(f"  - {line}\n" for line in lines)


def compile_text(text: str) -> str:
    """Compile a plan; the code of its first error, where it is refused."""
    try:
        compile_plan(read_plan(Source("p.yaml", text)))
    except DagschedError as error:
        return error.diagnostics[0].code
    return "compiled"


def check_text(text: str) -> str:
    return check_schedule(read_schedule(Source("s.yaml", text))).verdict


CASES: list[tuple[str, int, Callable[[int], str], Callable[[str], str]]] = [
    ("compile: layered loop, ops", 2_000, layered_loop, compile_text),
    ("compile: pipeline loop, ops", 2_000, pipeline_loop, compile_text),
    ("compile: one buffer read by all, ops", 4_000, shared_loop, compile_text),
    ("compile: layers without a loop, ops", 8_000, lambda ops: plan_text("layered", ops), compile_text),
    ("check: a flag of two setters, takes", 4_000, two_setters, check_text),
    ("check: a handle recorded anew, records", 2_500, recorded_anew, check_text),
]


def _moving(bounds: str) -> str:
    op = f"      - {{name: x, compute: f, updates: ['m[{bounds}]'], time: 1 us, engine: e0}}\n"
    return f"{HEAD}  m: {{place: device, size: 40GB, input: true, output: true}}\n{LOOP}{op}"


def _inner(count: int) -> str:
    loop = f"      - loop: j\n        count: {count}\n        ops:\n    " + op_text(0, [], "y", 1)
    return f"{HEAD}  y: {{place: device, size: 64, output: true}}\n{LOOP}{loop}\n"


def _loops(number: int) -> str:
    buffers = "".join(f"  b{k}: {{place: device, size: 64, ring: 16, output: true}}\n" for k in range(number))
    loops = "".join(f"  - loop: i\n    count: n{k}\n    ops:\n{op_text(k, [], f'b{k}', 1)}\n" for k in range(number))
    params = ", ".join(f"n{k}: null" for k in range(number))
    return HEAD.replace("n: null", params) + buffers + "ops:\n" + loops


REFUSED: list[tuple[str, str]] = [
    ("a region that moves by squares", _moving("i*i:i*i+1")),
    ("a region that moves down 40 GB", _moving("39999999999-i:40000000000-i")),
    ("a pattern of a million iterations", _moving("i%1000003:i%1000003+1")),
    ("an inner loop of 10^9", _inner(10**9)),
    ("eight loops of counts of their own", _loops(8)),
]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="this share of each size (default 1)")
    args = parser.parse_args()
    row = "{:40}  {:>7}  {:>8}  {:>8}  {:>7}  {}\n"
    sys.stdout.write(row.format("case", "size", "quarter", "whole", "growth", "outcome"))
    with few_collections():
        for name, size, make, judge in CASES:
            size = max(40, int(size * args.share) // 40 * 40)
            small, _ = _timed(judge, make(size // 4))
            large, outcome = _timed(judge, make(size))
            cells = (f"{size:,}", f"{small:.2f} s", f"{large:.2f} s", f"{large / small / 4:.2f}", outcome)
            sys.stdout.write(row.format(name, *cells))
            sys.stdout.flush()
        for name, text in REFUSED:
            taken, outcome = _timed(compile_text, text)
            sys.stdout.write(row.format(name, "", "", f"{taken:.2f} s", "", outcome))
            sys.stdout.flush()


def _timed(judge: Callable[[str], str], text: str) -> tuple[float, str]:
    start = time.process_time()
    outcome = judge(text)
    return time.process_time() - start, outcome


if __name__ == "__main__":
    main()
