"""Write the schedule down: ops in issue order, each behind its waits and before its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dagsched.hazards.history import KINDS
from dagsched.hazards.sweep import Sweep
from dagsched.plan.expressions import (
    Comparison,
    Condition,
    Expr,
    Int,
    Name,
    add,
    all_of,
    expression_text,
    names_in,
    parse_expression,
    substitute,
    substitute_condition,
)
from dagsched.plan.model import Access, Buffer, Loop, Slice
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
            step = OpStep(stream=Indexed(names[stream_of[n]]), op=op.name, accesses=op.accesses, where=op.where)
            parts: list[OpStep | EventStep] = [*before.get(n, []), step, *after.get(n, [])]
            if segment.loop and sweep.drains[number]:
                parts = [shift_step(part, segment.loop, sweep.shifts[n], sweep.drains[number]) for part in parts]
            body += parts
        if segment.loop:
            steps += hoisted.get(number, [])
            rounds = add(segment.loop.count, sweep.drains[number])
            steps.append(LoopStep(index=segment.loop.index, lo=Int(0), hi=rounds, steps=tuple(body)))
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


def shift_step(step: OpStep | EventStep, loop: Loop, shift: int, drain: int) -> OpStep | EventStep:
    """A step of iteration ``i``, as it stands in a loop of ``drain`` more rounds: round i is for iteration i - shift.

    Its guard leaves out the rounds in which that iteration does not exist.
    """
    own = add(Name(loop.index), -shift)
    values = {loop.index: own}
    first = (Comparison(Name(loop.index), ">=", Int(shift)),) if shift else ()
    last = (Comparison(Name(loop.index), "<", add(loop.count, shift)),) if shift < drain else ()
    when = all_of([first, last, _shift_condition(step.when, loop.index, shift)])
    if isinstance(step, OpStep):
        accesses = tuple(_shift_access(access, values) for access in step.accesses)
        return replace(step, when=when, accesses=accesses, iteration=own if shift else None)
    index = None if step.event.index is None else substitute(step.event.index, values)
    protects = tuple(
        replace(reason, before=_shift_name(reason.before, values), after=_shift_name(reason.after, values))
        for reason in step.protects
    )
    return replace(step, when=when, event=Indexed(step.event.name, index), protects=protects)


def _shift_condition(condition: Condition, index: str, shift: int) -> Condition:
    """A guard on ``i`` as one on the round, ``i >= 2`` as ``i >= 2 + shift``."""
    return tuple(
        Comparison(c.left, c.op, add(c.right, shift))
        if c.left == Name(index) and index not in names_in(c.right)
        else substitute_condition((c,), {index: add(Name(index), -shift)})[0]
        for c in condition
    )


def _shift_access(access: Access, values: dict[str, Expr]) -> Access:
    def shifted(bound: Expr | None) -> Expr | None:
        return None if bound is None else substitute(bound, values)

    region = tuple(Slice(shifted(part.lo), shifted(part.hi)) for part in access.region)
    return replace(access, version=shifted(access.version), region=region)


def _shift_name(instance: str, values: dict[str, Expr]) -> str:
    op, at, index = instance.partition("@")
    return _instance(op, substitute(parse_expression(index), values)) if at else instance


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
