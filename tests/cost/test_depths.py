"""Ring depths against an exhaustive search: no depths are faster, and none as fast take less memory."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.cost.depths import DepthSearch, choose_depths
from dagsched.cost.devices import load_device
from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import build_graphs, ring_edges
from dagsched.diagnostics import LimitError
from dagsched.plan.model import Loop, Op, Plan, Ring
from dagsched.plan.resolve import order_plan, resolve_depths
from dagsched.schedule.depths import choose_ring_depths, make_search, with_depths
from dagsched.schedule.streams import Assignment
from dagsched.view.rings import ring_table_data, ring_table_text
from tests.cost.loops import by_engine, bytes_of, device_of, loop_texts, measure, plan_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def all_depths(ordered: Plan, resolved: Plan, deepest: int) -> list[Plan]:
    """The plan at every set of depths that keeps its meaning."""
    ranges = ring_edges(ordered).ranges
    options = [[d for d in range(r.least, min(r.most, deepest) + 1) if r.keeps(d)] for r in ranges.values()]
    return [with_depths(ordered, resolved, dict(zip(ranges, depths, strict=True))) for depths in product(*options)]


def choose(ordered: Plan, resolved: Plan, assignment: Assignment) -> dict[str, int]:
    device, rings = device_of(resolved), ring_edges(ordered)
    graphs = build_graphs(resolved, rings, assignment.stream_of, op_costs(resolved, device), device)
    choice = choose_ring_depths(
        make_search(rings, resolved, graphs, device),
        lambda depths: measure(with_depths(ordered, resolved, depths), assignment),
    )
    return choice.chosen.depths if choice else {}


@settings(max_examples=10)
@given(loop_texts())
def test_depths_are_the_fastest_of_least_memory(text: str) -> None:
    plan = plan_of(text)
    ordered, _ = order_plan(plan)
    resolved, assignment = by_engine(plan)
    known = [(measure(each, assignment).ticks, bytes_of(each)) for each in all_depths(ordered, resolved, 3)]
    chosen = with_depths(ordered, resolved, choose(ordered, resolved, assignment))
    assert (measure(chosen, assignment).ticks, bytes_of(chosen)) == min(known)


@settings(max_examples=25)
@given(loop_texts())
def test_the_table_holds_every_worthwhile_pair(text: str) -> None:
    """Interval and memory of all sets of depths, less those that another one beats."""
    plan = plan_of(text)
    ordered, _ = order_plan(plan)
    resolved, assignment = by_engine(plan)
    rings = ring_edges(ordered)
    device = device_of(plan)
    graphs = build_graphs(resolved, rings, assignment.stream_of, op_costs(resolved, device), device)
    search = DepthSearch(graphs, rings.ranges, resolved.buffers, {})
    table = choose_depths(search, table=True)
    assert table is not None
    sets = all_depths(ordered, resolved, 3)
    fixed = bytes_of(resolved) - sum(
        buffer.size * (buffer.ring.depth or 1) for buffer in resolved.buffers.values() if buffer.name in rings.ranges
    )
    known = {(measure(each, assignment).ticks, bytes_of(each) - fixed) for each in sets}
    front = {pair for pair in known if not any(o != pair and o[0] <= pair[0] and o[1] <= pair[1] for o in known)}
    assert {(point.interval, Fraction(sum(point.memory.values()))) for point in table.points} == front


@settings(max_examples=15)
@given(loop_texts(), st.data())
def test_rows_of_the_table_are_what_their_depths_take(text: str, data: st.DataObject) -> None:
    """Compiled with just these depths, on any streams, with engines that streams share, calls, limits and counts."""
    policy = data.draw(st.sampled_from(["engine", "concurrent, max: 2", "single"]))
    text = text.replace("policy: engine", f"policy: {policy}").replace(
        "count: n", f"count: {data.draw(st.sampled_from(['n', 'n', '12']))}"
    )
    if data.draw(st.booleans()):
        text = text.replace("}}}\n", "}}, calls: {issue: 1 us, record: 1 us, wait: 1 us}}\n", 1)
    if data.draw(st.booleans()):
        text = text.replace("params:", f"memory: {{device: {data.draw(st.sampled_from([60, 120, 200]))}}}\nparams:")
    plan = plan_of(text)
    try:
        compiled = compile_plan(plan, ring_table=True)
    except LimitError:
        reject()
    plain = compile_plan(plan)
    assert (plain.schedule, plain.resolved) == (compiled.schedule, compiled.resolved)
    assert compiled.rings is None or compiled.rings.chosen in compiled.rings.points
    for point in compiled.rings.points if compiled.rings else ():
        fixed = {name: replace(plan.buffers[name], ring=Ring(d, d, d)) for name, d in point.depths.items()}
        predicted = compile_plan(replace(plan, buffers={**plan.buffers, **fixed})).schedule.predicted
        assert predicted is not None
        taken = predicted["initiation_interval" if point.run is None else "makespan"]
        assert taken == pytest.approx(float(point.ticks) / 10**12, rel=1e-9)


def test_a_constant_count_shows_what_the_run_takes() -> None:
    plan = plan_of((EXAMPLES / "detector.yaml").read_text(encoding="utf-8").replace("count: frames", "count: 50"))
    plan = replace(plan, params={}, items=tuple(_on_dvpp(item) for item in plan.items))
    compiled = compile_plan(plan, ring_table=True)
    text = ring_table_text(compiled)
    assert "run " in text.splitlines()[0] and "347.8 ms" in text
    assert text.endswith("> the least memory within 0.1 % of the fastest run\n")
    assert [set(row) for row in ring_table_data(compiled)] == [{"depths", "memory", "makespan", "chosen"}] * 3


def _on_dvpp(item: Op | Loop) -> Op | Loop:
    if isinstance(item, Loop):
        return replace(item, body=tuple(_on_dvpp(inner) for inner in item.body))
    return replace(item, engine="dvpp") if item.name == "resize" else item


@pytest.mark.parametrize(("engine", "frames"), [("", 145), (", engine: dvpp", 175)])
def test_the_detector(engine: str, frames: int) -> None:
    """At the bound, and no fewer slots would do (searched up to three a ring)."""
    text = (EXAMPLES / "detector.yaml").read_text(encoding="utf-8").replace("time: 1.2 ms", f"time: 1.2 ms{engine}")
    plan = plan_of(text)
    compiled = compile_plan(plan)
    predicted = compiled.schedule.predicted
    assert predicted is not None
    assert predicted["initiation_interval"] == predicted["bound"]
    assert round(1 / predicted["initiation_interval"]) == frames
    assert round(1 / predicted["serial"]) == 110
    ordered, _ = order_plan(plan)
    resolved, assignment = by_engine(plan)
    rings = ring_edges(ordered)
    device = load_device("ascend-910b")
    (graph,) = build_graphs(resolved, rings, assignment.stream_of, op_costs(resolved, device), device)
    names = list(rings.ranges)
    fast = [
        depths for depths in product(range(1, 4), repeat=len(names))
        if graph.interval_at(dict(zip(names, depths, strict=True))) == graph.floor
    ]  # fmt: skip
    least = min(fast, key=lambda depths: sum(d * plan.buffers[n].size for n, d in zip(names, depths, strict=True)))
    assert [compiled.resolved.buffers[name].ring.depth for name in names] == list(least)


def detector(memory: str) -> Plan:
    text = (EXAMPLES / "detector.yaml").read_text(encoding="utf-8")
    text = text.replace("time: 1.2 ms", "time: 1.2 ms, engine: dvpp").replace("params:", f"memory: {memory}\nparams:")
    return plan_of(text)


def test_a_limit_on_memory_takes_the_fastest_that_fits() -> None:
    plan = detector("{device: 61525000}")  # 48 MiB of weights, one image, two tensors, one set of boxes
    compiled = compile_plan(plan)
    assert compiled.resolved.buffers["tensor"].ring.depth == 2
    assert compiled.resolved.buffers["boxes"].ring.depth == 1
    assert compiled.schedule.predicted is not None
    assert compiled.schedule.predicted["initiation_interval"] == pytest.approx(5.70175e-3)
    assert compiled.schedule.predicted["bound"] == 5.7e-3
    assert compiled.schedule.predicted["held"] == "infer@i -> download@i -> infer@i+1 (ring boxes)"


def test_buffers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(LimitError, match=r"C103.*at least 59,050,048 bytes of device memory, and the plan allows") as e:
        compile_plan(detector("{device: 50MiB}"))
    assert e.value.diagnostics[0].notes[0].startswith("the largest: `weights` with 50,331,648 bytes a slot, `image`")
    assert "write `memory: {device: 59050048}`" in (e.value.diagnostics[0].help or "")
    assert compile_plan(detector("{device: 59050048}")).proof.holds
    plan = detector("{host: 1GiB}")
    small = {"name": "small", "engines": {"c": {"kind": "compute"}}, "memory": {"device": "1MB"}}
    with pytest.raises(LimitError, match=r"C103.*`small` has 1,000,000"):
        compile_plan(plan_of(EXAMPLES.joinpath("batches.yaml").read_text()), device=load_device(small))
    assert compile_plan(plan).rings is not None


@given(st.integers(1, 3), st.integers(2, 4))
@settings(max_examples=10)
def test_bounds_of_a_ring_are_respected(low: int, high: int) -> None:
    text = (EXAMPLES / "detector.yaml").read_text(encoding="utf-8")
    text = text.replace("dtype: float16, ring: auto", f"dtype: float16, ring: {{min: {low}, max: {max(low, high)}}}")
    depth = compile_plan(plan_of(text)).resolved.buffers["tensor"].ring.depth
    assert depth == low  # one slot is enough, as far as the device goes


def test_a_carried_value_keeps_the_versions_that_are_read() -> None:
    text = """\
