"""Happens-before of a compiled schedule, by vector clocks, as the host issues it.

Every stream (and the host) has a clock: for each stream, how many of its ops are known to be done before whatever comes
next. An op, when issued, takes over the host's clock; a record keeps its stream's clock under the handle; a wait joins
the clock that the handle holds *at that moment*, which is the latch rule; a sync joins a stream's clock into the
host's. That is all that orders (streams are in order, the host issues in order).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Instance:
    """One op instance as issued: ``clock`` is what it comes after, ``position`` its place in its stream from 1.

    ``waits`` are those issued right before it, ``before`` the newest instance of its stream before it that has any.
    """

    name: str
    segment: int
    iteration: int
    stream: int
    position: int
    clock: list[int]
    waits: tuple[Joined, ...] = ()
    before: Instance | None = None


@dataclass(slots=True, eq=False)
class Recorded:
    """What a handle holds: the stream's clock and last op, the record's index and the segment of that index."""

    clock: list[int]
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
    """The state of happens-before while a schedule is issued."""

    streams: int
    clocks: list[list[int]] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    issued: list[int] = field(default_factory=list)
    newest: list[Instance | None] = field(default_factory=list)
    handles: dict[tuple[str, int], Recorded] = field(default_factory=dict)
    pending: dict[int, list[Joined]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clocks = [[0] * self.streams for _ in range(self.streams)]
        self.host = [0] * self.streams
        self.issued = [0] * self.streams
        self.newest = [None] * self.streams

    def issue(self, name: str, segment: int, iteration: int, stream: int) -> Instance:
        """Issue an op."""
        clock = list(map(max, self.clocks[stream], self.host))
        self.issued[stream] += 1
        waits = tuple(self.pending.pop(stream, ()))
        newest = self.newest[stream]
        before = newest if newest is None or newest.waits else newest.before
        instance = Instance(name, segment, iteration, stream, self.issued[stream], clock, waits, before)
        after = list(clock)
        after[stream] = self.issued[stream]
        self.clocks[stream] = after
        self.newest[stream] = instance
        return instance

    def record(self, handle: tuple[str, int], index: int | None, segment: int, stream: int) -> None:
        """Record a stream's progress into a handle."""
        clock = list(map(max, self.clocks[stream], self.host))
        self.handles[handle] = Recorded(clock, self.newest[stream], index, segment, handle[0])

    def wait(self, handle: tuple[str, int], index: int | None, stream: int) -> Recorded | None:
        """Let a stream wait for what a handle holds now; None where it holds nothing."""
        recorded = self.handles.get(handle)
        if recorded is not None:
            self.clocks[stream] = list(map(max, self.clocks[stream], recorded.clock))
            self.pending.setdefault(stream, []).append(Joined(recorded, index))
        return recorded

    def sync(self, stream: int | None) -> None:
        """Let the host wait for a stream, or for all."""
        for number in range(self.streams) if stream is None else (stream,):
            self.host = list(map(max, self.host, self.clocks[number]))


def precedes(first: Instance, second: Instance) -> bool:
    """Whether happens-before orders the first instance before the second."""
    if first.stream == second.stream:
        return first.position < second.position
    return second.clock[first.stream] >= first.position
