"""What stands before, between and behind open loops: as few streams moved as bring the run of few iterations forward.

An open loop is judged by its interval alone, which says nothing of the ops around it. Those are moved here, and nothing
else: runs of them to new streams, and each segment into the order of its longest chains, where the model of a run with
``ITERATIONS`` iterations of every loop gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from dagsched.choice.evaluate import Score
from dagsched.choice.priorities import rank_upward
from dagsched.choice.problem import Candidate, Problem
from dagsched.choice.restore import restore_known
from dagsched.choice.rounds import Part, Rounds, score_rounds
from dagsched.choice.search import Found
from dagsched.choice.splits import split_streams

ITERATIONS = 3
"""Iterations of each open loop in a run by which the ops around loops are judged."""

WORTH = 0.02
"""What a change must save, as a share of the time that these ops take one after another."""


def propose_ends(rounds: Rounds, start: Candidate, steps: int) -> Candidate | None:
    """``start`` with ops outside loops on other streams or in another order, where that saves enough of the run."""
    problem = rounds.problem
    parts = [part for stretch in rounds.stretches for part in stretch.parts if not part.looped]
    straight = frozenset(op for part in parts for op in range(part.first, part.first + part.size))
    if len(straight) < 2:
        return None

    def judge(_: Problem, candidate: Candidate) -> Score:
        return score_rounds(rounds, candidate)

    known = Found(judge(problem, start), start)
    best = known
    for candidate in (start, *_reordered(problem, parts, start)):
        found, steps = split_streams(problem, Found(judge(problem, candidate), candidate), steps, 0, judge, straight)
        best = min(best, found, key=lambda found: found.score.ticks)
    if known.score.ticks - best.score.ticks < WORTH * sum(problem.ticks[op] for op in straight):
        return None
    return restore_known(problem, best, start, 200, judge).candidate


def _reordered(problem: Problem, parts: Sequence[Part], start: Candidate) -> Iterator[Candidate]:
    """The segments outside loops with the longest chains first, where that is another order."""
    ranks = rank_upward(problem)
    order = list(start.order)
    for part in parts:
        row = order[part.first : part.first + part.size]
        order[part.first : part.first + part.size] = _sort(problem, row, ranks)
    if order != list(start.order):
        yield replace(start, order=tuple(order))


def _sort(problem: Problem, row: list[int], ranks: list[int]) -> list[int]:
    """A topological order of some ops, the most urgent first."""
    own = set(row)
    missing = {op: sum(earlier in own for earlier in problem.before[op]) for op in row}
    ready = [(ranks[op], op) for op in row if not missing[op]]
    heapify(ready)
    found: list[int] = []
    while ready:
        op = heappop(ready)[1]
        found.append(op)
        for later in problem.after[op]:
            if later in own:
                missing[later] -= 1
                if not missing[later]:
                    heappush(ready, (ranks[later], later))
    return found
