"""List scheduling: whenever an engine has room, start the most urgent op that may run.

Two directions with one loop: forward from the plan's beginning, or backward from its end with successors in the place
of predecessors (``dagsched.choice.improve`` runs one after the other). Engines have capacity, ops take a share of it,
streams (and with them the ops under way at once) are limited, and the host issues one op after the other; what waits
and records cost depends on the streams, which are chosen later from the starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from dagsched.choice.problem import Problem


@dataclass(frozen=True, slots=True)
class Starts:
    """When each op starts, in ticks from the beginning (or, backward, from the end), and in which order they did."""

    start: list[int]
    order: list[int]
    makespan: int


def schedule_list(problem: Problem, rank: Sequence[int], *, backward: bool = False) -> Starts:
    """Start ops as early as engines allow, the lowest rank first."""
    successors = problem.before if backward else problem.after
    missing = list(map(len, problem.after if backward else problem.before))
    ticks, engine, share = problem.ticks, problem.engine, problem.share
    issue = 0 if backward else problem.issue
    room = list(problem.capacities)
    slots = problem.most
    lines: list[list[tuple[int, int]]] = [[] for _ in room]
    for op, count in enumerate(missing):
        if not count:
            lines[engine[op]].append((rank[op], op))
    for line in lines:
        heapify(line)
    start = [0] * len(ticks)
    order: list[int] = []
    running: list[tuple[int, int]] = []
    now = clock = last = 0
    while True:
        for line in lines:
            passed: list[tuple[int, int]] = []
            while line and slots:
                entry = heappop(line)
                op = entry[1]
                unit = engine[op]
                if share[op] > room[unit]:
                    passed.append(entry)
                    if not room[unit]:
                        break
                    continue
                clock += issue
                begin = clock if clock > now else now
                start[op] = begin
                order.append(op)
                room[unit] -= share[op]
                slots -= 1
                heappush(running, (begin + ticks[op], op))
            for entry in passed:
                heappush(line, entry)
        if not running:
            return Starts(start, order, last)
        now, op = heappop(running)
        last = now
        while True:
            room[engine[op]] += share[op]
            slots += 1
            for successor in successors[op]:
                missing[successor] -= 1
                if not missing[successor]:
                    heappush(lines[engine[successor]], (rank[successor], successor))
            if not running or running[0][0] != now:
                break
            op = heappop(running)[1]
