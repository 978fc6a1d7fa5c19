"""A stream's rounds of a loop whose ops are shifted and whose source may be slow.

In round i of such a loop an op that is shifted by s runs for iteration i - s, behind ops of later iterations. Where the
item of a later iteration has not come yet, nobody knows whether it will, and what stands behind it need not wait: the
stream *runs ahead*. It takes the steps of the same schedule for as many iterations as there are items; once another
item has come, or the source has ended, it goes back to where it was, and takes the steps in the schedule's own order
again, without the ops that it has run. So results come as soon as they can, whatever the source waits for.

Why that is right, by the plan's order, for every number of items and every moment at which they come. A record has two
counters: its own, which is raised where the schedule's order has come to it, when all that the schedule puts before the
record has been done; and its *twin*'s, which is raised by a stream that runs ahead, and says with how many items.

1. An op that runs in the schedule's order waits for records' own counters, as ever: it comes after all that the
   schedule for all items puts before it. That some of that has been done earlier still takes nothing away.
2. An op that runs ahead with c items waits for what the schedule for c iterations puts before it, which is proved like
   that for every count. It has only ops of iterations below c. Each stream takes them in its order from where it was,
   and raises twins for c as it goes; what waits heeds own counters and twins for just this c. (A twin for fewer items
   says too little: more items put more before a record.) So the op comes after all that the schedule for c iterations,
   and the plan, put before it; no op of a later iteration is among that.
3. Nothing blocks for ever: while no item comes, every stream that waits can run ahead in the schedule for c iterations,
   which ends; when one comes, all are back in the schedule's order.

A wait is bound anew after each sleep, since which record it means may depend on whether an iteration exists.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Protocol

from dagsched.run.backend import Backend
from dagsched.run.bindings import Bound, Fixed, bind_wait
from dagsched.run.numbers import as_number, as_test
from dagsched.run.program import Program, RecordPoint, Section, StreamProgram, WaitPoint
from dagsched.run.sources import ENDLESS, Source
from dagsched.run.steps import Desk, Step, Test

ITEMS = 40
"""A twin's value is that of a counter, in so many bits, and above them with how many items its stream has run ahead."""

Device = Callable[[int], None] | None


class _Stepping(Protocol):
    def go(self, i: int) -> None:
        """Take the step in round i, in the schedule's order."""

    def ahead(self, i: int) -> bool:
        """Take it ahead; whether still no other item has come."""


class Rounds:
    """The rounds of one stream in one run. ``leads``: whether the source keeps ahead of this stream.

    ``few`` are the parameters, where the loop counts as many iterations as there were items when it began to run ahead.
    """

    def __init__(
        self, program: Program, stream: StreamProgram, section: Section, source: Source, leads: bool,
        desk: Desk, backend: Backend, sleepers: Mapping[int, tuple[int, ...]],
    ) -> None:  # fmt: skip
        self.program, self.section, self.source, self.leads = program, section, source, leads
        self.desk, self.board, self.backend = desk, desk.board, backend
        self.stream, self.me = stream, stream.number
        self.sleepers = sleepers
        self.few: dict[str, int] = {}
        self._steps: list[_Stepping] = []
        self._shifts: list[int] = []
        self._made: dict[int, Test | None] = {}

    def add_op(self, run: Step, shift: int) -> None:
        """The next step: an op, which runs in round i for iteration i - shift."""
        self._shifts.append(shift)
        self._steps.append(_Op(self, run, shift))

    def add_wait(self, point: WaitPoint, behind: int) -> None:
        """The next step: a wait before the op numbered ``behind``."""
        found = bind_wait(self.program, point, self.section, self.desk.params)
        found_ahead = bind_wait(self.program, point, self.section, self.few)
        if found is not None and found_ahead is not None:
            self._steps.append(_Wait(self, point, behind, _looking(found), _looking(found_ahead)))

    def add_record(self, point: RecordPoint) -> None:
        """The next step: a record."""
        self._steps.append(_Record(self, point))

    def follow(self) -> None:
        """Take all rounds; raises :class:`Halt`."""
        source, progress, pulled = self.source, self.board.progress, self.source.pulled
        first = min(self._shifts, default=0)
        rounds = as_number(self.section.hi, None, self.desk.params)
        for i in itertools.count():
            item = i - first
            if self.leads:
                source.ask(item)
            while progress[pulled] <= item:
                self.run_ahead(i, 0)
            if progress[pulled] == ENDLESS and i >= rounds(0):
                return
            for step in self._steps:
                step.go(i)

    def run_ahead(self, i: int, wait: int) -> None:
        """Run what can run from a step in round i on, until another item has come, or the source has ended."""
        board, progress, pulled = self.board, self.board.progress, self.source.pulled
        come = progress[pulled]
        if come == ENDLESS:
            return
        self._count(come)
        steps, begin = self._steps, wait
        for round_ in range(i, come + max(self._shifts, default=0)):
            for number in range(begin, len(steps)):
                if not steps[number].ahead(round_) or progress[pulled] != come:
                    return
            begin = 0
        if self.leads:
            self.source.ask(come - 1)  # all of its iterations have begun, so that there is room for one more
        board.await_record(self.me, pulled, come)

    def position(self, step: _Stepping) -> int:
        """Which step of a round it is."""
        return self._steps.index(step)

    def exists(self, record: int, i: int) -> bool:
        """Whether the op of a record in round i is one of an item that has come."""
        if record not in self._made:
            self._made[record] = as_test(self.program.records[record].when, self.section.index, self.few)
        test = self._made[record]
        self._count(self.board.progress[self.source.pulled])
        return test is None or test(i)

    def ended(self) -> bool:
        """Whether the number of items is known."""
        return self.board.progress[self.source.pulled] == ENDLESS

    def _count(self, items: int) -> None:
        self.few.update(self.desk.params)
        if items != ENDLESS:
            self.few[self.source.param] = items

    def sleep(self, i: int, behind: int, record: int, counter: int, needed: int, come: int | None = None) -> bool:
        """Sleep until a record, or its twin, has come so far; with ``come``, or until the source has come further.

        Whether the counter is what ended it.
        """
        desk, board, me = self.desk, self.board, self.me
        desk.before[me], desk.iteration[me] = behind, i
        start = perf_counter_ns()
        if come is None:
            board.await_record(me, counter, needed)
            reached = True
        else:
            reached = board.await_either(me, counter, needed, self.source.pulled, come)
        if desk.tape is not None:
            desk.tape.waits[me].append((behind, i, record, needed, start, perf_counter_ns()))
        return reached


