"""A collision that is shown can happen: each run is replayed by code that shares nothing with the finder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dagsched.diagnostics import ScheduleError, Source
from dagsched.proof.check_clock import is_before
from dagsched.proof.check_collide import Collision, Moment, find_collision
from dagsched.proof.check_expand import WORK
from dagsched.proof.check_relate import relate
from dagsched.proof.check_run import run_schedule
from dagsched.schedule.model import Schedule
from dagsched.schedule.reader import read_schedule
from tests.check.oracle import Command, TooBig, judge, unfold
from tests.check.strategies import open_loops, schedules


def replay(schedule: Schedule, params: dict[str, int], run: Sequence[Moment]) -> None:
    """Assert that a device could run these moments at these times, in this order."""
    commands = unfold(schedule, params)
    end: dict[int, int] = {}
    values: dict[Any, int] = {}
    for moment in run:
        command = commands[moment.node]
        needed = set(command.needs)
        for other in commands[: command.number]:
            if other.thread in (command.thread, "<host>"):
                needed.add(other.number)
        assert needed <= end.keys(), f"{moment.text} runs before what it needs"
        assert all(end[number] <= moment.start for number in needed), f"{moment.text} starts before what it needs ends"
        assert may_run(schedule, commands, command, end, values), f"{moment.text} does not block"
        act(command, values)
        assert moment.work == (command.what == "work")
        end[moment.node] = moment.end
        assert moment.end == moment.start + moment.work


def may_run(
    schedule: Schedule, commands: list[Command], command: Command, end: dict[int, int], values: dict[Any, int]
) -> bool:
    if command.what == "wait" and schedule.event_model == "reevaluate":
        issued = max([command.number, *end])
        records = [c.number for c in commands[: issued + 1] if c.what == "record" and c.handle == command.handle]
        return not records or records[-1] in end
    if command.what in ("wait", "take"):
        return values.get(command.handle, 0) > 0
    return command.what != "acquire" or not values.get(command.handle, 0)


def act(command: Command, values: dict[Any, int]) -> None:
    fixed = {"record": 1, "reset": 0, "acquire": 1, "release": 0}
    old = values.get(command.handle, 0)
    values[command.handle] = fixed.get(command.what, old + (command.what == "set") - (command.what == "take"))


def require_legal(schedule: Schedule, params: dict[str, int], collision: Collision) -> None:
    for run in collision.runs:
        replay(schedule, params, run)
    spans = [{m.node: (m.start, m.end) for m in run} for run in collision.runs]
    first, second = collision.first, collision.second
    if collision.overlap:
        (span,) = spans
        assert max(span[first][0], span[second][0]) < min(span[first][1], span[second][1])
    elif spans:
        one, other = spans
        assert first in one and one[first][1] <= one[second][0]
        assert second in other and other[second][1] <= other[first][0]


def pairs_apart(schedule: Schedule, params: dict[str, int]) -> list[Collision]:
    run = run_schedule(schedule, params)
    work = [node for node in run.program.nodes if node.action in WORK and run.order.clocks[node.index] is not None]
    return [
        find_collision(run, a, b)
        for a, b in combinations(work, 2)
        if not is_before(run.program, run.order, a.index, b.index)
        and not is_before(run.program, run.order, b.index, a.index)
    ]


@given(schedules())
def test_collisions_can_happen(schedule: Schedule) -> None:
    try:
        judgement = judge(schedule)
    except TooBig:
        return
    for collision in pairs_apart(schedule, {}):
        require_legal(schedule, {}, collision)
        if not collision.runs:
            # Only where the checker was unsure, or both can run in no run that ends.
            assert judgement.deadlock or schedule.event_model != "latch"
            event("none found")
        event("overlap" if collision.overlap else "either first")


@given(open_loops(), st.integers(1, 4))
def test_collisions_in_loops_can_happen(schedule: Schedule, count: int) -> None:
    for collision in pairs_apart(schedule, {"n": count}):
        assert collision.overlap and collision.runs
        require_legal(schedule, {"n": count}, collision)


LOCKED = """
dagsched-schedule: 1
name: locked
buffers: {x: {place: device}}
steps:
  - {stream: a, acquire: L}
  - {stream: a, op: left, updates: [x]}
  - {stream: a, release: L}
  - {stream: b, acquire: L}
  - {stream: b, op: right, updates: [x]}
  - {stream: b, release: L}
"""


def test_a_lock_keeps_two_apart_and_orders_neither() -> None:
    schedule = read_schedule(Source("locked.yaml", LOCKED))
    relation = relate(schedule, "left", "right")
    assert relation.verdict == "apart" and relation.collision is not None
    assert not relation.collision.overlap and len(relation.collision.runs) == 2
    assert relation.collision.conflicts == ("x: RAW, WAR, WAW",)
    require_legal(schedule, {}, relation.collision)


RING = """
dagsched-schedule: 1
name: ring
params: {n: null}
buffers: {x: {place: device, ring: 2}}
steps:
  - loop: i
    count: n
    steps:
      - {stream: copy, op: upload, writes: [x@i]}
      - {stream: copy, record: ready@i}
      - {stream: compute, wait: ready@i}
      - {stream: compute, op: infer, reads: [x@i]}
"""


def test_relations() -> None:
    schedule = read_schedule(Source("ring.yaml", RING))
    assert relate(schedule, "upload@1", "infer@1").verdict == "before"
    assert relate(schedule, "infer@1", "upload@0").verdict == "after"
    apart = relate(schedule, "infer@0", "upload@2")
    assert apart.verdict == "apart" and apart.collision is not None and apart.collision.conflicts == ("x: WAR",)
    assert (apart.first, apart.second) == ("infer@0", "upload@2")
    with pytest.raises(ScheduleError, match="one and the same"):
        relate(schedule, "infer@1", "infer@1")
    both = RING + "      - {stream: compute, record: done@i}\n      - {stream: copy, wait: done@i}\n"
    mixed = relate(read_schedule(Source("ring.yaml", both)), "upload", "infer")
    assert mixed.verdict == "mixed" and mixed.other == ("upload@1", "infer@0")
