"""Turn list schedules into candidates and keep the best: with all the streams there may be, then with fewer.

A list schedule knows engines and the host, not what waits and records cost nor that a stream holds its later ops back.
Where these make a candidate slower than its list schedule, fewer streams can be quicker, so narrower ones are tried.
"""

from __future__ import annotations

from dataclasses import replace

from dagsched.choice.evaluate import score_candidate
from dagsched.choice.improve import improve_schedules
from dagsched.choice.placing import place_ops
from dagsched.choice.priorities import rank_upward
from dagsched.choice.problem import Problem
from dagsched.choice.search import Found

_MIXED = 3
"""Of so many list schedules, streams that run several engines are tried too."""

_WIDTHS = (2, 3, 4, 6, 8)
"""Numbers of streams that are tried, below those that the best candidate uses."""

_SIMULATION = 3
"""What a simulation costs, counted in runs of the list scheduler."""


def try_lists(problem: Problem, runs: int, limit: int) -> Found | None:
    """The best candidate from list schedules of about ``runs`` runs' cost; ends early at ``limit`` ticks."""
    best, idle = _try(problem, problem, runs, limit)
    if best is None or idle or best.score.ticks <= limit:
        return best
    first = len(problem.pinned)
    for width in _WIDTHS:
        if first + width < min(best.score.streams, problem.most):
            found, _ = _try(problem, replace(problem, most=first + width), runs // len(_WIDTHS), limit)
            if found and found.score < best.score:
                best = found
    return best


def _try(problem: Problem, narrow: Problem, runs: int, limit: int) -> tuple[Found | None, bool]:
    """The best of some runs, and whether candidates were as quick as their list schedules."""
    best: Found | None = None
    spent, exact = 0, True
    for number, starts in enumerate(improve_schedules(narrow, rank_upward(problem), runs)):
        spent += 1
        if best is None or starts.makespan < best.score.ticks:  # else streams and calls can only make it longer
            for mixed in (False, True):
                if mixed and (number >= _MIXED or exact):
                    break
                candidate = place_ops(narrow, starts, mixed=mixed)
                found = Found(score_candidate(problem, candidate), candidate)
                spent += _SIMULATION
                exact &= mixed or found.score.ticks <= starts.makespan
                if best is None or found.score < best.score:
                    best = found
        if spent >= runs or (best is not None and best.score.ticks <= limit):
            break
    return best, exact
