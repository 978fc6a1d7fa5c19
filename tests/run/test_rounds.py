"""Sources that feed loops whose ops are issued late: the plan's meaning for every length, and nothing held back.

The source is the adversary: it sleeps at random, or yields nothing before everything of the items so far has been done.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from itertools import accumulate, islice
from random import Random
from typing import Any

import pytest

import dagsched
from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.loop_graph import is_late
from dagsched.diagnostics import PlanError
from dagsched.hazards.find import find_hazards
from dagsched.library import Schedule
from dagsched.plan.expressions import Name, parse_expression
from dagsched.plan.model import Access, Buffer, Loop, Mode, Op, OpKind, Place, Plan, Ring
from dagsched.proof.verify import verify_schedule
from dagsched.run.program import split_streams
from tests.passes.build import build_schedule
from tests.run.bindings import check_bindings
from tests.run.interleave import find_violation, interleave
from tests.run.meaning import Functions, inputs_of, require_meaning
from tests.run.plans import FEW, FUNCTIONS, schedule_of


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
        executor.stop()
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


THROUGH = """
dagsched: 1
name: through
device: host
params: {n: null}
buffers:
  a: {place: host, shape: [1], dtype: int64, ring: 3}
  b: {place: host, shape: [1], dtype: int64, ring: 3}
  c: {place: host, shape: [1], dtype: int64, ring: 2, input: true, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: make, host: make, writes: [a], time: 1 ms}
      - {name: use, host: use, reads: [a, c@i-1], writes: [b], args: {a: a, old: c, b: b}, time: 1 ms}
      - {name: keep, host: keep, reads: [b], writes: [c], time: 1 ms}
"""


def _through() -> Compiled:
    compiled = schedule_of(THROUGH).compiled
    shifts, streams = {"make": 0, "use": 2, "keep": 2}, {"make": "s1", "use": "s0", "keep": "s1"}
    schedule = build_schedule(compiled.resolved, streams, shifts)
    assert verify_schedule(compiled.resolved, schedule).holds
    return replace(compiled, schedule=schedule, streams=streams, shifts=shifts)


def test_an_order_through_another_stream_is_kept() -> None:
    """`use@i` waits for `keep@i-1` only, which the schedule issues behind `make@i`: where `keep@i-1` has run ahead,
    that says nothing of `make@i`."""
    answered = threading.Semaphore(1)

    def make(item: int, a: Any) -> None:
        time.sleep(0.01)
        a[0] = item

    def use(a: Any, old: Any, b: Any) -> None:
        b[0] = old[0] * 3 + a[0]

    def keep(b: Any, c: Any) -> None:
        c[0] = b[0]
        answered.release()

    def source() -> Iterator[int]:
        for number in range(6):
            assert answered.acquire(timeout=10)
            yield number + 1

    functions: dict[str, Any] = {"make": make, "use": use, "keep": keep}
    with Schedule(_through()).executor(functions) as executor:
        result = executor.run(n=source(), inputs={"c": [0]}, timeout=20)
    total = 0
    for number in range(6):
        total = total * 3 + number + 1
    assert result.outputs["c"].tolist() == [total]


TWO = """
dagsched: 1
name: two
device: host
params: {n: null, m: null}
streams: {max: 2}
buffers:
  a: {place: host, size: 8, ring: 3, output: true}
  x: {place: device, size: 8, ring: 3}
  y: {place: device, size: 8, ring: 3}
  b: {place: host, size: 8, ring: 3, output: true}
  s: {place: device, size: 8, output: true}
ops:
  - {name: z, fill: {to: s}}
  - loop: i
    count: n
    ops:
      - {name: read, host: read, writes: [a], time: 1 ms}
      - {name: up, copy: {from: a, to: x}}
      - {name: work, compute: work, reads: [x], writes: [y], updates: [s], time: 2 ms}
      - {name: down, copy: {from: y, to: b}}
      - {name: show, host: show, reads: [b], time: 1 ms}
  - {name: mid, compute: mid, updates: [s], time: 1 ms}
  - loop: j
    count: COUNT
    ops:
      - {name: read2, host: read2, writes: [a], time: 1 ms}
      - {name: up2, copy: {from: a, to: x}}
      - {name: work2, compute: work2, reads: [x], writes: [y], updates: [s], time: 2 ms}
      - {name: down2, copy: {from: y, to: b}}
      - {name: show2, host: show2, reads: [b], time: 1 ms}
  - {name: last, compute: last, updates: [s], time: 1 ms}
