"""Sources that feed loops whose ops are issued late: the plan's meaning for every length, and nothing held back.

The source is the adversary: it sleeps at random, or yields nothing before everything of the items so far has been done.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice, product
from random import Random
from typing import Any

import pytest

import dagsched
from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.loop_graph import is_late
from dagsched.diagnostics import PlanError, ProofError
from dagsched.hazards.find import find_hazards
from dagsched.library import Schedule
from dagsched.plan.expressions import Name
from dagsched.plan.model import Loop, Op, OpKind, Plan, Ring
from dagsched.proof.verify import verify_schedule
from tests.emit.random_plans import random_plan
from tests.passes.build import build_schedule
from tests.run.bindings import check_bindings
from tests.run.meaning import Functions, inputs_of, require_meaning
from tests.run.plans import schedule_of
from dagsched.run.program import split_streams

FEW = """
dagsched: 1
name: few
device: host
params: {n: null}
streams: {max: 2}
buffers:
  a: {place: host, shape: [4], dtype: int64, ring: 3}
  x: {place: device, shape: [4], dtype: int64, ring: 3}
  y: {place: device, shape: [4], dtype: int64, ring: 3}
  b: {place: host, shape: [4], dtype: int64, ring: 3}
ops:
  - loop: i
    count: n
    ops:
      - {name: read, host: read, writes: [a], time: 1 ms}
      - {name: up, copy: {from: a, to: x}}
      - {name: work, compute: work, reads: [x], writes: [y], time: 2 ms}
      - {name: down, copy: {from: y, to: b}}
      - {name: show, host: show, reads: [b], time: 1 ms}
