"""Put words to an interleaving that fails: its steps, the two accesses in the wrong order, who is stuck on what."""

from __future__ import annotations

from dagsched.plan.model import Mode
from dagsched.proof.adversary_device import ISSUE
from dagsched.proof.adversary_model import Failure, Party, ShownStep
from dagsched.proof.adversary_pair import Pair, find_pair, has_run, kinds_of
from dagsched.proof.adversary_program import Command, command_text
from dagsched.proof.adversary_run import Entry, Outcome, Subject
from dagsched.proof.adversary_search import find_freed
from dagsched.proof.adversary_shrink import run_until
from dagsched.proof.adversary_sights import wrong_text
from dagsched.proof.adversary_storage import Touch
from dagsched.proof.adversary_stuck import describe_stuck

_VERBS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.UPDATE: "updates", Mode.ACCUMULATE: "adds to"}


def describe(subject: Subject, outcome: Outcome) -> Failure:
    """The failure of a run."""
    if outcome.stuck:
        return describe_stuck(subject, outcome, _steps(subject, outcome.trail))
    assert outcome.miss is not None
    if outcome.freed:
        return _describe_freed(subject, outcome)
    pair = find_pair(subject, outcome)
    trail = list(outcome.trail)
    if pair.kinds != ("RAW",) and not has_run(trail, pair.meant_first.number):
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
        kinds=pair.kinds if first is pair.meant_first else kinds_of(first, second, pair.buffer),
        distance=distance,
        texts=_notes(trail, pair),
        help=_help(subject, first, second, distance, index),
    )


def _headline(pair: Pair) -> str:
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


def _notes(trail: list[Entry], pair: Pair) -> tuple[str, ...]:
    first, second = pair.meant_first, pair.meant_second
    if not has_run(trail, first.number):
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


def _steps(subject: Subject, trail: list[Entry], pair: Pair | None = None) -> tuple[ShownStep, ...]:
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
            wrong = wrong_text(subject, trail, place, pair) if late or early else ""
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
