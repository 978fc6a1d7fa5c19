"""Steady states against max-plus theory: the interval of a marked graph is its maximum cycle ratio."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from dagsched.cost.bounds import Edge
from dagsched.cost.durations import OpCost
from dagsched.cost.model import CallCosts, Device, Engine
from dagsched.cost.queues import TICKS
from dagsched.cost.simulator import simulate_costs
from dagsched.cost.steady import SteadyState, find_steady_state
from dagsched.plan.expressions import Int, Name, add
from dagsched.schedule.model import AnyStep, EventStep, Indexed, LoopStep, OpStep, Schedule
from tests.cost.test_bounds import marked_graphs, slowest_cycle


def as_schedule(edges: list[Edge], count: int, stream_of: list[int] | None = None) -> Schedule:
    """Each op on a stream of its own (or as given), each edge a wait for the record that many iterations before."""
    steps: list[AnyStep] = []
    for number in range(count):
        stream = Indexed(f"s{stream_of[number] if stream_of else number}")
        for before, after, distance in edges:
            if after == number:
                steps.append(EventStep("wait", Indexed(f"done{before}", add(Name("i"), -distance)), stream))
        steps.append(OpStep(stream, f"op{number}"))
        steps.append(EventStep("record", Indexed(f"done{number}", Name("i")), stream))
    return Schedule("x", (LoopStep("i", Int(0), Name("n"), tuple(steps)),), params={"n": None})


def steady_state(schedule: Schedule, ticks: list[int], engines: list[Engine], calls: CallCosts) -> SteadyState:
    costs = {f"op{n}": OpCost(engines[n], t / TICKS) for n, t in enumerate(ticks)}
    (loop,) = schedule.steps
    assert isinstance(loop, LoopStep)
    return find_steady_state(schedule, loop, costs, Device("d", {}, calls))


@given(marked_graphs())
def test_the_interval_of_a_marked_graph_is_its_maximum_cycle_ratio(case: tuple[list[int], list[Edge]]) -> None:
    ticks, edges = case
    count = len(ticks)
    engines = [Engine(f"e{n}", "compute") for n in range(count)]
    state = steady_state(as_schedule(edges, count), ticks, engines, CallCosts())
    graph = nx.DiGraph([(a, b) for a, b, _ in edges])
    graph.add_nodes_from(range(count))
    assert state.ticks == slowest_cycle(ticks, [*edges, *((n, n, 1) for n in range(count))])
    assert state.exact or not nx.is_strongly_connected(graph)


@given(
    marked_graphs(),
    st.lists(st.integers(0, 1), min_size=6, max_size=6),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.tuples(*[st.integers(0, 3).map(lambda n: n / TICKS)] * 3),
)
def test_the_interval_is_the_slope_of_a_long_run(
    case: tuple[list[int], list[Edge]], engine_of: list[int], stream_of: list[int], calls: tuple[float, float, float]
) -> None:
    ticks, edges = case
    ticks = [n + 1 for n in ticks]
    shared = [Engine("a", "compute"), Engine("b", "compute", lanes=2)]
    engines = [shared[n] for n in engine_of]
    schedule = as_schedule(edges, len(ticks), stream_of)
    state = steady_state(schedule, ticks, engines, CallCosts(*calls))
    for unit in shared:
        assert state.ticks >= Fraction(sum(n for n, e in zip(ticks, engines, strict=False) if e is unit), unit.lanes)
    if not state.exact:
        return
    costs = {f"op{n}": OpCost(engines[n], t / TICKS) for n, t in enumerate(ticks)}
    device = Device("d", {}, CallCosts(*calls))
    spans = simulate_costs(schedule, costs, device, {"n": 300 + 60 * state.period}).spans
    last = [span.end_ticks for span in spans if span.op == "op0"]
    assert last[200 + 50 * state.period] - last[200] == state.ticks * 50 * state.period


def test_the_host_may_be_what_binds() -> None:
    """Op 0 takes 5, and issue, record and wait cost 4 + 2 + 1: an iteration takes the host 7."""
    calls = CallCosts(4 / TICKS, 2 / TICKS, 1 / TICKS)
    schedule = as_schedule([(0, 0, 2)], 1)
    state = steady_state(schedule, [5], [Engine("e", "compute")], calls)
    assert state.exact and state.ticks == 7


def test_a_period_of_several_iterations() -> None:
    """A cycle over two iterations that takes 3: 1.5 an iteration, though every op takes whole ticks."""
    state = steady_state(
        as_schedule([(0, 1, 0), (1, 0, 2)], 2), [1, 2], [Engine("a", "compute", lanes=2)] * 2, CallCosts()
    )
    assert state.ticks == 2  # an op's own stream is slower still
    ring = as_schedule([(0, 1, 0), (1, 2, 0), (2, 0, 2)], 3)
    state = steady_state(ring, [1, 1, 1], [Engine("a", "compute", lanes=9)] * 3, CallCosts())
    assert (state.ticks, state.period, state.exact) == (Fraction(3, 2), 2, True)


def test_a_loop_without_ops_takes_nothing() -> None:
    state = steady_state(
        Schedule("x", (LoopStep("i", Int(0), Name("n"), ()),), params={"n": None}), [], [], CallCosts()
    )
    assert state.exact and state.ticks == 0
