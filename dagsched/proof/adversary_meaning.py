"""What a plan means for its schedule: the plan's ops one after another, and what each then meets.

Two storages are kept. The *meaning* holds every version of a buffer apart (one block where the plan names none); the
*slots* are those of the schedule. Every read, and the final contents of an output, must be the same in both: else the
rings are too short even for one op after another. What each access meets in the slots is then what it is meant to meet
in every interleaving. An ``after:`` is a cell of its own, written by the one and read by the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from dagsched.plan.expressions import evaluate
from dagsched.plan.model import Access, Loop, Mode, Op, Plan
from dagsched.proof.adversary_program import Command, Program
from dagsched.proof.adversary_run import Reference
from dagsched.proof.adversary_storage import Box, Touch
from dagsched.proof.adversary_values import NONE, Contents, Layout

Key = tuple[str, int]
"""An op with the values of its inner loops (``attention.3``), and the iteration of the outermost loop around it."""


@dataclass(frozen=True, slots=True)
class Meant:
    """An instance of the plan. ``path`` holds the loops around it as (item, value); ``accesses``: (access, version
    where versions count, else 0; box)."""

    key: Key
    op: Op
    path: tuple[tuple[int, int], ...]
    accesses: tuple[tuple[Access, int, Box], ...]


@dataclass(slots=True)
class Meaning:
    """``faults`` say in words where the schedule is not the plan's, or cannot be right in any order; ``outside``: a
    region leaves its buffer at these counts, which a program refuses to run."""

    reference: Reference = field(default_factory=lambda: Reference(open=False))
    faults: list[str] = field(default_factory=list)
    outside: bool = False


def list_instances(plan: Plan, env: dict[str, int]) -> list[Meant]:
    """The plan's instances in its order, with what they touch."""
    versioned = {a.buffer for op in plan.ops() for a in op.accesses if a.version is not None}
    versioned |= {name for name, buffer in plan.buffers.items() if (buffer.ring.depth or 1) > 1}
    newest: dict[str, int] = {}
    found = []
    for op, scope, path in _walk(plan.items, dict(env), ()):
        rows = []
        # An op reads before it writes, whatever the order in which its accesses are listed.
        for access in sorted(op.accesses, key=lambda a: a.mode is not Mode.READ):
            if access.version is not None:
                version = evaluate(access.version, scope)
            else:
                version = path[0][1] if path else newest.get(access.buffer, -1)
            if access.mode.writes:
                newest[access.buffer] = version
            rows.append((access, version if access.buffer in versioned else 0, _box(plan, access, scope)))
        name = ".".join([op.name, *(str(value) for _, value in path[1:])])
        found.append(Meant((name, path[0][1] if path else 0), op, path, tuple(rows)))
    return found


def _walk(
    items: tuple[Op | Loop, ...], scope: dict[str, int], path: tuple[tuple[int, int], ...]
) -> Iterator[tuple[Op, dict[str, int], tuple[tuple[int, int], ...]]]:
    for number, item in enumerate(items):
        if isinstance(item, Op):
            yield item, scope, path
            continue
        for value in range(evaluate(item.count, scope)):
            yield from _walk(item.body, {**scope, item.index: value}, (*path, (number, value)))


def _box(plan: Plan, access: Access, scope: dict[str, int]) -> Box:
    bounds = []
    for axis, extent in enumerate(plan.buffers[access.buffer].extents):
        part = access.region[axis] if axis < len(access.region) else None
        lo = 0 if part is None or part.lo is None else evaluate(part.lo, scope)
        hi = extent if part is None or part.hi is None else evaluate(part.hi, scope)
        bounds.append((lo, hi))
    return tuple(bounds)


def give_meaning(plan: Plan, program: Program) -> tuple[Layout, Meaning]:
    """The cells of a compiled program with its orders by ``after:``, and what each access is meant to meet."""
    meaning = Meaning()
    commands = {(c.name, c.path[0][2] if c.path else 0): c for c in program.commands if c.what == "work"}
    meant = []
    for instance in list_instances(plan, program.env):
        command = commands.pop(instance.key, None)
        if command is not None:
            meant.append((instance, command))
            _compare_accesses(plan, program, instance, command, meaning)
        elif not program.cut:
            meaning.faults.append(f"`{_text(instance.key)}` is never issued")
    if not program.cut:
        meaning.faults += [f"`{_text(key)}` is issued, and the plan has no such op" for key in commands]
    _add_orders(meant)
    layout = Layout(program.commands)
    _run_in_order(plan, program, meant, layout, meaning)
    return layout, meaning


def _text(key: Key) -> str:
    return f"{key[0]}@{key[1]}"


