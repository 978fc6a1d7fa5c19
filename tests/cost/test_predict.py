"""Predictions for compiled schedules: what the detector of the documentation takes, and that no limit is beaten."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagsched.cost.devices import load_device
from dagsched.cost.model import Device
from dagsched.cost.predict import predict_schedule
from dagsched.cost.simulator import simulate_schedule
from dagsched.diagnostics import Source
from dagsched.hazards.find import find_hazards
from dagsched.plan.model import Plan
from dagsched.plan.reader import read_plan
from dagsched.plan.resolve import resolve_plan
from dagsched.schedule.model import Schedule
from tests.passes.build import build_schedule

DETECTOR = """\
dagsched: 1
params: {frames: null}
buffers:
  frame:   {place: host,   size: 6220800, ring: 2}
  image:   {place: device, size: 6220800, ring: 2}
  tensor:  {place: device, size: 2MB, ring: 2}
  boxes:   {place: device, size: 40kB, ring: 2}
  result:  {place: host,   size: 40kB, ring: 2}
ops:
  - loop: i
    count: frames
    ops:
      - {name: decode,   host: decode_frame, writes: [frame], time: 1.4 ms}
      - {name: upload,   copy: {from: frame, to: image}}
      - {name: resize,   compute: resize, reads: [image], writes: [tensor], time: 1.2 ms}
      - {name: infer,    compute: detector, reads: [tensor], writes: [boxes], time: 5.7 ms}
      - {name: download, copy: {from: boxes, to: result}}
      - {name: draw,     host: draw_boxes, reads: [result], time: 0.5 ms}
