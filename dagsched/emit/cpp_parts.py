"""Parts of statements: how emitted C++ names streams, events, bytes of buffers, views and checked calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dagsched.emit.blocks import Block
from dagsched.emit.calls import AnyCall, CallList, Copy, Fill, Launch, Record, Sync, Wait
from dagsched.emit.cpp_names import Names, view_type
from dagsched.emit.cpp_runtime import Runtime
from dagsched.emit.cpp_text import WIDTH, Invocation, cpp_expression, lay_out_call
from dagsched.emit.names import cpp_string
from dagsched.emit.statements import label_of
from dagsched.plan.expressions import Expr, Int
from dagsched.plan.model import Buffer, Mode


class Parts:
    """Writes the small pieces of one program, all in terms of its identifiers.

    ``step`` is there where calls are captured to be replayed: the loop index, and by how much it grows each time.
    """

    def __init__(self, calls: CallList, names: Names, runtime: Runtime, step: tuple[str, int] | None = None) -> None:
        self.names = names
        self.runtime = runtime
        self.step = step
        self.buffers: dict[str, Buffer] = {buffer.name: buffer for buffer in calls.buffers}

    def expr(self, expr: Expr, level: int = 0) -> str:
        """An ``int64_t``; ``level`` 1 stands in a sum, 3 in a product."""
        return cpp_expression(expr, self.names.locals, level)

    def bytes(self, expr: Expr) -> str:
        """A ``size_t``: constants need no cast."""
        return str(expr.value) if isinstance(expr, Int) else f"static_cast<size_t>({self.expr(expr)})"

    def stream(self, name: str) -> str:
        """A member of ``streams``."""
        return f"streams.{self.names.streams[name]}"

    def event(self, call: Record | Wait | Sync) -> str:
        """An element of a ring in ``events``."""
        assert call.event is not None
        return f"events.{self.names.events[call.event.name]}[{self.expr(call.event.index)}]"

    def buffer(self, block: Block) -> str:
        """A member of ``buffers``."""
        return f"buffers.{self.names.buffers[block.buffer]}"

    def version(self, block: Block) -> str:
        """Which version of its buffer a block is of."""
        return self.expr(block.version)

    def is_dynamic(self, block: Block) -> bool:
        """Whether the block's size is known only when the program runs."""
        return self.buffers[block.buffer].dynamic

    def address(self, block: Block) -> str:
        """The first byte of a block."""
        base = f"{self.buffer(block)}[{self.version(block)}]"
        return base if block.offset == Int(0) else f"{base} + {self.expr(block.offset, 1)}"

    def resize(self, block: Block, size: str) -> Invocation:
        """Note how much of a dynamic buffer's version is in use from now on."""
        return Invocation(f"{self.buffer(block)}.resize", (self.version(block), size))

    def view(self, call: Launch, number: int) -> Invocation:
        """A function's argument; converted where other calls give the parameter another element type."""
        parameter, block = call.function.parameters[number], call.arguments[number]
        const = parameter.mode is Mode.READ
        head = f"{self.buffer(block)}.{'read' if const else 'write'}"
        arguments = [self.version(block)]
        if not block.whole:
            arguments += [self.expr(block.offset), self.expr(block.run)]
        if block.axes:
            head += f"<{len(block.axes)}>"
            arguments.append(f"{{{', '.join(self.bytes(axis.count) for axis in block.axes)}}}")
            arguments.append(f"{{{', '.join(str(axis.stride) for axis in block.axes)}}}")
        view = Invocation(head, tuple(arguments))
        if parameter.dtype == self.buffers[block.buffer].dtype:
            return view
        return Invocation(view_type(parameter.dtype, parameter.axes, const=const), (view,))

    def checked(self, call: AnyCall, inner: Invocation) -> Invocation:
        """A call whose failure ends the run, with the op and the iteration that it is made for."""
        iteration = self.expr(call.iteration) if call.iteration is not None else "kNoIteration"
        return Invocation("DAGSCHED_TRY", (cpp_string(label_of(call)), iteration, inner))

    def statement(self, call: AnyCall, indent: int, inner: Invocation) -> list[str]:
        """A checked call as lines."""
        return lay_out_call(self.checked(call, inner), indent)

    def bounds(self, call: Launch | Copy | Fill, blocks: tuple[Block, ...], indent: int) -> Iterator[str]:
        """Checks of the regions that may leave their buffers, each once."""
        seen = set()
        for block in blocks:
            for check in block.checks:
                arguments = (self.expr(check.lo), self.expr(check.hi), str(check.extent))
                if arguments not in seen:
                    seen.add(arguments)
                    yield from self.statement(call, indent, Invocation("check_region", arguments))

    def on_host(self, call: Launch | Copy | Fill, indent: int, body: Invocation) -> Iterator[str]:
        """Queue ``body``; what it uses is captured by value, for it runs when this scope is long gone."""
        pad = " " * indent
        capture = "[=, &hooks]" if "hooks." in body.head else "[=]"
        queue = "on_host"
        rest: tuple[str, ...] = ()
        if self.step is not None:
            index, step = self.step
            used = re.search(rf"\b{index}\b", str(body)) is not None
            capture += f"(int64_t {index})" if used else "(int64_t)"
            queue, rest = "on_host_each", (index, str(step))
        stream, function = self.stream(call.stream), f"{capture} {{ {body}; }}"
        short = f"{pad}{self.checked(call, Invocation(queue, (stream, function, *rest)))};"
        if len(short) <= WIDTH:
            yield short
            return
        named = f"{pad}const auto body = {function};"
        if len(named) <= WIDTH:
            yield named
        else:
            yield f"{pad}const auto body = {capture} {{"
            yield from lay_out_call(body, indent + 2)
            yield f"{pad}}};"
        yield from self.statement(call, indent, Invocation(queue, (stream, "body", *rest)))
