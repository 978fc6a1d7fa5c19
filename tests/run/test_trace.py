"""What a run says of itself: timeline, arrows, shares, summary; and the same from the simulation."""

from __future__ import annotations

import json
import time
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

import dagsched
from dagsched.cost.simulator import simulate_schedule
from dagsched.diagnostics import UsageError
from dagsched.run.board import Board
from dagsched.run.result import Result
from tests.run.plans import PIPELINE, schedule_of

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def measured() -> Result:
    def work(x: Any, y: Any) -> None:
        time.sleep(0.002)

    functions = {"read": lambda a: None, "work": work, "show": lambda b: None}
    with schedule_of(PIPELINE).executor(functions) as executor:
        return executor.run(n=30)


def test_every_op_has_its_span(measured: Result) -> None:
    timeline = measured.trace.timeline
    assert {(span.name, span.iteration) for span in timeline.spans} == {
        (name, i) for name in ("read", "up", "work", "down", "show") for i in range(30)
    }
    for track in timeline.tracks:
        spans = [span for span in timeline.spans if span.track == track]
        assert all(0 <= span.start <= span.end <= measured.seconds for span in spans)
        assert all(a.end <= b.start for a, b in pairwise(spans))


def test_arrows_are_waits_and_go_forward_in_time(measured: Result) -> None:
    timeline = measured.trace.timeline
    found = {(timeline.spans[flow.before].text, timeline.spans[flow.after].text) for flow in timeline.flows}
    assert {("up@3", "work@3"), ("work@3", "down@3"), ("work@3", "up@5")} <= found
    assert all(timeline.spans[flow.before].end <= timeline.spans[flow.after].start for flow in timeline.flows)
    # `work` takes all the time: whoever comes after it slept, and says on what
    late = [flow for flow in timeline.flows if timeline.spans[flow.after].text == "down@9"]
    assert [flow.binds for flow in late if timeline.spans[flow.before].text == "work@9"] == [True]
    [down] = [span for span in timeline.spans if span.text == "down@9"]
    assert any("for work@9 on cpu" in cause for cause in down.causes)


def test_shares(measured: Result) -> None:
    usage = measured.usage
    assert usage.interval and usage.interval >= 0.002
    assert usage.kinds["compute"] >= 30 * 0.002
    assert measured.utilisation == usage.engines
    assert all(0 <= share <= 1 for share in [*usage.engines.values(), *usage.streams.values()])
    assert usage.overlap >= 1
    assert ("down", "work") in {(waited.op, waited.other) for waited in usage.waits}
    text = measured.summary()
    for word in (
        "30 iterations in",
        "predicted",
        "measured",
        "bound",
        "H2D",
        "compute",
        "D2H",
        "engines",
        "down for work",
    ):
        assert word in text