class _Op:
    """An op, whose iterations run in turn, each once."""

    def __init__(self, rounds: Rounds, run: Step, shift: int) -> None:
        self.rounds, self.run, self.shift, self.done = rounds, run, shift, 0

    def go(self, i: int) -> None:
        own = i - self.shift
        if self.done <= own < self.rounds.source.count:
            self.run(i)
            self.done = own + 1

    def ahead(self, i: int) -> bool:
        own = i - self.shift
        if self.done <= own < self.rounds.few[self.rounds.source.param]:
            self.run(i)
            self.done = own + 1
        return True


class _Wait:
    """A wait, for a record's own counter in the schedule's order, and for its twin's ahead."""

    def __init__(self, rounds: Rounds, point: WaitPoint, behind: int, find: Bound, find_ahead: Bound) -> None:
        index = rounds.section.index
        self.rounds, self.behind, self.find, self.find_ahead = rounds, behind, find, find_ahead
        self.test = as_test(point.when, index, rounds.desk.params)
        self.test_ahead = as_test(point.when, index, rounds.few)
        wait, stream, twins = rounds.backend.wait, rounds.stream, rounds.program.twins
        numbers = [record.number for record in rounds.program.by_event[point.event]]
        near = {n: twins[n] for n in numbers if rounds.program.records[n].place.section == rounds.section.number}
        self.twins: dict[int, int] = near
        self.devices = {n: wait(stream, n) for n in (*numbers, *near.values())}

    def go(self, i: int) -> None:
        rounds = self.rounds
        progress = rounds.board.progress
        while True:
            found = self.find(i) if self.test is None or self.test(i) else None
            if found is None:
                return
            record, needed = found
            if progress[record] > needed:
                self._tell(record, needed)
                return
            twin = self.twins.get(record)
            if twin is None or rounds.ended():
                rounds.sleep(i, self.behind, record, record, needed)
                continue
            there = twin_value(progress[rounds.source.pulled], needed)
            if progress[twin] <= there and rounds.exists(record, needed):
                rounds.sleep(i, self.behind, record, twin, there)
            else:
                rounds.run_ahead(i, rounds.position(self))

    def ahead(self, i: int) -> bool:
        rounds = self.rounds
        found = self.find_ahead(i) if self.test_ahead is None or self.test_ahead(i) else None
        if found is None:
            return True
        record, needed = found
        progress, come = rounds.board.progress, rounds.few[rounds.source.param]
        counter = self.twins.get(record, record)
        there = needed if counter == record else twin_value(come, needed)
        reached = progress[record] > needed or progress[counter] > there
        if not reached and not rounds.sleep(i, self.behind, record, counter, there, come):
            return False
        if counter != record:
            self._tell(counter, needed)
        self._tell(record, needed)  # a device knows the one, the other or both
        return True

    def _tell(self, counter: int, needed: int) -> None:
        device = self.devices[counter]
        if device is not None:
            device(needed)


class _Record:
    """A record, made where its op exists."""

    def __init__(self, rounds: Rounds, point: RecordPoint) -> None:
        board, backend, index = rounds.board, rounds.backend, rounds.section.index
        self.rounds, self.progress, self.pulled = rounds, board.progress, rounds.source.pulled
        self.twin = rounds.program.twins[point.number]
        self.test = as_test(point.when, index, rounds.desk.params)
        self.test_ahead = as_test(point.when, index, rounds.few)
        sleepers = rounds.sleepers.get(point.number, ())
        self.note, self.note_twin = board.recorder(point.number, sleepers), board.recorder(self.twin, sleepers)
        self.device: Device = backend.record(rounds.stream, point.number)
        self.device_ahead: Device = backend.record(rounds.stream, self.twin)

    def go(self, i: int) -> None:
        if self.test is not None and not self.test(i):
            return
        if self.device is not None:
            self.device(i)
        self.note(i)
        there = twin_value(self.progress[self.pulled], i)  # looked at behind the note: who runs ahead later has seen it
        if self.progress[self.twin] <= there:
            self.note_twin(there)

    def ahead(self, i: int) -> bool:
        if self.test_ahead is None or self.test_ahead(i):
            if self.device_ahead is not None:
                self.device_ahead(i)
            self.note_twin(twin_value(self.rounds.few[self.rounds.source.param], i))
        return True


def twin_value(items: int, i: int) -> int:
    """What a twin says after round i, where its stream runs ahead with so many items."""
    return (items << ITEMS) + i


def twin_round(value: int) -> int:
    """The round that a twin's value is about."""
    return value & ((1 << ITEMS) - 1)


def _looking(found: Fixed | Bound) -> Bound:
    if not isinstance(found, Fixed):
        return found
    number, back, lo, early = found.number, found.back, found.lo, found.early

    def look(i: int) -> tuple[int, int] | None:
        if i + back >= lo:
            return number, i + back
        return early(i) if early is not None else None

    return look