def _compare_accesses(plan: Plan, program: Program, instance: Meant, command: Command, meaning: Meaning) -> None:
    """The schedule's op must touch what the plan's op does."""
    here: dict[tuple[str, Mode, Box, int | None], int] = defaultdict(int)
    for access, version, box in instance.accesses:
        extents = plan.buffers[access.buffer].extents
        if any(lo < 0 or hi > extent or lo >= hi for (lo, hi), extent in zip(box, extents, strict=True)):
            meaning.outside = True
        named = access.version is not None or (plan.buffers[access.buffer].ring.depth or 1) > 1
        storage = program.schedule.buffers.get(access.buffer)
        slot = version % (storage.ring if storage else 1) if named else None
        here[access.buffer, access.mode, _fill(plan, access.buffer, box), slot] += 1
    for touch in command.touches:
        box = _fill(plan, touch.buffer, touch.box)
        for slot in (touch.slot, None):
            if here.get((touch.buffer, touch.mode, box, slot), 0) > 0:
                here[touch.buffer, touch.mode, box, slot] -= 1
                break
        else:
            meaning.faults.append(f"`{_text(instance.key)}` touches `{touch.buffer}` otherwise than the plan says")
            return
    if any(here.values()) and not meaning.outside:
        meaning.faults.append(f"`{_text(instance.key)}` does not have all accesses that the plan gives it")


def _fill(plan: Plan, name: str, box: Box) -> Box:
    """A box with all axes bounded, so that boxes written in two ways compare equal."""
    buffer = plan.buffers.get(name)
    extents = buffer.extents if buffer is not None else ()
    full = [*box, *((-inf, inf) for _ in extents[len(box) :])]
    return tuple((max(lo, 0), min(hi, extent)) for (lo, hi), extent in zip(full, extents, strict=False))


def _add_orders(meant: list[tuple[Meant, Command]]) -> None:
    """Give both sides of each ``after:`` a cell of their own."""
    by_op: dict[str, list[tuple[Meant, Command]]] = defaultdict(list)
    for instance, command in meant:
        for edge in instance.op.after:
            for other, before in by_op[edge.op]:
                if _comes_after(instance, other, edge.distance):
                    storage = ("after", str(before.number))
                    whole: Box = ()
                    first = Touch(edge.op, edge.op, storage, None, whole, Mode.WRITE)
                    second = Touch(edge.op, edge.op, storage, None, whole, Mode.READ)
                    if first not in before.touches:
                        before.touches = (*before.touches, first)
                    command.touches = (*command.touches, second)
        by_op[instance.op.name].append((instance, command))


def _comes_after(instance: Meant, other: Meant, distance: int) -> bool:
    """Whether ``after:`` means this instance: distances count iterations of the innermost loop around both."""
    shared = 0
    for a, b in zip(instance.path, other.path, strict=False):
        if a[0] != b[0]:
            break
        shared += 1
    if not shared:
        return True
    same = instance.path[: shared - 1] == other.path[: shared - 1]
    return same and other.path[shared - 1][1] == instance.path[shared - 1][1] - distance


def _run_in_order(
    plan: Plan, program: Program, meant: list[tuple[Meant, Command]], layout: Layout, meaning: Meaning
) -> None:
    """Run the ops one after another, in both storages."""
    contents = Contents(layout)
    blocks: dict[tuple[str, int, int], tuple[int, frozenset[int]]] = {}
    newest: dict[str, tuple[int, Touch]] = {}
    told: set[str] = set()
    for instance, command in meant:
        meaning.reference.expected[command.number] = contents.look(command.number)
        meaning.reference.rank[command.number] = len(meaning.reference.rank)
        versions = _versions(instance)
        written: list[tuple[tuple[str, int, int], bool]] = []
        for touch in sorted(command.touches, key=lambda touch: touch.mode is not Mode.READ):
            if touch.storage[0] == "after":
                continue
            name, left = touch.buffer, versions[touch.buffer, touch.mode]
            version = left.pop(0) if left else 0
            for atom in layout.cells.atoms[touch.storage, touch.box]:
                block = (name, version, atom)
                seen = _in_slot(contents, layout, touch, atom)
                if touch.mode.reads and name not in told and seen != blocks.get(block, (-1, NONE)):
                    told.add(name)
                    meaning.faults.append(
                        f"even with one op after another, `{_text(instance.key)}` would not find in `{name}` what "
                        "the plan means: its ring is too short"
                    )
                if touch.mode.writes:
                    written.append((block, touch.mode is Mode.ACCUMULATE))
            if touch.mode.writes:
                newest[name] = (version, touch)
        for block, adds in written:
            writer, adders = blocks.get(block, (-1, NONE))
            blocks[block] = (writer, adders | {command.number}) if adds else (command.number, NONE)
        contents.perform(command.number)
    for name, (version, touch) in newest.items() if not program.cut else ():
        atoms = {
            atom for (storage, _), found in layout.cells.atoms.items() if storage == touch.storage for atom in found
        }
        if plan.buffers[name].output and name not in told:
            for atom in atoms:
                if _in_slot(contents, layout, touch, atom) != blocks.get((name, version, atom), (-1, NONE)):
                    meaning.faults.append(f"`{name}` would not end with the contents that the plan means")
                    break


def _versions(instance: Meant) -> dict[tuple[str, Mode], list[int]]:
    found: dict[tuple[str, Mode], list[int]] = defaultdict(list)
    for access, version, _ in instance.accesses:
        found[access.buffer, access.mode].append(version)
    return found


def _in_slot(contents: Contents, layout: Layout, touch: Touch, atom: int) -> tuple[int, frozenset[int]]:
    """What an atom holds in the slot of an access."""
    cell = layout.cells.numbers.get((touch.storage, touch.slot, atom))
    return (-1, NONE) if cell is None else (contents.writer[cell], contents.adders.get(cell, NONE))
