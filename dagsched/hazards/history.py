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

from dagsched.hazards.growth import Growth
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

    def absorb(self, other: _Part, box: Box) -> None:
        """Take in a part that is alike; of each op the newest instance stays."""
        self.box = box
        for mine, theirs in ((self.members, other.members), (self.before, other.before)):
            for number, sequence in theirs.items():
                mine[number] = max(mine[number], sequence)


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
        self.growths: Mapping[str, Growth] = {}
        self.round = 0

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
                if access.buffer in self.growths:
                    self._unite(parts, access.buffer)
        return found

    def expect(self, growths: Mapping[str, Growth], round: int) -> None:
        """Say what later accesses of growing buffers look like, seen from a round of the current loop."""
        self.growths, self.round = growths, round

    def _unite(self, parts: list[_Part], buffer: str) -> None:
        """Join the parts that nothing will tell apart."""
        growth = self.growths[buffer]
        axis = growth.axis
        ends: dict[object, _Part] = {}
        kept = []
        for part in parts:
            (lo, hi), others = part.box[axis], (part.box[:axis], part.box[axis + 1 :])
            before = ends.pop((lo, others), None)
            if before is not None and _alike(before, part):
                joined = (*others[0], (before.box[axis][0], hi), *others[1])
                if growth.is_one(joined, self.round):
                    before.absorb(part, joined)
                    self.widest[buffer] = max(self.widest[buffer], joined[0][1] - joined[0][0])
                    part = before
            if part is not before:
                kept.append(part)
            ends[hi, others] = part
        parts[:] = kept

    def canonical(
        self,
        name: Callable[[int], int],
        shift: Callable[[str], tuple[int, int] | None],
        growths: Mapping[str, Growth],
        iteration: int,
    ) -> object:
        """The state as a comparable value, before an iteration.

        ``name`` renames sequence numbers. ``shift`` tells, for a buffer whose region moves, the position of the moving
        window as (offset, first position still reachable): boxes are taken relative to it, those behind are left out.
        """
        rows = []
        for key in sorted(self.blocks):
            window = shift(key[0])
            for part in self.blocks[key]:
                box: object = part.box
                if window is None and key[0] in growths:
                    box = growths[key[0]].place(part.box, iteration)
                elif window is not None:
                    offset, reachable = window
                    (lo, hi), *others = part.box
                    if hi <= reachable:
                        continue
                    box = ((lo - offset, hi - offset), *others)
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


def _alike(a: _Part, b: _Part) -> bool:
    """Whether two parts differ in nothing but where they are and which iterations touched them."""
    return (
        a.mode == b.mode
        and a.members.keys() == b.members.keys()
        and a.before.keys() == b.before.keys()
        and (a.before_mode == b.before_mode or not a.before)
    )


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
