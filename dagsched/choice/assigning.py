"""From an assignment to a candidate and back: streams by number within a problem, and by name outside."""

from __future__ import annotations

from dagsched.choice.problem import Candidate, Problem
from dagsched.cost.durations import OpCost
from dagsched.hazards.sweep import Sweep
from dagsched.schedule.streams import Assignment, make_assignment


def to_candidate(problem: Problem, assignment: Assignment) -> Candidate:
    """An assignment in the order written, its streams numbered as the problem has them."""
    names = [stream.name for stream in assignment.streams]
    number = {name: n for n, name in enumerate(problem.pinned)}
    for name in names:
        number.setdefault(name, len(number))
    return Candidate(tuple(range(len(problem))), tuple(number[names[stream]] for stream in assignment.stream_of))


def to_assignment(
    sweep: Sweep, costs: dict[str, OpCost], problem: Problem, candidate: Candidate, policy: str = "search"
) -> Assignment:
    """A candidate's streams, named, for a sweep whose ops stand in the candidate's order."""
    lanes = _name_streams(sweep, problem, candidate)
    return make_assignment(sweep, costs, [lanes[candidate.stream_of[op]] for op in candidate.order], policy)


def _name_streams(sweep: Sweep, problem: Problem, candidate: Candidate) -> dict[int, str]:
    """A name for each stream: what it was pinned as, else its engine or host function, numbered if they share one."""
    bases: dict[int, str] = {}
    for place, op in enumerate(candidate.order):
        stream = candidate.stream_of[op]
        own = problem.engines[problem.engine[op]]
        if problem.host[op]:
            own = sweep.ops[place].function or own
        known = bases.setdefault(stream, own)
        bases[stream] = own if own == known else "host" if problem.host[op] and known != "mixed" else "mixed"
    names = {n: name for n, name in enumerate(problem.pinned) if n in bases}
    taken = set(names.values())
    for stream, base in bases.items():
        if stream in names:
            continue
        alone = list(bases.values()).count(base) == 1
        name, number = base, 0
        while name in taken or (not alone and not number):
            number += 1
            name = f"{base}-{number}"
        names[stream] = name
        taken.add(name)
    return names
