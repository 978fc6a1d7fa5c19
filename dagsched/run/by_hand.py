"""A schedule that somebody wrote by hand, as backends run it: with the operations of a plan, in the schedule's order.

What an op does (its kind, function, time and the sizes of its buffers) a schedule does not say; the plan does, by the
op's name. Which versions and regions it touches, on which stream, and behind what, the schedule says. What it leaves
to the thread that issues becomes a stream of its own, `host`: its actions are ops there, a sync is a wait there, and
since nothing is issued before the host has come to it, every other stream waits for each thing that the host does.

Only what `dagsched check` finds right is run. Invariant: the steps made here are ops, records, waits and loops under
the event model ``latch``, and order all that the schedule written orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from dagsched.compiled import Compiled
from dagsched.cost.model import Device
from dagsched.cost.predict import predict_by_hand
from dagsched.diagnostics import Diagnostic, ScheduleError, Source, Where, closest
from dagsched.hazards.find import find_hazards
from dagsched.plan.expressions import Condition, Expr, Int, Name, add, substitute
from dagsched.plan.model import Access, Buffer, Loop, Op, Plan, Ring, Slice
from dagsched.proof.check import check_schedule
from dagsched.proof.model import Proof
from dagsched.proof.rhythm import find_drain
from dagsched.run.errors import refuse
from dagsched.run.program import kind_of, linear_shift
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Schedule,
    Step,
    Stream,
    SyncStep,
    WaitStreamStep,
)
from dagsched.timeline import HOST_TRACK


def adopt_schedule(schedule: Schedule, plan: Plan, device: Device) -> Compiled:
    """The schedule with the operations of a resolved plan, ready for an executor.

    Raises :class:`ScheduleError` for one that is not right (R118, with what ``check`` finds) and where an op is none of
    the plan's (R117), :class:`UsageError` for steps that no backend runs (R101).
    """
    _require_right(schedule)
    steps = _Lowering(schedule).lower()
    ops = _Matching(schedule, plan)
    items = tuple(item for step in steps for item in ops.items(step))
    if ops.findings:
        raise ScheduleError(ops.findings)
    used = {access.buffer for op in ops.found.values() for access in op.accesses}
    buffers = {name: ops.buffer(name) for name in plan.buffers if name in used}
    made = replace(plan, name=schedule.name, buffers=buffers, items=items, params=dict(schedule.params))
    streams = {step.op: step.stream.name for step in _ops_in(steps)}
    host = {HOST_TRACK: Stream(HOST_TRACK, host=True)} if HOST_TRACK in streams.values() else {}
    try:
        predicted = predict_by_hand(schedule, plan, device)
    except ScheduleError:  # its counts are not constant, or nothing gives them
        predicted = None
    lowered = replace(
        schedule, steps=steps, streams={**schedule.streams, **host}, predicted=predicted, device=plan.device
    )
    waits = sum(isinstance(step, EventStep) and step.action == "wait" for step in schedule.walk())
    return Compiled(
        plan=made, resolved=made, device=device, hazards=find_hazards(made), streams=streams, schedule=lowered,
        proof=Proof((), "the counts that `check` has looked at", 0, {}, False), policy="by hand", waits_found=waits,
        waits_kept=waits, handles=len(schedule.events), by_hand=schedule,
    )  # fmt: skip


def _require_right(schedule: Schedule) -> None:
    if schedule.event_model != "latch":
        _refuse(schedule, f"events of the model `{schedule.event_model}`", None)
    if schedule.default_stream != "none":
        _refuse(schedule, "a legacy default stream", None)
    verdict = check_schedule(schedule)
    if verdict.verdict == "ok":
        return
    first, *others = [found for found in verdict.diagnostics(schedule.source) if found.severity == "error"]
    notes = tuple(found.headline for found in others[:1]) + ((f"and {len(others) - 1} more",) if others[1:] else ())
    headline = f"`{schedule.name}` is not run, since it is not right: {first.headline}"
    help_ = "`dagsched check` says what is missing, and `dagsched fix` writes it into the file"
    raise ScheduleError([Diagnostic("R118", headline, first.where, schedule.source, first.labels, notes, help_)])


def _refuse(schedule: Schedule, what: str, where: Where | None) -> NoReturn:
    raise refuse(
        "R101", f"a schedule with {what} cannot be run", where, schedule.source if where else None,
        help="write it with ops, records, waits, syncs and host steps",
    )  # fmt: skip


def _ops_in(steps: tuple[AnyStep, ...]) -> Iterator[OpStep]:
    for step in steps:
        if isinstance(step, LoopStep):
            yield from _ops_in(step.steps)
        elif isinstance(step, OpStep):
            yield step


class _Lowering:
    """Steps of the issuing thread, and waits for streams, as ops, records and waits of streams."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.count = 0
        used = [step.stream.name for step in schedule.walk() if isinstance(step, OpStep | EventStep) and step.stream]
        self.streams = list(dict.fromkeys(used))
        if HOST_TRACK in self.streams:
            _refuse(schedule, f"a stream called `{HOST_TRACK}`, which is what the issuing thread is called,", None)

    def lower(self) -> tuple[AnyStep, ...]:
        steps = list(self.schedule.steps)
        while steps and isinstance(steps[-1], SyncStep):  # a run ends when all streams have
            steps.pop()
        found: list[AnyStep] = []
        for step in steps:
            if isinstance(step, LoopStep):
                body = tuple(part for inner in step.steps for part in self.step(inner, step.index))
                found.append(replace(step, steps=body))
            else:
                found += self.step(step, None)
        return tuple(found)

    def step(self, step: AnyStep, index: str | None) -> list[AnyStep]:
        """What stands for a step of a loop, or (``index`` None) of none."""
        stream = step.stream if isinstance(step, OpStep | EventStep | WaitStreamStep) else None
        if stream is not None and stream.index is not None:
            _refuse(self.schedule, f"the indexed stream `{stream.name}`", step.where)
        host, when = Indexed(HOST_TRACK), step.when
        if isinstance(step, OpStep):
            return [step]
        if isinstance(step, HostStep):
            op = OpStep(stream=host, op=step.host, accesses=step.accesses, when=when, where=step.where)
            return [op, *self.held(index, when)]
        if isinstance(step, EventStep) and step.action != "reset":
            if stream is not None:
                return [step]
            return [replace(step, stream=host), *(self.held(index, when) if step.action == "wait" else ())]
        if isinstance(step, WaitStreamStep):
            if step.target.index is not None:
                _refuse(self.schedule, f"the indexed stream `{step.target.name}`", step.where)
            return self.pair(step.target, [step.stream], index, when)
        if isinstance(step, SyncStep):
            if step.kind == "event" and step.target is not None:
                waits: list[AnyStep] = [EventStep(action="wait", event=step.target, stream=host, when=when)]
            elif step.target is not None:
                waits = self.pair(step.target, [host], index, when)
            else:
                waits = [part for name in self.streams for part in self.pair(Indexed(name), [host], index, when)]
            return [*waits, *self.held(index, when)]
        _refuse(self.schedule, kind_of(step), step.where)

    def held(self, index: str | None, when: Condition) -> list[AnyStep]:
        """What the host issues from here on comes behind what it has done."""
        return self.pair(Indexed(HOST_TRACK), [Indexed(name) for name in self.streams], index, when)

    def pair(self, target: Indexed, waiting: list[Indexed], index: str | None, when: Condition) -> list[AnyStep]:
        """A record on one stream, and the waits for it."""
        self.count += 1
        event = Indexed(f"{target.name}.{self.count}", None if index is None else Name(index))
        record = EventStep(action="record", event=event, stream=target, when=when)
        return [record, *(EventStep(action="wait", event=event, stream=stream, when=when) for stream in waiting)]


