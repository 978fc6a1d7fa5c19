"""What is urgent: how much must still come after an op, and how much must have come before it.

An op's *tail* is the longest chain of successors behind it, its *head* the longest chain of predecessors in front.
"""

from __future__ import annotations

from dagsched.choice.problem import Problem


def find_tails(problem: Problem) -> list[int]:
    """Ticks that must pass between an op's end and the end of the run: its longest chain of successors."""
    ticks = problem.ticks
    tails = [0] * len(problem)
    for op in range(len(problem) - 1, -1, -1):
        tails[op] = max((tails[s] + ticks[s] for s in problem.after[op]), default=0)
    return tails


def rank_upward(problem: Problem) -> list[int]:
    """Ranks for list scheduling, low first: an op whose own time and tail are long comes early."""
    return [-(tail + ticks) for tail, ticks in zip(find_tails(problem), problem.ticks, strict=True)]
