"""Better list schedules: forward and backward in turn, then again from ranks that are shaken a little.

Run backward from its own end, a list schedule pushes every op as late as it can go; run forward in that order, gaps
close (forward-backward improvement: Tormos and Lova 2001, *A competitive heuristic solution technique for
resource-constrained project scheduling*). Where that stops helping, the ranks of the best schedule so far, or those of
the longest tails, are shaken by a fixed pseudo-random sequence and improved anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from dagsched.choice.list_schedule import Starts, schedule_list
from dagsched.choice.problem import Problem

_SHAKES = (0.02, 0.05, 0.1, 0.2, 0.4)
_ROUNDS = 4
_GREED = 0.8
"""How often the best schedule is shaken and not the plain ranks."""


def improve_schedules(problem: Problem, rank: list[int], passes: int) -> Iterator[Starts]:
    """List schedules that are tried, at most ``passes`` runs; the first is the plain one. The caller stops at will."""
    rng = Random(1)
    best: Starts | None = None
    done = 0
    while done < passes:
        ranks = rank if best is None else _shake(best.start if rng.random() < _GREED else rank, best.makespan, rng)
        found = schedule_list(problem, ranks)
        done += 1
        for _ in range(_ROUNDS):
            yield found
            best = _better(best, found)
            if done >= passes:
                return
            late = _mirror(problem, schedule_list(problem, _ends_reversed(problem, found), backward=True))
            yield late
            best = _better(best, late)
            again = schedule_list(problem, late.start)
            done += 2
            if again.makespan >= found.makespan:
                yield again
                best = _better(best, again)
                break
            found = again


def _better(best: Starts | None, found: Starts) -> Starts:
    """The newer of equals: what is shaken next should not always be the same."""
    return found if best is None or found.makespan <= best.makespan else best


def _mirror(problem: Problem, late: Starts) -> Starts:
    """A backward schedule, told forward: every op starts as late as it can."""
    start = [late.makespan - begin - ticks for begin, ticks in zip(late.start, problem.ticks, strict=True)]
    return Starts(start, sorted(range(len(start)), key=lambda op: (start[op], op)), late.makespan)


def _ends_reversed(problem: Problem, starts: Starts) -> list[int]:
    """Ranks for the way back: what ends last comes first."""
    return [-start - ticks for start, ticks in zip(starts.start, problem.ticks, strict=True)]


def _shake(rank: list[int], span: int, rng: Random) -> list[int]:
    width = max(1, int(span * rng.choice(_SHAKES)))
    below: Callable[[int], int] = rng.randrange
    return [value + below(2 * width + 1) - width for value in rank]
