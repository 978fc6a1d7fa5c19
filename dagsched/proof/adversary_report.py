"""Put words to an interleaving that fails: its steps, the two accesses in the wrong order, who is stuck on what."""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.plan.model import Mode
from dagsched.proof.adversary_device import ISSUE, Device
from dagsched.proof.adversary_model import Failure, Party, ShownStep, StuckHead
from dagsched.proof.adversary_program import HOST, Command, command_text
from dagsched.proof.adversary_run import Entry, Outcome, Running, Subject
from dagsched.proof.adversary_shrink import run_until
from dagsched.proof.adversary_storage import Touch, meet
from dagsched.proof.adversary_values import Contents

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
        steps=_steps(subject, trail),
        threads=_threads(subject, trail, (first, second)),
        first=_party(subject, first, index),
        second=_party(subject, second, index),
        buffer=pair.buffer,
        kinds=pair.kinds if first is pair.meant_first else _kinds(first, second, pair.buffer),
        distance=distance,
        texts=_notes(subject, trail, pair),
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
            if a.storage != b.storage or not meet(a.box, b.box) or a.mode is b.mode is Mode.ACCUMULATE:
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


def _notes(subject: Subject, trail: list[Entry], pair: _Pair) -> tuple[str, ...]:
    first, second = pair.meant_first, pair.meant_second
    if not _has_run(trail, first.number):
        return (f"`{first.instance}` has not run by then: nothing makes `{second.instance}` wait for it",)
    return (f"nothing makes `{second.instance}` wait for `{first.instance}`",)


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


def _steps(subject: Subject, trail: list[Entry]) -> tuple[ShownStep, ...]:
    """Run a trail again, this time to its end, and say of each move what it does and meets."""
    running = Running(subject, any(part for _, part in trail))
    steps = []
    for entry, part in trail:
        thread = subject.entry_thread(entry)
        stream = subject.program.threads[thread]
        if entry >= ISSUE:
            command = subject.program.commands[entry - ISSUE]
            running.device.move(thread)
            text = f"issue {command_text(subject.program, command)}"
            steps.append(ShownStep(stream, text, where=command.step.where))
            continue
        command = subject.program.commands[entry]
        wrong = "" if part == 2 else _wrong(subject, running.contents, command)
        if part == 1:
            running.device.begun[thread] = True
            running.contents.perform(entry)
        else:
            if part == 0:
                running.contents.perform(entry)
            if running.halves is not None:
                wrong = wrong or _wrong(subject, running.halves, command)
                running.halves.perform(entry)
            running.device.move(thread)
        text = command_text(subject.program, command)
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
        for lo, hi in touch.box[1:]
    )
    region = f"[{bounds}]" if touch.box[1:] and touch.storage[0] == "name" else ""
    return f"{touch.buffer}{region}"


def _wrong(subject: Subject, contents: Contents, command: Command) -> str:
    """What a command meets that it should not, in words; "" where all is well."""
    expected = subject.reference.expected.get(command.number)
    if command.number not in subject.layout.reach or expected is None:
        return ""
    sight = contents.look(command.number)
    if sight == expected:
        return ""
    reach = subject.layout.reach[command.number]
    rows = [
        *zip(reach.full, sight[0], expected[0], strict=True),
        *((cell, (a, frozenset[int]()), (b, frozenset[int]())) for cell, a, b in zip(reach.base, *_bases(sight, expected))),
    ]
    rows = [row for row in rows if row[1] != row[2]]
    rows.sort(key=lambda row: row[0] not in reach.reads)
    cell, seen, meant = rows[0]
    touch = next(t for t in command.touches if cell in subject.layout.cells.of[t.storage, t.box])
    reads = cell in reach.reads
    if touch.storage[0] == "after":
        return f"runs before {touch.buffer}"
    slot = f" (slot {touch.slot})" if touch.slot is not None and touch.slot + 1 > 0 and _rings(subject, touch) else ""
    verb = "sees" if reads else "overwrites"
    return f"{verb} {_contents(subject, seen)} in {touch.buffer}{slot}, and is meant to {verb[:-1]} {_contents(subject, meant)}"


def _bases(sight: tuple[object, tuple[int, ...]], expected: tuple[object, tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    return sight[1], expected[1]


def _rings(subject: Subject, touch: Touch) -> bool:
    storage = subject.program.schedule.buffers.get(touch.buffer)
    return storage is not None and storage.ring > 1


def _contents(subject: Subject, value: tuple[int, frozenset[int]]) -> str:
    """Whose contents these are."""
    writer, adders = value
    commands = subject.program.commands
    if writer < 0:
        text = "what was there at the start"
    elif commands[writer].frees:
        text = "freed memory"
    else:
        text = f"{commands[writer].instance}'s"
    if adders:
        text += " with " + ", ".join(commands[number].instance for number in sorted(adders)) + " added"
    return text


def _describe_freed(subject: Subject, outcome: Outcome) -> Failure:
    assert outcome.miss is not None
    command = subject.program.commands[outcome.miss]
    reach = subject.layout.reach[outcome.miss]
    full, base = subject.reference.expected[outcome.miss]
    cells = [*zip(reach.full, (writer for writer, _ in full), strict=True), *zip(reach.base, base, strict=True)]
    cell, writer = next(row for row in cells if row[0] in reach.reads and row[1] in subject.layout.frees)
    touch = next(t for t in command.touches if cell in subject.layout.cells.of[t.storage, t.box])
    free = subject.program.commands[writer]
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
        texts=("in the very order in which the host issues the steps",),
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
        heads.append((not cause, StuckHead(program.threads[thread], command_text(program, command), why, command.step.where)))
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
