"""A copy between two regions as nested runs: the same steps on both sides, whatever their shapes are.

The innermost run is contiguous on both sides. Regions are walked in row-major order; a copy from a contiguous block
into a column region therefore writes its rows one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dagsched.emit.blocks import Axis, Block
from dagsched.emit.ranges import scale, subtract
from dagsched.plan.expressions import Expr, Int, combine


@dataclass(frozen=True, slots=True)
class Level:
    """``count`` steps; each moves the source and the target by so many bytes."""

    count: Expr
    source: Expr
    target: Expr


@dataclass(frozen=True, slots=True)
class Nest:
    """``run`` contiguous bytes inside ``levels`` (outermost first)."""

    run: Expr
    levels: tuple[Level, ...]


def nest_of(source: Block, target: Block) -> Nest | None:
    """How to copy one region into another of the same size; None where that cannot be said before the program runs."""
    if not source.axes and not target.axes:
        return Nest(source.run, ())
    if source.bytes is not None and target.bytes is not None:
        return _refine(_steps(source), _steps(target))
    if not source.axes or not target.axes:
        inner = target if not source.axes else source
        return _follow(inner, contiguous_source=not source.axes)
    if len(source.axes) == len(target.axes) and subtract(source.run, target.run) == Int(0):
        pairs = list(zip(source.axes, target.axes, strict=True))
        if all(subtract(a.count, b.count) == Int(0) for a, b in pairs):
            return Nest(source.run, tuple(Level(a.count, Int(a.stride), Int(b.stride)) for a, b in pairs))
    return None


def _steps(block: Block) -> list[tuple[int, int]]:
    """(count, stride) from the innermost axis out, the contiguous run first; all are known."""
    axes = [(axis.count, axis.stride) for axis in reversed(block.axes)]
    return [(count.value, stride) for count, stride in [(block.run, 1), *axes] if isinstance(count, Int)]


def _refine(source: list[tuple[int, int]], target: list[tuple[int, int]]) -> Nest | None:
    """Cut both into the same steps; None where neither count divides the other, or the sizes differ."""
    levels: list[tuple[int, int, int]] = []
    while source and target:
        (count, stride), (other, other_stride) = source[0], target[0]
        step = min(count, other)
        if count % step or other % step:
            return None
        if step > 1 or not levels:
            levels.append((step, stride, other_stride))
        source = _advance(source, step)
        target = _advance(target, step)
    if any(count > 1 for count, _ in [*source, *target]):
        return None
    run = 1
    while levels and levels[0][1] == levels[0][2] == run:
        run *= levels.pop(0)[0]
    return Nest(Int(run), tuple(Level(Int(n), Int(a), Int(b)) for n, a, b in reversed(levels)))


def _advance(steps: list[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    count, stride = steps[0]
    return [(count // by, stride * by), *steps[1:]] if count > by else steps[1:]


def _follow(block: Block, *, contiguous_source: bool) -> Nest:
    """The steps of one region, beside a contiguous block on the other side."""
    levels = []
    for axis, packed in _packed(block):
        own = Int(axis.stride)
        levels.append(Level(axis.count, packed if contiguous_source else own, own if contiguous_source else packed))
    return Nest(block.run, tuple(levels))


def _packed(block: Block) -> Iterator[tuple[Axis, Expr]]:
    """Each axis with the bytes that one of its steps takes in a contiguous block."""
    for number, axis in enumerate(block.axes):
        step = block.run
        for inner in block.axes[number + 1 :]:
            step = scale(step, inner.count.value) if isinstance(inner.count, Int) else combine("*", step, inner.count)
        yield axis, step