"""


@pytest.mark.parametrize("second", ["m", "n"], ids=["two sources", "one source"])
def test_two_late_loops_and_ops_around_them(second: str) -> None:
    """The second loop is fed by a source of its own, or runs as often as the first turned out to."""
    text = TWO.replace("COUNT", second).replace(", m: null" if second == "n" else "", "")
    compiled = schedule_of(text).compiled
    assert compiled.shifts == {"show": 1, "show2": 1}
    functions, random = Functions(compiled.resolved, 3), Random(3)

    def source(items: int) -> Iterator[int]:
        for item in range(items):
            time.sleep(random.choice([0, 0, 0.002]))
            yield item

    with Schedule(compiled).executor(functions.functions) as executor:
        for n, m in ((0, 0), (1, 0), (0, 3), (2, 1), (3, 7)):
            functions.log.clear()
            given = dict(zip(compiled.plan.params, (n, m), strict=False))
            sources = {name: source(count) for name, count in given.items()}
            result = executor.run(counts=sources, timeout=20, trace=0)
            assert result.counts == given
            require_meaning(compiled, given, functions.log, result.outputs)


# Random plans


def _chain(random: Random) -> Plan:
    """A loop of host ops; each writes its own ring and reads others of this iteration or of the one before."""
    many = random.randint(3, 6)
    depths = [random.choice([1, 2, 3, 3]) for _ in range(many)]
    buffers = {
        f"b{n}": Buffer(f"b{n}", Place.HOST, 4, ring=Ring(depth), input=True, output=True)
        for n, depth in enumerate(depths)
    }
    ops: list[Op | Loop] = []
    for n in range(many):
        accesses = [Access(f"b{n}", Mode.WRITE)]
        for m in range(many):
            if m < n and random.random() < (0.6 if m == n - 1 else 0.25):
                accesses.append(Access(f"b{m}", Mode.READ))
            elif m > n and random.random() < 0.2:
                accesses.append(Access(f"b{m}", Mode.READ, parse_expression("i - 1")))
        ops.append(Op(f"op{n}", OpKind.HOST, tuple(accesses), function=f"f{n}", time=1e-3))
    return Plan("chain", buffers, (Loop("i", Name("n"), tuple(ops)),), device="host", params={"n": None})


def _stages(plan: Plan, random: Random) -> dict[str, int] | None:
    """Stages that turn no hazard round, drawn at random; None where there are none."""
    names = [op.name for op in plan.ops()]
    edges = [
        (names.index(h.before), names.index(h.after), h.distance)
        for h in find_hazards(plan).entries
        if h.distance is not None
    ]
    for _ in range(60):
        late = list(accumulate(random.choice([0, 0, 1, 1, 2]) for _ in names[1:]))
        late = [0, *late]
        if any(late) and not any(is_late(edge, late) for edge in edges):
            return dict(zip(names, late, strict=True))
    return None


def _random_late(seed: int) -> Compiled | None:
    """A random plan on few streams with ops issued late, as far as the verifier agrees."""
    random = Random(seed)
    try:
        compiled = compile_plan(_chain(random))
    except PlanError:
        return None
    resolved = compiled.resolved
    shifts = _stages(resolved, random)
    if shifts is None:
        return None
    streams = {op.name: f"s{random.randrange(random.choice([1, 2, 2, 3]))}" for op in resolved.ops()}
    schedule = build_schedule(resolved, streams, shifts)
    if not verify_schedule(resolved, schedule).holds:
        return None
    return replace(compiled, schedule=schedule, streams=streams, shifts=shifts)


class _Feeder:
    """Items of a source; ``strict``: none before all functions have run for every item so far."""

    def __init__(self, names: list[str], seed: int, slow: str | None, strict: bool) -> None:
        self.names, self.random, self.slow, self.strict = names, Random(seed), slow, strict
        self.count = self.calls = 0
        self.lock = threading.Condition()

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is counted, and sleeps where it is the slow one."""

        def call(*views: Any, **others: Any) -> None:
            if name == self.slow:
                time.sleep(0.002)
            function(*views, **others)
            with self.lock:
                self.calls += 1
                self.lock.notify_all()

        call.__signature__ = signature(function)  # type: ignore[attr-defined]
        return call

    def __iter__(self) -> Iterator[int]:
        for number in range(self.count):
            if self.strict:
                with self.lock:
                    needed = number * len(self.names)
                    assert self.lock.wait_for(lambda: self.calls >= needed, 20)  # noqa: B023 - called at once
            else:
                time.sleep(self.random.choice([0.0, 0.0, 0.0005, 0.002]))
            yield number


RANDOM_PLANS = int(os.environ.get("DAGSCHED_RUN_PLANS", "12"))


def _random_lates() -> Iterator[tuple[int, Compiled]]:
    for seed in itertools.count():
        compiled = _random_late(seed)
        if compiled is not None:
            yield seed, compiled


def _interleave(compiled: Compiled, counts: range, seed: int) -> None:
    program = split_streams(compiled)
    for number, count in enumerate(counts):
        for patient in (False, True):
            run = interleave(program, count, 100 * seed + number, patient)
            assert len(run.ended) == count * len(compiled.streams)
            assert find_violation(compiled.resolved, run, count) is None, (seed, count)


def test_interleavings_of_an_order_through_another_stream() -> None:
    for seed in range(12):
        _interleave(_through(), range(3, 5), seed)


def test_interleavings_of_random_plans() -> None:
    """Conflicting ops run one after the other, each once, and no run gets stuck, whenever an item comes."""
    for seed, compiled in islice(_random_lates(), RANDOM_PLANS):
        _interleave(compiled, range(1, 6, 2), seed)


@pytest.mark.parametrize("strict", [False, True], ids=["slow", "strict"])
def test_random_plans(strict: bool) -> None:
    """What a source feeds means what the plan says, whatever is slow and whatever the source waits for."""
    for seed, compiled in islice(_random_lates(), RANDOM_PLANS // 2):
        for count in (0, 1, 2, 5):
            check_bindings(split_streams(compiled), compiled.schedule, {"n": count})
        functions = Functions(compiled.resolved, None)
        names = list(functions.functions)
        feeder = _Feeder(names, seed, None, strict)
        wrapped = {name: feeder.wrap(name, function) for name, function in functions.functions.items()}
        with Schedule(compiled).executor(wrapped) as executor:
            for count, feeder.slow in zip((0, 1, 2, 3, 5, 5), (None, *names, *names), strict=False):
                functions.log.clear()
                feeder.count, feeder.calls = count, 0
                inputs = inputs_of(compiled.plan)
                result = executor.run(inputs=inputs, timeout=30, trace=count, n=iter(feeder))
                assert result.counts == {"n": count}, seed
                require_meaning(compiled, {"n": count}, functions.log, result.outputs)
