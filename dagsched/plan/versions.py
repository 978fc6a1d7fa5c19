"""Which version of a ring buffer a bare ``NAME`` means.

Inside a loop it is the version of the loop's index (of the outermost loop, where loops nest). Outside it is the newest
version in the plan's order: -1 before any loop has written one, ``n - 1`` after a loop of count n, and what it was
before where n is 0. That case is written with ``min(n, 1)``, which is 1 exactly where the loop ran.
"""

from __future__ import annotations

from collections.abc import Sequence

from dagsched.plan.expressions import Call as Function
from dagsched.plan.expressions import Expr, Int, Name, add, combine, linear_in
from dagsched.plan.model import Access, Op
from dagsched.plan.segments import Segment

INITIAL = Int(-1)
"""The version that stands before any loop."""


def find_newest(
    segments: tuple[Segment, ...], buffer: str, rows: Sequence[Sequence[tuple[Op, Access]]] | None = None
) -> tuple[Expr | None, ...]:
    """The newest version of a buffer at each segment's start, and after the last one.

    None where it cannot be written down (a loop writes a version that is not the index plus a constant). ``rows`` are
    the buffer's accesses by segment, where the caller has them already.
    """
    if rows is None:
        rows = [[(op, a) for op in segment.ops for a in op.accesses if a.buffer == buffer] for segment in segments]
    newest: list[Expr | None] = []
    current: Expr | None = INITIAL
    for segment, row in zip(segments, rows, strict=True):
        newest.append(current)
        current = _after(segment, row, current)
    newest.append(current)
    return tuple(newest)


def _after(segment: Segment, row: Sequence[tuple[Op, Access]], before: Expr | None) -> Expr | None:
    last: Expr | None = None
    written = False
    for _, access in row:
        if access.mode.writes:
            written, last = True, access.version
    if not written:
        return before
    if segment.loop is None:
        return before if last is None else last
    offset: Expr = Int(0)
    if last is not None:
        linear = linear_in(last, segment.loop.index)
        if linear is None or linear[0] != 1:
            return None
        offset = linear[1]
    return _choose(segment.loop.count, add(combine("+", add(segment.loop.count, -1), offset), 0), offset, before)


def _choose(count: Expr, ran: Expr, offset: Expr, before: Expr | None) -> Expr | None:
    """``ran`` where the loop ran at all, else ``before``."""
    if isinstance(count, Int):
        return ran if count.value > 0 else before
    if before is None:
        return None
    if before == INITIAL and offset == Int(0):
        return ran
    once = Function("min", (count, Int(1)))
    return combine("+", combine("*", once, ran), combine("*", combine("-", Int(1), once), before))


def bare_version(segments: tuple[Segment, ...], newest: tuple[Expr | None, ...], number: int) -> Expr | None:
    """What ``NAME`` means in segment ``number``; None where the plan has to say which version it means."""
    loop = segments[number].loop
    return Name(loop.index) if loop else newest[number]
