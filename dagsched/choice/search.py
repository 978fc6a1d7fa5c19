"""Local search: move one op to another stream or place, join or split streams, and keep what is no worse.

Every neighbour respects the order of the problem and its pins, and is simulated whole, calls included. The number of
simulations is bounded by the work that they are, not by a clock, and the pseudo-random sequence is fixed: the same plan
always gives the same schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import exp, log
from random import Random

from dagsched.choice.evaluate import Score, find_waits, score_candidate
from dagsched.choice.problem import FREE, Candidate, Problem

_COOLING = 0.02
"""A move that costs this share of the makespan is taken with probability 1/e at the beginning."""


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate with its score."""

    score: Score
    candidate: Candidate


Judge = Callable[[Problem, Candidate], Score]
"""What tells a candidate's score."""

Propose = Callable[[Problem, Candidate, Random], Candidate | None]
"""What makes another candidate of one (None: not this time)."""


def search_nearby(
    problem: Problem,
    start: Found,
    steps: int,
    limit: int,
    judge: Judge = score_candidate,
    propose: Propose | None = None,
) -> Found:
    """The best that at most ``steps`` simulations find from ``start``; ends early at ``limit`` ticks, a lower bound."""
    propose = propose or propose_neighbour
    rng = Random(2)
    best = here = start
    for step in range(steps):
        if best.score.ticks <= limit:
            break
        candidate = propose(problem, here.candidate, rng)
        if candidate is None:
            continue
        score = judge(problem, candidate)
        heat = _COOLING * best.score.ticks * (1 - step / steps)
        worse = score.ticks - here.score.ticks
        if score <= here.score or (heat > 0 and worse < -heat * log(max(rng.random(), exp(-30)))):
            here = Found(score, candidate)
        if score < best.score:
            best = here = Found(score, candidate)
        elif step % max(50, steps // 8) == 0:
            here = best
    return best


def simplify(problem: Problem, start: Found, steps: int, judge: Judge = score_candidate) -> Found:
    """The same makespan with fewer waits and streams, where at most ``steps`` simulations find it.

    Streams are joined, then ops moved to the streams of what they wait for, then the order written is tried.
    """
    best = start
    for _ in range(2):
        before = best
        for candidate in islice(_simpler(problem, best.candidate), steps // 2):
            merged = _overlay(start=before.candidate, change=candidate, onto=best.candidate)
            score = judge(problem, merged)
            if score < best.score:
                best = Found(score, merged)
        if best is before:
            break
    written = replace(best.candidate, order=tuple(range(len(problem))))
    score = judge(problem, written)
    return Found(score, written) if score <= best.score else best


def _simpler(problem: Problem, candidate: Candidate) -> Iterator[Candidate]:
    """Candidates of the same order: two streams joined, the smallest first; one op moved to what it waits for."""
    members = Counter(candidate.stream_of)
    first = len(problem.pinned)
    used = sorted((stream for stream in members if stream >= first), key=lambda stream: (members[stream], stream))
    for gone, kept in combinations(used, 2):
        yield replace(candidate, stream_of=_joined(problem, candidate.stream_of, gone, kept))
    for op, row in zip(candidate.order, find_waits(problem, candidate), strict=True):
        for target in dict.fromkeys(candidate.stream_of[earlier] for earlier in row):
            if problem.pin[op] == FREE and target >= first:
                yield replace(candidate, stream_of=_moved(candidate.stream_of, op, target))


def _overlay(start: Candidate, change: Candidate, onto: Candidate) -> Candidate:
    """What a change makes of ``start``, made of ``onto``."""
    rows = zip(start.stream_of, change.stream_of, onto.stream_of, strict=True)
    return replace(onto, stream_of=tuple(new if new != old else kept for old, new, kept in rows))


def _moved(stream_of: Sequence[int], op: int, target: int) -> tuple[int, ...]:
    return (*stream_of[:op], target, *stream_of[op + 1 :])


def propose_neighbour(problem: Problem, candidate: Candidate, rng: Random) -> Candidate | None:
    """One op on another stream or in another place, two streams joined, or their ends changed."""
    kind = rng.randrange(10)
    if kind < 4:
        return _move_stream(problem, candidate, rng)
    if kind < 8:
        return _move_place(problem, candidate, rng)
    return _join_streams(problem, candidate, rng) if kind < 9 else _swap_ends(problem, candidate, rng)


def _move_stream(problem: Problem, candidate: Candidate, rng: Random) -> Candidate | None:
    """One op on another stream, perhaps a new one, perhaps that of an op that it comes after."""
    op = rng.randrange(len(problem))
    targets = _open_streams(problem, candidate)
    if problem.pin[op] != FREE or not targets:
        return None
    near = [candidate.stream_of[other] for other in (*problem.before[op], *problem.after[op])]
    near = [stream for stream in near if stream in targets]
    target = rng.choice(near if near and rng.random() < 0.5 else targets)
    if target == candidate.stream_of[op]:
        return None
    return replace(candidate, stream_of=_moved(candidate.stream_of, op, target))


def _move_place(problem: Problem, candidate: Candidate, rng: Random) -> Candidate | None:
    """One op earlier or later in issue order, as far as what it comes after and what comes after it allow."""
    order = list(candidate.order)
    here = rng.randrange(len(order))
    op = order[here]
    before, after, part = problem.before[op], problem.after[op], problem.segment[op]
    reach = 1 + int(rng.expovariate(1.0) * max(2, len(order) // 16))
    low, high = max(0, here - reach), min(len(order) - 1, here + reach)
    for place in range(here - 1, low - 1, -1):
        if order[place] in before or problem.segment[order[place]] != part:
            low = place + 1
            break
    for place in range(here + 1, high + 1):
        if order[place] in after or problem.segment[order[place]] != part:
            high = place - 1
            break
    target = rng.randint(low, high)
    if target == here:
        return None
    order.insert(target, order.pop(here))
    return replace(candidate, order=tuple(order))


def _join_streams(problem: Problem, candidate: Candidate, rng: Random) -> Candidate | None:
    """All that may move of one stream on another."""
    used = sorted(set(candidate.stream_of))
    gone, kept = rng.choice(used), rng.choice(used)
    if gone == kept or kept < len(problem.pinned):
        return None
    return replace(candidate, stream_of=_joined(problem, candidate.stream_of, gone, kept))


def _swap_ends(problem: Problem, candidate: Candidate, rng: Random) -> Candidate | None:
    """From some point in issue order on, two streams change their ops."""
    used = [stream for stream in sorted(set(candidate.stream_of)) if stream >= len(problem.pinned)]
    if len(used) < 2:
        return None
    first, second = rng.sample(used, 2)
    stream_of = list(candidate.stream_of)
    for op in candidate.order[rng.randrange(len(problem)) :]:
        if problem.pin[op] == FREE and stream_of[op] in (first, second):
            stream_of[op] = first + second - stream_of[op]
    return replace(candidate, stream_of=tuple(stream_of))


def _open_streams(problem: Problem, candidate: Candidate) -> list[int]:
    """Streams that an op may move to: those in use that no op is pinned to, and one more where that is allowed."""
    used = set(candidate.stream_of)
    first = len(problem.pinned)
    found = sorted(stream for stream in used if stream >= first)
    if len(used | set(range(first))) < problem.most:
        found.append(next(stream for stream in range(first, first + len(used) + 1) if stream not in used))
    return found


def _joined(problem: Problem, stream_of: Sequence[int], gone: int, kept: int) -> tuple[int, ...]:
    return tuple(
        kept if stream == gone and pin == FREE else stream for stream, pin in zip(stream_of, problem.pin, strict=True)
    )
