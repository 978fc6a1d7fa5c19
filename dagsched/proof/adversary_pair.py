"""Which two accesses ran in the wrong order: what stands behind a run that met what it should not."""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.plan.model import Mode
from dagsched.proof.adversary_device import ISSUE
from dagsched.proof.adversary_program import Command
from dagsched.proof.adversary_run import Entry, Outcome, Subject
from dagsched.proof.adversary_storage import Touch, meet

KINDS = ("RAW", "WAR", "WAW")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two commands that conflict in a cell, and that ran the other way round than is meant."""

    meant_first: Command
    meant_second: Command
    buffer: str
    kinds: tuple[str, ...]


def has_run(trail: list[Entry], number: int) -> bool:
    """Whether a command has run, and to its end."""
    return any(entry == number and part != 1 for entry, part in trail)


def find_pair(subject: Subject, outcome: Outcome) -> Pair:
    """The two accesses in the wrong order; of several, those that are meant to be nearest."""
    assert outcome.miss is not None
    commands, reference = subject.program.commands, subject.reference
    missed = commands[outcome.miss]
    ran = {entry for entry, part in outcome.trail if entry < ISSUE and part != 1} - {missed.number}
    far = len(commands)

    def rank(command: Command) -> int:
        return reference.rank.get(command.number, far + command.number)

    found: list[tuple[int, int, Command, Command]] = []
    for other in commands:
        if other is missed or not conflicts(missed, other):
            continue
        meant_before, is_before = rank(other) < rank(missed), other.number in ran
        if meant_before != is_before:
            first, second = (other, missed) if meant_before else (missed, other)
            found.append((abs(rank(other) - rank(missed)), other.number, first, second))
    assert found, "a run that meets what it should not has two accesses in the wrong order"
    _, _, first, second = min(found, key=lambda row: row[:2])
    buffers = conflicts(first, second)
    # What is seen says most: a buffer of which the second reads what the first writes comes first.
    buffer = min(buffers, key=lambda name: ("RAW" not in buffers[name], "WAR" not in buffers[name]))
    return Pair(first, second, buffer, kinds_of(first, second, buffer))


def conflicts(first: Command, second: Command) -> dict[str, set[str]]:
    """The buffers on which two commands conflict, with the kinds."""
    found: dict[str, set[str]] = {}
    for a in first.touches:
        for b in second.touches:
            if not meet(a, b) or not clash(a, b):
                continue
            kinds = set()
            if a.mode.writes and b.mode.reads:
                kinds.add("RAW")
            if a.mode.reads and b.mode.writes:
                kinds.add("WAR")
            if a.mode.writes and b.mode.writes:
                kinds.add("WAW")
            if kinds:
                name = a.buffer if a.buffer == b.buffer else f"{a.buffer}/{b.buffer}"
                if a.storage[0] == "after":
                    name = "after"
                found.setdefault(name, set()).update(kinds)
    return found


def kinds_of(first: Command, second: Command, buffer: str) -> tuple[str, ...]:
    """The kinds of the conflict of two commands on one buffer, in the order RAW, WAR, WAW."""
    buffers = conflicts(first, second)
    name = buffer if buffer in buffers else "/".join(reversed(buffer.split("/")))
    return tuple(kind for kind in KINDS if kind in buffers.get(name, ()))


def clash(a: Touch, b: Touch) -> bool:
    """Whether the order of two accesses of the same bytes makes a difference."""
    return (a.mode.writes or b.mode.writes) and not a.mode is b.mode is Mode.ACCUMULATE