"""


def read(item: int, a: Any) -> None:
    a[:] = item


def work(x: Any, y: Any) -> None:
    y[:] = x * 10


def show(b: Any, i: int) -> tuple[int, int]:
    return i, int(b[0])


FUNCTIONS: dict[str, Callable[..., Any]] = {"read": read, "work": work, "show": show}


def test_the_plan_shares_a_stream_between_early_and_late_ops() -> None:
    """What the other tests are about, and no schedule without shifts."""
    compiled = schedule_of(FEW).compiled
    assert compiled.shifts == {"show": 1} and compiled.streams["show"] == compiled.streams["read"]


@pytest.mark.parametrize("count", range(6))
def test_every_length(count: int) -> None:
    with schedule_of(FEW).executor(FUNCTIONS) as executor:
        for _ in range(3):
            assert list(executor.stream(iter(range(count)))) == [(i, 10 * i) for i in range(count)]
            assert executor.run(n=iter(range(count)), timeout=20).counts == {"n": count}


def test_a_source_may_wait_for_the_result_of_the_item_before() -> None:
    answers: queue.Queue[int] = queue.Queue()

    def source() -> Iterator[int]:
        yield 0
        for number in range(1, 100):
            assert answers.get(timeout=10) == 10 * (number - 1)
            yield number

    with schedule_of(FEW).executor(FUNCTIONS) as executor:
        for _, answer in executor.stream(source(), timeout=60):
            answers.put(answer)


def test_a_slow_source_is_not_waited_for() -> None:
    """A result comes once its item has been worked on, not when the next item comes."""
    asked = threading.Event()

    def source() -> Iterator[int]:
        yield from range(3)
        asked.wait(20)

    with schedule_of(FEW).executor(FUNCTIONS) as executor:
        stream = executor.stream(source(), timeout=20)
        assert list(islice(stream, 3)) == [(0, 0), (1, 10), (2, 20)]
        asked.set()
        assert list(stream) == []


def test_the_source_is_asked_for_no_more_than_the_rings_hold() -> None:
    asked = 0

    def source() -> Iterator[int]:
        nonlocal asked
        while True:
            asked += 1
            yield asked

    with schedule_of(FEW).executor(FUNCTIONS) as executor:
        for fetched, _ in enumerate(executor.stream(source()), 1):
            time.sleep(0.002)
            assert asked <= fetched + 3 + 12 + 4  # results that wait, slots of four buffers, and what is under way
            if fetched == 40:
                break


def test_stopping_ends_it_with_what_has_come() -> None:
    requests: queue.Queue[int] = queue.Queue()
    with schedule_of(FEW).executor(FUNCTIONS) as executor:
        stream = executor.stream(iter(requests.get, None), timeout=20)
        for number in range(5):
            requests.put(number)
        assert list(islice(stream, 5)) == [(i, 10 * i) for i in range(5)]
        executor.stop()  # type: ignore[attr-defined]
        assert list(stream) == []
    requests.put(-1)


@pytest.mark.parametrize("name", ["read", "work", "show"])
@pytest.mark.parametrize("iteration", [0, 1, 4])
def test_what_raises_ahead_ends_the_run(name: str, iteration: int) -> None:
    broken = True

    def function(*views: Any, i: int, **others: Any) -> None:
        if broken and i == iteration:
            raise ValueError(i)

    gate = threading.Event()

    def source() -> Iterator[int]:
        yield from range(iteration + 1)
        gate.wait(20)

    with schedule_of(FEW).executor({**FUNCTIONS, name: function}) as executor:
        with pytest.raises(dagsched.ExecutionError) as caught:
            executor.run(n=source(), timeout=20)
        gate.set()
        assert (caught.value.op, caught.value.iteration) == (name, iteration)
        broken = False
        assert executor.run(n=[1, 2, 3]).iterations == 3


# Random plans


def _stages(plan: Plan, random: Random) -> dict[str, int] | None:
    """Stages that turn no hazard round, drawn at random; None where there are none."""
    names = [op.name for op in plan.ops()]
    loops = [item for item in plan.items if isinstance(item, Loop)]
    hazards = [h for h in find_hazards(plan).entries if h.distance is not None]
    for _ in range(60):
        shifts: dict[str, int] = {}
        for loop in loops:
            stage = 0
            for op in (op for op in loop.body if isinstance(op, Op)):
                shifts[op.name] = stage = stage + random.choice([0, 0, 1, 1, 2])
        late = [shifts.get(name, 0) for name in names]
        edges = [(names.index(h.before), names.index(h.after), h.distance or 0) for h in hazards]
        if any(late) and not any(is_late(edge, late) for edge in edges):
            return shifts
    return None


def _random_late(seed: int) -> Compiled | None:
    """A random plan on few streams with ops issued late, as far as the verifier agrees."""
    random = Random(seed)
    plan = random_plan(seed)
    rings = {name: replace(b, ring=Ring(None, 3, 4)) if random.random() < 0.7 else b for name, b in plan.buffers.items()}
    try:
        compiled = compile_plan(replace(plan, buffers=rings))
    except (PlanError, ProofError):  # not every buffer can be a ring
        return None
    resolved = compiled.resolved
    shifts = _stages(resolved, random)
    if shifts is None:
        return None
    streams = {op.name: f"s{random.randrange(random.randint(1, 4))}" for op in resolved.ops()}
    schedule = build_schedule(resolved, streams, shifts)
    if not verify_schedule(resolved, schedule).holds:
        return None
    return replace(compiled, schedule=schedule, streams=streams, shifts=shifts)


@cache
def _samples(count: int) -> tuple[tuple[int, Compiled], ...]:
    found: list[tuple[int, Compiled]] = []
    seed = 0
    while len(found) < count:
        compiled = _random_late(seed)
        fed = compiled and any(section.late and section.counted for section in split_streams(compiled).sections)
        if compiled is not None and fed:
            found.append((seed, compiled))
        seed += 1
    return tuple(found)


class _Feeder:
    """Items of a random source; ``strict``: none before all functions have run for every item so far."""

    def __init__(self, compiled: Compiled, count: int, seed: int, strict: bool) -> None:
        self.count, self.random, self.strict = count, Random(seed), strict
        self.calls = 0
        self.lock = threading.Condition()
        loop = next(i for i in compiled.resolved.items if isinstance(i, Loop) and i.count == Name("n"))
        self.fed = {op.function or op.name for op in loop.body if isinstance(op, Op) and op.kind in (OpKind.COMPUTE, OpKind.HOST)}

    def counting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        if name not in self.fed:
            return function

        def call(*views: Any, **indices: Any) -> None:
            function(*views, **indices)
            with self.lock:
                self.calls += 1
                self.lock.notify_all()

        call.__signature__ = __import__("inspect").signature(function)  # type: ignore[attr-defined]
        return call

    def __iter__(self) -> Iterator[int]:
        for number in range(self.count):
            if self.strict:
                with self.lock:
                    assert self.lock.wait_for(lambda: self.calls >= number * len(self.fed), 20)
            elif self.random.random() < 0.5:
                time.sleep(self.random.choice([0.0, 0.0005, 0.002]))
            yield number


@pytest.mark.parametrize("strict", [False, True], ids=["slow", "strict"])
def test_random_plans(strict: bool) -> None:
    for seed, compiled in _samples(15):
        functions = Functions(compiled.resolved, seed)
        for count in (0, 1, 2, 5):
            check_bindings(split_streams(compiled), compiled.schedule, {"n": count})
        feeder = _Feeder(compiled, 0, seed, strict)
        wrapped = {name: feeder.counting(name, f) for name, f in functions.functions.items()}
        with Schedule(compiled).executor(wrapped) as executor:
            for count in (0, 1, 2, 3, 6):
                functions.log.clear()
                feeder.count, feeder.calls = count, 0
                result = executor.run(inputs=inputs_of(compiled.plan), timeout=30, trace=0, n=iter(feeder))
                assert result.counts == {"n": count}, seed
                require_meaning(compiled, {"n": count}, functions.log, result.outputs)
