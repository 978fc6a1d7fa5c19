"""The machine under every prediction, against a plain one and against what must hold for any tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dagsched.cost.queues import HOST_QUEUE, NO_ENGINE, StuckError, Tasks, run_queues
from tests.cost.reference import Reference


@dataclass(frozen=True)
class Case:
    """What ``Tasks.add`` takes, task by task."""

    rows: tuple[dict[str, Any], ...]
    capacities: tuple[int, ...]
    depth: int | None

    def tasks(self) -> Tasks:
        tasks = Tasks()
        for row in self.rows:
            tasks.add(**row)
        return tasks


@st.composite
def cases(draw: st.DrawFn, *, forward: bool = False) -> Case:
    capacities = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    rows = []
    count = draw(st.integers(1, 12))
    for task in range(count):
        engine = draw(st.integers(NO_ENGINE, len(capacities) - 1))
        queue = draw(st.sampled_from([0, 0, 1, 1, 2, HOST_QUEUE]))
        others = [t for t in range(count if forward else task) if t != task]
        some = st.lists(st.sampled_from(others), max_size=2) if others else st.just([])
        earlier = st.lists(st.integers(0, task - 1), max_size=1) if task else st.just([])
        idle = engine == NO_ENGINE and queue != HOST_QUEUE
        rows.append(
            {
                "queue": queue,
                "engine": NO_ENGINE if queue == HOST_QUEUE else engine,
                "ticks": 0 if idle else draw(st.integers(0, 4)),
                "share": draw(st.integers(1, capacities[engine])) if engine >= 0 else 1,
                "call": draw(st.integers(0, 2)),
                "priority": draw(st.integers(0, 1)),
                "predecessors": tuple(draw(some)),
                "holds": tuple(draw(earlier)) if draw(st.integers(0, 4)) == 0 else (),
            }
        )
    return Case(tuple(rows), capacities, draw(st.sampled_from([None, None, 1, 2])))


def test_the_plain_machine_agrees() -> None:
    stuck = 0

    @given(cases(forward=False))
    def backward(case: Case) -> None:
        times = run_queues(case.tasks(), case.capacities, case.depth)
        assert (
            dict(enumerate(zip(times.start, times.end, strict=True)))
            == Reference(case.tasks(), case.capacities, case.depth).run()
        )

    @given(cases(forward=True))
    def anyway(case: Case) -> None:
        nonlocal stuck
        expected = Reference(case.tasks(), case.capacities, case.depth).run()
        if expected is None:
            stuck += 1
            with pytest.raises(StuckError) as raised:
                run_queues(case.tasks(), case.capacities, case.depth)
            assert raised.value.tasks
            return
        times = run_queues(case.tasks(), case.capacities, case.depth)
        assert dict(enumerate(zip(times.start, times.end, strict=True))) == expected

    backward()
    anyway()
    assert stuck > 0, "no stuck case was tried"


@given(cases())
def test_the_same_tasks_give_the_same_times(case: Case) -> None:
    assert run_queues(case.tasks(), case.capacities, case.depth) == run_queues(
        case.tasks(), case.capacities, case.depth
    )


@given(st.lists(st.integers(0, 10**15), max_size=30), st.integers(1, 4))
def test_one_queue_without_call_costs_takes_the_sum(ticks: list[int], capacity: int) -> None:
    tasks = Tasks()
    for each in ticks:
        tasks.add(0, 0, each)
    assert run_queues(tasks, [capacity]).makespan == sum(ticks)


@given(cases(), st.data())
def test_a_further_wait_never_helps_where_no_engine_is_short(case: Case, data: st.DataObject) -> None:
    """Only there: with a contended engine, Graham's anomalies make a delay help (see the next test)."""
    assume(len(case.rows) > 1)
    rows = tuple(row | {"share": 1} for row in case.rows)
    roomy = tuple(len(rows) for _ in case.capacities)
    later = data.draw(st.integers(1, len(rows) - 1))
    earlier = data.draw(st.integers(0, later - 1))
    more = dict(rows[later], predecessors=(*rows[later]["predecessors"], earlier))
    plain = replace(case, rows=rows)
    longer = replace(case, rows=(*rows[:later], more, *rows[later + 1 :]))
    before = run_queues(plain.tasks(), roomy, case.depth)
    after = run_queues(longer.tasks(), roomy, case.depth)
    assert all(a >= b for a, b in zip(after.end, before.end, strict=True))


def test_a_delay_may_help_where_an_engine_is_short() -> None:
    """Two queues share a lane: the long chain's first op comes second, unless a wait holds the other one back.

    queue 0: a (10, engine 0)            queue 1: b (1, engine 0) -> c (10, engine 1)
    """
    tasks = Tasks()
    tasks.add(0, 0, 10)
    b = tasks.add(1, 0, 1)
    tasks.add(1, 1, 10)
    assert run_queues(tasks, [1, 1]).makespan == 21
    tasks.predecessors[0] = (b,)
    assert run_queues(tasks, [1, 1]).makespan == 11


def test_queue_depth_holds_the_host_back() -> None:
    tasks = Tasks()
    for _ in range(3):
        tasks.add(0, 0, 10, call=1)
    tasks.add(1, 1, 5, call=1)
    assert run_queues(tasks, [1, 1]).start[3] == 4
    assert run_queues(tasks, [1, 1], depth=2).start[3] == 13  # the third is issued at 12, when the first is done
    assert run_queues(tasks, [1, 1], depth=1).start[3] == 24  # at 12, 23 and 24


def test_priority_goes_before_age() -> None:
    tasks = Tasks()
    tasks.add(0, 0, 10)
    tasks.add(1, 0, 1, priority=5, call=1)
    tasks.add(2, 0, 1, priority=0, call=1)
    assert run_queues(tasks, [1]).start == [0, 11, 10]
