"""What is claimed of the detector, on the plain device of ``plain_device`` and by trying every small set of depths."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
import yaml

from dagsched.compiler import compile_plan
from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import ring_edges
from dagsched.cost.predict import measure_schedule, predict_by_hand
from dagsched.diagnostics import Source
from dagsched.plan.model import Plan
from dagsched.plan.resolve import order_plan, resolve_plan
from dagsched.schedule.depths import with_depths
from dagsched.schedule.model import Schedule
from dagsched.schedule.reader import read_schedule
from dagsched.schedule.writer import schedule_data
from dagsched.view.summary import predicted_lines
from tests.cost.loops import plan_of
from tests.cost.plain_device import PlainDevice, plain_costs
from tests.passes.build import build_schedule

ROOT = Path(__file__).parents[2]
PROFILE = yaml.safe_load((ROOT / "dagsched" / "devices" / "ascend-910b.yaml").read_text(encoding="utf-8"))
TEXT = (ROOT / "examples" / "detector.yaml").read_text(encoding="utf-8")
DVPP = (ROOT / "docs" / "samples" / "dvpp.yaml").read_text(encoding="utf-8")


def interval(schedule: Schedule, text: str) -> float:
    """Seconds between two frames of a run on the plain device: the last ops of frames 40 and 50, a tenth of that."""
    costs = plain_costs(yaml.safe_load(text), PROFILE)
    plain = PlainDevice(schedule_data(schedule), costs, PROFILE, {"frames": 60}).run()
    ends = {iteration: end for op, iteration, _, _, end in plain.ops() if op == "draw"}
    return (ends[50] - ends[40]) / 10 / 10**12


@pytest.mark.parametrize(("text", "milliseconds", "frames"), [(TEXT, 6.9, 145), (DVPP, 5.7, 175)])
def test_frames_come_as_fast_as_the_busiest_engine_lets_them(text: str, milliseconds: float, frames: int) -> None:
    compiled = compile_plan(plan_of(text))
    assert interval(compiled.schedule, text) == pytest.approx(milliseconds / 1000, abs=1e-12)
    lines = predicted_lines(compiled.schedule.predicted or {})
    shown = f"{milliseconds:.2f} ms/iteration, limit {milliseconds:.2f} ms (ai-core is busy all the time)"
    assert lines == [shown, f"{frames} iterations/s, one after another 110"]


@pytest.mark.parametrize("text", [TEXT, DVPP])
def test_no_rings_of_less_memory_are_as_fast(text: str) -> None:
    """Every set of one or two slots a ring, simulated."""
    plan = plan_of(text)
    compiled = compile_plan(plan)
    ordered, _ = order_plan(plan)
    resolved, names = resolve_plan(plan), list(ring_edges(ordered).ranges)
    costs = op_costs(resolved, compiled.device)

    def size_of(at: Plan) -> int:
        return sum(buffer.size * (buffer.ring.depth or 1) for buffer in at.buffers.values())

    found = {}
    for depths in product((1, 2), repeat=len(names)):
        deep = with_depths(ordered, resolved, dict(zip(names, depths, strict=True)))
        ticks = measure_schedule(build_schedule(deep, compiled.streams), costs, compiled.device).ticks
        found[depths] = (ticks, size_of(deep))
    chosen = tuple(compiled.resolved.buffers[name].ring.depth for name in names)
    assert len(names) == 5
    assert found[chosen] == min(found.values())  # type: ignore[index]


def test_the_schedule_of_tutorials_overlaps_nothing_and_is_told_so() -> None:
    """Two streams, an event each way, one buffer of each kind: an iteration takes what its ops take one by one."""
    source = (ROOT / "examples" / "handwritten" / "detector.schedule.yaml").read_text(encoding="utf-8")
    schedule, plan = read_schedule(Source("s.yaml", source)), resolve_plan(plan_of(TEXT))
    predicted = predict_by_hand(schedule, plan, compile_plan(plan_of(TEXT)).device)
    assert 1 / 109.5 > (serial := 1.4e-3 + 1.2e-3 + 5.7e-3 + 0.5e-3 + 2 * 150e-9 + (6220800 + 40000) / 25e9) > 1 / 110.5
    assert predicted["serial"] == pytest.approx(serial, abs=1e-11)
    assert predicted["initiation_interval"] == pytest.approx(interval(schedule, TEXT), abs=1e-12)
    assert predicted["initiation_interval"] >= serial
    assert predicted_lines(predicted)[1] == "110 iterations/s, one after another 110: nothing overlaps"