class _Matching:
    """The plan's ops with the accesses that the schedule gives them; ``findings`` is what does not match."""

    def __init__(self, schedule: Schedule, plan: Plan) -> None:
        self.schedule, self.plan = schedule, plan
        self.known = {op.name: op for op in plan.ops()}
        self.found: dict[str, Op] = {}
        self.findings: list[Diagnostic] = []

    def items(self, step: Step) -> list[Op | Loop]:
        """What a step is in a plan."""
        if isinstance(step, LoopStep):
            body = tuple(op for inner in step.steps if isinstance(inner, OpStep) for op in self.op(inner, step.index))
            count = add(step.hi, -(find_drain(step) or 0))
            return [Loop(step.index, count, body, step.where)] if body else []
        return list(self.op(step, None)) if isinstance(step, OpStep) else []

    def op(self, step: OpStep, index: str | None) -> list[Op]:
        op = self.known.get(step.op)
        if op is None:
            near = closest(step.op, self.known)
            known = ", ".join(f"`{name}`" for name in self.known) or "none"
            help_ = f"did you mean `{near}`?" if near else f"the plan's ops are {known}"
            self.report(step, f"the plan has no op `{step.op}`", help_)
            return []
        if step.op in self.found:
            self.report(step, f"op `{step.op}` stands in the schedule twice", "give it another name, in the plan, too")
            return []
        if Counter((a.buffer, a.mode) for a in op.accesses) != Counter((a.buffer, a.mode) for a in step.accesses):
            here, there = _touched(step.accesses), _touched(op.accesses)
            headline = f"op `{step.op}` {here} here, and {there} in the plan"
            self.report(step, headline, "let both say the same buffers")
            return []
        own = linear_shift(step.iteration, index) if step.iteration is not None and index is not None else 0
        rest = list(step.accesses)
        accesses = []
        for planned in op.accesses:
            access = next(a for a in rest if (a.buffer, a.mode) == (planned.buffer, planned.mode))
            rest.remove(access)
            accesses.append(_in_own_iteration(access, index, -own))
        made = replace(op, accesses=tuple(accesses), after=(), stream=None)
        self.found[step.op] = made
        return [made]

    def buffer(self, name: str) -> Buffer:
        """A buffer of the plan with as many slots as the schedule says."""
        storage = self.schedule.buffers.get(name)
        depth = 1 if storage is None else storage.ring
        if storage is not None and (storage.alias is not None or storage.space is not None):
            _refuse(self.schedule, f"the buffer `{name}`, which lies in another's memory,", storage.where)
        return replace(self.plan.buffers[name], ring=Ring(depth, depth, depth))

    def report(self, step: OpStep, headline: str, help_: str) -> None:
        source: Source | None = self.schedule.source
        self.findings.append(Diagnostic("R117", headline, step.where, source, help=help_))


def _touched(accesses: tuple[Access, ...]) -> str:
    return ", ".join(f"{access.mode}s `{access.buffer}`" for access in accesses) or "touches nothing"


def _in_own_iteration(access: Access, index: str | None, late: int) -> Access:
    """An access in terms of the op's own iteration, which is the loop's less ``late``; a bare name is version 0."""

    def moved(bound: Expr | None) -> Expr | None:
        return substitute(bound, {index: add(Name(index), late)}) if bound is not None and index and late else bound

    version = moved(access.version)
    region = tuple(Slice(moved(part.lo), moved(part.hi)) for part in access.region)
    return replace(access, version=Int(0) if version is None else version, region=region)
