"""Put words to an interleaving that fails: its steps, the two accesses in the wrong order, who is stuck on what."""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.plan.model import Mode
from dagsched.proof.adversary_device import ISSUE, Device
from dagsched.proof.adversary_model import Failure, Party, ShownStep, StuckHead
from dagsched.proof.adversary_program import HOST, Command, command_text
from dagsched.proof.adversary_run import Entry, Outcome, Running, Subject
from dagsched.proof.adversary_search import find_freed
from dagsched.proof.adversary_shrink import run_until
from dagsched.proof.adversary_storage import Touch, meet

_VERBS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.UPDATE: "updates", Mode.ACCUMULATE: "adds to"}
_OPENS = {"wait": "record", "take": "set", "acquire": "release"}
KINDS = ("RAW", "WAR", "WAW")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two commands that conflict in a cell, and that ran the other way round than is meant."""

    meant_first: Command
    meant_second: Command
    buffer: str
    kinds: tuple[str, ...]


def describe(subject: Subject, outcome: Outcome) -> Failure:
    """The failure of a run."""
    if outcome.stuck:
        return _describe_stuck(subject, outcome)
    assert outcome.miss is not None
    if outcome.freed:
        return _describe_freed(subject, outcome)
    pair = _find_pair(subject, outcome)
    trail = list(outcome.trail)
    if pair.kinds != ("RAW",) and not _has_run(trail, pair.meant_first.number):
        trail = run_until(subject, outcome, pair.meant_first.number)
    first, second = pair.meant_first, pair.meant_second
    if subject.reference.open and second.number < first.number:  # as `check` names a race: by the issue order
        first, second = second, first
    distance, index = _distance(first, second)
    return Failure(
        kind="race",
        headline=_headline(pair),
        env=tuple(sorted(subject.program.env.items())),
        steps=_steps(subject, trail, pair),
        threads=_threads(subject, trail, (first, second)),
        first=_party(subject, first, index),
        second=_party(subject, second, index),
        buffer=pair.buffer,
        kinds=pair.kinds if first is pair.meant_first else _kinds(first, second, pair.buffer),
        distance=distance,
        texts=_notes(trail, pair),
        help=_help(subject, first, second, distance, index),
    )


def _has_run(trail: list[Entry], number: int) -> bool:
    return any(entry == number and part != 1 for entry, part in trail)


def _find_pair(subject: Subject, outcome: Outcome) -> _Pair:
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
        if other is missed or not _conflict(missed, other):
            continue
        meant_before, is_before = rank(other) < rank(missed), other.number in ran
        if meant_before != is_before:
            first, second = (other, missed) if meant_before else (missed, other)
            found.append((abs(rank(other) - rank(missed)), other.number, first, second))
    assert found, "a run that meets what it should not has two accesses in the wrong order"
    _, _, first, second = min(found, key=lambda row: row[:2])
    buffers = _conflict(first, second)
    # What is seen says most: a buffer of which the second reads what the first writes comes first.
    buffer = min(buffers, key=lambda name: ("RAW" not in buffers[name], "WAR" not in buffers[name]))
    return _Pair(first, second, buffer, _kinds(first, second, buffer))


def _conflict(first: Command, second: Command) -> dict[str, set[str]]:
    """The buffers on which two commands conflict, with the kinds."""
    found: dict[str, set[str]] = {}
    for a in first.touches:
        for b in second.touches:
            if not meet(a, b) or not _clash(a, b):
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


def _kinds(first: Command, second: Command, buffer: str) -> tuple[str, ...]:
    buffers = _conflict(first, second)
    name = buffer if buffer in buffers else "/".join(reversed(buffer.split("/")))
    return tuple(kind for kind in KINDS if kind in buffers.get(name, ()))


def _headline(pair: _Pair) -> str:
    first, second, buffer = pair.meant_first.instance, pair.meant_second.instance, pair.buffer
    if buffer == "after":
        return f"`{second}` can run before `{first}`, which it is to come after"
    if pair.meant_second.frees:
        return f"`{buffer}` can be freed before `{first}` is done with it"
    if "RAW" in pair.kinds:
        return f"`{second}` can read `{buffer}` before `{first}` has written it"
    if "WAR" in pair.kinds:
        return f"`{second}` can overwrite `{buffer}` before `{first}` has read it"
    return f"`{second}` can write `{buffer}` before `{first}` does, whose contents then stay"


def _notes(trail: list[Entry], pair: _Pair) -> tuple[str, ...]:
    first, second = pair.meant_first, pair.meant_second
    if not _has_run(trail, first.number):
        return (f"`{first.instance}` has not run by then: nothing makes `{second.instance}` wait for it",)
    return (f"nothing makes `{second.instance}` wait for `{first.instance}`",)


def _help(subject: Subject, first: Command, second: Command, distance: int | None, index: str | None) -> str:
    """The record and the wait, or the sync, that would order two instances."""
    name = f"{first.name}_done"
    looped = index is not None and distance is not None
    record, wait = (
        (f"{name}@{index}", f"{name}@{index}" + (f"-{distance}" if distance else "")) if looped else (name, name)
    )
    one, other = (subject.program.threads[command.thread] for command in (first, second))
    if one is None:
        return f"move `{first.name}` above `{second.name}`, so that it is done before that is issued"
    if other is None and not looped:
        return f"add `{{sync: {{stream: {one}}}}}` before `{second.name}`"
    waiting = f"{{sync: {{event: {wait}}}}}" if other is None else f"{{stream: {other}, wait: {wait}}}"
    return f"add `{{stream: {one}, record: {record}}}` after `{first.name}` and `{waiting}` before `{second.name}`"


def _distance(first: Command, second: Command) -> tuple[int | None, str | None]:
    """Iterations of the outermost common loop that tells two instances apart, with the common loop's index."""
    index = None
    for (loop, name, value), (other_loop, _, other) in zip(first.path, second.path, strict=False):
        if loop != other_loop:
            break
        index = index or name
        if value != other:
            return abs(value - other), index
    return (0 if index is not None else None), index


