"""What ring depths and pipelining bring, in the model: ``python -m benchmarks.loops``.

For the detector on few streams, and for its resize on an engine of its own: memory of the rings and the interval with
two slots everywhere (a rule of thumb), with one slot everywhere, and as chosen. Ratios are against the rule of thumb.
Figures are the model's; nothing here is measured on a device.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.plan.reader import read_plan

DETECTOR = Path(__file__).parent.parent / "examples" / "detector.yaml"
CASES = {
    "detector": "",
    "resize on dvpp": "dvpp",
    "three streams": "streams: {policy: engine, max: 3}\n",
    "four streams": "streams: {policy: engine, max: 4}\n",
}


def main() -> None:
    """Print the table."""
    rows = [("plan", "rings", "ring memory", "interval", "ratio", "iterations/s", "compiled in")]
    for name, change in CASES.items():
        base: float | None = None
        for rings in ("2", "1", "auto"):
            begun = time.perf_counter()
            compiled = compile_plan(read_plan(Source("detector.yaml", text_of(change, rings))))
            took = time.perf_counter() - begun
            interval = (compiled.schedule.predicted or {})["initiation_interval"]
            base = base or interval
            rows.append((
                name, rings + (", pipelined" if compiled.shifts else ""), f"{ring_memory(compiled) / 2**20:.2f} MiB",
                f"{interval * 1e3:.3f} ms", f"{interval / base:.3f}", f"{1 / interval:.1f}", f"{took:.2f} s",
            ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")


def text_of(change: str, rings: str) -> str:
    """The example's text with another engine or stream options, and every ring as given."""
    text = DETECTOR.read_text(encoding="utf-8").replace("ring: auto}", f"ring: {rings}}}")
    if change == "dvpp":
        return text.replace("time: 1.2 ms", "time: 1.2 ms, engine: dvpp")
    return text.replace("params:", change + "params:")


def ring_memory(compiled: Compiled) -> int:
    """Bytes of the buffers that the plan marks as rings."""
    return sum(
        buffer.size * (buffer.ring.depth or 1)
        for buffer in compiled.resolved.buffers.values()
        if buffer.name in ("frame", "image", "tensor", "boxes", "result")
    )


if __name__ == "__main__":
    main()
