"""What the search inside loops brings, in the model: ``python -m benchmarks.loop_search``.

Random pipelines on ``ascend-910b``: an upload, computes that read one or two of the last five buffers and take 4, 8 or
12 cores, some host work, a download; and a stereo loop whose engine's stream holds it up in one place. For each the
interval of the best single policy, of ``auto`` at each effort, the limit, and what compiling took (processor time, the
proof included). Ratios are against the best policy. Figures are the model's; nothing here is measured on a device.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from dagsched.choice.choose import EFFORTS
from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.plan.reader import read_plan

STEREO = """dagsched: 1
device: ascend-910b
params: {n: null}
buffers:
  left: {place: host, size: 4MiB, ring: auto}
  image: {place: device, size: 4MiB, ring: auto}
  disparity: {place: device, size: 4MiB, ring: {min: 1, max: 3}}
  state: {place: device, size: 1MiB, ring: 2, input: true}
  sums: {place: device, size: 4kB, input: true, output: true}
  out: {place: host, size: 4MiB, ring: auto}
ops:
  - loop: i
    count: n
    ops:
      - {name: grab, host: grab, writes: [left], time: 1 ms}
      - {name: upload, copy: {from: left, to: image}}
      - {name: match, compute: m, reads: [image, state@i-1], writes: [disparity, state], time: 2 ms, cores: 12}
      - {name: count, compute: c, reads: [disparity], accumulates: [sums], time: 0.6 ms, cores: 8}
      - {name: download, copy: {from: disparity, to: out}}
      - {name: show, host: show, reads: [out], time: 0.3 ms}
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ops", type=int, nargs="+", default=[10, 20, 60, 150], help="sizes (default 10 20 60 150)")
    parser.add_argument("--effort", choices=EFFORTS, nargs="+", default=["fast", "normal"])
    args = parser.parse_args()
    row = "{:12}  {:12}  {:>11}  {:>6}  {:>11}  {:>7}  {:>5}  {:>7}\n"
    sys.stdout.write(row.format("loop", "streams by", "interval", "ratio", "limit", "streams", "waits", "took"))
    for name, text in [("stereo", STEREO), *((f"{ops} ops", pipeline_text(ops)) for ops in args.ops)]:
        policies = ("engine", "single", "concurrent")
        rows = [(f"policy {policy}", f"streams: {{policy: {policy}}}\n", "fast") for policy in policies]
        rows += [(f"auto, {effort}", "", effort) for effort in args.effort]
        base: float | None = None
        best: tuple[str, ...] = ()
        for number, (how, line, effort) in enumerate(rows):
            begun = time.process_time()
            compiled = compile_plan(read_plan(Source("loop.yaml", text + line)), effort=effort)  # type: ignore[arg-type]
            took = time.process_time() - begun
            predicted = compiled.schedule.predicted or {}
            interval = predicted["initiation_interval"]
            figures = (f"{predicted['bound'] * 1e6:.1f} us", str(len(compiled.schedule.streams)))
            cells = (*figures, str(compiled.waits_kept), f"{took:.2f} s")
            if number < len(policies):
                if base is None or interval < base:
                    base, best = interval, (name, how, f"{interval * 1e6:.1f} us", "1.000", *cells)
                continue
            if number == len(policies):
                sys.stdout.write(row.format(*best))
            assert base is not None
            sys.stdout.write(row.format("", how, f"{interval * 1e6:.1f} us", f"{interval / base:.3f}", *cells))
            sys.stdout.flush()


def pipeline_text(ops: int) -> str:
    """A loop of so many ops, with times from 1 to 20 us."""
    rng = Random(ops)
    lines = [
        "dagsched: 1", "device: ascend-910b", "params: {n: null}", "buffers:",
        "  source: {place: host, size: 1MiB, input: true}", "  sink: {place: host, size: 1MiB, output: true}",
        *(f"  b{number}: {{place: device, size: 1MiB, ring: auto}}" for number in range(ops - 1)),
        "ops:", "  - loop: i", "    count: n", "    ops:", "      - {name: upload, copy: {from: source, to: b0}}",
    ]  # fmt: skip
    for number in range(1, ops - 1):
        reads = sorted({number - 1, rng.randrange(max(0, number - 5), number)})
        kind = "host" if number % 7 == 0 else "compute"
        cores = "" if kind == "host" else f", cores: {rng.choice((4, 8, 12))}"
        lines.append(
            f"      - {{name: op{number}, {kind}: f{number}, reads: [{', '.join(f'b{n}' for n in reads)}], "
            f"writes: [b{number}], time: {rng.randint(1, 20)} us{cores}}}"
        )
    lines.append(f"      - {{name: download, copy: {{from: b{ops - 2}, to: sink}}}}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
