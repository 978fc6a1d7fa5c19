"""Copies and fills as AscendCL calls.

Between host and device, rows of bytes are one aclrtMemcpy2dAsync; within the device, where that call is not supported
on every product, they are one aclrtMemcpyAsync a row. Within the host both are host functions: aclrtMemcpyAsync refuses
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dagsched.diagnostics import Diagnostic
from dagsched.emit.acl_parts import Parts
from dagsched.emit.blocks import Block
from dagsched.emit.calls import Copy, Fill
from dagsched.emit.cpp_text import Invocation
from dagsched.emit.nests import Level, Nest, nest_of
from dagsched.emit.ranges import scale, subtract
from dagsched.plan.expressions import Expr, Int, combine

MAX_WIDTH = 5_000_000
MAX_HEIGHT = 5 * 1024 * 1024
"""Limits of aclrtMemcpy2dAsync, in bytes and rows (CANN's documentation of the call)."""

_KINDS = {
    "host to device": "ACL_MEMCPY_HOST_TO_DEVICE",
    "device to host": "ACL_MEMCPY_DEVICE_TO_HOST",
    "device to device": "ACL_MEMCPY_DEVICE_TO_DEVICE",
}


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
        return _not_expressible(call)
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
    elif subtract(_total(call.source), _total(call.target)) != Int(0):
        sizes = (parts.expr(_total(call.source)), parts.expr(_total(call.target)))
        yield from parts.statement(call, indent, Invocation("check_copy", sizes))


def _loops(parts: Parts, move: _Move, indent: int) -> Iterator[str]:
    """Loops around what one call of the runtime can do."""
    call, levels = move.call, move.nest.levels
    if call.direction == "host to host":
        yield from _on_host(parts, move, indent)
        return
    outer = levels[:-1] if _is_2d(move) else levels
    source, target = parts.address(call.source), parts.address(call.target)
    for depth, level in enumerate(outer):
        step = f"step{depth}"
        yield f"{' ' * (indent + 2 * depth)}for (int64_t {step} = 0; {step} < {parts.expr(level.count)}; ++{step}) {{"
        source += f" + {step} * {parts.expr(level.source, 3)}"
        target += f" + {step} * {parts.expr(level.target, 3)}"
    yield from _one_call(parts, move, source, target, levels[len(outer) :], indent + 2 * len(outer))
    for depth in reversed(range(len(outer))):
        yield f"{' ' * (indent + 2 * depth)}}}"


def _is_2d(move: _Move) -> bool:
    """Whether the innermost level is one 2-D copy: between host and device, and known to be within the limits."""
    if not move.nest.levels or move.call.direction not in ("host to device", "device to host"):
        return False
    width, height = move.nest.run, move.nest.levels[-1].count
    if not isinstance(width, Int) or not isinstance(height, Int):
        return False
    return width.value <= MAX_WIDTH and height.value <= MAX_HEIGHT


def _one_call(
    parts: Parts, move: _Move, source: str, target: str, levels: tuple[Level, ...], indent: int
) -> Iterator[str]:
    call, run = move.call, move.nest.run
    kind, stream = _KINDS[call.direction], parts.stream(call.stream)
    if levels:
        level = levels[0]
        pitches = (parts.bytes(level.target), parts.bytes(level.source))
        sizes = (parts.bytes(run), parts.bytes(level.count))
        inner = Invocation("aclrtMemcpy2dAsync", (target, pitches[0], source, pitches[1], *sizes, kind, stream))
        yield from parts.statement(call, indent, inner)
        return
    scoped = move.count is None and not isinstance(run, Int)
    bytes_ = "bytes" if scoped else parts.bytes(run)
    named = not move.nest.levels  # one copy of all of a buffer: its size has a name
    size = move.count or (f"{parts.buffer(call.source)}.size" if named and call.source.whole else bytes_)
    room = f"{parts.buffer(call.target)}.size" if named and call.target.whole else bytes_
    inner = Invocation("aclrtMemcpyAsync", (target, room, source, size, kind, stream))
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
    """The statements of a fill: rows are filled one by one."""
    block = call.target
    yield from parts.bounds(call, (block,), indent)
    size = f"{parts.buffer(block)}.size" if block.whole else parts.bytes(block.run)
    if parts.is_dynamic(block):
        yield from parts.statement(call, indent, parts.resize(block, size))
    address = parts.address(block)
    for depth, axis in enumerate(block.axes):
        step = f"step{depth}"
        yield f"{' ' * (indent + 2 * depth)}for (int64_t {step} = 0; {step} < {parts.expr(axis.count)}; ++{step}) {{"
        address += f" + {step} * {axis.stride}"
    inside = indent + 2 * len(block.axes)
    if call.host:
        yield from _fill_on_host(parts, call, address, size, inside)
    else:
        inner = Invocation("aclrtMemsetAsync", (address, size, str(call.value), size, parts.stream(call.stream)))
        yield from parts.statement(call, inside, inner)
    for depth in reversed(range(len(block.axes))):
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


def _total(block: Block) -> Expr:
    """The bytes of all runs together."""
    total = block.run
    for axis in block.axes:
        total = scale(total, axis.count.value) if isinstance(axis.count, Int) else combine("*", total, axis.count)
    return total


def _not_expressible(call: Copy) -> Diagnostic:
    return Diagnostic(
        code="E102",
        headline=f"`{call.op}` copies between regions that no sequence of row copies expresses",
        notes=(f"from `{call.source.text}` to `{call.target.text}`: the rows of one do not divide those of the other",),
        help="copy between regions of the same shape, or through a contiguous buffer",
    )
