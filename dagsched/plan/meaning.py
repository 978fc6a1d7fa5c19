"""What a plan means: where the bytes that each read sees come from.

The plan's meaning is sequential, so it is found by going through the accesses of one buffer in the plan's order. Two
storages are kept side by side: the *reference* (one block for a plain name, one block per version where versions
count) and the *ring* that the buffer is to live in. Renaming keeps the meaning exactly where every read, and the final
contents of an output, see the same writers in both.

Iterations repeat, so few of them tell all: two for a plain buffer, and for versions enough to fill the ring twice and
to reach the largest offset. Regions that move with the index are followed for the whole count.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from dagsched.plan.expressions import Binary, Call, Expr, ExpressionError, Int, evaluate, names_in
from dagsched.plan.model import Access, Buffer, Mode, Op, Plan
from dagsched.plan.regions import Box, box_of, intersect, is_inside, join, moves_with, subtract, whole_box
from dagsched.plan.segments import Segment
from dagsched.plan.versions import bare_version, find_newest

Tag = tuple[str, int]
"""Who wrote: op name and iteration; ``("", slot)`` for the initial contents of a slot."""

MAX_FOLLOWED = 200_000
"""Iterations of a moving region that are followed; longer constant loops are followed up to here."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One access of one op, with the version that it means (None: the plan does not say)."""

    op: Op
    access: Access
    version: Expr | None


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a depth does not do.

    ``kind``: ``unwritten``, ``overwritten``, ``renamed``, ``clash``, ``bounds``, ``version`` or ``final``.
    """

    kind: str
    op: Op
    access: Access
    iteration: int
    version: int
    params: tuple[tuple[str, int], ...]


class Storage:
    """Boxes of a block with the tag of their last writer, sorted by their lowest bound."""

    def __init__(self) -> None:
        self.blocks: dict[int, list[tuple[Box, Tag]]] = {}
        self.widest = 0

    def _around(self, rows: list[tuple[Box, Tag]], box: Box) -> tuple[int, int]:
        """The range of rows that can overlap a box: none is wider than the widest ever written."""
        first = bisect_right(rows, box[0][0] - self.widest, key=lambda row: row[0][0][0])
        return first, bisect_left(rows, box[0][1], key=lambda row: row[0][0][0])

    def write(self, key: int, box: Box, tag: Tag) -> None:
        """Overwrite a box."""
        self.widest = max(self.widest, box[0][1] - box[0][0])
        rows = self.blocks.setdefault(key, [])
        first, last = self._around(rows, box)
        kept = [(part, old) for old_box, old in rows[first:last] for part in subtract(old_box, box)]
        if first:
            first -= 1
            kept.insert(0, rows[first])
        for place, (part, old) in enumerate(kept):
            if old == tag and (joined := join(part, box)):  # a region that grows stays one
                del kept[place]
                box = joined
                self.widest = max(self.widest, box[0][1] - box[0][0])
                break
        rows[first:last] = sorted([*kept, (box, tag)])

    def read(self, key: int, box: Box) -> tuple[list[tuple[Box, Tag]], list[Box]]:
        """The written parts of a box with their writers, and the parts that nothing has written."""
        found = []
        missing = [box]
        rows = self.blocks.get(key, [])
        first, last = self._around(rows, box)
        for old_box, tag in rows[first:last]:
            shared = intersect(old_box, box)
            if shared is None:
                continue
            found.append((shared, tag))
            missing = [part for rest in missing for part in subtract(rest, shared)]
        return found, missing


def touches_of(segments: tuple[Segment, ...]) -> dict[str, list[list[Touch]]]:
    """The accesses of every buffer by segment, in order; an op's reads come before its writes."""
    rows: dict[str, list[list[tuple[Op, Access]]]] = {}
    for number, segment in enumerate(segments):
        for op in segment.ops:
            for access in sorted(op.accesses, key=lambda access: access.mode is not Mode.READ):
                found = rows.setdefault(access.buffer, [[] for _ in segments])
                found[number].append((op, access))
    touches = {}
    for buffer, found in rows.items():
        newest = find_newest(segments, buffer, found)
        touches[buffer] = [
            [Touch(op, access, access.version or bare_version(segments, newest, number)) for op, access in row]
            for number, row in enumerate(found)
        ]
    return touches


