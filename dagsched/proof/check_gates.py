"""What opens a gate, kept up to date: thousands of takes may each need another number of the same thousands of sets.

Two questions are asked of a gate's candidates again and again: how many of them have run (:class:`Tally`), and what is
certain once any k of them have (:class:`Board`). Both are told of each change, and answer without looking at them all.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

from dagsched.proof.check_expand import Program

Clock = dict[int, int]
"""As in ``check_clock``: thread → how much of its work is certain, threads of which nothing is known left out."""

Gates = Mapping[int, tuple[int, tuple[int, ...]]]


class Tally:
    """How many candidates of each gate have run. Gates of the same candidates, which are one tuple, share a count."""

    def __init__(self, program: Program, gates: Gates) -> None:
        self.gates = gates
        self.groups: dict[int, int] = {}  # by the identity of the tuple, which the gates keep alive
        self.counts: list[int] = []
        self.lines: list[dict[int, list[int]]] = []  # per group and thread: what has not run, last first
        self.groups_of: dict[int, list[int]] = {}
        for _, candidates in gates.values():
            if id(candidates) in self.groups:
                continue
            group = self.groups[id(candidates)] = len(self.counts)
            lines: dict[int, list[int]] = {}
            for candidate in reversed(candidates):
                self.groups_of.setdefault(candidate, []).append(group)
                lines.setdefault(program.nodes[candidate].thread, []).append(candidate)
            self.counts.append(0)
            self.lines.append(lines)

    def run(self, program: Program, node: int) -> None:
        """Take note that a node has run; the nodes of a thread run in order."""
        for group in self.groups_of.get(node, ()):
            self.counts[group] += 1
            self.lines[group][program.nodes[node].thread].pop()

    def is_starved(self, node: int) -> bool:
        """Whether the gate of a node is still closed."""
        needed, candidates = self.gates.get(node, (0, ()))
        return needed > 0 and self.counts[self.groups[id(candidates)]] < needed

    def next(self, node: int) -> list[int]:
        """For each thread the next candidate of a node's gate that has not run."""
        _, candidates = self.gates[node]
        return [line[-1] for line in self.lines[self.groups[id(candidates)]].values() if line]


class Board:
    """What the candidates of a gate are certain of once they have run, for each thread in order of how much."""

    def __init__(self) -> None:
        self.published: dict[int, Clock] = {}
        self.values: dict[int, list[int]] = {}
        self.known: dict[int, Clock] = {}

    def publish(self, candidate: int, clock: Clock) -> None:
        """Enter a candidate's clock, itself included; it replaces the one from before."""
        old = self.published.get(candidate, {})
        self.published[candidate] = clock
        self.known = {}
        for thread, work in old.items():
            if clock.get(thread) != work:
                line = self.values[thread]
                del line[bisect_left(line, work)]
        for thread, work in clock.items():
            if old.get(thread) != work:
                insort(self.values.setdefault(thread, []), work)

    def certain(self, needed: int) -> Clock:
        """What holds once ``needed`` of the candidates have run, whichever: per thread the needed-th smallest."""
        known = self.known.get(needed)
        if known is None:
            known = self.known[needed] = {}
            ignorant = len(self.published) - needed + 1  # so many know at least as much as the needed-th
            for thread, line in self.values.items():
                if 0 < ignorant <= len(line):
                    known[thread] = line[-ignorant]
        return known
