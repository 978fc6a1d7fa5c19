"""Runs the streams of a loop with shifted ops under a scheduler that picks every interleaving at random.

The streams' code is the executor's own (:class:`Rounds`); only one of its threads goes on at a time, and whenever one
looks at a counter, raises one or begins or ends an op, the scheduler decides who is next. Items come whenever it likes.
So a thousand interleavings take seconds, none depends on the machine, and a run in which nobody can go on is seen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from dagsched.plan.expressions import Int, evaluate
from dagsched.plan.model import Loop, Mode, Op, Plan
from dagsched.run.backend import Backend
from dagsched.run.board import Board, Halt
from dagsched.run.follow import find_sleepers
from dagsched.run.program import OpPoint, Program, Section, StreamProgram, WaitPoint, linear_shift
from dagsched.run.rounds import Rounds
from dagsched.run.sources import ENDLESS, Source
from dagsched.run.steps import Desk

CHANGES = 0.1
"""How often somebody becomes quicker or slower: rarely, so that some are far behind others."""

Instance = tuple[str, int]
"""An op and its iteration."""


class StuckError(Exception):
    """Nobody can go on."""


class Baton:
    """Passes from thread to thread; ``ready`` says for each that waits whether it could go on."""

    def __init__(self, seed: int, actors: list[str]) -> None:
        self.random = Random(seed)
        self.turns = {actor: threading.Semaphore(0) for actor in actors}
        self.ready: dict[str, Callable[[], bool]] = {actor: lambda: True for actor in actors}
        self.rank = {actor: self.random.random() for actor in actors}
        self.stuck = False

    def pass_on(self) -> None:
        """Let somebody else go on."""
        able = [actor for actor, ready in self.ready.items() if ready()]
        if not able and self.ready:
            self.stuck = True
            able = [next(iter(self.ready))]
        if self.random.random() < CHANGES:
            self.rank[self.random.choice(list(self.rank))] = self.random.random()
        if able:
            self.turns[max(able, key=self.rank.__getitem__)].release()

    def switch(self, me: str, ready: Callable[[], bool] = lambda: True) -> None:
        """Give others a turn, until it is one's own again and ``ready``."""
        self.ready[me] = ready
        self.pass_on()
        self.turns[me].acquire()
        if self.stuck:
            raise StuckError

    def leave(self, me: str) -> None:
        """Come to an end."""
        del self.ready[me]
        self.pass_on()


class BatonBoard(Board):
    """A board on which sleepers are woken by the scheduler."""

    def __init__(self, records: int, names: list[str], baton: Baton) -> None:
        super().__init__(records, len(names))
        self.names, self.baton = names, baton

    def await_record(self, thread: int, record: int, needed: int) -> None:
        self.baton.switch(self.names[thread], lambda: self.progress[record] > needed)

    def await_either(self, thread: int, record: int, needed: int, pulled: int, come: int) -> bool:
        progress = self.progress
        self.baton.switch(self.names[thread], lambda: progress[record] > needed or progress[pulled] != come)
        return progress[record] > needed

    def recorder(self, record: int, sleepers: tuple[int, ...]) -> Callable[[int], None]:
        def note(i: int) -> None:
            self.baton.switch(threading.current_thread().name)
            self.progress[record] = i + 1

        return note


@dataclass
class FakeSource:
    """What streams see of a source: items come when the scheduler says so, one more than was asked for."""

    param: str
    pulled: int
    count: int = ENDLESS
    asked: int = 0

    def ask(self, i: int) -> None:
        self.asked = max(self.asked, i + 1)


class NoDevice:
    """A backend whose ops end when their calls return."""

    def record(self, stream: StreamProgram, number: int) -> None:
        return None

    def wait(self, stream: StreamProgram, number: int) -> None:
        return None


@dataclass
class Interleaving:
    """One run: when each op instance began and ended."""

    began: dict[Instance, int] = field(default_factory=dict)
    ended: dict[Instance, int] = field(default_factory=dict)
    clock: int = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock


