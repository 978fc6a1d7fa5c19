"""Slow cycles of a graph whose edges change: the same answers as from looking at the whole graph anew."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dagsched.cost.bounds import Edge, find_slow_cycle
from dagsched.cost.slow_cycles import SlowCycles

OPS = 5
edges = st.lists(
    st.tuples(st.integers(0, OPS - 1), st.integers(0, OPS - 1), st.integers(0, 3)).filter(
        lambda e: e[0] < e[1] or e[2]
    ),
    max_size=6,
)


@given(
    st.lists(st.integers(0, 9), min_size=OPS, max_size=OPS),
    edges,
    st.lists(st.tuples(st.integers(0, 2), edges), max_size=8),
    st.fractions(0, 12, max_denominator=4),
)
def test_changes_give_what_a_new_look_gives(
    ticks: list[int], fixed: list[Edge], changes: list[tuple[int, list[Edge]]], ratio: Fraction
) -> None:
    cycles = SlowCycles(ticks, fixed, ratio)
    owned: dict[int, list[Edge]] = {}
    for owner, new in [(0, []), *changes]:
        old, owned[owner] = owned.get(owner, []), new
        before = cycles.save()
        cycles.change(owner, new)
        found = cycles.find()
        everything = [*fixed, *(edge for row in owned.values() for edge in row)]
        assert (found is None) == (find_slow_cycle(ticks, everything, ratio) is None)
        if found is not None:  # those owners' edges and the fixed ones make a slow cycle by themselves
            some = [*fixed, *(edge for whose in found for edge in owned[whose])]
            assert find_slow_cycle(ticks, some, ratio) is not None
            cycles.change(owner, old)
            owned[owner] = old
            cycles.restore(before)
            rest = [*fixed, *(edge for row in owned.values() for edge in row)]
            assert (cycles.find() is None) == (find_slow_cycle(ticks, rest, ratio) is None)