def test_a_trace_is_written_whole(measured: Result, tmp_path: Path) -> None:
    measured.trace.save(tmp_path / "deeper" / "trace.json")
    events = json.loads((tmp_path / "deeper" / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 150
    assert sum(event["ph"] == "s" for event in events) == sum(event["ph"] == "f" for event in events) > 30


def test_only_the_last_ops_are_remembered() -> None:
    with schedule_of(PIPELINE).executor() as executor:
        timeline = executor.run(n=40, trace=25).trace.timeline
        assert {span.iteration for span in timeline.spans} == set(range(35, 40))
        assert timeline.notes == ("only the last 5 ops of a stream were kept",)
        none = executor.run(n=2, trace=0)
        assert len(none.trace) == 0 and none.usage.interval is None and "2 iterations" in none.summary()


@pytest.mark.parametrize("name", ["detector", "video", "batches", "heads", "chunks", "add_one"])
def test_the_simulation_is_the_cost_models(name: str) -> None:
    schedule = dagsched.compile(EXAMPLES / f"{name}.yaml")
    counts = dict.fromkeys(schedule.compiled.plan.params, 7)
    with schedule.executor(backend="simulate") as executor:
        result = executor.run(counts=counts)
        again = executor.run(counts={param: iter(range(7)) for param in counts})
    compiled = schedule.compiled
    predicted = simulate_schedule(compiled.schedule, compiled.resolved, compiled.device, counts)
    assert result.seconds == again.seconds == predicted.makespan
    spans = {(span.op, span.stream, span.start, span.end) for span in predicted.spans}
    assert {(span.name, span.track, span.start, span.end) for span in result.trace.spans} == spans
    timeline = result.trace.timeline
    assert all(timeline.spans[flow.before].end <= timeline.spans[flow.after].start for flow in timeline.flows)
    assert result.summary().startswith(f"{name} on simulate\n")


def test_a_simulation_has_no_results() -> None:
    with schedule_of(PIPELINE).executor(backend="simulate") as executor:
        with pytest.raises(UsageError, match=r"R108"):
            executor.stream([1, 2])
        with pytest.raises(UsageError, match=r"R105"):
            executor.run()
    with pytest.raises(UsageError, match=r"R102.*`simulat`"):
        schedule_of(PIPELINE).executor(backend="simulat")
    with pytest.raises(TypeError, match="`simulate` has no option `device`"):
        schedule_of(PIPELINE).executor(backend="simulate", device="gpu")
    with pytest.raises(UsageError, match=r"R120.*`read`"):
        schedule_of(PIPELINE).executor({}, backend="simulate")


def test_the_first_op_of_a_dry_run_takes_its_time() -> None:
    text = "dagsched: 1\nname: x\ndevice: host\nbuffers: {x: {place: device, size: 4kB, output: true}}\nops:\n"
    with schedule_of(f"{text}  - {{name: a, compute: f, writes: [x], time: 20 ms}}\n").executor() as executor:
        first, again = executor.run(), executor.run()
    assert min(first.seconds, again.seconds) >= 0.0199


LANES = """
dagsched: 1
name: lanes
device: {name: two, engines: {core: {kind: compute, lanes: 2}}}
streams: {policy: concurrent, max: 4}
buffers:
  a: {place: device, size: 8}
  b: {place: device, size: 8}
  c: {place: device, size: 8}
  d: {place: device, size: 8}
ops:
  - {name: one, compute: f, writes: [a], time: 20 ms, stream: s1}
  - {name: two, compute: f, writes: [b], time: 20 ms, stream: s2}
  - {name: three, compute: f, writes: [c], time: 20 ms, stream: s3}
  - {name: four, compute: f, writes: [d], time: 20 ms, stream: s4}
"""


def test_a_dry_run_keeps_to_the_lanes_of_an_engine() -> None:
    text = "\n".join(line for line in LANES.splitlines())
    with schedule_of(text).executor() as executor:
        for _ in range(2):
            result = executor.run()
            assert result.seconds >= 0.04  # four of 20 ms, two at once
            assert len(result.trace) == 4


HICCUPS = """
dagsched: 1
name: hiccups
device: {name: two, engines: {core: {kind: compute, lanes: 2}}}
params: {n: 5}
streams: {policy: concurrent, max: 2}
buffers:
  a: {place: device, size: 8, ring: RING}
  b: {place: device, size: 8, input: true, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: make, compute: f, writes: [a], time: 300 us, stream: s1}
      - {name: use, compute: f, reads: [a], writes: [b], time: 200 us, stream: s2}
"""


@pytest.mark.parametrize(("ring", "least"), [(1, 500e-6), (3, 300e-6)])
@pytest.mark.parametrize("late", [1, 7, 13, 29, 30])
def test_an_overslept_op_makes_no_loop_faster_than_its_device(
    monkeypatch: pytest.MonkeyPatch, ring: int, least: float, late: int
) -> None:
    naps = count()

    def nap(board: Board, thread: int, end: float) -> None:
        time.sleep(max(0.0, end - time.perf_counter()) + (0.02 if next(naps) % 40 == late else 0.0))

    monkeypatch.setattr(Board, "nap", nap)
    with schedule_of(HICCUPS.replace("RING", str(ring))).executor() as executor:
        result = executor.run(n=60)
    assert result.usage.interval is not None and result.usage.interval >= least * 0.95  # slots hold some work
    timeline = result.trace.timeline
    assert all(timeline.spans[f.before].end <= timeline.spans[f.after].start + 2e-9 for f in timeline.flows)
    for track in timeline.tracks:
        spans = [span for span in timeline.spans if span.track == track]
        assert all(a.end <= b.start for a, b in pairwise(spans))
        assert all(span.end - span.start >= (299e-6 if span.name == "make" else 199e-6) for span in spans)
    assert max(span.end for span in timeline.spans) <= result.seconds + 1e-6


def test_ops_that_exclude_each_other_share_no_time_of_a_dry_run() -> None:
    text = HICCUPS.replace("writes: [a]", "accumulates: [b]").replace("reads: [a], writes: [b]", "accumulates: [b]")
    text = text.replace("  a: {place: device, size: 8, ring: RING}\n", "")
    text = text.replace("300 us", "2 ms").replace("200 us", "2 ms")
    with schedule_of(text).executor() as executor:
        for _ in range(2):
            assert executor.run(n=10).seconds >= 20 * 2e-3 * 0.999
