"""Lower a compiled schedule to calls: ops get their bytes, functions and directions; steps keep their order.

What no target can express is reported here, all of it at once: a schedule under another event model than ``latch``,
indexed streams, steps of hand-written schedules (E104), regions of buffers whose size varies (E103), arithmetic beyond
64 bits (E105).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dagsched import __version__
from dagsched.compiled import Compiled
from dagsched.diagnostics import Diagnostic, PlanError, Where
from dagsched.emit.blocks import Block, lay_out
from dagsched.emit.calls import (
    AnyCall,
    CallList,
    Copy,
    Direction,
    EventRef,
    Fill,
    Launch,
    Record,
    Repeat,
    Sync,
    Wait,
    walk_calls,
)
from dagsched.emit.functions import Function, Parameter, Use, bind_functions, name_parameters
from dagsched.emit.limits import Loops, Scoped, find_max_count
from dagsched.emit.ranges import LARGEST_COUNT, Range, range_of
from dagsched.emit.resources import list_constant_handles, list_handles, list_queues
from dagsched.plan.expressions import Expr, Int, Name, expression_text, substitute
from dagsched.plan.model import Access, Buffer, Loop, Op, OpKind, Place, Plan, Slice
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, OpStep, Schedule, Step, SyncStep

_DIRECTIONS: dict[tuple[Place, Place], Direction] = {
    (Place.HOST, Place.DEVICE): "host to device",
    (Place.DEVICE, Place.HOST): "device to host",
    (Place.DEVICE, Place.DEVICE): "device to device",
    (Place.HOST, Place.HOST): "host to host",
}


@dataclass(slots=True)
class _Lowering:
    """What the steps are read against, and what was found on the way."""

    plan: Plan
    schedule: Schedule
    ops: dict[str, tuple[Op, Loop | None]]
    bound: dict[str, tuple[Function, tuple[Block, ...]]]
    constant_handles: dict[str, list[int]]
    names: dict[str, Range]
    faults: list[Diagnostic] = field(default_factory=list)
    expressions: list[Scoped] = field(default_factory=list)
    loops: Loops = ()
    neighbour: str = ""


def list_calls(compiled: Compiled) -> CallList:
    """The calls of a compiled plan; raises :class:`PlanError` for what cannot be emitted."""
    plan, schedule = compiled.resolved, compiled.schedule
    ops = {op.name: (op, loop) for op, loop in _ops_with_loops(plan)}
    params: dict[str, Range] = dict.fromkeys(plan.params, (0, LARGEST_COUNT))
    faults: list[Diagnostic] = []
    uses = []
    for op, loop in ops.values():
        names = _with_loop(params, loop)
        faults += _check_op(plan, op)
        if op.kind in (OpKind.COMPUTE, OpKind.HOST):
            uses.append(_use(plan, op, loop, names))
    if schedule.event_model != "latch":
        faults.append(_cannot(plan, f"events of the model `{schedule.event_model}`", None))
    lowering = _Lowering(
        plan, schedule, ops, bind_functions(uses), list_constant_handles(schedule), dict(params), faults
    )
    body = _lower_steps(lowering, schedule.steps)
    max_count, overflows = find_max_count(plan, lowering.expressions)
    if lowering.faults or overflows:
        raise PlanError([*lowering.faults, *overflows])
    functions = tuple(dict.fromkeys(function for function, _ in lowering.bound.values()))
    every_call = list(walk_calls(body))
    return CallList(
        name=plan.name,
        digest=(schedule.plan or {}).get("digest", ""),
        version=__version__,
        params=dict(plan.params),
        max_count=max_count,
        queues=list_queues(schedule, every_call),
        handles=list_handles(schedule, every_call),
        buffers=tuple(plan.buffers.values()),
        functions=functions,
        body=body,
        proved=_list_proved(compiled),
    )


def _list_proved(compiled: Compiled) -> dict[str, int]:
    """The counts at which a proof ends that went through counts one by one; empty where it holds for every count."""
    if compiled.proof.complete:
        return {}
    counts = compiled.proof.document.get("counts", {})
    return {name: int(axis["run"]) for name, axis in counts.items() if not axis["period"]}


def _ops_with_loops(plan: Plan) -> list[tuple[Op, Loop | None]]:
    found: list[tuple[Op, Loop | None]] = []
    for item in plan.items:
        if isinstance(item, Op):
            found.append((item, None))
        else:
            found += [(op, item) for op in item.body if isinstance(op, Op)]
    return found


def _with_loop(names: dict[str, Range], loop: Loop | None) -> dict[str, Range]:
    return names if loop is None else {**names, loop.index: _index_range(Int(0), loop.count, names)}


def _index_range(lo: Expr, hi: Expr, names: dict[str, Range]) -> Range:
    try:
        least, most = range_of(lo, names)[0], range_of(hi, names)[1] - 1
    except (ZeroDivisionError, KeyError):  # reported where the expression itself is checked
        return 0, LARGEST_COUNT
    return least, max(least, most)


def _use(plan: Plan, op: Op, loop: Loop | None, names: dict[str, Range]) -> Use:
    blocks = tuple(lay_out(access, plan.buffers[access.buffer], names) for access in op.accesses)
    parameters = tuple(
        Parameter(name, access.mode, plan.buffers[access.buffer].dtype, len(block.axes))
        for name, access, block in zip(name_parameters(op), op.accesses, blocks, strict=True)
    )
    indices = [name for name, _ in op.indices]
    return Use(op, parameters, blocks, (loop.index, *indices) if loop else tuple(indices))


def _lower_steps(low: _Lowering, steps: tuple[AnyStep, ...]) -> tuple[AnyCall, ...]:
    calls: list[AnyCall] = []
    behind = [""]
    for step in reversed(steps):
        behind.append(step.op if isinstance(step, OpStep) else behind[-1])
    for number, step in enumerate(steps, 1):
        if isinstance(step, OpStep):
            low.neighbour = step.op
        elif isinstance(step, EventStep) and step.action == "wait":  # a wait belongs to the op behind it
            low.neighbour = step.protects[0].after.split("@")[0] if step.protects else behind[-number]
        call = _lower_step(low, step)
        if call is not None:
            calls.append(call)
    return tuple(calls)


def _lower_step(low: _Lowering, step: AnyStep) -> AnyCall | None:
    for comparison in step.when:
        _note(low, comparison.left, step.where)
        _note(low, comparison.right, step.where)
    if isinstance(step, LoopStep):
        _note(low, step.lo, step.where)
        _note(low, step.hi, step.where)
        names, loops = low.names, low.loops
        low.names = {**names, step.index: _index_range(step.lo, step.hi, names)}
        low.loops = (*loops, (step.index, step.lo, step.hi))
        body = _lower_steps(low, step.steps)
        low.names, low.loops = names, loops
        return Repeat(when=step.when, index=step.index, lo=step.lo, hi=step.hi, body=body)
    if isinstance(step, OpStep):
        return _lower_op(low, step)
    if isinstance(step, EventStep) and step.stream is not None and step.action in ("record", "wait"):
        event = _event(low, step.event.name, step.event.index, step)
        stream = _stream(low, step.stream.name, step.stream.index, step)
        if step.action == "record":
            return Record(when=step.when, iteration=_current(low), event=event, stream=stream, op=low.neighbour)
        return Wait(
            when=step.when,
            iteration=_current(low),
            stream=stream,
            event=event,
            protects=step.protects,
            op=low.neighbour,
        )
    if isinstance(step, EventStep) and step.action == "wait":
        return Sync(when=step.when, event=_event(low, step.event.name, step.event.index, step))
    if isinstance(step, SyncStep):
        if step.target is None:
            return Sync(when=step.when)
        if step.kind == "stream":
            return Sync(when=step.when, stream=_stream(low, step.target.name, step.target.index, step))
        return Sync(when=step.when, event=_event(low, step.target.name, step.target.index, step))
    low.faults.append(_cannot(low.plan, f"a step of the kind `{type(step).__name__}`", step.where))
    return None


def _lower_op(low: _Lowering, step: OpStep) -> AnyCall | None:
    name, shifted = step.op, step.iteration
    if name not in low.ops:
        low.faults.append(_cannot(low.plan, f"the op `{step.op}`, which the plan does not have", step.where))
        return None
    op, loop = low.ops[name]
    iteration = _iteration(low, loop, shifted)
    values = {} if loop is None or iteration is None else {loop.index: iteration}
    stream = _stream(low, step.stream.name, step.stream.index, step)
    if op.kind in (OpKind.COMPUTE, OpKind.HOST):
        function, blocks = low.bound[name]
        own = () if iteration is None else (iteration,)
        return Launch(
            when=step.when,
            iteration=iteration,
            op=op.name,
            stream=stream,
            function=function,
            arguments=tuple(_place(low, block, values, op) for block in blocks),
            indices=(*own, *(Int(value) for _, value in op.indices)),
        )
    buffers = [low.plan.buffers[access.buffer] for access in op.accesses]
    names = _with_loop(low.names, loop)
    blocks = tuple(
        _place(low, lay_out(access, buffer, names), values, op)
        for access, buffer in zip(op.accesses, buffers, strict=True)
    )
    if op.kind is OpKind.FILL:
        return Fill(
            when=step.when,
            iteration=iteration,
            op=op.name,
            stream=stream,
            target=blocks[0],
            value=op.value,
            host=buffers[0].place is Place.HOST,
        )
    return Copy(
        when=step.when,
        iteration=iteration,
        op=op.name,
        stream=stream,
        source=blocks[0],
        target=blocks[1],
        direction=_DIRECTIONS[buffers[0].place, buffers[1].place],
    )


def _current(low: _Lowering) -> Expr | None:
    """The index of the innermost loop."""
    return Name(low.loops[-1][0]) if low.loops else None


def _iteration(low: _Lowering, loop: Loop | None, shifted: Expr | None) -> Expr | None:
    """The op's own loop index in terms of the schedule's loops."""
    if loop is None:
        return None
    if shifted is not None:
        return shifted
    if any(index == loop.index for index, _, _ in low.loops):
        return Name(loop.index)
    return _current(low) or Int(0)


def _place(low: _Lowering, block: Block, values: dict[str, Expr], op: Op) -> Block:
    """A block with the plan's loop index replaced by the schedule's; its arithmetic is noted for the overflow check."""
    if any(value != Name(name) for name, value in values.items()):
        block = replace(
            block,
            version=substitute(block.version, values),
            offset=substitute(block.offset, values),
            run=substitute(block.run, values),
            axes=tuple(replace(axis, count=substitute(axis.count, values)) for axis in block.axes),
            checks=tuple(
                replace(check, lo=substitute(check.lo, values), hi=substitute(check.hi, values))
                for check in block.checks
            ),
        )
    for expr in [block.version, block.offset, block.run, *(axis.count for axis in block.axes)]:
        _note(low, expr, op.where)
    for check in block.checks:
        _note(low, check.lo, op.where)
        _note(low, check.hi, op.where)
    return block


def _stream(low: _Lowering, name: str, index: Expr | None, step: Step) -> str:
    if index is not None:
        low.faults.append(_cannot(low.plan, f"the indexed stream `{name}@{expression_text(index)}`", step.where))
    return name


def _event(low: _Lowering, name: str, index: Expr | None, step: Step) -> EventRef:
    declared = low.schedule.events.get(name)
    ring = declared.ring if declared else None
    if ring is None and index is not None:  # one handle for each value of the index
        if isinstance(index, Int):
            return EventRef(name, Int(low.constant_handles[name].index(index.value)))
        low.faults.append(
            _cannot(low.plan, f"the event `{name}`, which needs a handle for every iteration", step.where)
        )
    _note(low, index if index is not None else Int(0), step.where)
    return EventRef(name, index if index is not None else Int(0))


def _check_op(plan: Plan, op: Op) -> list[Diagnostic]:
    faults = []
    for access in op.accesses:
        buffer = plan.buffers[access.buffer]
        if buffer.dynamic and not _is_whole(access, buffer):
            faults.append(
                Diagnostic(
                    code="E103",
                    headline=f"`{op.name}` touches a region of `{buffer.name}`, whose size varies",
                    where=access.where or op.where,
                    source=plan.source,
                    help=f"let `{op.name}` access all of `{buffer.name}`, or remove `dynamic: true` from it",
                )
            )
    return faults


def _is_whole(access: Access, buffer: Buffer) -> bool:
    return all(
        part in (Slice(), Slice(Int(0), None), Slice(None, Int(extent)), Slice(Int(0), Int(extent)))
        for part, extent in zip(access.region, buffer.extents, strict=False)
    )


def _cannot(plan: Plan, what: str, where: Where | None) -> Diagnostic:
    return Diagnostic(
        code="E104",
        headline=f"no program can be emitted for {what}",
        where=where,
        source=plan.source if where else None,
        help="emit what `dagsched compile` made of a plan",
    )


def _note(low: _Lowering, expr: Expr, where: Where | None) -> None:
    low.expressions.append(Scoped(expr, low.loops, where))
