"""What all targets say about calls: which statements stand together, and what the comment above a call is.

The statements of one op stand together: its waits, each with the hazards that it is there for, the op, its record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from dagsched.diagnostics import Diagnostic
from dagsched.emit.blocks import Block
from dagsched.emit.calls import AnyCall, CallList, Copy, Fill, Launch, Repeat, Sync, Wait, event_text, reason_text
from dagsched.emit.ranges import scale
from dagsched.plan.expressions import Condition, Expr, Int, combine
from dagsched.plan.model import OpKind


def group_calls(calls: Sequence[AnyCall]) -> Iterator[tuple[bool, Condition, list[AnyCall]]]:
    """Neighbouring calls with the same guard; the flag says that another op begins, so that a blank line is due."""
    previous = ""
    for when, group in groupby(calls, key=lambda call: call.when):
        members = list(group)
        yield bool(previous) and op_of(members[0]) != previous, when, members
        previous = op_of(members[-1])


def split_ops(calls: Sequence[AnyCall]) -> Iterator[tuple[bool, AnyCall]]:
    """Every call, with whether another op begins."""
    previous = ""
    for call in calls:
        yield bool(previous) and op_of(call) != previous, call
        previous = op_of(call)


def op_of(call: AnyCall) -> str:
    """What a call is part of."""
    return f"loop {call.index}" if isinstance(call, Repeat) else getattr(call, "op", "sync")


def describe(call: Launch | Copy | Fill | Wait) -> str:
    """The comment above a call."""
    if isinstance(call, Wait):
        return "; ".join(reason_text(reason) for reason in call.protects) or f"wait for {event_text(call.event)}"
    if isinstance(call, Copy):
        return f"{call.op}: copy {call.source.text} to {call.target.text}"
    if isinstance(call, Fill):
        return f"{call.op}: fill {call.target.text} with {call.value}"
    kind = "compute" if call.function.kind is OpKind.COMPUTE else "host"
    return f"{call.op}: {kind} {call.function.name}"


def label_of(call: AnyCall) -> str:
    """What an error message calls a call: its op, or what is being synchronised."""
    if not isinstance(call, Sync):
        return getattr(call, "op", "")
    if call.stream is not None:
        return f"synchronise {call.stream}"
    return f"synchronise {event_text(call.event)}" if call.event is not None else "synchronise the device"


def is_host_call(call: AnyCall) -> bool:
    """Whether a call runs on the host's side of its stream."""
    if isinstance(call, Launch):
        return call.function.kind is OpKind.HOST
    return (isinstance(call, Copy) and call.direction == "host to host") or (isinstance(call, Fill) and call.host)


def has_host_calls(calls: CallList) -> bool:
    """Whether anything runs on the host's side of a stream."""
    return any(is_host_call(call) for call in calls.walk())


def purpose_of(calls: CallList, stream: str, engine: str | None) -> str:
    """What a stream is for: its engine and the first of its ops."""
    work = [call for call in calls.walk() if isinstance(call, Launch | Copy | Fill) and call.stream == stream]
    ops = list(dict.fromkeys(call.op for call in work))
    shown = ", ".join(ops[:6]) + (f" and {len(ops) - 6} more" if len(ops) > 6 else "")
    return ": ".join(part for part in (engine, shown) if part)


def callers_of(calls: CallList) -> dict[int, str]:
    """By the identity of each function, the ops that call it, as text."""
    callers: dict[int, dict[str, None]] = {}
    for call in calls.walk():
        if isinstance(call, Launch):
            callers.setdefault(id(call.function), {})[call.op] = None
    shown = {}
    for function, found in callers.items():
        ops = list(found)
        shown[function] = ", ".join(ops[:8]) + (f" and {len(ops) - 8} more" if len(ops) > 8 else "")
    return shown


def total_bytes(block: Block) -> Expr:
    """The bytes of all runs of a block together."""
    total = block.run
    for axis in block.axes:
        total = scale(total, axis.count.value) if isinstance(axis.count, Int) else combine("*", total, axis.count)
    return total


def not_expressible(call: Copy) -> Diagnostic:
    """Why a copy has no statements (E102)."""
    return Diagnostic(
        code="E102",
        headline=f"`{call.op}` copies between regions that no sequence of row copies expresses",
        notes=(f"from `{call.source.text}` to `{call.target.text}`: the rows of one do not divide those of the other",),
        help="copy between regions of the same shape, or through a contiguous buffer",
    )
