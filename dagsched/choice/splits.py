"""The small changes first: ops of one stream get another, and everything else stays.

What a policy puts on one stream often holds itself up in one place only. Moving one op, or a few neighbours, to a new
stream or to another of the same kind is tried for all of them, the best is taken, and again from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dagsched.choice.problem import FREE, Candidate, Problem
from dagsched.choice.search import Found, Judge

_LONG = 10
"""A stream of more ops than this is only cut into a beginning and a rest, and single ops are moved."""


def split_streams(
    problem: Problem,
    start: Found,
    steps: int,
    limit: int,
    judge: Judge,
    movable: frozenset[int] | None = None,
) -> tuple[Found, int]:
    """The best by such changes, each of which gains, and how many of ``steps`` runs are left; ends at ``limit``.

    ``movable`` are the ops that may be moved (None: all that are not pinned).
    """
    free = frozenset(op for op, pin in enumerate(problem.pin) if pin == FREE and (movable is None or op in movable))
    best = start
    while best.score.ticks > limit:
        here = best
        for candidate in _changes(problem, here.candidate, free):
            if steps <= 0:
                return best, 0
            steps -= 1
            score = judge(problem, candidate)
            if score < best.score:
                best = Found(score, candidate)
        if best.score.ticks == here.score.ticks:
            return here, steps
    return best, steps


def _changes(problem: Problem, candidate: Candidate, free: frozenset[int]) -> Iterator[Candidate]:
    """Runs of neighbours on a new stream, then single ops on one that exists."""
    rows: dict[int, list[int]] = {}
    for op in candidate.order:
        rows.setdefault(candidate.stream_of[op], []).append(op)
    first = len(problem.pinned)
    more = len(set(rows) | set(range(first))) < problem.most
    if more:
        fresh = next(stream for stream in range(first, first + len(rows) + 1) if stream not in rows)
        for row in rows.values():
            for run in _runs(len(row)):
                if free.issuperset(row[run]):
                    yield _move(candidate, row[run], fresh)
    kinds = {stream: {_kind(problem, op, more) for op in row} for stream, row in rows.items()}
    for stream, row in rows.items():
        for op in row:
            for target in rows:
                if op in free and target != stream and target >= first and _kind(problem, op, more) in kinds[target]:
                    yield _move(candidate, [op], target)


def _kind(problem: Problem, op: int, fine: bool) -> tuple[bool, int]:
    """What streams have in common: the engine where there may be more of them, else only host or device."""
    return problem.host[op], problem.engine[op] if fine else 0


def _runs(size: int) -> Iterator[slice]:
    """Neighbours in a stream, all but not all of it."""
    for begin in range(size):
        for end in range(begin + 1, size + 1):
            whole = begin == 0 and end == size
            if not whole and (size <= _LONG or end == size or end == begin + 1):
                yield slice(begin, end)


def _move(candidate: Candidate, ops: list[int], target: int) -> Candidate:
    stream_of = list(candidate.stream_of)
    for op in ops:
        stream_of[op] = target
    return replace(candidate, stream_of=tuple(stream_of))
