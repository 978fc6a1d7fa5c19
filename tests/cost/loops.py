"""Small random loops as plans: ops on engines of their own speeds, rings between them, values carried along."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from dagsched.cost.devices import load_device
from dagsched.cost.durations import op_costs
from dagsched.cost.model import Device
from dagsched.cost.predict import Measured, measure_schedule
from dagsched.diagnostics import Source
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan
from dagsched.plan.reader import read_plan
from dagsched.plan.resolve import resolve_plan
from dagsched.schedule.streams import Assignment, assign_streams
from tests.passes.build import build_schedule

DEVICE = "{name: d, engines: {e0: {kind: compute}, e1: {kind: compute}, e2: {kind: compute}}}"


@st.composite
def loop_texts(draw: st.DrawFn, deepest: int = 3, most: int = 3) -> str:
    """A plan whose loop holds up to four ops and as many rings of automatic depth."""
    count = draw(st.integers(2, most + 1))
    buffers, ops = ["  x: {place: device, size: 8, input: true}"], []
    for number in range(count):
        reads = ["x"]
        for earlier in range(number):
            if draw(st.integers(0, 2)):
                reads.append(f"b{earlier}")
        if number < most and draw(st.integers(0, 5)) == 0:
            reads.append(f"b{number}@i-1")
        size = draw(st.sampled_from([8, 16, 24, 64]))
        if number < most:
            buffers.append(
                f"  b{number}: {{place: device, size: {size}, ring: {{max: {deepest}}}, input: true, output: true}}"
            )
        else:
            buffers.append(f"  b{number}: {{place: device, size: {size}, output: true}}")
        engine = draw(st.sampled_from(["e0", "e1", "e2"]))
        ops.append(
            f"      - {{name: o{number}, compute: f, reads: [{', '.join(reads)}], writes: [b{number}], "
            f"engine: {engine}, time: {draw(st.integers(1, 6))} us}}"
        )
    lines = [
        "dagsched: 1", f"device: {DEVICE}", "params: {n: null}", "streams: {policy: engine}", "buffers:", *buffers,
        "ops:", "  - loop: i", "    count: n", "    ops:", *ops,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def plan_of(text: str) -> Plan:
    return read_plan(Source("p.yaml", text))


def device_of(plan: Plan) -> Device:
    return load_device(plan.device)


def by_engine(plan: Plan) -> tuple[Plan, Assignment]:
    """The plan resolved, and its streams."""
    resolved = resolve_plan(plan)
    return resolved, assign_streams(Sweep(resolved), find_hazards(resolved), device_of(plan))


def measure(resolved: Plan, assignment: Assignment) -> Measured:
    """What the passes make of a resolved plan, simulated."""
    names = {
        op.name: assignment.streams[stream].name
        for op, stream in zip(resolved.ops(), assignment.stream_of, strict=True)
    }
    schedule = build_schedule(resolved, names)
    return measure_schedule(schedule, op_costs(resolved, device_of(resolved)), device_of(resolved))


def bytes_of(plan: Plan) -> Fraction:
    return Fraction(sum(buffer.size * (buffer.ring.depth or 1) for buffer in plan.buffers.values()))