def shape_touches(buffer: Buffer, touches: list[list[Touch]]) -> object:
    """All that :func:`find_fault` looks at besides depth and counts: two buffers of one shape have the same answers.

    Ops count by their order only; names and lines of the source are left out.
    """
    ops: dict[int, int] = {}
    rows = tuple(
        tuple(
            (ops.setdefault(id(touch.op), len(ops)), touch.access.mode, touch.access.region, touch.version)
            for touch in row
        )
        for row in touches
    )
    return buffer.extents, buffer.input, buffer.output, rows


def uses_versions(touches: list[list[Touch]]) -> bool:
    """Whether the plan names a version of the buffer anywhere."""
    return any(touch.access.version is not None for rows in touches for touch in rows)


def find_fault(
    segments: tuple[Segment, ...],
    buffer: Buffer,
    touches: list[list[Touch]],
    depth: int,
    by_version: bool,
    samples: list[tuple[dict[str, int], tuple[int, ...]]],
) -> Fault | None:
    """The first way in which a ring of ``depth`` changes the plan's meaning, or None.

    ``by_version``: each version is storage of its own in the reference, else all are one block. ``samples`` are
    parameter values with the counts of all segments.
    """
    for params, counts in samples:
        fault = _follow(segments, buffer, touches, depth, by_version, params, counts)
        if fault:
            return fault
    return None


def _follow(
    segments: tuple[Segment, ...],
    buffer: Buffer,
    touches: list[list[Touch]],
    depth: int,
    by_version: bool,
    params: dict[str, int],
    counts: tuple[int, ...],
) -> Fault | None:
    reference = Storage()
    apart = by_version or depth > 1  # else the two are the same, and who wrote is no matter
    ring = Storage() if apart else reference
    cuts = _cut_counts(segments, touches, depth, counts)
    newest: int | None = None
    last = max((number for number, rows in enumerate(touches) if rows), default=-1)
    ends = _reachable_counts(segments[last], params, counts[last]) if buffer.output and depth > 1 else frozenset[int]()

    def fault(kind: str, touch: Touch, iteration: int, version: int) -> Fault:
        return Fault(kind, touch.op, touch.access, iteration, version, tuple(params.items()))

    for number, segment in enumerate(segments):
        rows = touches[number]
        for iteration, warm in _cut_range(cuts[number], counts[number]) if rows else ():
            env = dict(params)
            if segment.loop:
                env[segment.loop.index] = iteration
            seen: list[tuple[Op, int, int, Box]] = []
            for touch in rows:
                if touch.version is None and (by_version or depth > 1):
                    return fault("version", touch, iteration, 0)
                try:
                    version = evaluate(touch.version, env) if touch.version is not None else 0
                    box = box_of(touch.access, buffer, env)
                except ExpressionError:
                    return fault("bounds", touch, iteration, 0)
                if not is_inside(box, buffer):
                    if segment.loop and not isinstance(segment.loop.count, Int) and iteration > 0:
                        continue  # a run checks the count before it gets here
                    return fault("bounds", touch, iteration, version)
                key, slot = (version if by_version else 0), version % depth
                if touch.access.mode.reads:
                    meant = reference.read(key, box)
                    if apart:
                        kind = _compare(meant, ring.read(slot, box), key, slot, depth, buffer.input)
                    else:
                        kind = "unwritten" if meant[1] and not buffer.input else None
                    if kind and warm:
                        return fault(kind, touch, iteration, version)
                    if touch.access.mode is Mode.READ:
                        seen.append((touch.op, version, slot, box))
                if touch.access.mode.writes:
                    if _clashes(seen, touch.op, version, slot, box):
                        return fault("clash", touch, iteration, version)
                    tag = (touch.op.name, iteration) if apart else ("", 0)
                    reference.write(key, box, tag)
                    if apart:
                        ring.write(slot, box, tag)
                    newest = version
            if number == last and warm and iteration + 1 in ends and newest is not None:
                end = _final_fault(buffer, touches, reference, ring, newest, depth, by_version, params)
                if end:
                    return end
    if buffer.output and newest is not None and apart:
        return _final_fault(buffer, touches, reference, ring, newest, depth, by_version, params)
    return None


