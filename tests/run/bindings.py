"""What a wait is bound to equals what a host that issues the schedule step by step would bind it to."""

from __future__ import annotations

from dagsched.plan.expressions import evaluate, holds
from dagsched.run.bindings import Fixed, bind_wait
from dagsched.run.program import Program, WaitPoint
from dagsched.schedule.model import EventStep, LoopStep, Schedule, Step

_Site = tuple[int, int]
"""Section and position of a step."""
_Instance = tuple[_Site, int]


def _issue(schedule: Schedule, counts: dict[str, int]) -> dict[_Instance, _Instance | None]:
    """Each wait instance with the record instance that was newest for its handle when it was issued (None: none)."""
    newest: dict[tuple[str, int], _Instance] = {}
    bound: dict[_Instance, _Instance | None] = {}

    def issue(step: Step, site: _Site, i: int, env: dict[str, int]) -> None:
        if not isinstance(step, EventStep) or not holds(step.when, env):
            return
        value = 0 if step.event.index is None else evaluate(step.event.index, env)
        declared = schedule.events.get(step.event.name)
        handle = (step.event.name, value % declared.ring if declared and declared.ring else value)
        if step.action == "record":
            newest[handle] = (site, i)
        else:
            bound[site, i] = newest.get(handle)

    section, straight = -1, False
    position = 0
    for step in schedule.steps:
        if isinstance(step, LoopStep):
            section, straight = section + 1, False
            for i in range(evaluate(step.lo, counts), evaluate(step.hi, counts)):
                for number, inner in enumerate(step.steps):
                    issue(inner, (section, number), i, {**counts, step.index: i})
        else:
            if not straight:
                section, straight, position = section + 1, True, 0
            issue(step, (section, position), 0, counts)
            position += 1
    return bound


def check_bindings(program: Program, schedule: Schedule, counts: dict[str, int]) -> int:
    """Compare all waits of a run; how many there were."""
    wanted = _issue(schedule, counts)
    seen = 0
    for stream in program.streams:
        for section, points in stream.parts:
            for point in (point for point in points if isinstance(point, WaitPoint)):
                found = bind_wait(program, point, section, counts)
                site = (point.place.section, point.place.position)
                for i in [i for place, i in wanted if place == site]:
                    answer = None
                    if isinstance(found, Fixed):
                        answer = (found.number, i + found.back) if i + found.back >= found.lo else None
                        if answer is None and found.early is not None:
                            answer = found.early(i)
                    elif found is not None:
                        answer = found(i)
                    place = None
                    if answer is not None:
                        where = program.records[answer[0]].place
                        place = ((where.section, where.position), answer[1])
                    assert place == wanted[site, i], f"{point} in iteration {i} for {counts}"
                    seen += 1
    return seen