"""
BY_ENGINE = {
    "decode": "decode", "upload": "h2d", "resize": "core", "infer": "core", "download": "d2h", "draw": "draw",
}  # fmt: skip
ASCEND = load_device("ascend-910b")


def compiled(text: str, streams: dict[str, str] | str) -> tuple[Schedule, Plan]:
    plan = resolve_plan(read_plan(Source("p.yaml", text)))
    names = streams if isinstance(streams, dict) else {op.name: streams for op in plan.ops()}
    return build_schedule(plan, names), plan


def predict(text: str, streams: dict[str, str] | str, device: Device = ASCEND) -> dict[str, object]:
    schedule, plan = compiled(text, streams)
    return predict_schedule(schedule, plan, device, find_hazards(plan))


def test_the_detector_keeps_the_ai_core_busy() -> None:
    found = predict(DETECTOR, BY_ENGINE)
    assert found == {
        "initiation_interval": 0.0069, "serial": pytest.approx(9.05e-3, rel=1e-3), "bound": 0.0069,
        "binds": "ai-core is busy all the time",
    }  # fmt: skip


def test_the_detector_with_a_resize_engine_of_its_own() -> None:
    text = DETECTOR.replace("time: 1.2 ms", "time: 1.2 ms, engine: dvpp")
    assert predict(text, BY_ENGINE | {"resize": "dvpp"})["initiation_interval"] == 0.0057


def test_the_detector_on_one_stream_is_serial() -> None:
    seconds = predict(DETECTOR, "main")["initiation_interval"]
    assert isinstance(seconds, float)
    assert seconds == pytest.approx(1.4e-3 + 1.2e-3 + 5.7e-3 + 0.5e-3 + 2.5e-4, rel=1e-2)
    assert 105 < 1 / seconds < 115


def test_one_slot_is_a_cycle_that_binds() -> None:
    text = DETECTOR.replace("ring: 2", "ring: 1").replace("time: 1.2 ms", "time: 1.2 ms, engine: dvpp")
    found = predict(text, BY_ENGINE | {"resize": "dvpp"})
    assert found["bound"] == 0.0069
    assert found["binds"] == "resize@i+1 waits for infer@i: deepen ring tensor"
    assert found["initiation_interval"] == pytest.approx(0.0069)


def test_without_a_loop_the_makespan_is_given() -> None:
    text = DETECTOR.replace("count: frames", "count: 1")
    found = predict(text, BY_ENGINE)
    schedule, plan = compiled(text, BY_ENGINE)
    assert found["makespan"] == simulate_schedule(schedule, plan, ASCEND).makespan


@settings(max_examples=10)
@given(st.integers(2_001, 3_000))
def test_long_constant_loops_are_extended_exactly(count: int) -> None:
    text = DETECTOR.replace("count: frames", f"count: {count}")
    found = predict(text, BY_ENGINE)
    schedule, plan = compiled(text, BY_ENGINE)
    assert found["makespan"] == pytest.approx(simulate_schedule(schedule, plan, ASCEND).makespan, rel=1e-12)
    assert isinstance(found["bound"], float) and isinstance(found["makespan"], float)
    assert 0.999 * found["makespan"] < found["bound"] <= found["makespan"]


def test_constant_loops_are_bound_by_calls_and_by_whole_chains() -> None:
    def of(loop: str) -> tuple[object, object, object]:
        head = "dagsched: 1\nname: x\nbuffers: {x: {place: device, size: 4kB, output: true}}\nops:\n"
        found = predict(f"{head}  - {{loop: i, count: {loop}}}\n", "s")
        return found["makespan"], found["bound"], found["binds"]

    calls = ASCEND.calls.issue * 4
    no_time = of("4, ops: [{name: a, compute: f, writes: [x]}]")
    assert no_time == (pytest.approx(calls), no_time[0], "the issuing thread is busy all the time")
    chain = of("4, ops: [{name: a, compute: f, writes: [x], time: 1 ms, cores: 1}]")
    assert chain[1:] == (pytest.approx(4e-3), "a")
    assert of("0, ops: [{name: a, compute: f, writes: [x], time: 1 ms}]")[1] == 0


def test_ops_without_a_time_are_named() -> None:
    found = predict(DETECTOR.replace(", time: 0.5 ms", ""), BY_ENGINE)
    assert found["unknown"] == ["draw"]


def test_an_interval_without_a_steady_state_is_marked() -> None:
    """Nothing ties op `draw` to the others here, so it runs ahead of them for ever."""
    text = DETECTOR.replace("reads: [result]", "reads: [other]").replace(
        "ops:\n", "  other: {place: host, size: 1kB, input: true}\nops:\n", 1
    )
    text = text.replace("size: 40kB, ring: 2}\n  other", "size: 40kB, ring: 2, output: true}\n  other")
    found = predict(text, BY_ENGINE)
    assert found["initiation_interval"] == found["bound"] == 0.0069
    assert found["estimated"] is True


@given(st.data())
def test_no_prediction_beats_its_bound(data: st.DataObject) -> None:
    """Whatever the streams, the rings and the times."""
    text = DETECTOR
    for time in ("1.4 ms", "1.2 ms", "5.7 ms", "0.5 ms"):
        text = text.replace(time, f"{data.draw(st.integers(0, 9))} ms")
    while "ring: 2" in text:
        text = text.replace("ring: 2", f"ring: {data.draw(st.sampled_from([1, 3]))}", 1)
    text = text.replace("count: frames", f"count: {data.draw(st.sampled_from(['frames', '1', '5', '3000']))}")
    names = {name: data.draw(st.sampled_from("abc")) for name in BY_ENGINE}
    found = predict(text, names)
    value = found.get("initiation_interval", found.get("makespan"))
    assert isinstance(value, float) and isinstance(found["bound"], float)
    assert found["bound"] <= value * (1 + 1e-12)


def test_calls_limit_a_loop_of_constant_count_too() -> None:
    text = "dagsched: 1\nbuffers: {}\nops: [{loop: i, count: 4, ops: [{name: a, host: f}]}]\n"
    predicted = predict(text, "s", load_device("host"))
    assert predicted["makespan"] == predicted["bound"] == 4 * load_device("host").calls.issue
    assert predicted["binds"] == "the issuing thread is busy all the time"
