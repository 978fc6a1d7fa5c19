"""Software pipelining: ops of a loop issued rounds late, for every count, proved by the verifier and by the checker."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.depths import DepthSearch
from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import build_graphs, is_late, ring_edges, shift_graph
from dagsched.cost.model import Limits
from dagsched.diagnostics import Source
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.expressions import add
from dagsched.plan.model import Loop, Op, Plan
from dagsched.plan.reader import read_plan
from dagsched.plan.resolve import order_plan, resolve_plan
from dagsched.proof.check import check_schedule
from dagsched.proof.model import Problem, Proof
from dagsched.proof.recheck import recheck_proof
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, OpStep, Schedule
from dagsched.schedule.reader import read_schedule
from dagsched.schedule.streams import assign_streams
from dagsched.schedule.writer import schedule_data
from tests.passes.build import build_schedule
from tests.passes.strategies import assignments, plans

EXAMPLES = Path(__file__).parents[2] / "examples"


def stages_of(plan: Plan) -> list[dict[str, int]]:
    """All choices of stages that turn no hazard round: between two ops of a loop none, one or two rounds."""
    names = [op.name for item in plan.items if isinstance(item, Loop) for op in item.body if isinstance(op, Op)]
    found = [
        dict(zip(names, accumulate((0, *steps)), strict=True)) for steps in product((0, 1, 2), repeat=len(names) - 1)
    ] if names else []  # fmt: skip
    return [shifts for shifts in found if any(shifts.values()) and allows(plan, shifts)]


def allows(plan: Plan, shifts: dict[str, int]) -> bool:
    """Whether every hazard still runs forward."""
    names = [op.name for op in plan.ops()]
    late = [shifts.get(name, 0) for name in names]
    return not any(
        is_late((names.index(h.before), names.index(h.after), h.distance), late)
        for h in find_hazards(plan).entries
        if h.distance is not None
    )


@settings(max_examples=20, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.data())
def test_shifted_loops_prove(data: st.DataObject) -> None:
    """Whatever the plan, the streams and the stages, as long as no hazard is turned round."""
    plan = data.draw(plans(loops=1))
    choices = stages_of(plan)
    assume(choices)
    shifts = data.draw(st.sampled_from(choices))
    streams = data.draw(assignments(plan))
    schedule = build_schedule(plan, streams, shifts)
    proof = verify_schedule(plan, schedule)
    # Random rings may not keep a plan's meaning (V103); that has nothing to do with shifts.
    assert {problem.code for problem in proof.problems} <= {"V103"}
    assert proof.holds == verify_schedule(plan, build_schedule(plan, streams)).holds
    if proof.holds:
        assert recheck_proof(proof.document, plan, schedule) == []
    most = min(Sweep(plan).limits) - 1  # a parameter may be one less than the loop's count
    for count in (count for count in (0, 1, 2, 5) if count <= most):
        verdict = check_schedule(replace(schedule, params=dict.fromkeys(schedule.params, count)))
        assert verdict.verdict == "ok"


def detector(streams: str = "max: 3, policy: engine", count: str = "frames") -> Compiled:
    text = (EXAMPLES / "detector.yaml").read_text(encoding="utf-8").replace("count: frames", f"count: {count}")
    return compile_plan(read_plan(Source("p.yaml", text.replace("params:", f"streams: {{{streams}}}\nparams:"))))


def test_a_download_is_issued_behind_the_next_upload() -> None:
    """Decode, download and draw share a stream: without shifts a frame takes what its ops take one after another."""
    compiled = detector()
    assert compiled.shifts == {"download": 1, "draw": 1}
    assert compiled.unshifted == pytest.approx(9.05e-3, rel=1e-3)
    assert compiled.schedule.predicted is not None
    assert compiled.schedule.predicted["initiation_interval"] == 6.9e-3


@pytest.mark.parametrize("streams", ["max: 6", "policy: single"])
def test_nothing_is_shifted_where_it_gains_nothing(streams: str) -> None:
    assert detector(streams).shifts == {}


def test_a_shifted_schedule_survives_its_file() -> None:
    schedule = detector().schedule
    again = read_schedule(Source("s.json", json.dumps(schedule_data(schedule))))
    assert again.steps == schedule.steps
    assert [step for step in again.walk() if isinstance(step, OpStep)] == [
        step for step in schedule.walk() if isinstance(step, OpStep)
    ]
    assert any(isinstance(step, OpStep) and step.iteration is not None for step in again.walk())


def changed(schedule: Schedule, change: dict[int, AnyStep | None]) -> Schedule:
    """With steps of the loop replaced or left out, by number."""
    steps: list[AnyStep] = []
    for step in schedule.steps:
        if isinstance(step, LoopStep):
            body = [change.get(number, inner) for number, inner in enumerate(step.steps)]
            step = replace(step, steps=tuple(inner for inner in body if inner is not None))
        steps.append(step)
    return replace(schedule, steps=tuple(steps))


def test_a_shifted_schedule_with_a_fault_does_not_prove() -> None:
    """Every wait dropped in turn, every guard dropped, every op an iteration off."""
    compiled = detector(count="6")
    assert compiled.shifts
    plan, schedule = compiled.plan, compiled.schedule
    assert verify_schedule(plan, schedule).holds
    loop = next(step for step in schedule.steps if isinstance(step, LoopStep))
    for number, step in enumerate(loop.steps):
        if isinstance(step, EventStep) and step.action == "wait":
            assert not verify_schedule(plan, changed(schedule, {number: None})).holds
        if isinstance(step, OpStep):
            assert not verify_schedule(plan, changed(schedule, {number: replace(step, when=())})).holds
            assert not verify_schedule(plan, changed(schedule, {number: None})).holds
            if step.iteration is not None:
                assert not verify_schedule(plan, changed(schedule, {number: replace(step, iteration=None)})).holds
    shorter = replace(loop, hi=add(loop.hi, -1))
    steps = tuple(shorter if step is loop else step for step in schedule.steps)
    assert not verify_schedule(plan, replace(schedule, steps=steps)).holds


def test_a_shifted_schedule_runs_as_the_plan_means() -> None:
    """On threads, with an index that functions ask for: an op issued late gets its own iteration."""
    import numpy as np

    import dagsched

    def decode(frame: np.ndarray, i: int) -> None:
        frame[:] = i + 1

    def detector(image: np.ndarray, boxes: np.ndarray, sums: np.ndarray, i: int) -> None:
        boxes[:] = image[:16]
        sums[0] += image[0]

    seen: list[int] = []

    def draw(all: np.ndarray, i: int) -> None:
        seen.append(i)

    path = Path(__file__).parents[1] / "emit" / "plans" / "shifted.yaml"
    schedule = dagsched.compile(path)
    assert schedule.compiled.shifts
    functions = {"decode": decode, "detector": detector, "draw": draw}
    with schedule.executor(functions=functions, backend="cpu") as executor:
        result = executor.run(n=6)
    assert seen == list(range(6))
    assert result.outputs["all"].view(np.uint8).reshape(64, 16)[:6, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert int(result.outputs["last"].view(np.uint8)[0]) == 1 + sum(range(1, 7))


def test_a_quicker_schedule_that_is_not_proved_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plainer one stands in its place; no plan is known to get there, so the verifier is made to find fault."""

    def verify(plan: Plan, schedule: Schedule, limits: Limits) -> Proof:
        proof = verify_schedule(plan, schedule, limits)
        late = any(isinstance(step, OpStep) and step.iteration is not None for step in schedule.walk())
        return replace(proof, problems=(Problem("V105", "too early"),)) if late else proof

    monkeypatch.setattr("dagsched.compiler.verify_schedule", verify)
    compiled = detector()
    assert compiled.proof.holds and not compiled.shifts
    (warning,) = [found for found in compiled.warnings if found.code == "C111"]
    assert warning.notes == ("V105: too early", "this is a bug in dagsched")


