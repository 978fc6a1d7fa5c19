"""The statements that issue a program: C++ for each call, in the order of the schedule, guarded and checked.

The statements of one op stand together: its waits, each with the hazards that it is there for, the op, its record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.emit.acl_copies import write_copy, write_fill
from dagsched.emit.acl_parts import Parts
from dagsched.emit.calls import (
    AnyCall,
    CallList,
    Copy,
    Fill,
    Launch,
    Record,
    Repeat,
    Sync,
    Wait,
    event_text,
    reason_text,
)
from dagsched.emit.cpp_names import Names
from dagsched.emit.cpp_text import Invocation, comment, cpp_condition
from dagsched.emit.names import cpp_comment
from dagsched.plan.model import Mode, OpKind


def write_body(calls: CallList, names: Names) -> list[str]:
    """The lines of the function body; raises :class:`PlanError` for copies that AscendCL cannot express."""
    writer = _Writer(calls, names)
    lines = list(writer.block(calls.body, 4))
    if writer.faults:
        raise PlanError(writer.faults)
    return lines


def has_host_calls(calls: CallList) -> bool:
    """Whether anything runs on the host's side of a stream."""
    return any(
        (isinstance(call, Launch) and call.function.kind is OpKind.HOST)
        or (isinstance(call, Copy) and call.direction == "host to host")
        or (isinstance(call, Fill) and call.host)
        for call in calls.walk()
    )


class _Writer:
    def __init__(self, calls: CallList, names: Names) -> None:
        self.names = names
        self.parts = Parts(calls, names)
        self.stops_for_host = has_host_calls(calls)
        self.faults: list[Diagnostic] = []

    def block(self, calls: Sequence[AnyCall], indent: int) -> Iterator[str]:
        """Calls with the same guard share an ``if``; a blank line stands between ops."""
        previous = ""
        for when, group in groupby(calls, key=lambda call: call.when):
            members = list(group)
            if previous and _op_of(members[0]) != previous:
                yield ""
            previous = _op_of(members[-1])
            if not when:
                yield from self.calls(members, indent)
                continue
            yield f"{' ' * indent}if ({cpp_condition(when, self.names.locals)}) {{"
            yield from self.calls(members, indent + 2)
            yield f"{' ' * indent}}}"

    def calls(self, calls: Sequence[AnyCall], indent: int) -> Iterator[str]:
        previous = ""
        for call in calls:
            if previous and _op_of(call) != previous:
                yield ""
            previous = _op_of(call)
            if isinstance(call, Launch | Copy | Fill):
                yield from comment(cpp_comment(_describe(call)), indent)
            yield from self.call(call, indent)

    def call(self, call: AnyCall, indent: int) -> Iterator[str]:
        parts = self.parts
        if isinstance(call, Repeat):
            yield from self.loop(call, indent)
        elif isinstance(call, Launch):
            yield from self.launch(call, indent)
        elif isinstance(call, Copy):
            written = write_copy(parts, call, indent)
            if isinstance(written, Diagnostic):
                self.faults.append(written)
            else:
                yield from written
        elif isinstance(call, Fill):
            yield from write_fill(parts, call, indent)
        elif isinstance(call, Record):
            record = Invocation("aclrtRecordEvent", (parts.event(call), parts.stream(call.stream)))
            yield from parts.statement(call, indent, record)
        elif isinstance(call, Wait):
            reasons = "; ".join(reason_text(reason) for reason in call.protects)
            yield from comment(cpp_comment(reasons or f"wait for {event_text(call.event)}"), indent)
            wait = Invocation("aclrtStreamWaitEvent", (parts.stream(call.stream), parts.event(call)))
            yield from parts.statement(call, indent, wait)
        else:
            yield from self.sync(call, indent)

    def loop(self, call: Repeat, indent: int) -> Iterator[str]:
        index = self.names.locals[call.index]
        lo, hi = self.parts.expr(call.lo), self.parts.expr(call.hi)
        yield f"{' ' * indent}for (int64_t {index} = {lo}; {index} < {hi}; ++{index}) {{"
        if self.stops_for_host:
            yield f"{' ' * indent}  if (own_->calls.failed()) return ACL_ERROR_FAILURE;"
            yield ""
        yield from self.block(call.body, indent + 2)
        yield f"{' ' * indent}}}"

    def sync(self, call: Sync, indent: int) -> Iterator[str]:
        if call.stream is not None:
            inner = Invocation("aclrtSynchronizeStream", (self.parts.stream(call.stream),))
        elif call.event is not None:
            inner = Invocation("aclrtSynchronizeEvent", (self.parts.event(call),))
        else:
            inner = Invocation("aclrtSynchronizeDevice", ())
        yield from self.parts.statement(call, indent, inner)

    def launch(self, call: Launch, indent: int) -> Iterator[str]:
        parts, pad = self.parts, " " * indent
        yield from parts.bounds(call, call.arguments, indent)
        yield from self.sizes(call, indent)
        hook = f"hooks.{self.names.functions[call.function.name]}"
        arguments = [parts.view(call, number) for number in range(len(call.arguments))]
        indices = [parts.expr(index) for index in call.indices]
        if call.function.kind is OpKind.COMPUTE:
            inner = Invocation(hook, (*arguments, *indices, parts.stream(call.stream)))
            yield from parts.statement(call, indent, inner)
        elif not arguments:
            yield from parts.on_host(call, indent, Invocation(f"return {hook}", tuple(indices)))
        else:
            views, _ = self.names.parameters(call.function)
            yield f"{pad}{{"
            for view, argument in zip(views, arguments, strict=True):
                yield f"{pad}  const auto {view} = {argument};"
            yield from parts.on_host(call, indent + 2, Invocation(f"return {hook}", (*views, *indices)))
            yield f"{pad}}}"

    def sizes(self, call: Launch, indent: int) -> Iterator[str]:
        """Ask how much of a dynamic buffer the function is going to write."""
        for parameter, block in zip(call.function.parameters, call.arguments, strict=True):
            if parameter.mode is not Mode.WRITE or block.buffer not in self.names.sizes:
                continue
            index = block.version
            if (self.parts.buffers[block.buffer].ring.depth or 1) == 1 and call.iteration is not None:
                index = call.iteration  # one slot has no versions: the iteration says which size is meant
            size = f"hooks.{self.names.sizes[block.buffer]}({self.parts.expr(index)})"
            yield from self.parts.statement(call, indent, self.parts.resize(block, size))


def _op_of(call: AnyCall) -> str:
    """What a call is part of: statements of one op stand together."""
    return f"loop {call.index}" if isinstance(call, Repeat) else getattr(call, "op", "sync")


def _describe(call: Launch | Copy | Fill) -> str:
    if isinstance(call, Copy):
        return f"{call.op}: copy {call.source.text} to {call.target.text}"
    if isinstance(call, Fill):
        return f"{call.op}: fill {call.target.text} with {call.value}"
    kind = "compute" if call.function.kind is OpKind.COMPUTE else "host"
    return f"{call.op}: {kind} {call.function.name}"
