"""Predictions against sums done by hand, from the plan's text to the figure in the schedule and its line."""

from __future__ import annotations

import pytest

from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.plan.reader import read_plan
from dagsched.view.summary import predicted_lines

BUFFERS = """buffers:
  h: {place: host, size: 1000000, input: true}
  d: {place: device, size: 1000000}
  e: {place: device, size: 64, output: true}
  f: {place: device, size: 64, output: true}
"""
UP = "{name: up, copy: {from: h, to: d}}"
H2D = "h2d: {kind: h2d, bandwidth: 10 GB/s}"
ENDS = "{compute: k, reads: [d], writes: [e], %s}"
TWO = ["{compute: k, writes: [e], time: 1 ms%s}", "{compute: l, writes: [f], time: 3 ms%s}"]


def predict(engines: str, ops: list[str], more: str = "") -> dict[str, object]:
    """What the plan is predicted to take."""
    items = "".join(f"  - {op}\n" for op in ops)
    text = f"dagsched: 1\nname: hand\ndevice: {{name: x, engines: {{{engines}}}{more}}}\n{BUFFERS}ops:\n{items}"
    return compile_plan(read_plan(Source("hand.yaml", text))).schedule.predicted or {}


@pytest.mark.parametrize(
    ("engines", "ops", "more", "seconds"),
    [
        # 1 MB at 10 GB/s are 100 us, then 1 ms
        (f"{H2D}, c: {{kind: compute}}", [UP, ENDS % "time: 1 ms"], "", 1.1e-3),
        # 5 us of latency come on top
        ("h2d: {kind: h2d, bandwidth: 10 GB/s, latency: 5 us}, c: {kind: compute}",
         [UP, ENDS % "time: 1 ms"], "", 1.105e-3),
        # one lane: one after the other; two: side by side
        ("c: {kind: compute}", [op % "" for op in TWO], "", 4e-3),
        ("c: {kind: compute, lanes: 2}", [op % "" for op in TWO], "", 3e-3),
        # 6 and 5 of 10 cores do not fit beside each other, 5 and 5 do
        ("c: {kind: compute, cores: 10}", [TWO[0] % ", cores: 6", TWO[1] % ", cores: 5"], "", 4e-3),
        ("c: {kind: compute, cores: 10}", [TWO[0] % ", cores: 5", TWO[1] % ", cores: 5"], "", 3e-3),
        # 2 GFLOP at 1 TFLOP/s are 2 ms with all cores, 4 ms with half of them; 1 MB at 100 GB/s hides behind
        ("c: {kind: compute, cores: 10, flops: 1 TFLOP/s, memory_bandwidth: 100 GB/s}",
         ["{compute: k, writes: [e], work: {flop: 2 GFLOP, bytes: 1 MB}}"], "", 2e-3),
        ("c: {kind: compute, cores: 10, flops: 1 TFLOP/s, memory_bandwidth: 100 GB/s}",
         ["{compute: k, writes: [e], cores: 5, work: {flop: 2 GFLOP, bytes: 1 MB}}"], "", 4e-3),
        # 1 GB at 100 GB/s are 10 ms, longer than 2 GFLOP, and all cores share the bandwidth
        ("c: {kind: compute, cores: 10, flops: 1 TFLOP/s, memory_bandwidth: 100 GB/s}",
         ["{compute: k, writes: [e], cores: 5, work: {flop: 2 GFLOP, bytes: 1 GB}}"], "", 10e-3),
        # the second call of 5 us is made while the first op runs: 5 + 1000, then 3000 on the same engine
        ("c: {kind: compute}", [op % "" for op in TWO], ", calls: {issue: 5 us}", 4.005e-3),
    ],
)  # fmt: skip
def test_the_makespan_is_the_sum_done_by_hand(engines: str, ops: list[str], more: str, seconds: float) -> None:
    assert predict(engines, ops, more)["makespan"] == pytest.approx(seconds, abs=1e-11)


def test_ops_without_a_time_are_named() -> None:
    """A device without a copy engine says nothing of the copy: the figure must not look as if it did."""
    predicted = predict("c: {kind: compute}", [UP, ENDS % "time: 1 ms"])
    assert predicted["unknown"] == ["up"]
    assert predicted_lines(predicted)[-1] == "no time is given for up: 0 is assumed"
    assert "up" not in " ".join(predicted_lines(predict(f"{H2D}, c: {{kind: compute}}", [UP, ENDS % "time: 1 ms"]))[1:])
