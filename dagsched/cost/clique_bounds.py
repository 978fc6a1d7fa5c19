"""A limit from ops of which no two can run side by side, on whatever engines: they take the sum of their durations.

Two ops exclude each other where one must come before the other, or where one engine has not room for both. A set of
such ops is a single machine's work, with what must come before and after it (the same sets give node limits in exact
methods: Brucker, Knust, Schoo and Thiele 1998, *A branch and bound algorithm for the resource-constrained project
scheduling problem*). Heavy sets are looked for greedily: any set gives a limit, so that one which is missed makes it
weaker, never wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from dagsched.cost.bounds import Bound
from dagsched.cost.packing import Weighting
from dagsched.cost.run_bounds import Run, find_strongest, round_up

_MOST = 600
"""Runs of more instances are not looked at: the sets are found in quadratic time."""

_ORDERS = 60
"""How many sets are tried."""

_SHOWN = 6


def bound_cliques(run: Run, lanes: Sequence[int], best: Bound) -> Bound:
    """The strongest limit of such a set, or ``best`` where none is stronger; the same for the same run."""
    members = [p for p, ticks in enumerate(run.ticks) if ticks]
    if not 2 <= len(members) <= _MOST:
        return best
    excluded = find_exclusions(run, lanes)
    single = Weighting(dict.fromkeys(run.share, 1), 1)
    rng = Random(1)
    seen: set[int] = set()
    for number in range(_ORDERS):
        shaken = {p: run.ticks[p] * (1.0 if number == 0 else rng.uniform(0.4, 1.0)) for p in members}
        order = sorted(members, key=lambda p: (-shaken[p], p))
        first = members[number % len(members)] if number % 2 else order[0]
        chosen, free = [first], excluded[first]
        for p in order:
            if free >> p & 1:
                chosen.append(p)
                free &= excluded[p]
        key = sum(1 << p for p in chosen)
        if key in seen:
            continue
        seen.add(key)
        ticks, least, tail = find_strongest(run, chosen, single)
        limit = round_up(ticks, run.unit)
        if limit > best.ticks:
            inside = [p for p in sorted(chosen) if run.heads[p] >= least and run.tails[p] >= tail]
            best = Bound(limit, reason=_describe(run, inside))
    return best


def find_exclusions(run: Run, lanes: Sequence[int]) -> list[int]:
    """For each instance those that never run at the same time, as bits of an integer."""
    excluded = [0] * len(run.ticks)
    above = [0] * len(run.ticks)
    for p, row in enumerate(run.before):
        for earlier in row:
            above[p] |= above[earlier] | 1 << earlier
        excluded[p] |= above[p]
    for p in range(len(run.ticks) - 1, -1, -1):
        bits = above[p]
        while bits:
            earlier = bits & -bits
            excluded[earlier.bit_length() - 1] |= 1 << p
            bits ^= earlier
    sizes: dict[tuple[int, int], int] = {}
    for p, (engine, share) in enumerate(zip(run.engine, run.share, strict=True)):
        sizes[engine, share] = sizes.get((engine, share), 0) | 1 << p
    for p, (engine, share) in enumerate(zip(run.engine, run.share, strict=True)):
        for (other, size), bits in sizes.items():
            if other == engine and share + size > lanes[engine]:
                excluded[p] |= bits
        excluded[p] &= ~(1 << p)
    return excluded


def _describe(run: Run, inside: list[int]) -> str:
    names = [run.names[p] for p in inside]
    shown = names if len(names) <= _SHOWN else [*names[: _SHOWN - 1], "..."]
    return f"{len(names)} ops of which no two run side by side: {', '.join(shown)}"
