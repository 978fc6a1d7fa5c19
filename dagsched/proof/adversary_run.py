"""One interleaving: drive the device by some policy, and stop at the first access that meets what it should not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dagsched.proof.adversary_device import ISSUE, Device, Wiring
from dagsched.proof.adversary_program import Program
from dagsched.proof.adversary_values import Contents, Layout, Sight

Entry = tuple[int, int]
"""What moved: a command (plus ``ISSUE`` where the host issued it), and 0 for the whole of it, 1 and 2 for its parts."""

Choose = Callable[[Device, list[int]], tuple[int, bool]]
"""Picks among the ready threads; True: the work there only begins."""


@dataclass(slots=True)
class Reference:
    """What every instance is meant to meet, and its rank in the order that is meant.

    An ``open`` one takes whatever an instance meets first for what is meant: hand-written schedules say nothing else.
    """

    expected: dict[int, Sight] = field(default_factory=dict)
    rank: dict[int, int] = field(default_factory=dict)
    open: bool = True

    def accepts(self, number: int, sight: Sight) -> bool:
        """Whether an instance meets what it should."""
        known = self.expected.get(number)
        if known is None and self.open:
            self.expected[number] = sight
            self.rank[number] = len(self.rank)
            return True
        return known == sight


@dataclass(slots=True)
class Subject:
    """A program that is tried: its queues, its cells, and what is meant."""

    program: Program
    wiring: Wiring
    layout: Layout
    reference: Reference

    def entry_thread(self, entry: int) -> int:
        """The thread whose queue holds an entry."""
        return 0 if entry >= ISSUE else self.program.commands[entry].thread


@dataclass(slots=True)
class Outcome:
    """How a run went. ``miss``: the command that met what it should not; ``freed``: it read what was freed;
    ``stuck``: (thread, command) of the queue heads where nothing could move any more."""

    trail: list[Entry]
    miss: int | None = None
    freed: bool = False
    stuck: list[tuple[int, int]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.miss is not None or bool(self.stuck)


class Running:
    """A device with its contents, in the middle of a run."""

    __slots__ = ("contents", "device", "halves", "subject", "trail")

    def __init__(self, subject: Subject, parts: bool = False) -> None:
        self.subject = subject
        self.device = Device(subject.wiring)
        # Every cell has two parts where something may take effect in parts.
        self.contents = Contents(subject.layout)
        self.halves: Contents | None = Contents(subject.layout) if parts else None
        self.trail: list[Entry] = []

    def copy(self) -> Running:
        """The same state, to go another way from."""
        other = Running.__new__(Running)
        other.subject = self.subject
        other.device, other.contents = self.device.copy(), self.contents.copy()
        other.halves = self.halves.copy() if self.halves is not None else None
        other.trail = list(self.trail)
        return other

    def begin(self, thread: int) -> bool:
        """Let the first part of a thread's work take effect; whether it met what it should."""
        number = self.device.head(thread)
        assert number is not None
        self.device.begun[thread] = True
        self.trail.append((number, 1))
        return self.meet(number, self.contents)

    def move(self, thread: int) -> bool:
        """Run a thread's move (the rest of it, where it has begun); whether it met what it should."""
        device = self.device
        begun = device.begun[thread]
        number = device.move(thread)
        self.trail.append((number, 2 if begun else 0))
        if number >= ISSUE:
            return True
        fine = True if begun else self.meet(number, self.contents)
        if self.halves is not None:
            fine = self.meet(number, self.halves) and fine
        return fine

    def meet(self, number: int, contents: Contents) -> bool:
        """Look, compare, and take effect."""
        if number not in self.subject.layout.reach:
            return True
        fine = self.subject.reference.accepts(number, contents.look(number))
        contents.perform(number)
        return fine

    def finish(self, fine: bool) -> Outcome:
        """The outcome of a run that ends here."""
        if not fine:
            return Outcome(self.trail, miss=self.trail[-1][0])
        if self.device.ready():
            return Outcome(self.trail)
        at_end = all(self.device.head(thread) is None for thread in range(len(self.device.at)))
        if at_end or self.subject.program.cut:
            return Outcome(self.trail)
        return Outcome(self.trail, stuck=self.device.stuck())


def first_issued(device: Device, ready: list[int]) -> tuple[int, bool]:
    """The policy that keeps to the order in which the host issues."""
    if len(ready) == 1:
        return ready[0], False
    return min(ready, key=lambda thread: (device.head(thread) or 0) % ISSUE), False


def drive(running: Running, choose: Choose) -> Outcome:
    """Run to the end, or to the first access that meets what it should not."""
    device = running.device
    while ready := device.ready():
        thread, partly = choose(device, ready)
        if not (running.begin(thread) if partly and not device.begun[thread] else running.move(thread)):
            return running.finish(False)
    return running.finish(True)


def replay(subject: Subject, entries: Iterable[Entry], complete: bool = False) -> Outcome:
    """Run the entries that can run, in this order, and leave out the others; ``complete``: then go on as issued."""
    rows: Sequence[Entry] = list(entries)
    running = Running(subject, any(part for _, part in rows))
    device = running.device
    for entry, part in rows:
        thread = subject.entry_thread(entry)
        if device.head(thread) != entry or (part == 1 and device.begun[thread]):
            continue
        if device.missing(thread, entry) is not None or not device.allows(entry):
            continue
        if not (running.begin(thread) if part == 1 else running.move(thread)):
            return running.finish(False)
    return drive(running, first_issued) if complete else running.finish(True)