dagsched: 1
device: {name: d, engines: {a: {kind: compute}, b: {kind: compute}}}
params: {n: null}
buffers:
  state: {place: device, size: 8, ring: auto, input: true, output: true}
  seen: {place: device, size: 8, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: step, compute: f, reads: [state@i-3], writes: [state], time: 1 us, engine: a}
      - {name: look, compute: g, reads: [state@i-1], writes: [seen], time: 1 us, engine: b}
"""
    compiled = compile_plan(plan_of(text))
    assert compiled.resolved.buffers["state"].ring.depth == 4  # three are read, and `step` writes a fourth meanwhile


def test_depths_that_a_resolved_plan_has_already_change_nothing() -> None:
    ordered, _ = order_plan(detector("{host: 1GiB}"))
    resolved = resolve_depths(ordered, dict.fromkeys(ordered.buffers, 1))
    assert with_depths(ordered, resolved, {"tensor": 1}) is resolved


@settings(max_examples=15)
@given(loop_texts())
def test_large_plans_get_depths_that_are_fast_and_not_too_deep(text: str) -> None:
    """The greedy search, which takes over where the exact one would take too long."""
    plan = plan_of(text)
    ordered, _ = order_plan(plan)
    resolved, assignment = by_engine(plan)
    rings, device = ring_edges(ordered), device_of(plan)
    graphs = build_graphs(resolved, rings, assignment.stream_of, op_costs(resolved, device), device)
    search = DepthSearch(graphs, rings.ranges, resolved.buffers, {})
    search.left = 0
    choice = choose_depths(search)
    assert choice is not None
    depths = tuple(choice.chosen.depths.values())
    assert not choice.exact or not depths or search.slow_rings(search.least(), Fraction(1)) is None
    assert search.slow_rings(depths, Fraction(1)) is None
    for ring in range(len(depths)):
        shorter = search.shorten(depths, ring)
        assert shorter is None or search.slow_rings(shorter, Fraction(1)) is not None
