"""Find the waits that a choice of streams needs: all hazards between streams, less those that others imply.

Every stream has a vector clock: for each other stream, the newest op instance that is known to be done. What an
instance has to come after is looked at newest first; whatever the clock covers already is implied (by stream order, or
through a wait before, perhaps through a third stream) and dropped, anything else is waited for and its clock joined.

A path between two instances runs forward in the plan's order, so an edge that another path implies is implied by
edges from newer instances, which have been looked at before. Hence the waits are exactly the edges between streams of
the transitive reduction of (hazards and stream order): unique, so no schedule of the same order has fewer, and each of
them is needed. Linear in instances and hazards, times the number of streams.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from dagsched.hazards.clocks import MANY_STREAMS, Clock, make_clock
from dagsched.hazards.history import Dependencies
from dagsched.hazards.sweep import Clocks, Regime, Sample, Sweep, Walk, choose_samples, measure_loops

Reasons = frozenset[tuple[str, int]]
"""(buffer, union of kinds) of the hazards that a wait protects."""


@dataclass(frozen=True, slots=True)
class Need:
    """In sample ``sample``, iteration ``iteration`` of an op has to wait for iteration ``source`` of another."""

    sample: int
    iteration: int
    source: int
    reasons: Reasons


@dataclass(frozen=True, slots=True)
class Needs:
    """All waits of all samples by (waiting op, op waited for), with how many hazards crossed streams at all."""

    samples: tuple[Sample, ...]
    regimes: tuple[Regime, ...]
    by_pair: dict[tuple[int, int], list[Need]]
    found: int


class StreamClocks(Clocks):
    """The vector clocks of all streams."""

    def __init__(self, stream_of: list[int], streams: int) -> None:
        self.stream_of = stream_of
        start, self.merge = make_clock(streams)
        self.clocks = [start] * streams
        self.snapshots: dict[int, Clock] = {}
        self.placed: dict[int, int] = {}

    def visit(self, number: int, segment: int, iteration: int, sequence: int, found: Dependencies) -> None:
        """Let one instance wait for what it needs."""
        self.join(number, sequence, found)

    def join(self, number: int, sequence: int, found: Dependencies) -> list[int]:
        """The instances that have to be waited for, newest first."""
        own = self.stream_of[number]
        clock = self.clocks[own]
        waits = []
        for earlier in sorted({key[0] for key in found}, reverse=True):
            other = self.placed[earlier]
            if other != own and clock[other] < earlier:
                waits.append(earlier)
                clock = self.merge(clock, self.snapshots[earlier])
        clock = clock if waits else clock.copy()
        clock[own] = sequence
        self.clocks[own] = self.snapshots[sequence] = clock
        self.placed[sequence] = own
        return waits

    def state(self, walk: Walk, iteration: int) -> Callable[[Callable[[int], int]], object]:
        """Clocks as far as they can still matter: by rank among the instances that can still be conflicted with."""
        live = sorted(sequence for sequence in walk.live(iteration) if sequence in self.placed)
        by_stream: list[list[int]] = [[] for _ in self.clocks]
        for sequence in live:
            by_stream[self.placed[sequence]].append(sequence)

        ranks = _make_ranks(by_stream)

        def build(name: Callable[[int], int]) -> object:
            settled = {s for s in live if all(clock[self.placed[s]] >= s for clock in self.clocks)}
            rows = tuple((name(s), ranks(self.snapshots[s])) for s in live if s not in settled)
            return rows, tuple(ranks(clock) for clock in self.clocks)

        return build


def _make_ranks(by_stream: list[list[int]]) -> Callable[[Clock], object]:
    """A function that says how many of each stream's instances a clock covers."""
    if len(by_stream) < MANY_STREAMS:
        return lambda clock: tuple(map(bisect_right, by_stream, clock))
    import numpy

    stride = 2 + max((line[-1] for line in by_stream if line), default=0)
    shelf = numpy.array([n * stride + at for n, line in enumerate(by_stream) for at in line], dtype=numpy.int64)
    floor = numpy.arange(len(by_stream), dtype=numpy.int64) * stride
    # What a clock knows beyond the last instance that matters must not reach the next stream's.
    return lambda clock: shelf.searchsorted(numpy.minimum(clock, stride - 1) + floor, side="right").tobytes()


def find_needs(sweep: Sweep, stream_of: list[int]) -> Needs:
    """The waits for an assignment of ops (by number) to streams (numbered from 0)."""
    streams = max(stream_of, default=0) + 1
    regimes = measure_loops(sweep, StreamClocks(stream_of, streams))
    samples = choose_samples(sweep, regimes)
    by_pair: dict[tuple[int, int], list[Need]] = {}
    crossing: set[tuple[int, int, str, int]] = set()
    for index, sample in enumerate(samples):
        clocks = StreamClocks(stream_of, streams)
        place: dict[int, tuple[int, int]] = {}

        def visit(
            number: int,
            segment: int,
            iteration: int,
            sequence: int,
            found: Dependencies,
            clocks: StreamClocks = clocks,
            place: dict[int, tuple[int, int]] = place,
            index: int = index,
        ) -> None:
            place[sequence] = (number, iteration)
            for earlier in clocks.join(number, sequence, found):
                other, source = place[earlier]
                reasons = frozenset((buffer, kinds) for (at, buffer), kinds in found.items() if at == earlier)
                by_pair.setdefault((number, other), []).append(Need(index, iteration, source, reasons))
            for (earlier, buffer), kinds in found.items():
                other = place[earlier][0]
                if stream_of[other] != stream_of[number]:
                    crossing.add((other, number, buffer, kinds))

        sweep.run(sample, visit)
    return Needs(tuple(samples), regimes, by_pair, len(crossing))
