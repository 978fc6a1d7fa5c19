"""What a program creates: the streams that it issues to, and the event handles that it records and waits for."""

from __future__ import annotations

from dagsched.emit.calls import AnyCall, Handles, Queue, Record, Repeat, Wait
from dagsched.plan.expressions import Int
from dagsched.schedule.model import EventStep, Schedule, SyncStep


def list_constant_handles(schedule: Schedule) -> dict[str, list[int]]:
    """For events without a ring, the index values that are used: each has a handle of its own."""
    values: dict[str, set[int]] = {}
    for step in schedule.walk():
        event = step.event if isinstance(step, EventStep) else None
        if isinstance(step, SyncStep) and step.kind == "event":
            event = step.target
        if event is not None and isinstance(event.index, Int):
            values.setdefault(event.name, set()).add(event.index.value)
    return {name: sorted(found) for name, found in values.items()}


def list_handles(schedule: Schedule, calls: list[AnyCall]) -> tuple[Handles, ...]:
    """The groups of handles, declared ones first."""
    constant = list_constant_handles(schedule)
    rings = {name: event.ring for name, event in schedule.events.items()}
    used = dict.fromkeys([*rings, *(call.event.name for call in calls if isinstance(call, Record | Wait))])
    return tuple(Handles(name, rings.get(name) or len(constant.get(name, [])) or 1) for name in used)


def list_queues(schedule: Schedule, calls: list[AnyCall]) -> tuple[Queue, ...]:
    """The streams that something is issued to, declared ones first and in their order."""
    used = dict.fromkeys(call.stream for call in calls if not isinstance(call, Repeat) and call.stream is not None)
    queues = []
    for name in [*(name for name in schedule.streams if name in used), *(n for n in used if n not in schedule.streams)]:
        stream = schedule.streams.get(name)
        queues.append(
            Queue(name, stream.host, stream.engine, stream.priority) if stream else Queue(name, False, None, None)
        )
    return tuple(queues)
