"""Undo what a search has changed for nothing: the same time, as near to a known candidate as it can be.

A search moves ops wherever the time allows. People read the result, and know the plan's order and what a policy does;
so whatever brings nothing goes back: the order, late ops, then op by op the streams, and streams that the search has
opened are joined where that loses nothing (those of the same engines only).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from dagsched.choice.problem import FREE, Candidate, Problem
from dagsched.choice.search import Found, Judge


def restore_known(problem: Problem, found: Found, known: Candidate, steps: int, judge: Judge) -> Found:
    """What takes no longer than ``found`` and differs less from ``known``, by at most ``steps`` runs of the model."""
    best = found
    before: Found | None = None
    while best is not before:
        before = best
        for changes in (_when_known, _streams, _order, _joins):
            progress = True
            while progress:
                progress = False
                for candidate in changes(problem, best.candidate, known):
                    if steps <= 0:
                        return best
                    steps -= 1
                    score = judge(problem, candidate)
                    if score.ticks <= best.score.ticks:
                        best, progress = Found(score, candidate), True
                        break
    return best


def _when_known(problem: Problem, candidate: Candidate, known: Candidate) -> Iterator[Candidate]:
    """Everything issued when and in the order that is known, or one of both."""
    if candidate.order != known.order and candidate.late:
        yield replace(candidate, order=known.order, late=())
    for most in range(max(candidate.late, default=0)):
        yield replace(candidate, late=tuple(min(late, most) for late in candidate.late) if most else ())
    if candidate.order != known.order:
        yield replace(candidate, order=known.order)


def _streams(problem: Problem, candidate: Candidate, known: Candidate) -> Iterator[Candidate]:
    """All ops of a stream back where they were, then each alone."""
    moved = [op for op in candidate.order if candidate.stream_of[op] != known.stream_of[op]]
    groups = [
        [op for op in moved if candidate.stream_of[op] == stream]
        for stream in sorted({candidate.stream_of[op] for op in moved})
    ]
    for group in [*(group for group in groups if len(group) > 1), *([op] for op in moved)]:
        stream_of = list(candidate.stream_of)
        for op in group:
            stream_of[op] = known.stream_of[op]
        yield replace(candidate, stream_of=tuple(stream_of))


def _order(problem: Problem, candidate: Candidate, known: Candidate) -> Iterator[Candidate]:
    """Neighbours in the wrong order change places."""
    place = {op: n for n, op in enumerate(known.order)}
    for at in range(len(candidate.order) - 1):
        first, second = candidate.order[at : at + 2]
        if place[first] > place[second] and first not in problem.before[second]:
            order = list(candidate.order)
            order[at : at + 2] = second, first
            yield replace(candidate, order=tuple(order))


def _joins(problem: Problem, candidate: Candidate, known: Candidate) -> Iterator[Candidate]:
    """Two streams for the same engines in one, of which one is new."""
    new = sorted(set(candidate.stream_of) - set(known.stream_of))
    kinds: dict[int, set[tuple[bool, int]]] = {}
    for op, stream in enumerate(candidate.stream_of):
        kinds.setdefault(stream, set()).add((problem.host[op], problem.engine[op]))
    kept = [stream for stream in sorted(kinds) if stream not in new and stream >= len(problem.pinned)]
    for gone, into in [*combinations(new, 2), *((gone, into) for gone in new for into in kept)]:
        if kinds[gone] == kinds[into]:
            moved = [pin == FREE and own == gone for own, pin in zip(candidate.stream_of, problem.pin, strict=True)]
            stream_of = tuple(into if move else own for own, move in zip(candidate.stream_of, moved, strict=True))
            yield replace(candidate, stream_of=stream_of)
