"""The statements that issue a program: one block of C++ per call, each guarded and checked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.emit.blocks import Block
from dagsched.emit.calls import AnyCall, CallList, Copy, Fill, Launch, Record, Repeat, Sync, Wait, event_text, reason_text
from dagsched.emit.cpp_names import Names, view_type
from dagsched.emit.cpp_text import WIDTH, Invocation, comment, cpp_condition, cpp_expression, lay_out_call
from dagsched.emit.names import cpp_comment, cpp_string
from dagsched.emit.nests import Level, Nest, nest_of
from dagsched.emit.ranges import scale, subtract
from dagsched.plan.expressions import Expr, Int, combine
from dagsched.plan.model import Buffer, Mode, OpKind

MAX_WIDTH = 5_000_000
MAX_HEIGHT = 5 * 1024 * 1024
"""Limits of aclrtMemcpy2dAsync, in bytes and rows."""

_KINDS = {
    "host to device": "ACL_MEMCPY_HOST_TO_DEVICE",
    "device to host": "ACL_MEMCPY_DEVICE_TO_HOST",
    "device to device": "ACL_MEMCPY_DEVICE_TO_DEVICE",
}


class BodyWriter:
    """Writes the calls of one program; raises :class:`PlanError` for copies that AscendCL cannot express."""

    def __init__(self, calls: CallList, names: Names) -> None:
        self.calls = calls
        self.names = names
        self.buffers: dict[str, Buffer] = {buffer.name: buffer for buffer in calls.buffers}
        self.faults: list[Diagnostic] = []
        self.has_host_calls = any(
            (isinstance(call, Launch) and call.function.kind is OpKind.HOST)
            or (isinstance(call, Copy) and call.direction == "host to host")
            or (isinstance(call, Fill) and call.host)
            for call in calls.walk()
        )

    def write(self) -> list[str]:
        """The lines of the function body."""
        lines = list(self._block(self.calls.body, 4))
        if self.faults:
            raise PlanError(self.faults)
        return lines

    def _block(self, calls: tuple[AnyCall, ...], indent: int) -> Iterator[str]:
        previous = ""
        for when, group in groupby(calls, key=lambda call: call.when):
            members = list(group)
            if when:
                if previous and _op_of(members[0]) != previous:
                    yield ""
                previous = _op_of(members[-1])
                yield f"{' ' * indent}if ({cpp_condition(when, self.names.locals)}) {{"
                yield from self._calls(members, indent + 2)
                yield f"{' ' * indent}}}"
            else:
                if previous and _op_of(members[0]) != previous:
                    yield ""
                yield from self._calls(members, indent)
                previous = _op_of(members[-1])

    def _calls(self, calls: list[AnyCall], indent: int) -> Iterator[str]:
        previous = ""
        for call in calls:
            op = _op_of(call)
            if previous and op != previous:
                yield ""
            previous = op
            yield from self._call(call, indent)

    def _call(self, call: AnyCall, indent: int) -> Iterator[str]:
        if isinstance(call, Repeat):
            yield from self._loop(call, indent)
        elif isinstance(call, Launch):
            yield from self._launch(call, indent)
        elif isinstance(call, Copy):
            yield from self._copy(call, indent)
        elif isinstance(call, Fill):
            yield from self._fill(call, indent)
        elif isinstance(call, Record):
            yield from self._try(call, indent, Invocation("aclrtRecordEvent", (self._event(call), self._stream(call.stream))))
        elif isinstance(call, Wait):
            reasons = "; ".join(reason_text(reason) for reason in call.protects)
            yield from comment(cpp_comment(reasons or f"wait for {event_text(call.event)}"), indent)
            yield from self._try(
                call, indent, Invocation("aclrtStreamWaitEvent", (self._stream(call.stream), self._event(call)))
            )
        else:
            yield from self._sync(call, indent)

    def _loop(self, call: Repeat, indent: int) -> Iterator[str]:
        index = self.names.locals[call.index]
        lo, hi = self._expr(call.lo), self._expr(call.hi)
        pad = " " * indent
        yield f"{pad}for (int64_t {index} = {lo}; {index} < {hi}; ++{index}) {{"
        if self.has_host_calls:
            yield f"{pad}  if (own_->calls.failed()) return ACL_ERROR_FAILURE;"
            yield ""
        yield from self._block(call.body, indent + 2)
        yield f"{pad}}}"

    def _sync(self, call: Sync, indent: int) -> Iterator[str]:
        if call.stream is not None:
            inner = Invocation("aclrtSynchronizeStream", (self._stream(call.stream),))
        elif call.event is not None:
            inner = Invocation("aclrtSynchronizeEvent", (self._event(call),))
        else:
            inner = Invocation("aclrtSynchronizeDevice", ())
        yield from self._try(call, indent, inner)

    # Ops

    def _launch(self, call: Launch, indent: int) -> Iterator[str]:
        pad = " " * indent
        yield from comment(cpp_comment(_describe(call)), indent)
        yield from self._checks(call, call.arguments, indent)
        for parameter, block in zip(call.function.parameters, call.arguments, strict=True):
            if parameter.mode is Mode.WRITE and block.buffer in self.names.sizes:
                size = f"hooks.{self.names.sizes[block.buffer]}({self._size_index(block, call.iteration)})"
                yield from self._try(call, indent, Invocation(f"{self._buffer(block)}.resize", (self._version(block), size)))
        views, _ = self.names.parameters(call.function)
        arguments = [self._view(call, number) for number in range(len(call.arguments))]
        indices = [self._expr(index) for index in call.indices]
        hook = f"hooks.{self.names.functions[call.function.name]}"
        if call.function.kind is OpKind.COMPUTE:
            inner = Invocation(hook, (*arguments, *indices, self._stream(call.stream)))
            yield from self._try(call, indent, inner)
            return
        if arguments:
            yield f"{pad}{{"
            for view, argument in zip(views, arguments, strict=True):
                yield f"{pad}  const auto {view} = {argument};"
            yield from self._on_host(call, indent + 2, Invocation(f"return {hook}", (*views, *indices)))
            yield f"{pad}}}"
        else:
            yield from self._on_host(call, indent, Invocation(f"return {hook}", tuple(indices)))

    def _on_host(self, call: Launch | Copy | Fill, indent: int, body: Invocation) -> Iterator[str]:
        """Queue ``body``; what it uses is captured by value, for it runs when this scope is long gone."""
        capture = "[=, &hooks]" if "hooks." in body.head else "[=]"
        stream = self._stream(call.stream)
        inline = Invocation("on_host", (stream, f"{capture} {{ {body}; }}"))
        statement = self._try_call(call, inline)
        if len(f"{' ' * indent}{statement};") <= WIDTH:
            yield f"{' ' * indent}{statement};"
            return
        pad = " " * indent
        one_line = f"{pad}const auto body = {capture} {{ {body}; }};"
        if len(one_line) <= WIDTH:
            yield one_line
        else:
            yield f"{pad}const auto body = {capture} {{"
            yield from lay_out_call(body, indent + 2)
            yield f"{pad}}};"
        yield from self._try(call, indent, Invocation("on_host", (stream, "body")))

    def _copy(self, call: Copy, indent: int) -> Iterator[str]:
        yield from comment(cpp_comment(_describe(call)), indent)
        source, target = call.source, call.target
        yield from self._checks(call, (source, target), indent)
        dynamic = self.buffers[source.buffer].dynamic or self.buffers[target.buffer].dynamic
        nest = nest_of(source, target)
        if nest is None:
            self.faults.append(_not_expressible(call))
            return
        if not dynamic and subtract(_total(source), _total(target)) != Int(0):
            sizes = (self._expr(_total(source)), self._expr(_total(target)))
            yield from self._try(call, indent, Invocation("check_copy", sizes))
        count = f"{self._buffer(source)}.bytes({self._version(source)})" if self.buffers[source.buffer].dynamic else None
        if self.buffers[target.buffer].dynamic:
            used = count or self._expr(source.run)
            yield from self._try(call, indent, Invocation(f"{self._buffer(target)}.resize", (self._version(target), used)))
        elif count is not None:
            capacity = self._expr(target.run)
            yield from self._try(call, indent, Invocation("check_copy", (f"static_cast<int64_t>({count})", capacity)))
        levels = nest.levels
        flat = self._use_2d(call, nest)
        looped = levels[:-1] if flat else levels
        yield from self._nested(call, nest, looped, indent, count)

    def _use_2d(self, call: Copy, nest: Nest) -> bool:
        """Whether the innermost two levels are one 2-D copy: host and device only, within the call's limits."""
        if not nest.levels or call.direction not in ("host to device", "device to host"):
            return False
        height = nest.levels[-1].count
        return (
            isinstance(nest.run, Int)
            and nest.run.value <= MAX_WIDTH
            and isinstance(height, Int)
            and height.value <= MAX_HEIGHT
        )

    def _nested(self, call: Copy, nest: Nest, looped: tuple[Level, ...], indent: int, count: str | None) -> Iterator[str]:
        source, target = self._address(call.source), self._address(call.target)
        if not looped:
            yield from self._one_copy(call, nest, source, target, nest.levels, indent, count)
            return
        if call.direction == "host to host":
            yield from self._host_rows(call, nest, indent)
            return
        for depth, level in enumerate(looped):
            step = f"step{depth}"
            pad = " " * (indent + 2 * depth)
            yield f"{pad}for (int64_t {step} = 0; {step} < {self._expr(level.count)}; ++{step}) {{"
            source += f" + {step} * {self._factor(level.source)}"
            target += f" + {step} * {self._factor(level.target)}"
        rest = nest.levels[len(looped) :]
        yield from self._one_copy(call, nest, source, target, rest, indent + 2 * len(looped), count)
        for depth in reversed(range(len(looped))):
            yield f"{' ' * (indent + 2 * depth)}}}"

    def _one_copy(
        self, call: Copy, nest: Nest, source: str, target: str, levels: tuple[Level, ...], indent: int, count: str | None
    ) -> Iterator[str]:
        """One call of the runtime: bytes in a row, or (one level left) rows of bytes."""
        if call.direction == "host to host":
            pad = " " * indent
            yield f"{pad}{{"
            yield f"{pad}  std::byte* const to = {target};"
            yield f"{pad}  const std::byte* const from = {source};"
            yield f"{pad}  const size_t bytes = {count or self._bytes(nest.run)};"
            yield from self._on_host(call, indent + 2, Invocation("return copy_bytes", ("to", "from", "bytes")))
            yield f"{pad}}}"
            return
        kind, stream = _KINDS[call.direction], self._stream(call.stream)
        if levels:
            level = levels[0]
            inner = Invocation(
                "aclrtMemcpy2dAsync",
                (
                    target,
                    self._bytes(level.target),
                    source,
                    self._bytes(level.source),
                    self._bytes(nest.run),
                    self._bytes(level.count),
                    kind,
                    stream,
                ),
            )
        elif count is None and not isinstance(nest.run, Int):
            pad = " " * indent
            yield f"{pad}{{"
            yield f"{pad}  const auto bytes = {self._bytes(nest.run)};"
            room = self._size(call.target) if call.target.whole else "bytes"
            arguments = (target, room, source, "bytes", kind, stream)
            yield from self._try(call, indent + 2, Invocation("aclrtMemcpyAsync", arguments))
            yield f"{pad}}}"
            return
        else:
            named = not nest.levels  # one copy of all of a buffer: its size has a name
            size = count or (self._size(call.source) if named and call.source.whole else self._bytes(nest.run))
            room = self._size(call.target) if named and call.target.whole else self._bytes(nest.run)
            inner = Invocation("aclrtMemcpyAsync", (target, room, source, size, kind, stream))
        yield from self._try(call, indent, inner)

    def _host_rows(self, call: Copy, nest: Nest, indent: int) -> Iterator[str]:
        """A host copy between regions: one host function that walks all levels."""
        pad = " " * indent
        n = len(nest.levels)
        yield f"{pad}{{"
        yield f"{pad}  std::byte* const to = {self._address(call.target)};"
        yield f"{pad}  const std::byte* const from = {self._address(call.source)};"
        yield f"{pad}  const std::array<int64_t, {n}> count{{{', '.join(self._expr(x.count) for x in nest.levels)}}};"
        yield f"{pad}  const std::array<int64_t, {n}> to_step{{{', '.join(self._expr(x.target) for x in nest.levels)}}};"
        yield f"{pad}  const std::array<int64_t, {n}> from_step{{{', '.join(self._expr(x.source) for x in nest.levels)}}};"
        yield f"{pad}  const size_t run = {self._bytes(nest.run)};"
        body = Invocation("return copy_rows", ("to", "from", "count", "to_step", "from_step", "run"))
        yield from self._on_host(call, indent + 2, body)
        yield f"{pad}}}"

    def _fill(self, call: Fill, indent: int) -> Iterator[str]:
        yield from comment(cpp_comment(_describe(call)), indent)
        block = call.target
        yield from self._checks(call, (block,), indent)
        if self.buffers[block.buffer].dynamic:
            full = Invocation(f"{self._buffer(block)}.resize", (self._version(block), self._size(block)))
            yield from self._try(call, indent, full)
        address = self._address(block)
        for depth, axis in enumerate(block.axes):
            step, pad = f"step{depth}", " " * (indent + 2 * depth)
            yield f"{pad}for (int64_t {step} = 0; {step} < {self._expr(axis.count)}; ++{step}) {{"
            address += f" + {step} * {axis.stride}"
        inside = indent + 2 * len(block.axes)
        size = self._size(block) if block.whole else self._bytes(block.run)
        if call.host:
            scoped = not block.axes
            if scoped:
                yield f"{' ' * inside}{{"
            pad = " " * (inside + 2 * scoped)
            yield f"{pad}std::byte* const to = {address};"
            yield f"{pad}const size_t bytes = {size};"
            body = Invocation("return fill_bytes", ("to", str(call.value), "bytes"))
            yield from self._on_host(call, inside + 2 * scoped, body)
            if scoped:
                yield f"{' ' * inside}}}"
        else:
            inner = Invocation("aclrtMemsetAsync", (address, size, str(call.value), size, self._stream(call.stream)))
            yield from self._try(call, inside, inner)
        for depth in reversed(range(len(block.axes))):
            yield f"{' ' * (indent + 2 * depth)}}}"

    # Parts of statements

    def _try_call(self, call: AnyCall, inner: Invocation) -> Invocation:
        iteration = self._expr(call.iteration) if call.iteration is not None else "kNoIteration"
        return Invocation("DAGSCHED_TRY", (cpp_string(_label(call)), iteration, inner))

    def _try(self, call: AnyCall, indent: int, inner: Invocation) -> list[str]:
        return lay_out_call(self._try_call(call, inner), indent)

    def _checks(self, call: Launch | Copy | Fill, blocks: tuple[Block, ...], indent: int) -> Iterator[str]:
        seen = set()
        for block in blocks:
            for check in block.checks:
                arguments = (self._expr(check.lo), self._expr(check.hi), str(check.extent))
                if arguments not in seen:
                    seen.add(arguments)
                    yield from self._try(call, indent, Invocation("check_region", arguments))

    def _expr(self, expr: Expr) -> str:
        return cpp_expression(expr, self.names.locals)

    def _factor(self, expr: Expr) -> str:
        return cpp_expression(expr, self.names.locals, 3)

    def _bytes(self, expr: Expr) -> str:
        """An expression as ``size_t``: constants need no cast."""
        return str(expr.value) if isinstance(expr, Int) else f"static_cast<size_t>({self._expr(expr)})"

    def _stream(self, name: str) -> str:
        return f"streams.{self.names.streams[name]}"

    def _event(self, call: Record | Wait | Sync) -> str:
        assert call.event is not None
        return f"events.{self.names.events[call.event.name]}[{self._expr(call.event.index)}]"

    def _buffer(self, block: Block) -> str:
        return f"buffers.{self.names.buffers[block.buffer]}"

    def _version(self, block: Block) -> str:
        return self._expr(block.version)

    def _size(self, block: Block) -> str:
        return f"{self._buffer(block)}.size"

    def _size_index(self, block: Block, iteration: Expr | None) -> str:
        """Which size to ask for: the version's, or the iteration's where the buffer has one slot."""
        if (self.buffers[block.buffer].ring.depth or 1) > 1:
            return self._version(block)
        return self._expr(iteration) if iteration is not None else "0"

    def _address(self, block: Block) -> str:
        base = f"{self._buffer(block)}[{self._version(block)}]"
        return base if block.offset == Int(0) else f"{base} + {cpp_expression(block.offset, self.names.locals, 1)}"

    def _view(self, call: Launch, number: int) -> str | Invocation:
        """A function's argument; converted where other calls give the parameter another element type."""
        parameter, block = call.function.parameters[number], call.arguments[number]
        const = parameter.mode is Mode.READ
        head = f"{self._buffer(block)}.{'read' if const else 'write'}"
        if block.whole:
            view = Invocation(head, (self._version(block),))
        elif not block.axes:
            view = Invocation(head, (self._version(block), self._expr(block.offset), self._expr(block.run)))
        else:
            counts = ", ".join(self._bytes(axis.count) for axis in block.axes)
            strides = ", ".join(str(axis.stride) for axis in block.axes)
            view = Invocation(
                f"{head}<{len(block.axes)}>",
                (self._version(block), self._expr(block.offset), self._expr(block.run), f"{{{counts}}}", f"{{{strides}}}"),
            )
        if parameter.dtype == self.buffers[block.buffer].dtype:
            return view
        return Invocation(view_type(parameter.dtype, parameter.axes, const=const), (view,))


