"""Symbolic contents: what every byte range holds is the name of who wrote it, and of who added to it since.

In full the contents would be a hash of the op and of all that it read. As long as every access so far has met what it
was meant to meet, the writer's name says as much, and a run ends at the first access that has not: so names suffice.
Reads, updates and overwrites meet the whole contents of a cell, accumulates only who wrote it last, since they commute.
Two runs in which every access meets the same have all conflicting accesses in the same order, and end with the same
contents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dagsched.plan.model import Mode
from dagsched.proof.adversary_program import Command
from dagsched.proof.adversary_storage import Cells

NONE: frozenset[int] = frozenset()
Sight = tuple[tuple[tuple[int, frozenset[int]], ...], tuple[int, ...]]
"""What an instance meets: (writer, adders) of the cells that it looks at, the writers of those that it adds to."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The cells of one command: ``full`` and ``base`` are looked at (wholly, or only for their writer), ``writes`` are
    set and ``adds`` added to."""

    full: tuple[int, ...] = ()
    base: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    adds: tuple[int, ...] = ()


class Layout:
    """The cells of a program's commands."""

    def __init__(self, commands: Iterable[Command]) -> None:
        rows = [command for command in commands if command.touches]
        self.cells = Cells(touch for command in rows for touch in command.touches)
        self.reach: dict[int, Reach] = {command.number: self._reach(command) for command in rows}
        self.frees = frozenset(command.number for command in rows if command.frees)
        self.size = len(self.cells.numbers)

    def _reach(self, command: Command) -> Reach:
        found: dict[Mode, dict[int, None]] = {mode: {} for mode in Mode}
        for touch in command.touches:
            found[touch.mode].update(dict.fromkeys(self.cells.of(touch)))
        looks = {**found[Mode.READ], **found[Mode.UPDATE], **found[Mode.WRITE]}
        return Reach(
            tuple(looks),
            tuple(cell for cell in found[Mode.ACCUMULATE] if cell not in looks),
            tuple({**found[Mode.UPDATE], **found[Mode.WRITE]}),
            tuple(found[Mode.ACCUMULATE]),
        )


class Contents:
    """The contents of all cells; -1 is what they hold at the start."""

    __slots__ = ("adders", "layout", "writer")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.writer = [-1] * layout.size
        self.adders: dict[int, frozenset[int]] = {}

    def copy(self) -> Contents:
        """The same contents, to go another way from."""
        other = Contents.__new__(Contents)
        other.layout, other.writer, other.adders = self.layout, list(self.writer), dict(self.adders)
        return other

    def look(self, number: int) -> Sight:
        """What a command meets."""
        reach = self.layout.reach.get(number)
        if reach is None:
            return (), ()
        writer, adders = self.writer, self.adders
        if adders:
            return tuple((writer[cell], adders.get(cell, NONE)) for cell in reach.full), tuple(
                writer[cell] for cell in reach.base
            )
        return tuple([(writer[cell], NONE) for cell in reach.full]), tuple([writer[cell] for cell in reach.base])

    def perform(self, number: int) -> None:
        """Let a command take effect."""
        reach = self.layout.reach.get(number)
        if reach is None:
            return
        for cell in reach.writes:
            self.writer[cell] = number
            if self.adders:
                self.adders.pop(cell, None)
        for cell in reach.adds:
            self.adders[cell] = self.adders.get(cell, NONE) | {number}
