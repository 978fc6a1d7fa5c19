"""What an access met that it should not have, in words."""

from __future__ import annotations

from dagsched.proof.adversary_device import ISSUE
from dagsched.proof.adversary_pair import Pair, clash
from dagsched.proof.adversary_run import Entry, Subject
from dagsched.proof.adversary_storage import Touch, meet


def wrong_text(subject: Subject, trail: list[Entry], place: int, pair: Pair) -> str:
    """What the move at a place in a trail meets that it should not, in words.

    It is the second of a pair, before the first has run, or the first, once the second has.
    """
    first, second = pair.meant_first, pair.meant_second
    here = subject.program.commands[trail[place][0]]
    if pair.buffer == "after":
        return f"runs before {first.instance}" if here is second else f"runs after {second.instance}"
    if here is second and "RAW" not in pair.kinds:
        return ""
    other = first if here is second else second
    shared = [(a, b) for a in here.touches for b in other.touches if meet(a, b) and clash(a, b)]
    shared = [row for row in shared if pair.buffer in (row[0].buffer, *_joined(row[0].buffer, row[1].buffer))]
    reads = [row for row in shared if row[0].mode.reads and row[1].mode.writes]
    mine, theirs = (reads or shared)[0]
    where = f"{mine.buffer} (slot {mine.slot})" if _rings(subject, mine) else mine.buffer
    part = "part of " if trail[place][1] else ""
    if here is first and not reads:
        return f"overwrites {part}{_owner(subject, second.number)} {where}, and is meant to come before it"
    order = [entry for entry, _ in trail[:place] if entry < ISSUE]
    seen = _last_writer(subject, order, mine, theirs)
    rank = subject.reference.rank
    meant = sorted((n for n in rank if rank[n] < rank[here.number]), key=lambda number: rank[number])
    wanted = _last_writer(subject, meant, mine, theirs)
    return f"sees {part}{_owner(subject, seen)} {where}, and is meant to see {_owner(subject, wanted)}"


def _joined(a: str, b: str) -> tuple[str, str]:
    return f"{a}/{b}", f"{b}/{a}"


def _last_writer(subject: Subject, numbers: list[int], mine: Touch, theirs: Touch) -> int | None:
    """Who wrote last, of some commands in their order, what two accesses share."""
    for number in reversed(numbers):
        for touch in subject.program.commands[number].touches:
            if touch.mode.writes and meet(touch, mine) and meet(touch, theirs):
                return number
    return None


def _rings(subject: Subject, touch: Touch) -> bool:
    storage = subject.program.schedule.buffers.get(touch.root)
    own = subject.program.schedule.buffers.get(touch.buffer)
    return touch.slot is not None and max(storage.ring if storage else 1, own.ring if own else 1) > 1


def _owner(subject: Subject, number: int | None) -> str:
    """Whose contents these are."""
    if number is None:
        return "the first contents of"
    command = subject.program.commands[number]
    return "the freed" if command.frees else f"{command.instance}'s"
