"""The statements that issue a program through pyACL, in the order of the schedule, guarded and checked.

Host functions, and copies and fills within the host, are callbacks that block their stream (acl.rt.launch_callback);
pyACL has no aclrtLaunchHostFunc. Rows are copied one by one: pyACL documents no asynchronous 2-D copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.emit.blocks import Block
from dagsched.emit.calls import AnyCall, CallList, Copy, Fill, Launch, Record, Repeat, Sync, Wait
from dagsched.emit.cpp_names import Names
from dagsched.emit.cpp_text import Invocation
from dagsched.emit.nests import Nest, nest_of
from dagsched.emit.py_text import py_call, py_comment, py_condition, py_expression, py_if, py_string
from dagsched.emit.ranges import subtract
from dagsched.emit.statements import (
    describe,
    group_calls,
    has_host_calls,
    is_host_call,
    label_of,
    not_expressible,
    split_ops,
    total_bytes,
)
from dagsched.plan.expressions import Expr, Int
from dagsched.plan.model import Buffer, Mode

_KINDS = {
    "host to device": "ACL_MEMCPY_HOST_TO_DEVICE",
    "device to host": "ACL_MEMCPY_DEVICE_TO_HOST",
    "device to device": "ACL_MEMCPY_DEVICE_TO_DEVICE",
}


def write_py_body(calls: CallList, names: Names) -> list[str]:
    """The lines of the function body; raises :class:`PlanError` for copies that cannot be expressed."""
    writer = _Writer(names, {buffer.name: buffer for buffer in calls.buffers}, has_host_calls(calls), [])
    lines = list(writer.block(calls.body, 8))
    if writer.faults:
        raise PlanError(writer.faults)
    return lines


@dataclass(slots=True)
class _Writer:
    names: Names
    buffers: dict[str, Buffer]
    stops_for_host: bool
    faults: list[Diagnostic]

    def block(self, calls: Sequence[AnyCall], indent: int) -> Iterator[str]:
        """Calls with the same guard share an ``if``; a blank line stands between ops."""
        for begins, when, members in group_calls(calls):
            if begins:
                yield ""
            if when:
                yield from py_if(py_condition(when, self.names.locals), indent)
            yield from self.calls(members, indent + (4 if when else 0))

    def calls(self, calls: Sequence[AnyCall], indent: int) -> Iterator[str]:
        for begins, call in split_ops(calls):
            if begins:
                yield ""
            if isinstance(call, Launch | Copy | Fill | Wait):
                yield from py_comment(describe(call), indent)
            yield from self.call(call, indent)

    def call(self, call: AnyCall, indent: int) -> Iterator[str]:
        if isinstance(call, Repeat):
            lo, hi = self.expr(call.lo), self.expr(call.hi)
            bounds = hi if call.lo == Int(0) else f"{lo}, {hi}"
            yield f"{' ' * indent}for {self.names.locals[call.index]} in range({bounds}):"
            if self.stops_for_host:
                yield f"{' ' * indent}    if self._own.host_calls.failed:"
                yield f"{' ' * indent}        return"
                yield ""
            yield from self.block(call.body, indent + 4)
        elif isinstance(call, Launch):
            yield from self.launch(call, indent)
        elif isinstance(call, Copy):
            yield from self.copy(call, indent)
        elif isinstance(call, Fill):
            yield from self.fill(call, indent)
        elif isinstance(call, Record):
            yield from self.made(call, indent, "acl.rt.record_event", self.event(call), self.stream(call.stream))
        elif isinstance(call, Wait):
            yield from self.made(call, indent, "acl.rt.stream_wait_event", self.stream(call.stream), self.event(call))
        elif call.stream is not None:
            yield from self.made(call, indent, "acl.rt.synchronize_stream", self.stream(call.stream))
        elif call.event is not None:
            yield from self.made(call, indent, "acl.rt.synchronize_event", self.event(call))
        else:
            yield from self.made(call, indent, "acl.rt.synchronize_device")

    def launch(self, call: Launch, indent: int) -> Iterator[str]:
        yield from self.bounds(call, call.arguments, indent)
        for parameter, block in zip(call.function.parameters, call.arguments, strict=True):
            if parameter.mode is Mode.WRITE and block.buffer in self.names.sizes:
                index = block.version
                if (self.buffers[block.buffer].ring.depth or 1) == 1 and call.iteration is not None:
                    index = call.iteration  # one slot has no versions: the iteration says which size is meant
                hook = f"hooks.{self.names.sizes[block.buffer]}"
                method = f"{self.buffer(block)}.resize_by"
                yield from self.made(call, indent, method, self.expr(block.version), hook, self.expr(index))
        views = [
            self.view(block, parameter.mode)
            for parameter, block in zip(call.function.parameters, call.arguments, strict=True)
        ]
        hook = f"hooks.{self.names.functions[call.function.name]}"
        rest = [self.expr(index) for index in call.indices]
        if is_host_call(call):
            yield from self.on_host(call, indent, hook, *views, *rest)
        else:
            yield from self.made(call, indent, hook, *views, *rest, self.stream(call.stream))

    def copy(self, call: Copy, indent: int) -> Iterator[str]:
        nest = nest_of(call.source, call.target)
        if nest is None:
            self.faults.append(not_expressible(call))
            return
        source, target = call.source, call.target
        yield from self.bounds(call, (source, target), indent)
        actual = f"{self.buffer(source)}.bytes_of({self.expr(source.version)})" if self.dynamic(source) else None
        if self.dynamic(target):
            size = actual or self.expr(source.run)
            yield from self.made(call, indent, f"{self.buffer(target)}.resize", self.expr(target.version), size)
        elif actual is not None:
            yield from self.made(call, indent, "check_copy", actual, self.expr(target.run))
        elif subtract(total_bytes(source), total_bytes(target)) != Int(0):
            sizes = self.expr(total_bytes(source)), self.expr(total_bytes(target))
            yield from self.made(call, indent, "check_copy", *sizes)
        if is_host_call(call):
            yield from self.copy_on_host(call, nest, actual, indent)
        else:
            yield from self.rows(call, nest, actual, indent)

    def copy_on_host(self, call: Copy, nest: Nest, actual: str | None, indent: int) -> Iterator[str]:
        ends = self.address(call.target), self.address(call.source)
        size = actual or self.expr(nest.run)
        if not nest.levels:
            yield from self.on_host(call, indent, "copy_bytes", *ends, size)
            return
        count = self.tuple([level.count for level in nest.levels])
        steps = self.tuple([level.target for level in nest.levels]), self.tuple([level.source for level in nest.levels])
        yield from self.on_host(call, indent, "copy_rows", *ends, count, *steps, size)

    def rows(self, call: Copy, nest: Nest, actual: str | None, indent: int) -> Iterator[str]:
        source, target = self.address(call.source), self.address(call.target)
        for depth, level in enumerate(nest.levels):
            pad = " " * (indent + 4 * depth)
            yield f"{pad}for step{depth} in range({self.expr(level.count)}):"
            source += f" + step{depth} * {self.expr(level.source, 3)}"
            target += f" + step{depth} * {self.expr(level.target, 3)}"
        run = self.expr(nest.run)
        named = not nest.levels  # one copy of all of a buffer: its size has a name
        size = actual or (f"{self.buffer(call.source)}.size" if named and call.source.whole else run)
        room = f"{self.buffer(call.target)}.size" if named and call.target.whole else run
        kind, stream = _KINDS[call.direction], self.stream(call.stream)
        inside = indent + 4 * len(nest.levels)
        yield from self.made(call, inside, "acl.rt.memcpy_async", target, room, source, size, kind, stream)

    def fill(self, call: Fill, indent: int) -> Iterator[str]:
        block = call.target
        yield from self.bounds(call, (block,), indent)
        size = f"{self.buffer(block)}.size" if block.whole else self.expr(block.run)
        if self.dynamic(block):
            yield from self.made(call, indent, f"{self.buffer(block)}.resize", self.expr(block.version), size)
        address = self.address(block)
        for depth, axis in enumerate(block.axes):
            yield f"{' ' * (indent + 4 * depth)}for step{depth} in range({self.expr(axis.count)}):"
            address += f" + step{depth} * {axis.stride}"
        inside = indent + 4 * len(block.axes)
        if call.host:
            yield from self.on_host(call, inside, "fill_bytes", address, str(call.value), size)
            return
        stream = self.stream(call.stream)
        yield from self.made(call, inside, "acl.rt.memset_async", address, size, str(call.value), size, stream)

    def made(self, call: AnyCall, indent: int, function: str, *arguments: str | Invocation) -> list[str]:
        """A checked call."""
        return py_call(Invocation("call", (*self.place(call), function, *arguments)), indent)

    def on_host(
        self, call: Launch | Copy | Fill, indent: int, function: str, *arguments: str | Invocation
    ) -> list[str]:
        """A function queued on a stream."""
        stream = self.stream(call.stream)
        return py_call(Invocation("on_host", (*self.place(call), stream, function, *arguments)), indent)

    def place(self, call: AnyCall) -> tuple[str, str]:
        iteration = self.expr(call.iteration) if call.iteration is not None else "None"
        return py_string(label_of(call)), iteration

    def bounds(self, call: Launch | Copy | Fill, blocks: tuple[Block, ...], indent: int) -> Iterator[str]:
        """Checks of the regions that may leave their buffers, each once."""
        seen = set()
        for check in (check for block in blocks for check in block.checks):
            arguments = (self.expr(check.lo), self.expr(check.hi), str(check.extent))
            if arguments not in seen:
                seen.add(arguments)
                yield from self.made(call, indent, "check_region", *arguments)

    def view(self, block: Block, mode: Mode) -> Invocation:
        kind = "read" if mode is Mode.READ else "write"
        head, version = f"{self.buffer(block)}.{kind}", self.expr(block.version)
        if block.whole:
            return Invocation(head, (version,))
        part = (version, self.expr(block.offset), self.expr(block.run))
        if not block.axes:
            return Invocation(f"{head}_part", part)
        strides = self.tuple([Int(axis.stride) for axis in block.axes])
        return Invocation(f"{head}_rows", (*part, self.tuple([axis.count for axis in block.axes]), strides))

    def expr(self, expr: Expr, level: int = 0) -> str:
        return py_expression(expr, self.names.locals, level)

    def tuple(self, values: Sequence[Expr]) -> str:
        return f"({', '.join(self.expr(value) for value in values)}{',' if len(values) == 1 else ''})"

    def stream(self, name: str) -> str:
        return f"streams.{self.names.streams[name]}"

    def event(self, call: Record | Wait | Sync) -> str:
        assert call.event is not None
        return f"events.{self.names.events[call.event.name]}[{self.expr(call.event.index)}]"

    def buffer(self, block: Block) -> str:
        return f"buffers.{self.names.buffers[block.buffer]}"

    def dynamic(self, block: Block) -> bool:
        return self.buffers[block.buffer].dynamic

    def address(self, block: Block) -> str:
        base = f"{self.buffer(block)}[{self.expr(block.version)}]"
        return base if block.offset == Int(0) else f"{base} + {self.expr(block.offset, 1)}"
