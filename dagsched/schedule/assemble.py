"""Write the schedule down: ops in issue order, each behind its waits and before its record."""

from __future__ import annotations

from collections.abc import Sequence

from dagsched.hazards.history import KINDS
from dagsched.hazards.sweep import Sweep
from dagsched.plan.expressions import Expr, Int, Name, expression_text
from dagsched.plan.model import Buffer
from dagsched.schedule.events import Recording
from dagsched.schedule.model import (
    AnyStep,
    Event,
    EventStep,
    Indexed,
    LoopStep,
    OpStep,
    Protected,
    Schedule,
    Storage,
    Stream,
    SyncStep,
)
from dagsched.schedule.rules import WaitRule, source_index


def assemble_schedule(
    sweep: Sweep, streams: Sequence[Stream], stream_of: list[int], recordings: list[Recording], digest: str
) -> Schedule:
    """The schedule of a resolved plan, for streams in their order of declaration."""
    names = [stream.name for stream in streams]
    before: dict[int, list[EventStep]] = {}
    hoisted: dict[int, list[EventStep]] = {}
    after: dict[int, list[EventStep]] = {}
    for recording in recordings:
        own = Indexed(names[stream_of[recording.source]])
        record = EventStep(
            action="record", event=Indexed(recording.event, recording.index), stream=own, when=recording.guard
        )
        after.setdefault(recording.source, []).append(record)
        for rule in recording.rules:
            wait = EventStep(
                action="wait",
                event=Indexed(recording.event, source_index(sweep, rule)),
                stream=Indexed(names[stream_of[rule.waiter]]),
                when=rule.guard,
                protects=_protected(sweep, rule),
            )
            target, place = (hoisted, sweep.segment_of[rule.waiter]) if rule.hoisted else (before, rule.waiter)
            target.setdefault(place, []).append(wait)
    steps: list[AnyStep] = []
    for number, segment in enumerate(sweep.segments):
        body: list[AnyStep] = []
        for n, op in enumerate(segment.ops, start=segment.first):
            body += before.get(n, [])
            body.append(OpStep(stream=Indexed(names[stream_of[n]]), op=op.name, accesses=op.accesses, where=op.where))
            body += after.get(n, [])
        if segment.loop:
            steps += hoisted.get(number, [])
            steps.append(LoopStep(index=segment.loop.index, lo=Int(0), hi=segment.loop.count, steps=tuple(body)))
        else:
            steps += body
    used = sorted(set(stream_of))
    steps += [SyncStep(kind="stream", target=Indexed(names[n])) for n in used]
    plan = sweep.plan
    return Schedule(
        name=plan.name,
        steps=tuple(steps),
        params=dict(plan.params),
        streams={names[n]: streams[n] for n in used},
        events={r.event: Event(r.event, r.ring if r.index is not None else None) for r in recordings},
        buffers={buffer.name: _storage(buffer) for buffer in plan.buffers.values()},
        plan={"name": plan.name, "digest": digest},
        device=plan.device,
    )


def _storage(buffer: Buffer) -> Storage:
    return Storage(
        name=buffer.name,
        place=buffer.place,
        ring=buffer.ring.depth or 1,
        size=buffer.size,
        shape=buffer.shape,
        dtype=buffer.dtype,
    )


def _protected(sweep: Sweep, rule: WaitRule) -> tuple[Protected, ...]:
    """The hazards that a wait is there for."""
    loop = sweep.segments[sweep.segment_of[rule.waiter]].loop
    own: Expr | None = None if loop is None else Int(0) if rule.hoisted else Name(loop.index)
    before = _instance(sweep.ops[rule.source].name, source_index(sweep, rule))
    after = _instance(sweep.ops[rule.waiter].name, own)
    found = []
    for buffer, kinds in sorted(rule.reasons):
        found += [Protected(before, after, buffer or None, KINDS[bit]) for bit in KINDS if kinds & bit]
    return tuple(dict.fromkeys(found))


def _instance(op: str, index: Expr | None) -> str:
    return op if index is None else f"{op}@{expression_text(index)}"
