"""What a call touches, in bytes: where an access begins, how its runs of bytes lie, and what must be checked.

A region of a row-major array is ``count`` runs of ``run`` bytes, ``stride`` bytes apart, nested once per axis that is
not contiguous. The runs never overlap and lie inside one slot of the buffer whenever the block's ``checks`` hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from dagsched.emit.ranges import Range, plus, range_of, scale, subtract
from dagsched.plan.access import access_text
from dagsched.plan.expressions import Expr, Int, combine
from dagsched.plan.model import Access, Buffer, Slice


@dataclass(frozen=True, slots=True)
class Axis:
    """``count`` repetitions, ``stride`` bytes apart."""

    count: Expr
    stride: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """``0 <= lo < hi <= extent`` must hold when the program runs."""

    lo: Expr
    hi: Expr
    extent: int


@dataclass(frozen=True, slots=True)
class Block:
    """One access: ``version`` picks the slot (modulo the ring), ``offset`` is in bytes from its beginning.

    ``axes`` is empty for contiguous bytes, else outermost first. ``text`` is the access as a plan writes it.
    """

    buffer: str
    version: Expr
    offset: Expr
    run: Expr
    axes: tuple[Axis, ...]
    checks: tuple[Bounds, ...]
    whole: bool
    text: str

    @property
    def bytes(self) -> int | None:
        """The size in bytes of all runs together, where it is known."""
        sizes = [self.run, *(axis.count for axis in self.axes)]
        values = [size.value for size in sizes if isinstance(size, Int)]
        return prod(values) if len(values) == len(sizes) else None


def lay_out(access: Access, buffer: Buffer, names: dict[str, Range]) -> Block:
    """The bytes of an access; ``names`` bounds the loop indices and parameters that it may use."""
    version = access.version if access.version is not None else Int(0)
    text = access_text(access)
    if not access.region:
        return Block(buffer.name, version, Int(0), Int(buffer.size), (), (), True, text)
    extents = buffer.extents
    strides = [buffer.itemsize * prod(extents[axis + 1 :]) for axis in range(len(extents))]
    offset: Expr = Int(0)
    checks: list[Bounds] = []
    parts: list[tuple[Expr, int]] = []  # count, stride
    for axis, extent in enumerate(extents):
        part = access.region[axis] if axis < len(access.region) else Slice()
        lo = part.lo if part.lo is not None else Int(0)
        hi = part.hi if part.hi is not None else Int(extent)
        count = subtract(hi, lo)
        if not _is_inside(lo, hi, count, extent, names):
            checks.append(Bounds(lo, hi, extent))
        offset = plus(offset, scale(lo, strides[axis]))
        parts.append((count, strides[axis]))
    run: Expr = Int(buffer.itemsize)
    axes: list[Axis] = []
    for count, stride in reversed(parts):
        if not axes and run == Int(stride):  # so far contiguous up to here
            run = combine("*", count, Int(stride))
        elif count == Int(1):
            continue
        elif axes and isinstance(axes[0].count, Int) and axes[0].count.value * axes[0].stride == stride:
            axes[0] = Axis(scale(count, axes[0].count.value), axes[0].stride)
        else:
            axes.insert(0, Axis(count, stride))
    whole = not axes and run == Int(buffer.size)
    return Block(buffer.name, version, offset, run, tuple(axes), tuple(checks), whole, text)


def _is_inside(lo: Expr, hi: Expr, count: Expr, extent: int, names: dict[str, Range]) -> bool:
    """Whether bounds are known to lie inside the axis, whatever the loop indices and parameters are."""
    try:
        return range_of(lo, names)[0] >= 0 and range_of(count, names)[0] > 0 and range_of(hi, names)[1] <= extent
    except ZeroDivisionError:
        return False
