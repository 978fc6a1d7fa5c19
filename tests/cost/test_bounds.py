"""Maximum cycle ratios against an enumeration of all cycles."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dagsched.cost.bounds import Edge, bound_interval, find_cycle_ratio
from dagsched.cost.durations import OpCost
from dagsched.cost.model import Engine


@st.composite
def marked_graphs(draw: st.DrawFn) -> tuple[list[int], list[Edge]]:
    """Durations, and edges of which those of distance 0 lead forward only."""
    count = draw(st.integers(1, 6))
    ticks = draw(st.lists(st.integers(0, 20), min_size=count, max_size=count))
    number = st.integers(0, count - 1)
    edges = draw(st.lists(st.tuples(number, number, st.integers(0, 3)), max_size=10, unique=True))
    return ticks, [(a, b, d if a < b else max(d, 1)) for a, b, d in edges]


def slowest_cycle(ticks: list[int], edges: list[Edge]) -> Fraction:
    """The maximum cycle ratio, cycle by cycle."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for before, after, distance in edges:
        graph.add_edge(before, after, distance=distance)
    simple: nx.DiGraph[int] = nx.DiGraph()
    for before, after, data in graph.edges(data=True):
        least = min(data["distance"], simple.edges[before, after]["d"]) if simple.has_edge(before, after) else None
        simple.add_edge(before, after, d=data["distance"] if least is None else least)
    ratios = [Fraction(0)]
    for cycle in nx.simple_cycles(simple):
        steps = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        ratios.append(Fraction(sum(ticks[n] for n in cycle), sum(simple.edges[step]["d"] for step in steps)))
    return max(ratios)


@given(marked_graphs())
def test_the_ratio_is_that_of_the_slowest_cycle(case: tuple[list[int], list[Edge]]) -> None:
    ticks, edges = case
    ratio, cycle = find_cycle_ratio(ticks, edges)
    assert ratio == slowest_cycle(ticks, edges)
    assume(ratio > 0)
    steps = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    least = [min(d for a, b, d in edges if (a, b) == step) for step in steps]
    assert Fraction(sum(ticks[n] for n in cycle), sum(least)) == ratio


def test_a_cycle_within_an_iteration_is_refused() -> None:
    with pytest.raises(ValueError, match="within one iteration"):
        find_cycle_ratio([1, 1], [(0, 1, 0), (1, 0, 0)])


def test_the_interval_is_bound_by_an_engine_or_a_cycle() -> None:
    core, dma = Engine("core", "compute", cores=4), Engine("dma", "h2d")
    costs = {
        "upload": OpCost(dma, 2.0),
        "resize": OpCost(core, 3.0, share=4),
        "infer": OpCost(core, 4.0, share=4),
    }
    ops = list(costs)
    free = [(0, 1, 0), (1, 2, 0)]
    busy = bound_interval(ops, costs, free)
    assert (busy.seconds, busy.engine) == (7.0, "core")
    tied = bound_interval(ops, costs, [*free, (2, 0, 1)])  # one slot: an upload waits for the iteration before
    assert (tied.seconds, set(tied.ops)) == (9.0, {"upload", "resize", "infer"})
    two = bound_interval(ops, costs, [*free, (2, 0, 2)])
    assert two.seconds == 7.0


def test_halves_of_an_engine_run_side_by_side() -> None:
    core = Engine("core", "compute", cores=4)
    costs = {"a": OpCost(core, 3.0, share=2), "b": OpCost(core, 3.0, share=2)}
    assert bound_interval(["a", "b"], costs, []).seconds == 3.0
