"""Limits of one run, on cases small enough to see."""

from __future__ import annotations

from dagsched.cost.bounds import Bound
from dagsched.cost.run_bounds import bound_run, make_run


def bound(ticks: list[int], before: list[list[int]], lanes: int, issue: int = 0) -> Bound:
    count = len(ticks)
    run = make_run([f"o{n}" for n in range(count)], ticks, [0] * count, [1] * count, before, (issue, 0, 0))
    return bound_run(run, [lanes], ["core"])


def test_an_engine_that_is_busy_all_the_time() -> None:
    found = bound([2, 2, 2, 2], [[], [], [], []], 2)
    assert (int(found.ticks), found.binds) == (4, "core is busy all the time")


def test_work_between_what_comes_before_and_what_comes_after() -> None:
    """o0 (3) -> o1 o2 o3 (2 each) -> o4 (5) on two lanes: 3 + 6 / 2 + 5, where the path says 10 and the work 7."""
    found = bound([3, 2, 2, 2, 5], [[], [0], [0], [0], [1, 2, 3]], 2)
    assert found.ticks == 11
    assert found.binds == "core is busy with 3 ops, not before o0 has ended, with o4 still to come"


def test_times_are_sums_of_durations() -> None:
    """Three ops of 2 on two lanes are done at 4 and not at 3: nothing ends at an odd time."""
    assert bound([2, 2, 2], [[], [], []], 2).ticks == 4


def test_an_interval_that_is_too_crowded() -> None:
    """``long`` takes 10. On another engine ``x`` (2) comes before three ops of 6 each, and ``y`` (2) behind them.

    On three lanes each limit by itself is 10, and then all four ops would run from 2 to 8. In 14 they
    would still all run from 6 to 8; 16 can be had.
    """
    run = make_run(
        ["long", "x", "b", "c", "d", "y"],
        [10, 2, 6, 6, 6, 2],
        [0, 1, 0, 0, 0, 1],
        [1] * 6,
        [[], [], [1], [1], [1], [2, 3, 4]],
    )
    assert bound_run(run, [3, 1], ["core", "dma"]).ticks == 10
    found = bound_run(run, [3, 1], ["core", "dma"], most=18)
    assert found.ticks == 16
    assert found.binds == "core has too much to do in some part of any shorter run"
    assert bound_run(run, [3, 1], ["core", "dma"], most=10).ticks == 10


def test_calls_bind_where_ops_are_tiny() -> None:
    found = bound([1, 1, 1, 1], [[], [], [], []], 4, issue=5)
    assert (int(found.ticks), found.binds) == (21, "the issuing thread is busy all the time")


def test_a_path_starts_with_its_first_call() -> None:
    found = bound([10, 10], [[], [0]], 1, issue=3)
    assert (int(found.ticks), found.binds) == (23, "o0 -> o1")
