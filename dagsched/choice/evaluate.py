"""How long a candidate takes: exactly what the simulator says of the schedule that it becomes, in far less time.

Waits are elided as the passes will elide them (newest predecessor first, vector clocks). Where no engine can ever be
short of room, because what its streams can ask for at once fits, each op starts when it has been issued, its stream is
free and its predecessors are done: one pass in issue order. Else the machine of ``dagsched.cost.queues`` runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.choice.problem import Candidate, Problem
from dagsched.cost.queues import Tasks, run_queues
from dagsched.hazards.clocks import make_clock


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """Less is better: the makespan in ticks (of open loops the intervals), then the waits and the streams."""

    ticks: int
    waits: int
    streams: int


def score_candidate(problem: Problem, candidate: Candidate) -> Score:
    """The score of a candidate whose order respects ``problem.before``."""
    waits = find_waits(problem, candidate)
    clock, ends = run_candidate(problem, candidate, waits)
    return Score(max(clock, max(ends, default=0)), sum(map(len, waits)), candidate.streams)


def find_waits(problem: Problem, candidate: Candidate) -> list[list[int]]:
    """For each op in issue order, the ops that it has to wait for on other streams."""
    stream_of, before = candidate.stream_of, problem.before
    width = max(stream_of, default=-1) + 1
    place = [0] * len(problem)
    for position, op in enumerate(candidate.order):
        place[op] = position
    start, join = make_clock(width)
    clocks = [start] * width
    known = [start] * len(problem)
    waits: list[list[int]] = []
    for position, op in enumerate(candidate.order):
        own = stream_of[op]
        clock = clocks[own]
        kept: list[int] = []
        unseen = [earlier for earlier in before[op] if place[earlier] > clock[stream_of[earlier]]]
        if unseen:
            if len(unseen) > 1:
                unseen.sort(key=place.__getitem__, reverse=True)
            for earlier in unseen:
                if place[earlier] > clock[stream_of[earlier]]:
                    kept.append(earlier)
                    clock = join(clock, known[earlier])
        if not kept:
            clock = clock.copy()
        clock[own] = position
        clocks[own] = known[op] = clock
        waits.append(kept)
    return waits


def run_candidate(problem: Problem, candidate: Candidate, waits: list[list[int]]) -> tuple[int, list[int]]:
    """When the host has issued everything, and when each op ends."""
    if _queues_fill(problem, candidate, waits):
        return _run_commands(problem, candidate, waits)
    if _engines_suffice(problem, candidate):
        return _run_in_order(problem, candidate, waits)
    return _run_ops(problem, candidate, waits)


def _engines_suffice(problem: Problem, candidate: Candidate) -> bool:
    """Whether all that the streams can ever ask an engine for at once fits it."""
    share, engine, stream_of = problem.share, problem.engine, candidate.stream_of
    largest: dict[tuple[int, int], int] = {}
    for op, stream in enumerate(stream_of):
        key = engine[op], stream
        if share[op] > largest.get(key, 0):
            largest[key] = share[op]
    room = list(problem.capacities)
    for (unit, _), asked in largest.items():
        room[unit] -= asked
    return min(room, default=0) >= 0


def _queues_fill(problem: Problem, candidate: Candidate, waits: list[list[int]]) -> bool:
    """Whether a stream gets more commands than its queue holds, so that the host may have to wait."""
    depth = problem.depth
    if depth is None or len(problem) + sum(map(len, waits)) * 2 <= depth:
        return False
    commands = [0] * (max(candidate.stream_of, default=0) + 1)
    for op, row in zip(candidate.order, waits, strict=True):
        commands[candidate.stream_of[op]] += 1 + len(row)
    for op in {earlier for row in waits for earlier in row}:
        commands[candidate.stream_of[op]] += 1
    return max(commands) > depth


def _run_in_order(problem: Problem, candidate: Candidate, waits: list[list[int]]) -> tuple[int, list[int]]:
    """No engine is ever short: a recurrence in issue order."""
    ticks, blocks, stream_of = problem.ticks, problem.blocks, candidate.stream_of
    issue, record, wait = problem.issue, problem.record, problem.wait
    recorded = [False] * len(problem)
    if record:
        for row in waits:
            for earlier in row:
                recorded[earlier] = True
    free = [0] * (max(stream_of, default=0) + 1)
    end = [0] * len(problem)
    clock = 0
    for op, row in zip(candidate.order, waits, strict=True):
        clock += issue + wait * len(row)
        own = stream_of[op]
        start = free[own]
        if clock > start:
            start = clock
        for earlier in row:
            if end[earlier] > start:
                start = end[earlier]
        free[own] = end[op] = start = start + ticks[op]
        if blocks[op] and start > clock:
            clock = start
        if recorded[op]:
            clock += record
    return clock, end


def stream_urgency(problem: Problem, candidate: Candidate) -> list[int]:
    """The priority of each stream by number: the lowest that one of its ops states, else 0."""
    found: dict[int, int] = {}
    for op, stream in enumerate(candidate.stream_of):
        stated = problem.urgency[op]
        if stated is not None:
            found[stream] = min(stated, found.get(stream, stated))
    return [found.get(stream, 0) for stream in range(max(candidate.stream_of, default=0) + 1)]


def _run_ops(problem: Problem, candidate: Candidate, waits: list[list[int]]) -> tuple[int, list[int]]:
    """Engines run short: the machine, one task an op, the calls around it counted with it."""
    urgency = stream_urgency(problem, candidate)
    recorded = {earlier for row in waits for earlier in row}
    place = {op: position for position, op in enumerate(candidate.order)}
    tasks = Tasks()
    recording = 0
    blocked: tuple[int, ...] = ()
    for position, (op, row) in enumerate(zip(candidate.order, waits, strict=True)):
        stream = candidate.stream_of[op]
        tasks.add(
            stream,
            problem.engine[op],
            problem.ticks[op],
            share=problem.share[op],
            call=recording + problem.wait * len(row) + problem.issue,
            priority=urgency[stream],
            predecessors=[place[earlier] for earlier in row],
            holds=blocked,
        )
        recording = problem.record if op in recorded else 0
        blocked = (position,) if problem.blocks[op] else ()
    times = run_queues(tasks, problem.capacities)
    return times.host, [times.end[place[op]] for op in range(len(problem))]


def _run_commands(problem: Problem, candidate: Candidate, waits: list[list[int]]) -> tuple[int, list[int]]:
    """Queues fill: the machine with every command as a task of its own, since each takes a place in its queue."""
    urgency = stream_urgency(problem, candidate)
    recorded = {earlier for row in waits for earlier in row}
    records: dict[int, int] = {}
    own = [0] * len(problem)
    tasks = Tasks()
    blocked: tuple[int, ...] = ()
    for op, row in zip(candidate.order, waits, strict=True):
        stream = candidate.stream_of[op]
        for earlier in reversed(row):  # as they are written: the oldest first
            tasks.add(stream, call=problem.wait, predecessors=(records[earlier],), holds=blocked)
            blocked = ()
        own[op] = task = tasks.add(
            stream,
            problem.engine[op],
            problem.ticks[op],
            share=problem.share[op],
            call=problem.issue,
            priority=urgency[stream],
            holds=blocked,
        )
        blocked = (task,) if problem.blocks[op] else ()
        if op in recorded:
            records[op] = tasks.add(stream, call=problem.record, holds=blocked)
            blocked = ()
    times = run_queues(tasks, problem.capacities, problem.depth)
    return times.host, [times.end[task] for task in own]
