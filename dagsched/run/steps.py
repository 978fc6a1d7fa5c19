"""The steps of a stream's program as small functions of the loop index, which the stream's thread calls in turn.

Waits that are bound a fixed number of iterations back cost one comparison when what they need is done. Everything that
can be decided before a run is decided here, once: the same functions serve all runs of an executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from dagsched.plan.expressions import Name
from dagsched.run.backend import Backend, Call
from dagsched.run.bindings import Bound, Fixed, bind_wait
from dagsched.run.board import Board, Halt
from dagsched.run.numbers import as_number, as_test
from dagsched.run.program import OpPoint, Program, RecordPoint, Section, StreamProgram, WaitPoint
from dagsched.run.tape import Tape

Step = Callable[[int], None]
Test = Callable[[int], bool]


@dataclass(slots=True)
class Desk:
    """What streams share in a run: where each one is (``op`` and ``iteration`` by stream), and what it hands on.

    Iterations are those of the schedule's loops, which an op's own iteration may lag behind.
    ``op`` holds the ops' ``numbers``; -1: none yet. ``deliver`` gets what the op of number ``sink`` yields.
    """

    board: Board
    params: dict[str, int]
    numbers: dict[str, int]
    op: list[int]
    iteration: list[int]
    tape: Tape | None = None
    sink: int = -1
    deliver: Callable[[int, Any], None] | None = None
    before: list[int] = field(default_factory=list)


def op_step(
    section: Section,
    stream: StreamProgram,
    point: OpPoint,
    desk: Desk,
    call: Call,
    locks: Sequence[AbstractContextManager[Any]],
    stamp: Callable[[], Any] | None,
    returned: Callable[[object], None] | None = None,
) -> Step:
    """Runs an op, whatever its guard says; ``locks`` are what it holds meanwhile, ``stamp`` its stream's clock.

    ``returned`` is told what the op's first call yields, where nobody else is.
    """
    me, op = stream.number, desk.numbers[point.op.name]
    at_op, at_iteration, halted = desk.op, desk.iteration, desk.board.halted
    if locks:
        call = _locked(call, locks)
    if desk.sink == op and desk.deliver is not None:
        call = _delivering(call, desk.deliver)
    if point.iteration is not None and point.iteration != Name(section.index or ""):
        call = _shifted(call, as_number(point.iteration, section.index, desk.params))
    if returned is not None and desk.sink != op:
        rest, look = call, returned

        def first(i: int) -> object:
            nonlocal call
            call = rest  # from now on, without a look
            value = rest(i)
            look(value)
            return value

        call = first
    if desk.tape is None:

        def run(i: int) -> None:
            if halted:
                raise Halt
            at_op[me] = op
            at_iteration[me] = i
            call(i)

        return run
    mark, clock = desk.tape.ops[me].append, stamp or perf_counter_ns

    def run_marked(i: int) -> None:
        if halted:
            raise Halt
        at_op[me] = op
        at_iteration[me] = i
        start = clock()
        call(i)
        mark((op, i, start, clock()))

    return run_marked


def _locked(call: Call, locks: Sequence[AbstractContextManager[Any]]) -> Call:
    if len(locks) == 1:
        only = locks[0]

        def hold(i: int) -> object:
            with only:
                return call(i)

        return hold

    first, rest = locks[0], _locked(call, locks[1:])

    def hold_all(i: int) -> object:
        with first:
            return rest(i)

    return hold_all


def _delivering(call: Call, deliver: Callable[[int, Any], None]) -> Call:
    def hand_on(i: int) -> object:
        deliver(i, call(i))
        return None

    return hand_on


def _shifted(call: Call, own: Callable[[int], int]) -> Call:
    """An op that is issued rounds late runs in an iteration other than the schedule's."""
    return lambda i: call(own(i))


def guarded(step: Step, test: Test | None) -> Step:
    """The step in the iterations in which its guard holds."""
    if test is None:
        return step

    def maybe(i: int) -> None:
        if test(i):
            step(i)

    return maybe


def record_step(
    stream: StreamProgram, point: RecordPoint, desk: Desk, backend: Backend, sleepers: tuple[int, ...]
) -> Step:
    """Records are made in every iteration, whatever their guard says: what waits know which one they mean."""
    note = desk.board.recorder(point.number, sleepers)
    device = backend.record(stream, point.number)
    if device is None:
        return note

    def record(i: int) -> None:
        device(i)
        note(i)

    return record


def wait_step(
    program: Program,
    stream: StreamProgram,
    section: Section,
    point: WaitPoint,
    desk: Desk,
    backend: Backend,
    behind: int,
) -> Step | None:
    """What a wait does; None where nothing is ever recorded before it. ``behind`` is the number of the op behind it."""
    bound = bind_wait(program, point, section, desk.params)
    if bound is None:
        return None
    progress = desk.board.progress
    sleep = _sleeper(stream, desk, behind)
    test = as_test(point.when, section.index, desk.params)
    step = _fixed_step(bound, progress, sleep, backend.wait(stream, bound.number)) if isinstance(bound, Fixed) else None
    early = bound.early if isinstance(bound, Fixed) else bound
    if early is not None:
        devices = {r.number: backend.wait(stream, r.number) for r in program.by_event[point.event]}
        looked = _lookup_step(early, progress, sleep, devices)
        step = looked if not isinstance(bound, Fixed) or step is None else _split(step, looked, bound)
    assert step is not None
    return guarded(step, test)


def _fixed_step(
    bound: Fixed, progress: list[int], sleep: Callable[[int, int, int], None], device: Callable[[int], None] | None
) -> Step:
    number, back, lo = bound.number, bound.back, bound.lo
    if device is None:

        def wait(i: int) -> None:
            if progress[number] <= i + back and i + back >= lo:
                sleep(i, number, i + back)

        return wait

    def wait_device(i: int) -> None:
        needed = i + back
        if needed >= lo:
            if progress[number] <= needed:
                sleep(i, number, needed)
            device(needed)

    return wait_device


def _lookup_step(
    find: Bound,
    progress: list[int],
    sleep: Callable[[int, int, int], None],
    devices: Mapping[int, Callable[[int], None] | None],
) -> Step:
    def look(i: int) -> None:
        found = find(i)
        if found is not None:
            record, needed = found
            if progress[record] <= needed:
                sleep(i, record, needed)
            device = devices[record]
            if device is not None:
                device(needed)

    return look


def _split(later: Step, early: Step, bound: Fixed) -> Step:
    """The first iterations of a loop look back before it."""
    first = bound.lo - bound.back
    return lambda i: later(i) if i >= first else early(i)


def _sleeper(stream: StreamProgram, desk: Desk, behind: int) -> Callable[[int, int, int], None]:
    """What a wait does when it must sleep: for iteration i, a record's number, and the iteration that it needs."""
    me, before, iteration, await_record = stream.number, desk.before, desk.iteration, desk.board.await_record
    if desk.tape is None:

        def sleep(i: int, record: int, needed: int) -> None:
            before[me] = behind
            iteration[me] = i
            await_record(me, record, needed)

        return sleep
    mark, clock = desk.tape.waits[me].append, perf_counter_ns

    def sleep_marked(i: int, record: int, needed: int) -> None:
        before[me] = behind
        iteration[me] = i
        start = clock()
        await_record(me, record, needed)
        mark((behind, i, record, needed, start, clock()))

    return sleep_marked
