"""The estimate of a stream assignment, and the limits that no assignment beats."""

from __future__ import annotations

import time

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.cost.estimate import Instance, estimate_makespan, find_waits
from dagsched.cost.model import CallCosts
from dagsched.cost.queues import TICKS, to_ticks
from dagsched.cost.run_bounds import Run, bound_run, make_run

FREE = CallCosts()
MILLIS = st.integers(0, 9).map(lambda n: n * 1e-3)


@st.composite
def instance_lists(draw: st.DrawFn) -> tuple[list[Instance], list[int]]:
    lanes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    instances = []
    for position in range(draw(st.integers(1, 14))):
        engine = draw(st.integers(0, len(lanes) - 1))
        earlier = st.lists(st.integers(0, position - 1), max_size=3, unique=True) if position else st.just([])
        instances.append(
            Instance(
                f"op{position}",
                draw(st.integers(0, 3)),
                engine,
                draw(MILLIS),
                tuple(draw(earlier)),
                draw(st.integers(1, lanes[engine])),
                draw(st.integers(0, 9)) == 0,
            )
        )
    return instances, lanes


def run_of(instances: list[Instance], calls: tuple[float, float, float] = (0, 0, 0)) -> Run:
    return make_run(
        [i.op for i in instances],
        [to_ticks(i.seconds) for i in instances],
        [i.engine for i in instances],
        [i.share for i in instances],
        [i.predecessors for i in instances],
        (to_ticks(calls[0]), to_ticks(calls[1]), to_ticks(calls[2])),
    )


def longest_chain(instances: list[Instance]) -> int:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(-1, len(instances)))
    for position, instance in enumerate(instances):
        graph.add_edge(-1, position, weight=0)
        for predecessor in instance.predecessors:
            graph.add_edge(predecessor, position, weight=to_ticks(instances[predecessor].seconds))
    ends = [nx.dag_longest_path_length(graph.subgraph([*nx.ancestors(graph, n), n])) for n in range(len(instances))]
    return max((end + to_ticks(i.seconds) for end, i in zip(ends, instances, strict=True)), default=0)


@given(instance_lists())
def test_waits_are_the_cross_stream_edges_of_the_transitive_reduction(case: tuple[list[Instance], list[int]]) -> None:
    instances, _ = case
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(instances)))
    for position, instance in enumerate(instances):
        graph.add_edges_from((predecessor, position) for predecessor in instance.predecessors)
        same = [p for p in range(position) if instances[p].stream == instance.stream]
        if same:
            graph.add_edge(same[-1], position)
    reduced = nx.transitive_reduction(graph)
    expected = {(a, b) for a, b in reduced.edges if instances[a].stream != instances[b].stream}
    assert {(a, b) for b, kept in enumerate(find_waits(instances)) for a in kept} == expected


@given(instance_lists(), st.tuples(MILLIS, MILLIS, MILLIS))
def test_no_estimate_beats_a_limit(case: tuple[list[Instance], list[int]], calls: tuple[float, float, float]) -> None:
    instances, lanes = case
    names = [f"engine {n}" for n in range(len(lanes))]
    estimate = estimate_makespan(instances, CallCosts(*calls), lanes)
    run = run_of(instances, calls)
    limit = bound_run(run, lanes, names)
    assert limit.ticks <= to_ticks(estimate)
    searched = bound_run(run, lanes, names, to_ticks(estimate))
    assert limit.ticks <= searched.ticks <= to_ticks(estimate)
    assert limit.ticks >= longest_chain(instances)
    for engine, capacity in enumerate(lanes):
        work = sum(to_ticks(i.seconds) * i.share for i in instances if i.engine == engine)
        assert limit.ticks * capacity >= work
    assert limit.binds
    issue = calls[0] * len(instances)
    assert issue <= estimate + 1e-12
    assert estimate == estimate_makespan(instances, CallCosts(*calls), lanes)


@given(instance_lists())
def test_with_a_stream_each_and_room_for_all_the_critical_path_is_met(case: tuple[list[Instance], list[int]]) -> None:
    instances, lanes = case
    apart = [Instance(i.op, position, i.engine, i.seconds, i.predecessors) for position, i in enumerate(instances)]
    roomy = [len(instances)] * len(lanes)
    assert estimate_makespan(apart, FREE, roomy) == longest_chain(instances) / TICKS


@given(instance_lists())
def test_on_one_stream_without_call_costs_it_is_the_sum(case: tuple[list[Instance], list[int]]) -> None:
    instances, lanes = case
    together = [Instance(i.op, 0, i.engine, i.seconds, i.predecessors, i.share) for i in instances]
    assert estimate_makespan(together, FREE, lanes) == pytest.approx(sum(i.seconds for i in instances), abs=1e-12)


def test_calls_cost_the_host_time() -> None:
    """Op `upload` (0) -> `add` (1) on another stream: issue 3 + record 5, then wait 7 + issue 3, then the op itself."""
    instances = [Instance("upload", 0, 0, 1.0), Instance("add", 1, 0, 1.0, (0,))]
    assert estimate_makespan(instances, CallCosts(3, 5, 7), [1]) == 19
    assert estimate_makespan([*instances[:1], Instance("add", 0, 0, 1.0, (0,))], CallCosts(3, 5, 7), [1]) == 7


def test_one_record_serves_all_its_waiters() -> None:
    instances = [Instance("a", 0, 0, 0.0), Instance("b", 1, 0, 0.0, (0,)), Instance("c", 2, 0, 0.0, (0,))]
    assert estimate_makespan(instances, CallCosts(0, 5, 0), [1]) == 5


def test_a_blocking_copy_holds_the_host() -> None:
    pageable = [Instance("upload", 0, 0, 4.0, blocks=True), Instance("add", 1, 1, 1.0)]
    assert estimate_makespan(pageable, CallCosts(issue=1), [1, 1]) == 7


def test_faulty_lists_are_refused() -> None:
    with pytest.raises(ValueError, match="does not stand before"):
        estimate_makespan([Instance("a", 0, 0, 1.0, (0,))], FREE, [1])
    with pytest.raises(ValueError, match="more than engine 0 has"):
        estimate_makespan([Instance("a", 0, 0, 1.0, share=2)], FREE, [1])


def test_nothing_takes_no_time() -> None:
    assert estimate_makespan([], FREE, []) == 0
    assert bound_run(run_of([]), [], []).seconds == 0


def test_ten_thousand_instances_are_quick() -> None:
    instances = [
        Instance(f"o{n}", n * 7 % 8, n * 5 % 3, 1e-5, tuple({p for p in (n - 1, n - 3, n - 11) if p >= 0}))
        for n in range(10_000)
    ]
    best = min(_timed(instances) for _ in range(3))
    assert best < 0.5, "0.07 s on an idle machine"


def _timed(instances: list[Instance]) -> float:
    started = time.process_time()
    estimate_makespan(instances, CallCosts(5e-6, 2e-6, 2e-6), [1, 1, 2])
    return time.process_time() - started
