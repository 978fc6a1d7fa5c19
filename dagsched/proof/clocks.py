"""Happens-before of a compiled schedule, by vector clocks, as the host issues it.

Every stream (and the host) has a clock: for each stream, how many of its ops are known to be done before whatever comes
next. An op, when issued, takes over the host's clock; a record keeps its stream's clock under the handle; a wait joins
the clock that the handle holds *at that moment*, which is the latch rule; a sync joins a stream's clock into the
host's. That is all that orders (streams are in order, the host issues in order).

A clock is never changed once it has been handed on, so that an op, its stream and the records behind it share one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

MANY_STREAMS = 48
"""From so many streams on clocks are arrays, which are then joined more quickly than lists."""

Clock: TypeAlias = "list[int] | NDArray[int64]"
"""For each stream, how many of its ops are done."""


@dataclass(slots=True, eq=False)
class Instance:
    """One op instance as issued: ``position`` is its place in its stream from 1, ``clock`` what is done after it.

    ``waits`` are those issued right before it, ``before`` the newest instance of its stream before it that has any.
    Where there are waits, ``rank`` says how many such instances stand before it, and ``jump`` is one of them, so far
    back that any is found in O(log n) steps (E. W. Myers, An applicative random-access stack, 1983).
    """

    name: str
    segment: int
    iteration: int
    stream: int
    position: int
    clock: Clock
    waits: tuple[Joined, ...] = ()
    before: Instance | None = None
    rank: int = 0
    jump: Instance | None = None


@dataclass(slots=True, eq=False)
class Recorded:
    """What a handle holds: the stream's clock and last op, the record's index and the segment of that index."""

    clock: Clock
    last: Instance | None
    index: int | None
    segment: int
    event: str


@dataclass(frozen=True, slots=True)
class Joined:
    """A wait that has bound: to which record, and whether it named it by index."""

    recorded: Recorded
    index: int | None


@dataclass(slots=True)
class Clocks:
    """Happens-before while a schedule is issued; ``met`` is the clock of the host that each stream has last joined."""

    streams: int
    join: Callable[[Clock, Clock], Clock] = field(init=False)
    clocks: list[Clock] = field(default_factory=list)
    host: Clock = field(default_factory=list)
    met: list[Clock] = field(default_factory=list)
    issued: list[int] = field(default_factory=list)
    newest: list[Instance | None] = field(default_factory=list)
    handles: dict[tuple[str, int], Recorded] = field(default_factory=dict)
    pending: dict[int, list[Joined]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        start, self.join = _clock_of(self.streams)
        self.host = start
        self.clocks = [start] * self.streams
        self.met = [start] * self.streams
        self.issued = [0] * self.streams
        self.newest = [None] * self.streams

    def issue(self, name: str, segment: int, iteration: int, stream: int) -> Instance:
        """Issue an op."""
        clock = self._meet_host(stream).copy()
        self.issued[stream] += 1
        clock[stream] = self.issued[stream]
        waits = tuple(self.pending.pop(stream, ()))
        newest = self.newest[stream]
        before = newest if newest is None or newest.waits else newest.before
        instance = Instance(name, segment, iteration, stream, self.issued[stream], clock, waits, before)
        if waits and before is not None:
            instance.rank, instance.jump = before.rank + 1, _far_before(before)
        self.clocks[stream] = clock
        self.newest[stream] = instance
        return instance

    def record(self, handle: tuple[str, int], index: int | None, segment: int, stream: int) -> None:
        """Record a stream's progress into a handle."""
        self.handles[handle] = Recorded(self._meet_host(stream), self.newest[stream], index, segment, handle[0])

    def wait(self, handle: tuple[str, int], index: int | None, stream: int) -> Recorded | None:
        """Let a stream wait for what a handle holds now; None where it holds nothing."""
        recorded = self.handles.get(handle)
        if recorded is not None:
            self.clocks[stream] = self.join(self.clocks[stream], recorded.clock)
            self.pending.setdefault(stream, []).append(Joined(recorded, index))
        return recorded

    def sync(self, stream: int | None) -> None:
        """Let the host wait for a stream, or for all."""
        for number in range(self.streams) if stream is None else (stream,):
            self.host = self.join(self.host, self.clocks[number])

    def _meet_host(self, stream: int) -> Clock:
        """What a stream knows once the host has issued something to it: all that the host knew by then."""
        if self.met[stream] is not self.host:
            self.met[stream] = self.host
            self.clocks[stream] = self.join(self.clocks[stream], self.host)
        return self.clocks[stream]


def _far_before(before: Instance) -> Instance:
    """Where the instance with waits behind this one jumps to: twice as far where two jumps of one length follow."""
    far = before.jump
    if far is not None and far.jump is not None and before.rank - far.rank == far.rank - far.jump.rank:
        return far.jump
    return before


def _clock_of(streams: int) -> tuple[Clock, Callable[[Clock, Clock], Clock]]:
    """A clock of nothing done, and how two are joined."""
    if streams < MANY_STREAMS:
        return [0] * streams, lambda mine, other: list(map(max, mine, other))
    import numpy

    return numpy.zeros(streams, dtype=numpy.int64), numpy.maximum


def precedes(first: Instance, second: Instance) -> bool:
    """Whether happens-before orders the first instance before the second."""
    if first.stream == second.stream:
        return first.position < second.position
    return bool(second.clock[first.stream] >= first.position)
