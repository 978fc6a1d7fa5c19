"""What holds a loop up: on marked graphs the cycle found is one of maximum ratio."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import networkx as nx
from hypothesis import assume, given

from dagsched.cost.blame import find_holds, rotate_holds
from dagsched.cost.bounds import Edge
from dagsched.cost.devices import load_device
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.model import CallCosts, Device, Engine
from dagsched.cost.predict import describe_holds, predict_by_hand
from dagsched.cost.queues import TICKS
from dagsched.cost.steady import find_steady_state, run_loop
from dagsched.diagnostics import Source
from dagsched.plan.resolve import resolve_plan
from dagsched.schedule.model import LoopStep
from dagsched.schedule.reader import read_schedule
from tests.cost.loops import plan_of
from tests.cost.test_bounds import marked_graphs, slowest_cycle
from tests.cost.test_depths import EXAMPLES
from tests.cost.test_steady import as_schedule


@given(marked_graphs())
def test_the_cycle_is_the_slowest(case: tuple[list[int], list[Edge]]) -> None:
    ticks, edges = case
    count = len(ticks)
    graph = nx.DiGraph([(a, b) for a, b, _ in edges])
    graph.add_nodes_from(range(count))
    assume(nx.is_strongly_connected(graph) and all(ticks))
    schedule = as_schedule(edges, count)
    (loop,) = schedule.steps
    assert isinstance(loop, LoopStep)
    costs = {f"op{n}": OpCost(Engine(f"e{n}", "compute"), t / TICKS) for n, t in enumerate(ticks)}
    device = Device("d", {}, CallCosts())
    state = find_steady_state(schedule, loop, costs, device)
    program, times, _ = run_loop(schedule, loop, costs, device, state.transient + 40 * state.period + 40)
    holds = find_holds(program, times, state.period)
    taken = sum(ticks[int(hold.before[0][2:])] for hold in holds)
    distance = holds[-1].after[1] - holds[0].before[1]
    assert Fraction(taken, distance) == slowest_cycle(ticks, [*edges, *((n, n, 1) for n in range(count))])
    assert all(a.after == b.before for a, b in pairwise(holds))
    turned = rotate_holds(holds, [f"op{n}" for n in range(count)])
    assert all(a.after == b.before for a, b in pairwise(turned))


def test_the_tutorials_schedule_overlaps_nothing() -> None:
    plan = resolve_plan(plan_of((EXAMPLES / "detector.yaml").read_text(encoding="utf-8")))
    path = EXAMPLES / "handwritten" / "detector.schedule.yaml"
    schedule = read_schedule(Source(path.name, path.read_text(encoding="utf-8")))
    found = predict_by_hand(schedule, plan, load_device("ascend-910b"))
    assert 0.999 < found["initiation_interval"] / found["serial"] < 1.001
    assert (found["bound"], found["binds"]) == (6.9e-3, "ai-core is busy all the time")
    assert found["held"].startswith("decode@i -> upload@i (issuing thread) -> resize@i -> infer@i (stream compute)")
    loop = next(step for step in schedule.steps if isinstance(step, LoopStep))
    assert describe_holds(schedule, loop, op_costs(plan, load_device("ascend-910b")), load_device("host"))
