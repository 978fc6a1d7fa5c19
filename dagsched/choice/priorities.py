"""What is urgent: how much must still come after an op, and how much must have come before it.

An op's *tail* is the longest chain of successors behind it, its *head* the longest chain of predecessors in front.
"""

from __future__ import annotations

from dagsched.choice.problem import Problem


def find_heads(problem: Problem) -> list[int]:
    """Ticks before which an op cannot start: its longest chain of predecessors, and the host's calls for them."""
    ticks, issue = problem.ticks, problem.issue
    heads: list[int] = []
    depth: list[int] = []
    for row in problem.before:
        level = 1 + max((depth[p] for p in row), default=0)
        depth.append(level)
        heads.append(max(max((heads[p] + ticks[p] for p in row), default=0), level * issue))
    return heads


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
