"""Copies and fills as C++ calls.

Rows of bytes are one 2-D call where the runtime has one for the direction, else one call a row. Within the host, both
copies and fills are host functions: no runtime queues them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dagsched.diagnostics import Diagnostic
from dagsched.emit.calls import Copy, Fill
from dagsched.emit.cpp_parts import Parts
from dagsched.emit.cpp_text import Invocation
from dagsched.emit.nests import Level, Nest, nest_of
from dagsched.emit.ranges import subtract
from dagsched.emit.statements import not_expressible, total_bytes
from dagsched.plan.expressions import Int


@dataclass(frozen=True, slots=True)
class _Move:
    """One copy as it is being written: ``count`` is the actual size where it is known only when the program runs."""

    call: Copy
    nest: Nest
    count: str | None


def write_copy(parts: Parts, call: Copy, indent: int) -> list[str] | Diagnostic:
    """The statements of a copy, or why there are none."""
    nest = nest_of(call.source, call.target)
    if nest is None:
        return not_expressible(call)
    source = call.source
    count = f"{parts.buffer(source)}.bytes({parts.version(source)})" if parts.is_dynamic(source) else None
    move = _Move(call, nest, count)
    return [
        *parts.bounds(call, (call.source, call.target), indent),
        *_sizes(parts, move, indent),
        *_loops(parts, move, indent),
    ]


def _sizes(parts: Parts, move: _Move, indent: int) -> Iterator[str]:
    """What the copy does to actual sizes, and checks of those that are not known to agree."""
    call = move.call
    if parts.is_dynamic(call.target):
        resize = parts.resize(call.target, move.count or parts.bytes(call.source.run))
        yield from parts.statement(call, indent, resize)
    elif move.count is not None:
        sizes = (f"static_cast<int64_t>({move.count})", parts.expr(call.target.run))
        yield from parts.statement(call, indent, Invocation("check_copy", sizes))
    elif subtract(total_bytes(call.source), total_bytes(call.target)) != Int(0):
        sizes = (parts.expr(total_bytes(call.source)), parts.expr(total_bytes(call.target)))
        yield from parts.statement(call, indent, Invocation("check_copy", sizes))


def _loops(parts: Parts, move: _Move, indent: int) -> Iterator[str]:
    """Loops around what one call of the runtime can do."""
    call, levels = move.call, move.nest.levels
    if call.direction == "host to host":
        yield from _on_host(parts, move, indent)
        return
    outer = levels[:-1] if _is_2d(parts, move) else levels
    source, target = parts.address(call.source), parts.address(call.target)
    for depth, level in enumerate(outer):
        step = f"step{depth}"
        yield f"{' ' * (indent + 2 * depth)}for (int64_t {step} = 0; {step} < {parts.expr(level.count)}; ++{step}) {{"
        source += f" + {step} * {parts.expr(level.source, 3)}"
        target += f" + {step} * {parts.expr(level.target, 3)}"
    yield from _one_call(parts, move, source, target, levels[len(outer) :], indent + 2 * len(outer))
    for depth in reversed(range(len(outer))):
        yield f"{' ' * (indent + 2 * depth)}}}"


def _is_2d(parts: Parts, move: _Move) -> bool:
    """Whether the innermost level is one 2-D copy."""
    return bool(move.nest.levels) and parts.runtime.as_rows(move.call.direction, move.nest.run, move.nest.levels[-1])


def _one_call(
    parts: Parts, move: _Move, source: str, target: str, levels: tuple[Level, ...], indent: int
) -> Iterator[str]:
    call, run = move.call, move.nest.run
    kind, stream = parts.runtime.kinds[call.direction], parts.stream(call.stream)
    if levels:
        level = levels[0]
        pitches = (parts.bytes(level.target), parts.bytes(level.source))
        sizes = (parts.bytes(run), parts.bytes(level.count))
        inner = parts.runtime.copy_rows(target, pitches[0], source, pitches[1], *sizes, kind, stream)
        yield from parts.statement(call, indent, inner)
        return
    scoped = move.count is None and not isinstance(run, Int)
    bytes_ = "bytes" if scoped else parts.bytes(run)
    named = not move.nest.levels  # one copy of all of a buffer: its size has a name
    size = move.count or (f"{parts.buffer(call.source)}.size" if named and call.source.whole else bytes_)
    room = f"{parts.buffer(call.target)}.size" if named and call.target.whole else bytes_
    inner = parts.runtime.copy(target, room, source, size, kind, stream)
    if not scoped:
        yield from parts.statement(call, indent, inner)
        return
    pad = " " * indent
    yield f"{pad}{{"
    yield f"{pad}  const auto bytes = {parts.bytes(run)};"
    yield from parts.statement(call, indent + 2, inner)
    yield f"{pad}}}"


def _on_host(parts: Parts, move: _Move, indent: int) -> Iterator[str]:
    """A copy within the host: one host function, which walks the rows where there are any."""
    pad, levels = " " * (indent + 2), move.nest.levels
    yield f"{' ' * indent}{{"
    yield f"{pad}std::byte* const to = {parts.address(move.call.target)};"
    yield f"{pad}const std::byte* const from = {parts.address(move.call.source)};"
    for name, steps in (
        ("count", [level.count for level in levels]),
        ("to_step", [level.target for level in levels]),
        ("from_step", [level.source for level in levels]),
    ):
        if levels:
            values = ", ".join(parts.expr(step) for step in steps)
            yield f"{pad}const std::array<int64_t, {len(levels)}> {name}{{{values}}};"
    yield f"{pad}const size_t bytes = {move.count or parts.bytes(move.nest.run)};"
    body = Invocation("return copy_bytes", ("to", "from", "bytes"))
    if levels:
        body = Invocation("return copy_rows", ("to", "from", "count", "to_step", "from_step", "bytes"))
    yield from parts.on_host(move.call, indent + 2, body)
    yield f"{' ' * indent}}}"


def write_fill(parts: Parts, call: Fill, indent: int) -> Iterator[str]:
    """The statements of a fill: its innermost rows at once where the runtime can, the others one by one."""
    block, runtime = call.target, parts.runtime
    yield from parts.bounds(call, (block,), indent)
    size = f"{parts.buffer(block)}.size" if block.whole else parts.bytes(block.run)
    if parts.is_dynamic(block):
        yield from parts.statement(call, indent, parts.resize(block, size))
    address, stream = parts.address(block), parts.stream(call.stream)
    rows = runtime.fill_rows if block.axes and not call.host else None
    outer = block.axes[:-1] if rows is not None else block.axes
    for depth, axis in enumerate(outer):
        step = f"step{depth}"
        yield f"{' ' * (indent + 2 * depth)}for (int64_t {step} = 0; {step} < {parts.expr(axis.count)}; ++{step}) {{"
        address += f" + {step} * {axis.stride}"
    inside = indent + 2 * len(outer)
    if call.host:
        yield from _fill_on_host(parts, call, address, size, inside)
    elif rows is not None:
        row = block.axes[-1]
        inner = rows(address, str(row.stride), str(call.value), size, parts.bytes(row.count), stream)
        yield from parts.statement(call, inside, inner)
    else:
        yield from parts.statement(call, inside, runtime.fill(address, size, str(call.value), stream))
    for depth in reversed(range(len(outer))):
        yield f"{' ' * (indent + 2 * depth)}}}"


def _fill_on_host(parts: Parts, call: Fill, address: str, size: str, indent: int) -> Iterator[str]:
    scoped = not call.target.axes  # a loop's body is a scope already
    if scoped:
        yield f"{' ' * indent}{{"
    inner = indent + 2 * scoped
    yield f"{' ' * inner}std::byte* const to = {address};"
    yield f"{' ' * inner}const size_t bytes = {size};"
    yield from parts.on_host(call, inner, Invocation("return fill_bytes", ("to", str(call.value), "bytes")))
    if scoped:
        yield f"{' ' * indent}}}"
