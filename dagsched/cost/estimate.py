"""How long a list of op instances takes on given streams, before any wait has been inserted.

The stream policies are compared by this figure. Instances stand in issue order, which is a topological order; the
waits that the schedule will need are counted as they will be elided later (newest predecessor first, vector clocks),
so that an assignment is charged for the calls that it will really make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dagsched.cost.model import CallCosts
from dagsched.cost.queues import TICKS, Tasks, run_queues, to_ticks
from dagsched.hazards.clocks import Clock, make_clock


@dataclass(frozen=True, slots=True)
class Instance:
    """One run of an op: stream and engine as numbers, ``seconds`` on the engine, positions of its predecessors.

    ``share`` is how much of the engine's capacity it takes; ``blocks`` says that the call returns only when the op
    has finished (a copy from or to pageable memory).
    """

    op: str
    stream: int
    engine: int
    seconds: float
    predecessors: tuple[int, ...] = ()
    share: int = 1
    blocks: bool = False


def estimate_makespan(
    instances: Sequence[Instance],
    device_calls: CallCosts,
    lanes: Sequence[int],
    queue_depth: int | None = None,
) -> float:
    """Seconds until the last instance has finished and the host has issued everything.

    ``lanes`` holds the capacity of each engine. Predecessors must stand earlier in the list; raises ValueError where
    one does not, or where an instance takes more than its engine has.
    """
    _require_sound(instances, lanes)
    waits = find_waits(instances)
    recorded = {predecessor for kept in waits for predecessor in kept}
    issue, record, wait = (to_ticks(s) for s in (device_calls.issue, device_calls.record, device_calls.wait))
    tasks = Tasks()
    recording = 0
    blocked: tuple[int, ...] = ()
    for position, instance in enumerate(instances):
        tasks.add(
            instance.stream,
            instance.engine,
            to_ticks(instance.seconds),
            share=instance.share,
            call=recording + wait * len(waits[position]) + issue,
            predecessors=waits[position],
            holds=blocked,
        )
        recording = record if position in recorded else 0
        blocked = (position,) if instance.blocks else ()
    return run_queues(tasks, lanes, queue_depth).makespan / TICKS


def find_waits(instances: Sequence[Instance]) -> list[tuple[int, ...]]:
    """For each instance the predecessors that it must wait for: those that neither its stream nor another wait implies.

    These are the cross-stream edges of the transitive reduction of (predecessors and stream order): going from the
    newest predecessor to the oldest, one is implied exactly when the clock gathered so far has reached it.
    """
    width = 1 + max((instance.stream for instance in instances), default=-1)
    start, join = make_clock(width)
    clocks = [start] * width  # per stream: the newest instance of each stream that it is behind
    snapshots: list[Clock] = []
    waits: list[tuple[int, ...]] = []
    for position, instance in enumerate(instances):
        stream = instance.stream
        clock = clocks[stream]
        kept: list[int] = []
        for predecessor in sorted(instance.predecessors, reverse=True):
            if predecessor <= clock[instances[predecessor].stream]:
                continue
            kept.append(predecessor)
            clock = join(clock, snapshots[predecessor])
            clock[instances[predecessor].stream] = predecessor
        if not kept:
            clock = clock.copy()
        clock[stream] = position
        clocks[stream] = clock
        snapshots.append(clock)
        waits.append(tuple(kept))
    return waits


def _require_sound(instances: Sequence[Instance], lanes: Sequence[int]) -> None:
    for position, instance in enumerate(instances):
        if instance.predecessors and max(instance.predecessors) >= position:
            raise ValueError(f"`{instance.op}` (number {position}) has a predecessor that does not stand before it")
        if instance.share > lanes[instance.engine]:
            raise ValueError(f"`{instance.op}` (number {position}) takes more than engine {instance.engine} has")
