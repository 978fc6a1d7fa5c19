"""The best of all streams and orders, by trying them: small plans only."""

from __future__ import annotations

from collections.abc import Iterator

from dagsched.choice.problem import Candidate, Problem
from dagsched.cost.estimate import Instance, estimate_makespan
from dagsched.cost.model import Device
from dagsched.cost.queues import to_ticks


def orders(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Every order that respects ``problem.before``."""

    def extend(done: tuple[int, ...], left: frozenset[int]) -> Iterator[tuple[int, ...]]:
        if not left:
            yield done
        for op in sorted(left):
            if not left.intersection(problem.before[op]):
                yield from extend((*done, op), left - {op})

    return extend((), frozenset(range(len(problem))))


def partitions(count: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way to put things into at most ``most`` unnamed groups."""

    def extend(groups: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(groups) == count:
            yield groups
            return
        for group in range(min(most, max(groups, default=-1) + 2)):
            yield from extend((*groups, group))

    return extend(())


def find_best(problem: Problem, device: Device, streams: int, below: int) -> int:
    """The least makespan in ticks over all orders and all assignments to ``streams`` streams without pins.

    Ends early where one is below ``below``: the caller has seen enough. The makespan is the estimate's, which shares
    no code with ``dagsched.choice``.
    """
    best = -1
    groups = list(partitions(len(problem), streams))
    for order in orders(problem):
        place = {op: position for position, op in enumerate(order)}
        for group in groups:
            instances = [
                Instance(
                    problem.names[op],
                    group[op],
                    problem.engine[op],
                    problem.ticks[op] / 1e12,
                    tuple(place[earlier] for earlier in problem.before[op]),
                    problem.share[op],
                    problem.blocks[op],
                )
                for op in order
            ]
            ticks = to_ticks(estimate_makespan(instances, device.calls, problem.capacities))
            best = ticks if best < 0 else min(best, ticks)
            if best < below:
                return best
    return best


def every_candidate(problem: Problem, streams: int) -> Iterator[Candidate]:
    """All orders and assignments."""
    groups = list(partitions(len(problem), streams))
    for order in orders(problem):
        for group in groups:
            yield Candidate(order, group)
