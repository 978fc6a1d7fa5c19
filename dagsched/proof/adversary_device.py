"""The adversary's device: whatever may run next, may.

A :class:`Device` is a program in the middle of running. Commands that can only let others go on (records, bound waits,
syncs) run as soon as they can; the *moves* are pieces of work and commands that decide something, and whoever drives
the device picks among :meth:`Device.ready`. The host runs ahead as far as it can, since being issued never takes
anything away, save where a handle is looked at late: there the issue of a record is a move of the host as well.

A piece of work may also take effect in parts: it begins (the first part of all that it touches) and finishes later.
"""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.proof.adversary_program import HOST, Command, Program

ISSUE = 1 << 40
"""Added to a record's number where the move is its issue by the host."""


@dataclass(slots=True)
class Wiring:
    """What all runs of one program share: ``queues`` by thread (the host's holds its own commands and the issues that
    are moves), ``moves``: the commands that are, and by command what it ``needs`` and its object (-1: none)."""

    program: Program
    queues: list[list[int]]
    moves: list[bool]
    needs: list[tuple[int, ...]]
    objects: list[int]

    @property
    def commands(self) -> list[Command]:
        return self.program.commands


def wire(program: Program) -> Wiring:
    """Sort the commands into queues."""
    late = program.schedule.event_model == "reevaluate"
    queues: list[list[int]] = [[] for _ in program.threads]
    moves = []
    for command in program.commands:
        looked_at = late and command.what == "record" and command.thread != HOST
        moves.append(command.what == "work" or (command.decides and not looked_at))
        if looked_at and command.decides:
            queues[HOST].append(command.number + ISSUE)
        queues[command.thread].append(command.number)
    needs = [command.needs for command in program.commands]
    return Wiring(program, queues, moves, needs, [command.object for command in program.commands])


class Device:
    """A run. ``at`` is how far each queue has got, ``heads`` what it is at (-1: its end), ``issued`` the number below
    which all commands have been issued, ``done`` which have run; ``values`` are the objects: a flag's bit, a counter, a
    lock's holder + 1, or 1 + the newest record issued of a handle that is looked at late."""

    __slots__ = ("at", "begun", "done", "heads", "issued", "late", "values", "waiting", "wiring")

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.late = wiring.program.schedule.event_model == "reevaluate"
        self.at = [0] * len(wiring.queues)
        self.heads = [queue[0] if queue else -1 for queue in wiring.queues]
        self.issued = self.frontier()
        self.done = bytearray(len(wiring.moves))
        self.values = [0] * len(wiring.program.objects)
        self.begun = [False] * len(wiring.queues)
        self.waiting: dict[int, list[int]] = {}
        self.settle(list(range(len(wiring.queues))))

    def copy(self) -> Device:
        """The same state, to go another way from."""
        other = Device.__new__(Device)
        other.wiring, other.late, other.issued = self.wiring, self.late, self.issued
        other.at, other.heads = list(self.at), list(self.heads)
        other.done, other.values = bytearray(self.done), list(self.values)
        other.begun = list(self.begun)
        other.waiting = {key: list(threads) for key, threads in self.waiting.items()}
        return other

    def state(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What decides everything that can still happen."""
        return tuple(self.at), tuple(self.values)

    def head(self, thread: int) -> int | None:
        """The entry that a queue is at."""
        entry = self.heads[thread]
        return None if entry < 0 else entry

    def frontier(self) -> int:
        """What the host issues next."""
        entry = self.heads[HOST]
        return len(self.wiring.moves) if entry < 0 else entry % ISSUE

    def missing(self, thread: int, entry: int) -> int | None:
        """A command that must run (or, as -1, be issued) before a queue's head can; None where none must."""
        if entry >= ISSUE:
            return None
        if thread != HOST and entry >= self.issued:
            return -1
        for need in self.wiring.needs[entry]:
            if not self.done[need]:
                return need
        return None

    def allows(self, entry: int) -> bool:
        """Whether the object lets a command pass."""
        if entry >= ISSUE:
            return True
        if self.wiring.objects[entry] < 0:
            return True
        command = self.wiring.commands[entry]
        value = self.values[command.object]
        if command.what == "wait":
            if self.late:
                return not value or bool(self.done[value - 1])
            return value > 0
        if command.what == "take":
            return value > 0
        return command.what != "acquire" or not value

    def ready(self) -> list[int]:
        """The threads whose next move may run now."""
        found = []
        moves = self.wiring.moves
        for thread, entry in enumerate(self.heads):
            if entry < 0 or (entry < ISSUE and not moves[entry]):
                continue
            if self.missing(thread, entry) is None and self.allows(entry):
                found.append(thread)
        return found

    def move(self, thread: int) -> int:
        """Run a thread's next move and all that then runs by itself; returns the entry."""
        entry = self.heads[thread]
        assert entry >= 0
        self.begun[thread] = False
        woken = [thread]
        self.finish(thread, entry, woken)
        self.settle(woken)
        return entry

    def settle(self, threads: list[int]) -> None:
        """Run what can only let others go on, as far as it goes, from the threads that may have become able to."""
        moves, objects, waiting = self.wiring.moves, self.wiring.objects, self.waiting
        while threads:
            thread = threads.pop()
            while (entry := self.heads[thread]) >= 0 and entry < ISSUE and not moves[entry]:
                missing = self.missing(thread, entry)
                if missing is None and not self.allows(entry):
                    missing = -2 - objects[entry]
                if missing is not None:
                    waiting.setdefault(missing, []).append(thread)
                    break
                self.finish(thread, entry, threads)

    def finish(self, thread: int, entry: int, woken: list[int]) -> None:
        """Let an entry take effect on the order; adds the threads that this may let go on."""
        place = self.at[thread] = self.at[thread] + 1
        queue = self.wiring.queues[thread]
        self.heads[thread] = queue[place] if place < len(queue) else -1
        waiting = self.waiting
        if thread == HOST:
            self.issued = self.frontier()
            if -1 in waiting:
                woken += waiting.pop(-1)
        if entry >= ISSUE:
            command = self.wiring.commands[entry - ISSUE]
            self.values[command.object] = command.number + 1
            return
        self.done[entry] = 1
        if entry in waiting:
            woken += waiting.pop(entry)
        number = self.wiring.objects[entry]
        if number >= 0:
            self.change(self.wiring.commands[entry])
            if -2 - number in waiting:
                woken += waiting.pop(-2 - number)

    def change(self, command: Command) -> None:
        what, number = command.what, command.object
        if self.late and what == "record":
            if command.thread == HOST:
                self.values[number] = command.number + 1
        elif what == "record":
            self.values[number] = 1
        elif what == "acquire":
            self.values[number] = command.thread + 1
        elif what in ("reset", "release"):
            self.values[number] = 0
        elif what == "set":
            self.values[number] += 1
        elif what == "take":
            self.values[number] -= 1

    def stuck(self) -> list[tuple[int, int]]:
        """(thread, command) of every queue that is not at its end, once nothing can move."""
        return [
            (thread, entry)
            for thread, entry in enumerate(self.heads)
            if 0 <= entry < ISSUE and (thread == HOST or entry < self.issued)
        ]