def _party(subject: Subject, command: Command, index: str | None) -> Party:
    return Party(command.name, command.instance, subject.program.threads[command.thread], command.step.where, index)


def _threads(subject: Subject, trail: list[Entry], also: tuple[Command, ...]) -> tuple[str | None, ...]:
    """The threads that take part, in the order in which the schedule names them."""
    used = {subject.entry_thread(entry) for entry, _ in trail} | {command.thread for command in also}
    return tuple(subject.program.threads[thread] for thread in sorted(used))


def _steps(subject: Subject, trail: list[Entry], pair: _Pair | None = None) -> tuple[ShownStep, ...]:
    """The moves of a trail; those of the pair say what they meet that they should not, once they do."""
    steps = []
    ran: set[int] = set()
    for place, (entry, part) in enumerate(trail):
        stream = subject.program.threads[subject.entry_thread(entry)]
        command = subject.program.commands[entry % ISSUE]
        text = command_text(subject.program, command)
        if entry >= ISSUE:
            steps.append(ShownStep(stream, f"issue {text}", where=command.step.where))
            continue
        wrong = ""
        if pair is not None and part != 2:
            late = command is pair.meant_first and pair.meant_second.number in ran
            early = command is pair.meant_second and pair.meant_first.number not in ran
            wrong = _wrong(subject, trail, place, pair) if late or early else ""
        ran.add(entry)
        text += ("", " begins", " ends")[part]
        steps.append(ShownStep(stream, text, _does(command), wrong, command.step.where))
    return tuple(steps)


def _does(command: Command) -> str:
    """``reads frame, writes image slot 1``."""
    if command.frees:
        return ""
    rows: dict[str, list[str]] = {}
    for touch in command.touches:
        if touch.storage[0] != "after":
            rows.setdefault(_VERBS[touch.mode], []).append(_place(touch))
    return "; ".join(f"{verb} {', '.join(dict.fromkeys(names))}" for verb, names in rows.items())


def _place(touch: Touch) -> str:
    bounds = ", ".join(
        ("" if lo == float("-inf") else f"{lo:.0f}") + ":" + ("" if hi == float("inf") else f"{hi:.0f}")
        for lo, hi in touch.box
    )
    return f"{touch.buffer}[{bounds}]" if touch.box and touch.storage[0] == "name" else touch.buffer