def _reachable_counts(segment: Segment, params: dict[str, int], most: int) -> frozenset[int]:
    """The counts of a loop up to ``most`` that values of its parameter give: a run can end behind any of them."""
    count = segment.loop.count if segment.loop else Int(1)
    names = names_in(count)
    if len(names) != 1:
        return frozenset()
    (name,) = names
    values = range(min(most, MAX_FOLLOWED) + 1)
    try:
        return frozenset(evaluate(count, {**params, name: value}) for value in values)
    except ExpressionError:
        return frozenset()


def _compare(
    expected: tuple[list[tuple[Box, Tag]], list[Box]],
    actual: tuple[list[tuple[Box, Tag]], list[Box]],
    key: int,
    slot: int,
    depth: int,
    is_input: bool,
) -> str | None:
    found, missing = expected
    if missing and not is_input:
        return "unwritten"
    got, unwritten = actual
    for box, tag in found:
        if any(other != tag for part, other in got if intersect(part, box)):
            return "overwritten"
        if any(intersect(rest, box) for rest in unwritten):
            return "renamed"
    for box in missing:
        if any(intersect(part, box) for part, _ in got):
            return "overwritten"
        if key % depth != slot:
            return "renamed"
    return None


def _clashes(seen: list[tuple[Op, int, int, Box]], op: Op, version: int, slot: int, box: Box) -> bool:
    """Whether an op writes over bytes that it reads as another version."""
    return any(
        reader is op and other != version and at == slot and intersect(part, box) is not None
        for reader, other, at, part in seen
    )


def _final_fault(
    buffer: Buffer,
    touches: list[list[Touch]],
    reference: Storage,
    ring: Storage,
    newest: int,
    depth: int,
    by_version: bool,
    params: dict[str, int],
) -> Fault | None:
    """Whether an output's final contents, the newest version, differ."""
    key = newest if by_version else 0
    whole = whole_box(buffer)
    if _compare(reference.read(key, whole), ring.read(newest % depth, whole), key, newest % depth, depth, True) is None:
        return None
    last = [touch for rows in touches for touch in rows if touch.access.mode.writes][-1]
    return Fault("final", last.op, last.access, 0, newest, tuple(params.items()))


def _cut_counts(
    segments: tuple[Segment, ...], touches: list[list[Touch]], depth: int, counts: tuple[int, ...]
) -> tuple[int, ...]:
    """How many iterations of each segment tell all there is to know."""
    cuts = []
    for number, segment in enumerate(segments):
        if segment.loop is None:
            cuts.append(counts[number])
            continue
        moving = any(moves_with(touch.access, segment.loop.index) for touch in touches[number])
        reach = max((_reach(touch.version) for rows in touches for touch in rows), default=0)
        need = MAX_FOLLOWED if moving else 2 * depth * max(1, reach) + 2 if reach > 1 else 2 * depth + 2 * reach + 2
        cuts.append(min(counts[number], need))
    return tuple(cuts)


def _reach(expr: Expr | None) -> int:
    """The largest constant in a version: how far it can look back, or its period."""
    if isinstance(expr, Int):
        return min(abs(expr.value), 1_000)
    if isinstance(expr, Binary):
        return _reach(expr.left) + _reach(expr.right)
    if isinstance(expr, Call):
        return sum(_reach(argument) for argument in expr.args)
    return 0


def _cut_range(cut: int, count: int) -> Iterator[tuple[int, bool]]:
    """``(iteration, judged)``: the first iterations and the last ones, so that versions keep their true numbers.

    What stands between is like what stands before it. The first ``cut`` after the gap only fill the storages.
    """
    if count <= 3 * cut:
        yield from ((iteration, True) for iteration in range(count))
        return
    yield from ((iteration, True) for iteration in range(cut))
    yield from ((iteration, iteration >= count - cut) for iteration in range(count - 2 * cut, count))


def find_unused_writes(plan: Plan, segments: tuple[Segment, ...]) -> dict[str, Op]:
    """The first writer of every buffer whose contents nothing uses, by the buffer's name."""
    writers: dict[str, Op] = {}
    used = {name for name, buffer in plan.buffers.items() if buffer.output}
    for segment in segments:
        for op in segment.ops:
            for access in op.accesses:
                if access.mode is Mode.WRITE:
                    writers.setdefault(access.buffer, op)
                else:
                    used.add(access.buffer)
    return {name: op for name, op in writers.items() if name not in used}
