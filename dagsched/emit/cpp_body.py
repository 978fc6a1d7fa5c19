"""The statements that issue a program: C++ for each call, in the order of the schedule, guarded and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.emit.calls import AnyCall, CallList, Copy, Fill, Launch, Record, Repeat, Sync, Wait
from dagsched.emit.cpp_copies import write_copy, write_fill
from dagsched.emit.cpp_names import Names
from dagsched.emit.cpp_parts import Parts
from dagsched.emit.cpp_runtime import Runtime
from dagsched.emit.cpp_text import Invocation, comment, cpp_condition
from dagsched.emit.names import cpp_comment
from dagsched.emit.statements import describe, group_calls, has_host_calls, split_ops
from dagsched.plan.model import Mode, OpKind


def write_body(
    calls: CallList, names: Names, runtime: Runtime, instead: Mapping[int, list[str]] | None = None
) -> list[str]:
    """The lines of the function body; raises :class:`PlanError` for copies that no rows express.

    ``instead`` has, by the identity of a loop, the lines that stand for it.
    """
    writer = _Writer(calls, names, runtime, instead=instead)
    lines = list(writer.block(calls.body, 4))
    if writer.faults:
        raise PlanError(writer.faults)
    return lines


def write_calls(
    calls: CallList,
    names: Names,
    runtime: Runtime,
    some: Sequence[AnyCall],
    indent: int,
    step: tuple[str, int] | None = None,
) -> list[str]:
    """The lines of some calls of a program whose copies are known to be expressible; ``step`` as in :class:`Parts`."""
    return list(_Writer(calls, names, runtime, step).block(some, indent))


class _Writer:
    def __init__(
        self,
        calls: CallList,
        names: Names,
        runtime: Runtime,
        step: tuple[str, int] | None = None,
        instead: Mapping[int, list[str]] | None = None,
    ) -> None:
        self.names = names
        self.runtime = runtime
        self.instead = instead or {}
        self.parts = Parts(calls, names, runtime, step)
        self.stops_for_host = has_host_calls(calls)
        self.faults: list[Diagnostic] = []

    def block(self, calls: Sequence[AnyCall], indent: int) -> Iterator[str]:
        """Calls with the same guard share an ``if``; a blank line stands between ops."""
        for begins, when, members in group_calls(calls):
            if begins:
                yield ""
            if not when:
                yield from self.calls(members, indent)
                continue
            yield f"{' ' * indent}if ({cpp_condition(when, self.names.locals)}) {{"
            yield from self.calls(members, indent + 2)
            yield f"{' ' * indent}}}"

    def calls(self, calls: Sequence[AnyCall], indent: int) -> Iterator[str]:
        for begins, call in split_ops(calls):
            if begins:
                yield ""
            if isinstance(call, Launch | Copy | Fill | Wait):
                yield from comment(cpp_comment(describe(call)), indent)
            yield from self.call(call, indent)

    def call(self, call: AnyCall, indent: int) -> Iterator[str]:
        parts = self.parts
        if isinstance(call, Repeat):
            yield from self.instead.get(id(call)) or self.loop(call, indent)
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
            yield from parts.statement(call, indent, self.runtime.record(parts.event(call), parts.stream(call.stream)))
        elif isinstance(call, Wait):
            yield from parts.statement(call, indent, self.runtime.wait(parts.stream(call.stream), parts.event(call)))
        else:
            yield from self.sync(call, indent)

    def loop(self, call: Repeat, indent: int) -> Iterator[str]:
        index = self.names.locals[call.index]
        lo, hi = self.parts.expr(call.lo), self.parts.expr(call.hi)
        yield f"{' ' * indent}for (int64_t {index} = {lo}; {index} < {hi}; ++{index}) {{"
        if self.stops_for_host:
            yield f"{' ' * indent}  if (own_->calls.failed()) return {self.runtime.words.failure};"
            yield ""
        yield from self.block(call.body, indent + 2)
        yield f"{' ' * indent}}}"

    def sync(self, call: Sync, indent: int) -> Iterator[str]:
        if call.stream is not None:
            inner = Invocation(self.runtime.sync_stream, (self.parts.stream(call.stream),))
        elif call.event is not None:
            inner = Invocation(self.runtime.sync_event, (self.parts.event(call),))
        else:
            inner = Invocation(self.runtime.sync_device, ())
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
