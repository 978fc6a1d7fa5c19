"""Makespans of long loops: what is left out in the middle must not show."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import Phase, given, reject, settings
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.cost import makespan
from dagsched.cost.counting import count_iteration, count_run
from dagsched.cost.devices import load_device
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.makespan import find_makespan
from dagsched.cost.model import Device, Engine
from dagsched.cost.predict import predict_by_hand
from dagsched.cost.simulator import simulate_costs, simulate_schedule
from dagsched.cost.steady import find_steady_state
from dagsched.diagnostics import PlanError, ProofError, ScheduleError
from dagsched.plan.expressions import Int, parse_condition, parse_expression
from dagsched.plan.model import Loop
from dagsched.plan.resolve import resolve_plan
from dagsched.schedule.model import HostStep, Indexed, LoopStep, OpStep, Schedule
from tests.cost.loops import plan_of
from tests.cost.test_plain_device import profiles, timed

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are long from 40 iterations on."""
    monkeypatch.setattr(makespan, "LONG", 40)
    monkeypatch.setattr(makespan, "_KEPT", 8)


@settings(max_examples=30, phases=(Phase.generate,))
@given(data=st.data())
def test_a_long_run_takes_what_the_simulator_says(data: st.DataObject) -> None:
    profile = data.draw(profiles())
    plan = data.draw(timed(profile, regions=False))
    items = tuple(
        replace(item, count=Int(data.draw(st.integers(41, 120)))) if isinstance(item, Loop) else item
        for item in plan.items
    )
    try:
        compiled = compile_plan(replace(plan, items=items, params={}))
    except (PlanError, ProofError):  # some rings are long enough for few iterations only
        reject()
    device, costs = load_device(profile), op_costs(compiled.resolved, load_device(profile))
    whole = simulate_schedule(compiled.schedule, compiled.resolved, device).makespan_ticks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(makespan, "LONG", 40)
        patch.setattr(makespan, "_KEPT", 8)
        assert find_makespan(compiled.schedule, costs, device) == (Fraction(whole), True)


COSTS = {"f": OpCost(Engine("a", "compute"), 3.0), "g": OpCost(Engine("b", "compute"), 2.0)}
FREE = Device("free", {})


def loop(op: str, count: int, stream: str = "", when: str = "") -> LoopStep:
    name, _, index = (stream or op).partition("@")
    step = OpStep(
        Indexed(name, parse_expression(index) if index else None),
        op,
        when=parse_condition(when) if when else (),
    )
    return LoopStep("i", Int(0), Int(count), (step,))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    "steps",
    [
        (loop("f", 100), loop("g", 100)),  # side by side: the longer one counts, not their sum
        (loop("f", 100), loop("g", 190)),
        (loop("f", 100, "s"), loop("g", 150, "s")),  # one behind the other
        (loop("f", 100, "s@i%4"), loop("g", 45, "s@0")),  # behind the 25 on one of four streams
        (loop("f", 100, when="i < 70"),),  # the middle is not all alike
        (loop("f", 100, when="i % 7 == 3"),),
    ],
)
def test_loops_written_by_hand(steps: tuple[LoopStep, ...]) -> None:
    schedule = Schedule("x", steps)
    assert find_makespan(schedule, COSTS, FREE) == (
        Fraction(simulate_costs(schedule, COSTS, FREE).makespan_ticks),
        True,
    )


@pytest.mark.usefixtures("short")
def test_what_is_too_long_to_be_simulated_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(makespan, "MANY_STEPS", 1500)
    schedule = Schedule("x", (loop("f", 1000), loop("g", 1900)))
    ticks, exact = find_makespan(schedule, COSTS, FREE)
    assert not exact
    assert float(ticks) == pytest.approx(3800e12, rel=0.02)


@pytest.mark.parametrize(
    ("when", "share"),
    [("i % 7 == 3", Fraction(1, 7)), ("i >= 2", Fraction(1)), ("i // 3 % 2 == 0 and i < n - 2", Fraction(1, 2))],
)
def test_guards_count_for_the_limit(when: str, share: Fraction) -> None:
    """An op that runs in every seventh iteration is a seventh of the work, not all of it."""
    (step,) = loop("f", 1, when=when).steps
    assert isinstance(step, OpStep)
    other = replace(step, op="g", when=())
    endless = LoopStep("i", Int(0), parse_expression("n"), (step, other))
    assert count_iteration(endless, COSTS, {"n": 1 << 40}) == {"f": share, "g": 1}


def test_guards_count_in_a_run() -> None:
    schedule = Schedule("x", (loop("f", 100, when="i % 7 == 3"), loop("g", 100)))
    assert count_run(schedule, COSTS) == {"f": 14, "g": 100}
    longer = Schedule("x", (loop("f", 10**9, when="i % 7 == 3"), loop("g", 10**9)))
    assert count_run(longer, COSTS) == {"g": 10**9}  # never more than the truth


def test_an_iteration_without_ops_is_no_reason_to_stumble() -> None:
    steps = replace(loop("f", 1, when="i % 7 == 3"), hi=parse_expression("n"))
    schedule = Schedule("x", (steps,), params={"n": None})
    state = find_steady_state(schedule, steps, COSTS, FREE)
    assert (state.ticks, state.exact) == (Fraction(3 * 10**12, 7), True)


def test_host_steps_are_done_by_one_thread() -> None:
    """`decode` and `draw` on the issuing thread: however many host threads the device has, they come one by one."""
    plan = resolve_plan(plan_of((EXAMPLES / "detector.yaml").read_text(encoding="utf-8").replace("5.7 ms", "10 us")))
    steps = (HostStep("decode"), OpStep(Indexed("a"), "infer"), HostStep("draw"))
    schedule = Schedule("x", (LoopStep("i", Int(0), parse_expression("n"), steps),), params={"n": None})
    found = predict_by_hand(schedule, plan, load_device("ascend-910b"))
    assert found["binds"] == "the issuing thread is busy all the time"
    assert found["bound"] == found["initiation_interval"] == pytest.approx(1.4e-3 + 0.5e-3 + 5e-6)


def test_an_inner_loop_needs_a_count() -> None:
    inner = LoopStep("j", Int(0), parse_expression("m"), (OpStep(Indexed("a"), "f"),))
    outer = LoopStep("i", Int(0), parse_expression("n"), (inner,))
    schedule = Schedule("x", (outer,), params={"n": None, "m": None})
    with pytest.raises(ScheduleError) as raised:
        find_steady_state(schedule, outer, COSTS, FREE)
    (found,) = raised.value.diagnostics
    assert (found.code, found.help) == ("D130", "write `params: {m: 8}`")
    known = replace(schedule, params={"n": None, "m": 2})
    assert find_steady_state(known, outer, COSTS, FREE).ticks == 6 * 10**12
