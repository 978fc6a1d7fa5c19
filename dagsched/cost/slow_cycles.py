"""Whether a loop's graph has a cycle that is too slow, kept up to date while some of its edges change.

Longest paths as Bellman and Ford find them, from a line of ops whose successors have still to be looked at. A change
touches few ops, so the next answer starts from the labels of the last one: any labels will do to begin with, since they
settle exactly where no cycle is too slow. That makes a search over depths cost about as much as one answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dagsched.cost.bounds import Edge

FIXED = -1
"""The owner of edges that never change."""

_Link = tuple[int, int, int]
"""(op before, weight, owner): what gave an op its label."""


class SlowCycles:
    """A graph of ops with ``ticks``, and cycles that take longer than ``ratio`` ticks for each iteration they span."""

    def __init__(self, ticks: Sequence[int], fixed: Iterable[Edge], ratio: Fraction) -> None:
        self.gain = [ticks_ * ratio.denominator for ticks_ in ticks]
        self.cost = ratio.numerator
        self.after: list[list[_Link]] = [[] for _ in ticks]  # (op after, weight, owner)
        self.label = [0] * len(ticks)
        self.by: list[_Link | None] = [None] * len(ticks)
        self.line = deque(range(len(ticks)))
        self.waiting = [True] * len(ticks)
        self.sources: dict[int, set[int]] = {}
        self._add(FIXED, fixed)

    def change(self, owner: int, edges: Iterable[Edge]) -> None:
        """Replace all edges of an owner."""
        for before in self.sources.pop(owner, ()):
            for after, _, whose in self.after[before]:
                link = self.by[after]
                if whose == owner and link is not None and link[2] == owner:
                    self.by[after] = None
            self.after[before] = [link for link in self.after[before] if link[2] != owner]
        self._add(owner, edges)

    def find(self) -> list[int] | None:
        """The owners of the edges of a cycle that is too slow, sorted and without ``FIXED``; None: there is none."""
        label, by, after, line, waiting = self.label, self.by, self.after, self.line, self.waiting
        changes, patience = 0, max(16, len(label) // 2)
        while line:
            before = line.popleft()
            waiting[before] = False
            here = label[before]
            for op, weight, owner in after[before]:
                if here + weight > label[op]:
                    label[op] = here + weight
                    by[op] = before, weight, owner
                    changes += 1
                    if not waiting[op]:
                        waiting[op] = True
                        line.append(op)
                    if op == before:
                        return [] if owner == FIXED else [owner]
            if changes >= patience:
                changes = 0
                cycle = self._cycle()
                if cycle is not None:
                    return sorted({owner for owner in cycle if owner != FIXED})
        return None

    def save(self) -> tuple[list[int], list[_Link | None], tuple[int, ...]]:
        """How far the search for slow cycles has come, to return to with :meth:`restore`."""
        return list(self.label), list(self.by), tuple(self.line)

    def restore(self, saved: tuple[list[int], list[_Link | None], tuple[int, ...]]) -> None:
        """Go back to what was saved when every edge was as it is now."""
        for op in self.line:
            self.waiting[op] = False
        self.label, self.by, self.line = list(saved[0]), list(saved[1]), deque(saved[2])
        for op in self.line:
            self.waiting[op] = True

    def _add(self, owner: int, edges: Iterable[Edge]) -> None:
        sources = self.sources.setdefault(owner, set())
        for before, after, distance in edges:
            self.after[before].append((after, self.gain[before] - distance * self.cost, owner))
            sources.add(before)
            if not self.waiting[before]:
                self.waiting[before] = True
                self.line.append(before)

    def _cycle(self) -> list[int] | None:
        """Owners along a cycle of what gave the ops their labels: such a cycle is too slow."""
        seen = [0] * len(self.by)
        for root in range(len(self.by)):
            at = root
            link = self.by[at]
            while seen[at] == 0:
                seen[at] = root + 1
                link = self.by[at]
                if link is None:
                    break
                at = link[0]
            if link is None or seen[at] != root + 1:
                continue
            owners, end = [], at
            while True:
                link = self.by[at]
                assert link is not None
                owners.append(link[2])
                at = link[0]
                if at == end:
                    return owners
        return None
