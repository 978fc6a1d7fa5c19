"""The plan as the verifier reads it: its op instances in the order written, with what each touches.

Written from the plan's definition alone. Inner loops are gone through in place; an instance is known by the op's name
with the values of the inner loops (``attention.3``) and the iteration of the loop that the schedule keeps (0 outside
loops). Versions of bare names: the outermost loop's index, or the newest version written outside loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dagsched.plan.expressions import Binary, Call, Condition, Expr, Int, evaluate
from dagsched.plan.model import Access, Buffer, Loop, Op, Plan

Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PlannedOp:
    """An op of a segment with the inner loops' values."""

    name: str
    op: Op
    inner: tuple[tuple[str, int], ...]
    after: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """A run of ops outside loops, or one outermost loop."""

    ops: tuple[PlannedOp, ...]
    index: str | None
    count: Expr


def list_segments(plan: Plan) -> tuple[PlannedSegment, ...]:
    """The plan's segments, in order; neighbouring ops outside loops make one."""
    copies: dict[str, list[tuple[str, tuple[tuple[int, int], ...]]]] = {}
    raw: list[tuple[str | None, Expr, list[tuple[Op, tuple[tuple[str, int], ...], tuple[tuple[int, int], ...]]]]] = []
    for item in plan.items:
        if isinstance(item, Op):
            if not raw or raw[-1][0] is not None:
                raw.append((None, Int(1), []))
            raw[-1][2].append((item, (), ()))
        else:
            raw.append((item.index, item.count, list(_expand(item.body, (), ()))))
    for _, _, rows in raw:
        for op, inner, path in rows:
            copies.setdefault(op.name, []).append((_name(op, inner), path))
    segments = []
    for index, count, rows in raw:
        ops = tuple(PlannedOp(_name(op, inner), op, inner, _after(op, path, copies)) for op, inner, path in rows)
        segments.append(PlannedSegment(ops, index, count))
    return tuple(segments)


def _expand(
    body: tuple[Op | Loop, ...], inner: tuple[tuple[str, int], ...], path: tuple[tuple[int, int], ...]
) -> Iterator[tuple[Op, tuple[tuple[str, int], ...], tuple[tuple[int, int], ...]]]:
    for number, item in enumerate(body):
        if isinstance(item, Op):
            yield item, inner, path
        elif isinstance(item.count, Int):
            for value in range(item.count.value):
                rows = list(_expand(item.body, (*inner, (item.index, value)), (*path, (number, value))))
                if not rows:  # nor will there be any for other values: counts within are constants
                    break
                yield from rows


def _name(op: Op, inner: tuple[tuple[str, int], ...]) -> str:
    return ".".join([op.name, *(str(value) for _, value in inner)])


def _after(
    op: Op, path: tuple[tuple[int, int], ...], copies: dict[str, list[tuple[str, tuple[tuple[int, int], ...]]]]
) -> tuple[tuple[str, int], ...]:
    """(name, distance) of what an op comes after; distances count iterations of the innermost loop that both share."""
    found: list[tuple[str, int]] = []
    for edge in op.after:
        for name, other in copies.get(edge.op, []):
            common = 0
            while common < min(len(path), len(other)) and path[common][0] == other[common][0]:
                common += 1
            if common == 0:
                found.append((name, edge.distance))
            elif (
                path[: common - 1] == other[: common - 1]
                and other[common - 1][1] == path[common - 1][1] - edge.distance
            ):
                found.append((name, 0))
    return tuple(found)


def find_box(access: Access, buffer: Buffer, env: Mapping[str, int]) -> Box:
    """The half-open bounds that an access touches, on every axis."""
    bounds = []
    for axis, extent in enumerate(buffer.extents):
        lo, hi = 0, extent
        if axis < len(access.region):
            part = access.region[axis]
            lo = lo if part.lo is None else evaluate(part.lo, env)
            hi = hi if part.hi is None else evaluate(part.hi, env)
        bounds.append((lo, hi))
    return tuple(bounds)


def counts_by_version(plan: Plan) -> frozenset[str]:
    """Buffers whose versions are storage of their own: a fixed ring of several slots, or versions named in the plan."""
    named = {access.buffer for op in plan.ops() for access in op.accesses if access.version is not None}
    deep = {name for name, buffer in plan.buffers.items() if (buffer.ring.depth or 1) > 1}
    return frozenset(named | deep)


def largest_constant(expr: Expr | None) -> int:
    """How far constants of an expression reach, as a bound on where its behaviour can change."""
    if isinstance(expr, Int):
        return abs(expr.value)
    if isinstance(expr, Binary):
        return largest_constant(expr.left) + largest_constant(expr.right)
    if isinstance(expr, Call):
        return sum(largest_constant(argument) for argument in expr.args)
    return 0


def largest_in_condition(condition: Condition) -> int:
    """The same for a guard."""
    return max((largest_constant(c.left) + largest_constant(c.right) for c in condition), default=0)


def divisors(expr: Expr | None) -> int:
    """The product of the constants by which an expression divides: its pattern repeats with it."""
    if isinstance(expr, Binary):
        own = abs(expr.right.value) if expr.op in ("//", "%") and isinstance(expr.right, Int) else 1
        return max(1, own) * divisors(expr.left) * divisors(expr.right)
    if isinstance(expr, Call):
        result = 1
        for argument in expr.args:
            result *= divisors(argument)
        return result
    return 1