def two_engines(sizes: tuple[int, int, int], times: tuple[int, int, int, int]) -> str:
    """Four ops in a chain that turn by turn run on one of two engines, with three rings between them."""
    device = "{name: d, engines: {e0: {kind: compute}, e1: {kind: compute}}}"
    lines = ["dagsched: 1", f"device: {device}", "params: {n: null}", "streams: {policy: engine}", "buffers:"]
    lines += [f"  b{k}: {{place: device, size: {size}, ring: {{max: 3}}}}" for k, size in enumerate(sizes)]
    lines += ["  b3: {place: device, size: 8, output: true}", "ops:", "  - loop: i", "    count: n", "    ops:"]
    for k, (reads, time) in enumerate(zip(("", "b0", "b0, b1", "b2"), times, strict=True)):
        accesses = f"reads: [{reads}], writes: [b{k}], engine: e{k % 2}"
        lines.append(f"      - {{name: o{k}, compute: f, {accesses}, time: {time} us}}")
    return "\n".join(lines) + "\n"


@settings(max_examples=10)
@given(
    st.tuples(*[st.sampled_from([8, 24, 64])] * 3),
    st.tuples(*[st.integers(1, 5)] * 4),
)
def test_of_equal_stages_those_of_least_memory_are_taken(
    sizes: tuple[int, int, int], times: tuple[int, int, int, int]
) -> None:
    """Against every choice of up to three cuts, each with the cheapest rings that are as fast."""
    plan = read_plan(Source("p.yaml", two_engines(sizes, times)))
    compiled = compile_plan(plan)
    assume(compiled.shifts)
    device, start = compiled.device, order_plan(plan)[0]
    rings, resolved = ring_edges(start), resolve_plan(plan)
    assignment = assign_streams(Sweep(resolved), find_hazards(resolved), device)
    (graph,) = build_graphs(resolved, rings, assignment.stream_of, op_costs(resolved, device), device)
    found = []
    for cuts in product((0, 1), repeat=3):
        moved = shift_graph(graph, [0, *accumulate(cuts)])
        if moved is not None:
            search = DepthSearch([moved], rings.ranges, resolved.buffers, {})
            depths = search.cheapest(Fraction(1))
            assert depths is not None
            found.append((moved.floor, search.price(depths)[0]))
    taken = sum(plan.buffers[n].size * (compiled.resolved.buffers[n].ring.depth or 1) for n in rings.ranges)
    assert compiled.schedule.predicted is not None
    assert round(compiled.schedule.predicted["initiation_interval"] * 10**12) == min(found)[0]
    assert taken == min(found)[1]
