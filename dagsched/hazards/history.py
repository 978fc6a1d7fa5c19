"""Who touched which bytes since the last write: the state from which hazards are read off.

For every slot of every buffer the history keeps disjoint boxes. Each box has two *phases*: the accesses since the
contents were last changed in kind (a write alone, or any number of reads, or any number of accumulates, which commute),
and the phase before. An access that joins a phase conflicts with the phase before it, any other conflicts with the
current one. Every earlier conflict follows from these, since each phase has been ordered after the one before; so the
pairs found are linear in the number of accesses, and their transitive closure is that of all conflicting pairs.

Of the instances of one op only the newest counts: an op keeps its stream, which orders the older ones before it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dagsched.plan.expressions import Expr, evaluate
from dagsched.plan.model import Access, Buffer, Mode, Op, Plan
from dagsched.plan.regions import Box, box_of, intersect, subtract, whole_box

RAW, WAR, WAW, AFTER = 1, 2, 4, 8
KINDS = {RAW: "RAW", WAR: "WAR", WAW: "WAW", AFTER: "AFTER"}

READ, ACCUMULATE, WRITE, UPDATE = 0, 1, 2, 3
_CODE = {Mode.READ: READ, Mode.ACCUMULATE: ACCUMULATE, Mode.WRITE: WRITE, Mode.UPDATE: UPDATE}

_KINDS_OF = [
    [
        (RAW if first != READ and second != WRITE else 0)
        | (WAR if first != WRITE and second != READ else 0)
        | (WAW if first != READ and second != READ else 0)
        for second in range(4)
    ]
    for first in range(4)
]
"""The hazards between two accesses that conflict, by their modes."""

Dependencies = dict[tuple[int, str], int]
"""(sequence number of the earlier instance, buffer) to a union of kinds."""

_Members = dict[int, int]


class _Part:
    """A box with its current phase and the one before; ``members`` maps op numbers to sequence numbers."""

    __slots__ = ("before", "before_mode", "box", "members", "mode")

    def __init__(self, box: Box, mode: int, members: _Members, before_mode: int, before: _Members) -> None:
        self.box, self.mode, self.members = box, mode, members
        self.before_mode, self.before = before_mode, before

    def cut(self, box: Box) -> _Part:
        return _Part(box, self.mode, dict(self.members), self.before_mode, dict(self.before))


@dataclass(frozen=True, slots=True)
class CompiledAccess:
    """An access ready to be evaluated many times; ``box`` is set where the region is constant."""

    buffer: str
    mode: int
    depth: int
    version: Expr | None
    box: Box | None
    access: Access
    shape: Buffer


def compile_accesses(op: Op, plan: Plan) -> tuple[CompiledAccess, ...]:
    """An op's accesses, reads first: an op reads its inputs before it changes anything."""
    compiled = []
    for access in sorted(op.accesses, key=lambda access: access.mode is not Mode.READ):
        buffer = plan.buffers[access.buffer]
        box: Box | None
        if access.region:
            bounds = [bound for part in access.region for bound in (part.lo, part.hi) if bound is not None]
            box = None if any(not _is_constant(bound) for bound in bounds) else box_of(access, buffer, {})
        else:
            box = whole_box(buffer)
        depth = buffer.ring.depth or 1
        version = access.version if depth > 1 else None
        compiled.append(CompiledAccess(access.buffer, _CODE[access.mode], depth, version, box, access, buffer))
    return tuple(compiled)


def _is_constant(expr: Expr) -> bool:
    try:
        evaluate(expr, {})
    except ValueError:
        return False
    return True


