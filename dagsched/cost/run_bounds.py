"""How fast one run of some op instances could be on any schedule: limits that none can beat.

* the critical path: the longest chain of dependent instances, each issued after what it comes after;
* an engine's work over its capacity, in front of it what must come before all of that work, behind it what must come
  after (over all sets of instances with long heads and long tails: Carlier 1982, *The one-machine sequencing problem*);
* where that is weaker than a known makespan: ops of which no two can run side by side (``clique_bounds``), and in some
  interval the instances must put more work on an engine than it can do (Fernandez and Bussell 1973, *Bounds on the
  number of processors and time for multiprocessor optimal schedules*);
* the host's calls.

All times of a run are sums of durations and call costs, so a limit is rounded up to the next multiple of what divides
them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from dagsched.cost.bounds import ISSUING, Bound, describe_full
from dagsched.cost.packing import Weighting, find_weightings

_CELLS = 1 << 20
"""How many (head, instance) pairs are looked at for an engine: heads are a sample where there are more."""


@dataclass(frozen=True, slots=True)
class Run:
    """Instances as parallel lists, in a topological order; times in ticks.

    ``heads`` must pass before an instance can start and ``tails`` after its end; ``unit`` divides all times.
    """

    names: tuple[str, ...]
    ticks: tuple[int, ...]
    engine: tuple[int, ...]
    share: tuple[int, ...]
    before: tuple[tuple[int, ...], ...]
    heads: tuple[int, ...]
    tails: tuple[int, ...]
    issue: int
    unit: int


def make_run(
    names: Sequence[str],
    ticks: Sequence[int],
    engine: Sequence[int],
    share: Sequence[int],
    before: Sequence[Sequence[int]],
    calls: tuple[int, int, int] = (0, 0, 0),
) -> Run:
    """A run of instances, each after those in its row of ``before``; ``calls``: issue, record and wait in ticks."""
    issue = calls[0]
    heads: list[int] = []
    level: list[int] = []
    tails = [0] * len(ticks)
    for row in before:
        level.append(1 + max((level[p] for p in row), default=0))
        heads.append(max(max((heads[p] + ticks[p] for p in row), default=0), level[-1] * issue))
    for position in range(len(ticks) - 1, -1, -1):
        behind = tails[position] + ticks[position]
        for p in before[position]:
            tails[p] = max(tails[p], behind)
    return Run(
        names=tuple(names),
        ticks=tuple(ticks),
        engine=tuple(engine),
        share=tuple(share),
        before=tuple(map(tuple, before)),
        heads=tuple(heads),
        tails=tuple(tails),
        issue=issue,
        unit=max(1, gcd(*calls, *ticks)),
    )


def bound_run(run: Run, lanes: Sequence[int], engines: Sequence[str], most: int | None = None) -> Bound:
    """The strongest limit in ticks, with what binds.

    ``most`` is a makespan that some schedule reaches: the search for stronger limits ends there, and the one by
    intervals is made only where the others stay below it.
    """
    bounds = [_bound_path(run), _bound_calls(run)]
    for number, (name, capacity) in enumerate(zip(engines, lanes, strict=True)):
        members = [p for p, unit in enumerate(run.engine) if unit == number and run.ticks[p]]
        if members:
            weightings = find_weightings((run.share[p] for p in members), capacity)
            bounds += [_bound_engine(run, members, weighting, name) for weighting in weightings]
    best = max(bounds, key=lambda bound: bound.ticks)
    if most is not None and best.ticks < most:
        from dagsched.cost.clique_bounds import bound_cliques
        from dagsched.cost.interval_bounds import bound_intervals  # NumPy takes a while to load

        best = bound_cliques(run, lanes, best)
        for number, (name, capacity) in enumerate(zip(engines, lanes, strict=True)):
            members = [p for p, unit in enumerate(run.engine) if unit == number and run.ticks[p]]
            for weighting in find_weightings((run.share[p] for p in members), capacity):
                if members and best.ticks < most:
                    best = bound_intervals(run, members, weighting, name, best, most)
    return best


def round_up(ticks: Fraction | int, unit: int) -> Fraction:
    """The next multiple of ``unit``."""
    return Fraction(-(-ticks // unit) * unit)


def _bound_path(run: Run) -> Bound:
    ends = [head + ticks for head, ticks in zip(run.heads, run.ticks, strict=True)]
    if not ends:
        return Bound(Fraction(0))
    at = max(range(len(ends)), key=lambda p: ends[p])
    longest = ends[at]
    chain = [at]
    while run.before[at]:
        at = max(run.before[at], key=lambda p: ends[p])
        chain.append(at)
    return Bound(Fraction(longest), ops=tuple(run.names[p] for p in reversed(chain)))


def _bound_calls(run: Run) -> Bound:
    """The host issues all instances one after another, and the last must still run (it is one with nothing behind)."""
    last = [ticks for ticks, tail, p in zip(run.ticks, run.tails, range(len(run.ticks)), strict=True) if not tail]
    if not run.issue or not last:
        return Bound(Fraction(0))
    return Bound(Fraction(run.issue * len(run.ticks) + min(last)), reason=ISSUING)


def _bound_engine(run: Run, members: list[int], weighting: Weighting, name: str) -> Bound:
    """The most that (least head) + work / capacity + (least tail) gives over sets of instances."""
    members = [p for p in members if weighting.weights[run.share[p]]]
    exact, least, tail = find_strongest(run, members, weighting)
    ticks = round_up(exact, run.unit)
    if least <= run.issue and tail == 0 and all(run.heads[p] >= least for p in members):
        return Bound(ticks, engine=name) if weighting.plain else Bound(ticks, reason=describe_full(name))
    inside = [p for p in members if run.heads[p] >= least and run.tails[p] >= tail]
    return Bound(ticks, reason=_describe(run, inside, name, least, tail))


def find_strongest(run: Run, members: Sequence[int], weighting: Weighting) -> tuple[Fraction, int, int]:
    """That figure in ticks, with the least head and the least tail of the set that gives it."""
    weights, capacity = weighting.weights, weighting.room
    rows = [(run.heads[p], run.ticks[p] * weights[run.share[p]], capacity * run.tails[p]) for p in members]
    rows.sort(key=lambda row: -row[2])
    best, found = 0, (0, 0)
    heads = sample({head for head, _, _ in rows}, max(2, min(192, _CELLS // max(1, len(rows)))))
    for least in heads:
        work, base = 0, capacity * least
        for head, own, tail in rows:
            if head >= least:
                work += own
                if base + work + tail > best:
                    best, found = base + work + tail, (least, tail // capacity)
    return Fraction(best, capacity), *found


def _describe(run: Run, inside: list[int], name: str, head: int, tail: int) -> str:
    """``core is busy with 12 ops, not before a has ended, with z still to come``."""
    text = f"{name} is busy with {len(inside)} ops"
    first = min(inside, key=lambda p: run.heads[p])
    if head and run.before[first]:
        newest = max(run.before[first], key=lambda p: run.heads[p] + run.ticks[p])
        text += f", not before {run.names[newest]} has ended"
    if tail:
        text += f", with {run.names[_follower(run, inside)]} still to come"
    return text


def _follower(run: Run, inside: list[int]) -> int:
    """The instance that must come after the one of these with the least tail."""
    last = min(inside, key=lambda p: run.tails[p])
    for p, row in enumerate(run.before):
        if last in row and run.ticks[p] + run.tails[p] == run.tails[last]:
            return p
    return last


def sample(values: set[int], most: int) -> list[int]:
    """At most so many of the values in order, evenly spread; the least and the largest are among them."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return ordered
    return [ordered[n * (len(ordered) - 1) // (most - 1)] for n in range(most)]
