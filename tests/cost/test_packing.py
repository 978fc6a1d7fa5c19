"""Weightings of cores, against all sets of ops that fit side by side."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.cost.bounds import Bound, bound_interval
from dagsched.cost.clique_bounds import bound_cliques, find_exclusions
from dagsched.cost.durations import OpCost
from dagsched.cost.model import Engine
from dagsched.cost.packing import find_weightings
from dagsched.cost.run_bounds import bound_run, make_run


def side_by_side(sizes: list[int], room: int) -> Iterator[tuple[int, ...]]:
    """Every multiset of the sizes that fits."""
    yield ()
    for number, size in enumerate(sizes):
        if size <= room:
            yield from ((size, *rest) for rest in side_by_side(sizes[number:], room - size))


@given(st.integers(1, 24).flatmap(lambda c: st.tuples(st.just(c), st.sets(st.integers(1, c), min_size=1, max_size=4))))
def test_what_fits_fits_by_its_weights(case: tuple[int, set[int]]) -> None:
    capacity, sizes = case
    packed = list(side_by_side(sorted(sizes, reverse=True), capacity))
    for weighting in find_weightings(sizes, capacity):
        assert max(sum(weighting.weights[size] for size in each) for each in packed) <= weighting.room


@pytest.mark.parametrize(
    ("shares", "seconds"),
    [
        ((3, 3, 3), 3),  # of 4 cores: never two at once, where the cores alone say 2.25
        ((3, 3, 1, 1), 2),
        ((2, 2, 2, 2), 2),
        ((4, 3, 1), 2),
        ((3, 2, 2), 2),
    ],
)
def test_ops_that_do_not_fit_side_by_side(shares: tuple[int, ...], seconds: int) -> None:
    core = Engine("core", "compute", cores=4)
    costs = {f"o{n}": OpCost(core, 1.0, share=share) for n, share in enumerate(shares)}
    assert bound_interval(list(costs), costs, []).seconds == seconds
    count = len(shares)
    run = make_run(list(costs), [1] * count, [0] * count, shares, [[]] * count)
    assert bound_run(run, [4], ["core"], most=count).ticks == seconds


def test_why_an_engine_with_free_cores_can_do_no_more() -> None:
    core = Engine("core", "compute", cores=4)
    costs = {f"o{n}": OpCost(core, 1.0, share=3) for n in range(3)}
    found = bound_interval(list(costs), costs, [])
    assert found.binds == "core is full all the time: no more of its ops fit side by side"


def test_a_third_of_the_cores_each() -> None:
    """7 of 20 cores: two fit, and not three; seven such ops of 1 take 3.5 on average."""
    core = Engine("core", "compute", cores=20)
    costs = {f"o{n}": OpCost(core, 1.0, share=7) for n in range(7)}
    assert bound_interval(list(costs), costs, []).seconds == 3.5


def test_ops_that_exclude_each_other_across_engines() -> None:
    """``a`` comes before ``b``, ``c`` before ``d``; ``a`` and ``c`` do not fit side by side, and the dma has one lane.

    a (3 of 4 cores, 2) -> b (dma, 3); c (2 of 4 cores, 4) -> d (dma, 3)
    """
    ticks, shares, engines = [2, 3, 4, 3], [3, 1, 2, 1], [0, 1, 0, 1]
    run = make_run(["a", "b", "c", "d"], ticks, engines, shares, [[], [0], [], [2]])
    assert find_exclusions(run, [4, 1]) == [0b0110, 0b1001, 0b1001, 0b0110]
    three = make_run(["a", "b", "c"], [3, 3, 3], [0, 1, 0], [3, 1, 2], [[], [0], [1]])
    assert bound_cliques(three, [4, 1], Bound(Fraction(0))).ticks == 9


def test_heavy_sets_are_told() -> None:
    """Three ops of 3 of 4 cores, and one of 2: the last fits beside none of them; a small one beside all."""
    run = make_run(["a", "b", "c", "d", "e"], [5, 5, 5, 4, 1], [0] * 5, [3, 3, 3, 2, 1], [[]] * 5)
    found = bound_cliques(run, [4], Bound(Fraction(0)))
    assert (found.ticks, found.binds) == (Fraction(19), "4 ops of which no two run side by side: a, b, c, d")
