"""What the simulator says of whole schedules, against a device that was written from the documentation alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest
import yaml
from hypothesis import Phase, event, given, reject, settings
from hypothesis import strategies as st

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.devices import load_device
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.model import Device, Engine
from dagsched.cost.simulator import simulate_costs, simulate_schedule
from dagsched.cost.steady import find_steady_state
from dagsched.cost.timeline import Timeline
from dagsched.diagnostics import ProofError, ScheduleError
from dagsched.plan.expressions import Int
from dagsched.plan.model import Loop, Op, Plan
from dagsched.plan.writer import plan_text
from dagsched.schedule.model import LoopStep, Schedule, Stream
from dagsched.schedule.writer import schedule_data
from dagsched.testing import plans, schedules
from dagsched.testing.schedules import Kind
from tests.cost.plain_device import Cost, Endless, PlainDevice, plain_costs

CALLS = st.sampled_from([{}, {}, {"issue": "2 us", "record": "1 us", "wait": "500 ns"}, {"issue": "7 us"}])
DEPTHS = st.sampled_from([{}, {}, {"queue_depth": 1}, {"queue_depth": 2}, {"queue_depth": 5}])


@st.composite
def profiles(draw: st.DrawFn) -> dict[str, Any]:
    """Engines of every kind, some shared by lanes, some by cores; free calls and dear ones; queues that fill."""
    core: dict[str, Any] = {"kind": "compute", "lanes": draw(st.integers(1, 3))}
    if draw(st.booleans()):
        core["cores"] = core["lanes"] * draw(st.integers(1, 3))
    engines = {
        "core": core,
        "aux": {"kind": "compute"},
        "up": {"kind": "h2d", "bandwidth": "4 GB/s", "latency": "3 ns"},
        "down": {"kind": "d2h", "bandwidth": "2 GB/s"},
        "sdma": {"kind": "d2d"},
        "cpu": {"kind": "host", "lanes": draw(st.integers(1, 3))},
    }
    gone = draw(st.sampled_from([None, None, "sdma", "up", "cpu"]))
    return {
        "name": "random",
        "engines": {name: entry for name, entry in engines.items() if name != gone},
        "calls": draw(CALLS),
        "limits": draw(DEPTHS),
    }


def seen(timeline: Timeline) -> list[tuple[str, int | None, str, int, int]]:
    return [
        (span.op, span.iteration, span.stream or "host", span.start_ticks, span.end_ticks) for span in timeline.spans
    ]


@st.composite
def timed(draw: st.DrawFn, profile: dict[str, Any], regions: bool = True) -> Plan:
    """A random plan whose ops take times, engines and cores of the profile."""
    plan = draw(plans(regions=regions)).model
    cores = profile["engines"]["core"].get("cores")

    def vary(item: Op | Loop) -> Op | Loop:
        if isinstance(item, Loop):
            return replace(item, body=tuple(vary(inner) for inner in item.body))
        copies = item.kind.value in ("copy", "fill")
        time = draw(st.sampled_from([None, 2e-6] if copies else [0.0, 1e-6, 2e-6, 3e-6, 5e-6, 8e-6]))
        if item.kind.value != "compute":
            return replace(item, time=time)
        engine = draw(st.sampled_from([None, None, "aux", "core"]))
        share = draw(st.none() | st.integers(1, cores)) if cores and engine != "aux" else None
        return replace(item, time=time, engine=engine, cores=share, priority=draw(st.sampled_from([None, None, 1, -1])))

    policy = draw(st.sampled_from(["auto", "engine", "single", "concurrent"]))
    streams = replace(plan.streams, policy=policy, max=draw(st.sampled_from([None, None, 2, 3])))
    return replace(plan, source=None, streams=streams, items=tuple(vary(item) for item in plan.items), device=profile)


def compiled_or_other(plan: Plan, sync: Literal["order", "fewest"] = "order") -> Compiled:
    """The plan compiled; one that is not proved is a matter for the tests of the proof, and another is drawn here."""
    try:
        return compile_plan(plan, sync=sync)
    except ProofError:
        reject()


@settings(max_examples=35)
@given(st.data())
def test_compiled_schedules(data: st.DataObject) -> None:
    profile = data.draw(profiles())
    plan = data.draw(timed(profile))
    device = load_device(profile)
    compiled = compiled_or_other(plan, sync=data.draw(st.sampled_from(["order", "order", "fewest"])))
    # Unrolled inner loops are ops of their own: the resolved plan has them.
    costs = plain_costs(yaml.safe_load(plan_text(compiled.resolved)), profile)
    written = json.loads(json.dumps(schedule_data(compiled.schedule)))
    for count in (0, 1, 2, 7):
        counts = dict.fromkeys(plan.params, count)
        ours = simulate_schedule(compiled.schedule, compiled.resolved, device, counts)
        plain = PlainDevice(written, costs, profile, counts).run()
        assert seen(ours) == plain.ops()
        assert ours.makespan_ticks == plain.makespan


@settings(max_examples=25, phases=(Phase.generate,))
@given(st.data())
def test_the_steady_state_goes_on(data: st.DataObject) -> None:
    """Once the loop is said to repeat, every op of the plain device comes a period later, and later again."""
    profile = data.draw(profiles())
    plan = data.draw(timed(profile))
    device = load_device(profile)
    compiled = compiled_or_other(plan)
    own = op_costs(compiled.resolved, device)
    costs = plain_costs(yaml.safe_load(plan_text(compiled.resolved)), profile)
    for number, loop in enumerate(compiled.schedule.steps):
        if not isinstance(loop, LoopStep) or isinstance(loop.hi, Int) or not any(cost.ticks for cost in costs.values()):
            continue
        state = find_steady_state(compiled.schedule, loop, own, device)
        written = schedule_data(compiled.schedule)
        written["steps"] = [written["steps"][number]]
        event(f"exact: {state.exact}")
        if not state.exact or state.transient + 5 * state.period > 60:
            continue
        first = state.transient + state.period
        count = first + 8 * state.period + 40
        plain = PlainDevice(written, costs, profile, dict.fromkeys(plan.params, count)).run()
        ends = {(op, iteration): end for op, iteration, _, _, end in plain.ops() if iteration is not None}
        for (op, iteration), end in ends.items():
            if first <= iteration < first + 7 * state.period:
                assert ends[op, iteration + state.period] - end == state.ticks * state.period


ALL: list[Kind] = ["op", "host", "free", "record", "wait", "reset", "wait_stream", "sync", "set", "take"]
MIXES: dict[str, dict[str, Any]] = {
    "everything": {"kinds": ALL, "models": ["latch", "flag"], "params": True},
    "crowded": {"kinds": ["op", "record", "wait"], "models": ["latch"], "steps": 24, "legacy": False},
    "flags": {"kinds": ["op", "record", "wait", "reset"], "models": ["flag"], "legacy": False},
}


@pytest.mark.parametrize("mix", MIXES)
@settings(max_examples=80, phases=(Phase.generate,))
@given(data=st.data())
def test_schedules_written_by_hand(mix: str, data: st.DataObject) -> None:
    """Every kind of step but locks, both event models that a wait's record can be told beforehand in."""
    schedule = data.draw(schedules(**MIXES[mix]))
    named = {"s1": Stream("s1", priority=data.draw(st.sampled_from([None, 1, -1])))}
    schedule = replace(schedule, streams={**schedule.streams, **named})
    profile = data.draw(profiles())
    device = load_device(profile)
    capacity = device.engines["core"].cores or device.engines["core"].lanes
    ops = sorted({name for step in schedule_data(schedule)["steps"] for name in _names(step)})
    rows = {
        name: (
            data.draw(st.sampled_from(["core", "core", "aux"])), data.draw(st.integers(0, 5)),
            data.draw(st.integers(1, capacity)), data.draw(st.integers(0, 5)) == 0,
        )
        for name in ops
    }  # fmt: skip
    costs = {
        name: OpCost(_engine(device, engine), ticks / 10**6, share=share if engine == "core" else 1, blocks=blocks)
        for name, (engine, ticks, share, blocks) in rows.items()
    }
    mine = {
        name: Cost(engine, capacity if engine == "core" else 1, ticks * 10**6, share if engine == "core" else 1, blocks)
        for name, (engine, ticks, share, blocks) in rows.items()
    }
    counts = {"n": data.draw(st.integers(0, 4))}
    compare(schedule, costs, mine, device, profile, counts)


def compare(
    schedule: Schedule,
    costs: dict[str, OpCost],
    mine: dict[str, Cost],
    device: Device,
    profile: dict[str, Any],
    counts: dict[str, int],
) -> None:
    plain = PlainDevice(schedule_data(schedule), mine, profile, counts)
    try:
        plain.run()
    except Endless:
        plain.makespan = -1
    try:
        ours = simulate_costs(schedule, costs, device, counts)
    except ScheduleError as error:
        assert error.diagnostics[0].code in ("D134", "D136")
        assert plain.makespan == -1
        return
    assert seen(ours) == plain.ops()
    assert ours.makespan_ticks == plain.makespan


def _engine(device: Device, name: str) -> Engine:
    return device.engines[name]


def _names(step: dict[str, Any]) -> list[str]:
    inner = [name for each in step.get("steps", ()) for name in _names(each)]
    return [*inner, *(step[key].partition("@")[0] for key in ("op", "host") if key in step)]
