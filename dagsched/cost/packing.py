"""How much of an engine an op blocks, beside the cores that it takes: two ops of 3 of 4 cores never run at once.

A weighting gives every number of cores a weight, and the engine a room, such that cores that fit side by side have
weights that fit the room (a *dual feasible function*: Fekete and Schepers 2001, *New classes of fast lower bounds for
bin packing problems*). So the work of ops by their weights, over the room, is a limit as good as that by their cores,
and often a stronger one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

_SEVERAL = 12
"""Weightings by how many ops fit side by side are tried up to this many."""


@dataclass(frozen=True, slots=True)
class Weighting:
    """``weights`` by number of cores, the least that no set of ops side by side exceeds is ``room``.

    ``plain``: the weights are the cores themselves.
    """

    weights: Mapping[int, int]
    room: int
    plain: bool = False


def find_weightings(shares: Iterable[int], capacity: int) -> list[Weighting]:
    """The weightings that may give a stronger limit than the plain one, which is the first."""
    sizes = sorted(set(shares))
    found = [Weighting({size: size for size in sizes}, capacity, plain=True)]
    seen = {tuple(Fraction(size, capacity) for size in sizes)}
    for weights, room in _functions(sizes, capacity):
        row = tuple(Fraction(weights[size], room) for size in sizes)
        if row in seen or any(all(a <= b for a, b in zip(row, other, strict=True)) for other in seen):
            continue
        seen.add(row)
        found.append(Weighting(weights, room))
    return found


def _functions(sizes: list[int], capacity: int) -> Iterator[tuple[dict[int, int], int]]:
    for several in range(1, min(_SEVERAL, capacity - 1) + 1):
        yield {size: _rounded(size, several, capacity) for size in sizes}, capacity * several
    for least in sorted({min(size, capacity - size + 1) for size in sizes}):
        if 0 < 2 * least <= capacity:
            yield {size: _cut(size, least, capacity) for size in sizes}, capacity


def _rounded(size: int, several: int, capacity: int) -> int:
    """Of ``several`` equal places (for 1: an op of more than half of the cores takes all, others none or their own)."""
    places, rest = divmod((several + 1) * size, capacity)
    return size * several if rest == 0 else places * capacity


def _cut(size: int, least: int, capacity: int) -> int:
    """Ops beside which not even ``least`` cores are left take all; those of fewer than ``least`` count for nothing."""
    if size > capacity - least:
        return capacity
    return 0 if size < least else size