def _total(block: Block) -> Expr:
    total = block.run
    for axis in block.axes:
        total = scale(total, axis.count.value) if isinstance(axis.count, Int) else combine("*", total, axis.count)
    return total


def _op_of(call: AnyCall) -> str:
    """What a call is part of: statements of one op stand together."""
    if isinstance(call, Repeat):
        return f"loop {call.index}"
    return getattr(call, "op", "sync")


def _label(call: AnyCall) -> str:
    """What an error message calls it."""
    if isinstance(call, Sync):
        if call.stream is not None:
            return f"synchronise {call.stream}"
        return f"synchronise {event_text(call.event)}" if call.event is not None else "synchronise the device"
    return getattr(call, "op", "")


def _describe(call: Launch | Copy | Fill) -> str:
    if isinstance(call, Copy):
        return f"{call.op}: copy {call.source.text} to {call.target.text}"
    if isinstance(call, Fill):
        return f"{call.op}: fill {call.target.text} with {call.value}"
    kind = "compute" if call.function.kind is OpKind.COMPUTE else "host"
    return f"{call.op}: {kind} {call.function.name}"


def _not_expressible(call: Copy) -> Diagnostic:
    return Diagnostic(
        code="E102",
        headline=f"`{call.op}` copies between regions that no sequence of row copies expresses",
        notes=(f"from `{call.source.text}` to `{call.target.text}`: the rows of one do not divide those of the other",),
        help="copy between regions of the same shape, or through a contiguous buffer",
    )