def interleave(program: Program, count: int, seed: int, patient: bool) -> Interleaving:
    """Run the only loop of a program for so many items; ``patient``: each comes when all before have been worked on.

    Raises :class:`StuckError` where nobody can go on.
    """
    names = [stream.name for stream in program.streams]
    baton = Baton(seed, [*names, "source"])
    records = len(program.records) + len(program.twins)
    board = BatonBoard(records + 1, names, baton)
    params: dict[str, int] = {}
    section = next(section for section in program.sections if section.counted)
    source = FakeSource(section.counted or "", records)
    numbers = {p.op.name: n for n, p in enumerate(p for s in program.streams for _, ps in s.parts for p in ps
                                                  if isinstance(p, OpPoint))}  # fmt: skip
    desk = Desk(board, params, numbers, [-1] * len(names), [0] * len(names), before=[-1] * len(names))
    run = Interleaving()
    errors: list[BaseException] = []
    ops = len(numbers)

    def bring() -> None:
        for item in range(count):
            baton.switch("source", lambda item=item: source.asked >= item and (  # type: ignore[misc]
                not patient or len(run.ended) >= item * ops))  # fmt: skip
            board.progress[source.pulled] = item + 1
        baton.switch("source")
        source.count = params[source.param] = count
        board.progress[source.pulled] = ENDLESS

    def follow(stream: StreamProgram) -> None:
        leads = stream.number == 0
        rounds = _rounds(program, stream, section, source, leads, desk, baton, run)
        if rounds is not None:
            rounds.follow()

    def act(name: str, work: Callable[[], None]) -> None:
        try:
            baton.turns[name].acquire()
            if not baton.stuck:
                work()
        except BaseException as error:  # noqa: BLE001 - told to the caller
            errors.append(error)
        baton.leave(name)

    threads = [threading.Thread(target=act, args=(s.name, lambda s=s: follow(s)), name=s.name) for s in program.streams]
    threads.append(threading.Thread(target=act, args=("source", bring), name="source"))
    for thread in threads:
        thread.start()
    baton.pass_on()
    for thread in threads:
        thread.join()
    for error in errors:
        if not isinstance(error, Halt):
            raise error
    return run


def _rounds(
    program: Program, stream: StreamProgram, section: Section, source: FakeSource, leads: bool,
    desk: Desk, baton: Baton, run: Interleaving,
) -> Rounds | None:  # fmt: skip
    points = next((points for own, points in stream.parts if own.number == section.number), None)
    if points is None:
        return None
    backend = cast(Backend, NoDevice())
    rounds = Rounds(
        program, stream, section, cast(Source, source), leads, desk, backend, find_sleepers(program)
    )  # fmt: skip
    for point in points:
        if isinstance(point, OpPoint):
            shift = -linear_shift(point.iteration or Int(0), section.index or "")

            def work(i: int, name: str = point.op.name, shift: int = shift) -> None:
                baton.switch(stream.name)
                assert (name, i - shift) not in run.began
                run.began[name, i - shift] = run.tick()
                baton.switch(stream.name)
                run.ended[name, i - shift] = run.tick()

            rounds.add_op(work, shift)
        elif isinstance(point, WaitPoint):
            rounds.add_wait(point, 0)
        else:
            rounds.add_record(point)
    return rounds


def find_violation(plan: Plan, run: Interleaving, count: int) -> str | None:
    """Two conflicting op instances that did not run one after the other in the plan's order; every pair is tried."""
    [loop] = [item for item in plan.items if isinstance(item, Loop)]
    ops = [op for op in loop.body if isinstance(op, Op)]
    order = [(op, i) for i in range(count) for op in ops]
    touched: list[list[tuple[str, int, Mode]]] = []
    for op, i in order:
        env: dict[str, Any] = {loop.index: i}
        touched.append([
            (a.buffer, evaluate(a.version or Int(0), env) % (plan.buffers[a.buffer].ring.depth or 1), a.mode)
            for a in op.accesses
        ])  # fmt: skip
    for n, (before, i) in enumerate(order):
        for m in range(n + 1, len(order)):
            after, j = order[m]
            meet = any(
                a[:2] == b[:2] and (a[2].writes or b[2].writes) for a in touched[n] for b in touched[m]
            )  # fmt: skip
            if meet and not run.ended[before.name, i] < run.began[after.name, j]:
                return f"{before.name}@{i} and {after.name}@{j}"
    return None