class AccessHistory:
    """The phases of all boxes that were touched so far."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[str, int], list[_Part]] = {}
        self.widest: dict[str, int] = {}

    def touch(
        self, number: int, sequence: int, accesses: tuple[CompiledAccess, ...], env: Mapping[str, int]
    ) -> Dependencies:
        """Enter one op instance; yields what it has to come after."""
        found: Dependencies = {}
        for access in accesses:
            slot = evaluate(access.version, env) % access.depth if access.version is not None else 0
            box = access.box if access.box is not None else box_of(access.access, access.shape, env)
            parts = self.blocks.setdefault((access.buffer, slot), [])
            widest = self.widest[access.buffer] = max(self.widest.get(access.buffer, 0), box[0][1] - box[0][0])
            if len(parts) == 1 and parts[0].box == box:
                _enter(parts[0], access.mode, number, sequence, access.buffer, found)
            else:
                _enter_split(parts, box, widest, access.mode, number, sequence, access.buffer, found)
        return found

    def canonical(self, name: Callable[[int], int], shift: Callable[[str], tuple[int, int] | None]) -> object:
        """The state as a comparable value.

        ``name`` renames sequence numbers. ``shift`` tells, for a buffer whose region moves, the position of the moving
        window as (offset, first position still reachable): boxes are taken relative to it, those behind are left out.
        """
        rows = []
        for key in sorted(self.blocks):
            window = shift(key[0])
            for part in self.blocks[key]:
                box = part.box
                if window is not None:
                    offset, reachable = window
                    if box[0][1] <= reachable:
                        continue
                    box = ((box[0][0] - offset, box[0][1] - offset), *box[1:])
                rows.append(
                    (key, box, part.mode, _named(part.members, name), part.before_mode, _named(part.before, name))
                )
        return tuple(rows)

    def live(self, reachable: Mapping[str, int]) -> set[int]:
        """All sequence numbers that a later access can still conflict with.

        ``reachable`` is, for buffers whose region moves up, the first position that is not behind it for good.
        """
        found: set[int] = set()
        for (buffer, _), parts in self.blocks.items():
            first = reachable.get(buffer)
            for part in parts:
                if first is None or part.box[0][1] > first:
                    found.update(part.members.values())
                    found.update(part.before.values())
        return found


def _named(members: _Members, name: Callable[[int], int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((number, name(sequence)) for number, sequence in members.items()))


def _enter(part: _Part, mode: int, number: int, sequence: int, buffer: str, found: Dependencies) -> None:
    """One access of exactly this box."""
    joins = mode == part.mode and mode in (READ, ACCUMULATE)
    if joins:
        _collect(part.before, part.before_mode, mode, sequence, buffer, found)
        part.members[number] = sequence
        return
    _collect(part.members, part.mode, mode, sequence, buffer, found)
    if part.mode == READ and mode != ACCUMULATE:
        _collect(part.before, part.before_mode, mode, sequence, buffer, found)
    if mode in (WRITE, UPDATE):
        part.before = {}
    else:
        part.before, part.before_mode = part.members, part.mode
    part.members, part.mode = {number: sequence}, mode


def _collect(members: _Members, first: int, second: int, sequence: int, buffer: str, found: Dependencies) -> None:
    kinds = _KINDS_OF[first][second]
    for earlier in members.values():
        if earlier != sequence:
            found[earlier, buffer] = found.get((earlier, buffer), 0) | kinds


def _enter_split(
    parts: list[_Part], box: Box, widest: int, mode: int, number: int, sequence: int, buffer: str, found: Dependencies
) -> None:
    """One access of a box that cuts others: split them along its edges, enter it in each piece."""
    first, last = _overlapping(parts, box, widest)
    pieces: list[_Part] = []
    missing = [box]
    for part in parts[first:last]:
        shared = intersect(part.box, box)
        if shared is None:
            pieces.append(part)
            continue
        pieces += [part.cut(rest) for rest in subtract(part.box, shared)]
        missing = [rest for old in missing for rest in subtract(old, shared)]
        part.box = shared
        _enter(part, mode, number, sequence, buffer, found)
        if mode not in (WRITE, UPDATE):
            pieces.append(part)
    if mode in (WRITE, UPDATE):
        pieces.append(_Part(box, mode, {number: sequence}, READ, {}))
    else:
        pieces += [_Part(rest, mode, {number: sequence}, READ, {}) for rest in missing]
    pieces.sort(key=lambda part: part.box)
    parts[first:last] = pieces


def _overlapping(parts: list[_Part], box: Box, widest: int) -> tuple[int, int]:
    """The range of parts that can overlap a box; they are sorted by their lowest bound, and none is wider than that."""
    lo, hi = box[0]
    first = bisect_right(parts, lo - widest, key=lambda part: part.box[0][0])
    last = bisect_left(parts, hi, key=lambda part: part.box[0][0])
    return first, max(first, last)
