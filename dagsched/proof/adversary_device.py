"""The adversary's device: whatever may run next, may.

A :class:`Device` is a program in the middle of running. Commands that can only let others go on (records, bound waits,
syncs) run as soon as they can; the *moves* are pieces of work and commands that decide something, and whoever drives
the device picks among :meth:`Device.ready`. The host runs ahead as far as it can, since being issued never takes
anything away, save where a handle is looked at late: there the issue of a record is a move of the host as well.

A piece of work may also take effect in parts: it begins (the first part of all that it touches) and finishes later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dagsched.proof.adversary_program import HOST, Command, Program

ISSUE = 1 << 40
"""Added to a record's number where the move is its issue by the host."""


@dataclass(slots=True)
class Wiring:
    """What all runs of one program share: ``queues`` by thread (the host's holds its own commands and the issues that
    are moves), ``moves``: the commands that are."""

    program: Program
    queues: list[list[int]] = field(default_factory=list)
    moves: list[bool] = field(default_factory=list)

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
        if late and command.decides and command.what == "record":
            queues[HOST].append(command.number + ISSUE if command.thread != HOST else command.number)
        if command.thread != HOST:
            queues[command.thread].append(command.number)
        elif not queues[HOST] or queues[HOST][-1] != command.number:
            queues[HOST].append(command.number)
    return Wiring(program, queues, moves)


class Device:
    """A run. ``at`` is how far each queue has got, ``done`` which commands have run, ``values`` the objects: a flag's
    bit, a counter, a lock's holder + 1, or 1 + the newest record issued of a handle that is looked at late."""

    __slots__ = ("at", "begun", "done", "late", "values", "waiting", "wiring")

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.late = wiring.program.schedule.event_model == "reevaluate"
        self.at = [0] * len(wiring.queues)
        self.done = bytearray(len(wiring.commands))
        self.values = [0] * len(wiring.program.objects)
        self.begun = [False] * len(wiring.queues)
        self.waiting: dict[int, list[int]] = {}
        self.settle(list(range(len(wiring.queues))))

    def copy(self) -> Device:
        """The same state, to go another way from."""
        other = Device.__new__(Device)
        other.wiring, other.late = self.wiring, self.late
        other.at, other.done, other.values = list(self.at), bytearray(self.done), list(self.values)
        other.begun = list(self.begun)
        other.waiting = {key: list(threads) for key, threads in self.waiting.items()}
        return other

    def state(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What decides everything that can still happen."""
        return tuple(self.at), tuple(self.values)

    def head(self, thread: int) -> int | None:
        """The entry that a queue is at."""
        queue = self.wiring.queues[thread]
        return queue[self.at[thread]] if self.at[thread] < len(queue) else None

    def issued(self) -> int:
        """All commands below this number have been issued."""
        queue = self.wiring.queues[HOST]
        if self.at[HOST] >= len(queue):
            return len(self.wiring.commands)
        entry = queue[self.at[HOST]]
        return entry - ISSUE if entry >= ISSUE else entry

    def missing(self, thread: int, entry: int) -> int | None:
        """A command that must run (or, as ``~number``, be issued) before a queue's head can; None where none must."""
        if entry >= ISSUE:
            return None
        if thread != HOST and entry >= self.issued():
            return ~entry
        for need in self.wiring.commands[entry].needs:
            if not self.done[need]:
                return need
        return None

    def allows(self, entry: int) -> bool:
        """Whether the object lets a command pass."""
        if entry >= ISSUE:
            return True
        command = self.wiring.commands[entry]
        if command.object < 0:
            return True
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
        for thread in range(len(self.at)):
            entry = self.head(thread)
            if entry is None or (entry < ISSUE and not moves[entry]):
                continue
            if self.missing(thread, entry) is None and self.allows(entry):
                found.append(thread)
        return found

    def move(self, thread: int) -> int:
        """Run a thread's next move and all that then runs by itself; returns the entry."""
        entry = self.head(thread)
        assert entry is not None
        self.begun[thread] = False
        self.settle(self.finish(thread, entry))
        return entry

    def settle(self, threads: list[int]) -> None:
        """Run what can only let others go on, as far as it goes, from the threads that may have become able to."""
        while threads:
            thread = threads.pop()
            while (entry := self.head(thread)) is not None:
                if entry >= ISSUE or self.wiring.moves[entry]:
                    break
                missing = self.missing(thread, entry)
                if missing is not None:
                    self.waiting.setdefault(missing if missing >= 0 else -1, []).append(thread)
                    break
                if not self.allows(entry):
                    self.waiting.setdefault(-2 - self.wiring.commands[entry].object, []).append(thread)
                    break
                threads += self.finish(thread, entry)

    def finish(self, thread: int, entry: int) -> list[int]:
        """Let an entry take effect on the order; the threads that this may let go on."""
        self.at[thread] += 1
        woken: list[int] = [thread]
        if thread == HOST:
            woken += self.waiting.pop(-1, ())
        if entry >= ISSUE:
            command = self.wiring.commands[entry - ISSUE]
            self.values[command.object] = command.number + 1
            return woken
        command = self.wiring.commands[entry]
        self.done[entry] = 1
        woken += self.waiting.pop(entry, ())
        if command.object >= 0:
            self.change(command)
            woken += self.waiting.pop(-2 - command.object, ())
        return woken

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
        issued = self.issued()
        found = []
        for thread in range(len(self.at)):
            entry = self.head(thread)
            if entry is not None and entry < ISSUE and (thread == HOST or entry < issued):
                found.append((thread, entry))
        return found