def _wrong(subject: Subject, trail: list[Entry], place: int, pair: _Pair) -> str:
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
    shared = [(a, b) for a in here.touches for b in other.touches if meet(a, b) and _clash(a, b)]
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


def _clash(a: Touch, b: Touch) -> bool:
    """Whether the order of two accesses of the same bytes makes a difference."""
    return (a.mode.writes or b.mode.writes) and not a.mode is b.mode is Mode.ACCUMULATE


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


def _describe_freed(subject: Subject, outcome: Outcome) -> Failure:
    assert outcome.miss is not None
    command = subject.program.commands[outcome.miss]
    _, _, (touch, number) = next(find_freed(subject, outcome))
    free = subject.program.commands[number]
    steps = list(_steps(subject, outcome.trail))
    last = steps[-1]
    steps[-1] = ShownStep(last.stream, last.text, last.does, f"reads {touch.buffer} after it was freed", last.where)
    _, index = _distance(free, command)
    return Failure(
        "freed",
        f"`{command.instance}` reads `{touch.buffer}` after it was freed",
        tuple(sorted(subject.program.env.items())),
        tuple(steps),
        _threads(subject, outcome.trail, ()),
        _party(subject, free, index),
        _party(subject, command, index),
        touch.buffer,
        texts=("it does so even in the order in which the host issues the steps",),
        help=f"move the free behind `{command.name}` and a sync with its stream",
    )


def _describe_stuck(subject: Subject, outcome: Outcome) -> Failure:
    """A state in which nothing can move."""
    program = subject.program
    running = Running(subject)
    for entry, _ in outcome.trail:
        running.device.move(subject.entry_thread(entry))
    heads = []
    for thread, number in outcome.stuck:
        command = program.commands[number]
        why, cause = _why(subject, running.device, command)
        heads.append(
            (not cause, StuckHead(program.threads[thread], command_text(program, command), why, command.step.where))
        )
    heads.sort(key=lambda row: row[0])
    first = heads[0][1]
    on = "the issuing thread" if first.stream is None else f"stream `{first.stream}`"
    stuck = {head.stream for _, head in heads}
    steps = _steps(subject, outcome.trail)
    return Failure(
        "deadlock",
        f"the schedule can hang: `{first.step}` blocks {on} for ever",
        tuple(sorted(program.env.items())),
        steps,
        tuple(name for name in program.threads if name in stuck or any(step.stream == name for step in steps)),
        heads=tuple(head for _, head in heads),
        texts=(f"`{first.step}` {first.why}" if first.why.startswith("waits") else f"`{first.step}`: {first.why}",),
        help="issue what unblocks it earlier, or on a stream that is not stuck behind it",
    )


def _why(subject: Subject, device: Device, command: Command) -> tuple[str, bool]:
    """Why a queue head cannot run, and whether that is a cause of its own."""
    program = subject.program
    for need in command.needs:
        if not device.done[need]:
            other = program.commands[need]
            return f"waits for `{command_text(program, other)}` {_on(subject, other)}", False
    if command.object < 0:
        return "is not reached", False
    handle = program.objects[command.object]
    name = command_text(program, command).partition(" ")[2]
    if command.what == "acquire":
        holder = device.values[command.object] - 1
        where = "by itself" if holder == command.thread else f"by {_thread(subject, holder)}"
        return f"the lock is held {where}", True
    if device.late and command.what == "wait":
        other = program.commands[device.values[command.object] - 1]
        return f"waits for the newest `{command_text(program, other)}`, {_on(subject, other)}", True
    opens = _OPENS[command.what]
    left = [c for c in program.commands if c.handle == handle and c.what == opens and not device.done[c.number]]
    if left:
        return f"waits for `{opens} {name}`, which is stuck {_on(subject, left[0])}", True
    some = any(c.handle == handle and c.what == opens for c in program.commands)
    if not some:
        return f"nothing {opens}s it", True
    return ("every `set` is used up" if opens == "set" else "it was reset after its last record"), True


def _on(subject: Subject, command: Command) -> str:
    return f"on {_thread(subject, command.thread)}"


def _thread(subject: Subject, thread: int) -> str:
    return "the issuing thread" if thread == HOST else f"stream `{subject.program.threads[thread]}`"
