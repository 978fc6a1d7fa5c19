"""Search the interleavings of one program: as issued, with each piece of work held back, or all of them.

Holding one piece of work back for as long as anything else can run is decisive where the program is *monotone* (running
more never takes anything away): what can run without it then does run before it. Two accesses that conflict can come in
the other order exactly if one of these runs shows it, so one run for each piece of work stands for every interleaving.
Where a flag is reset, a lock or a pair of flags is shared, or a handle is looked at late, the states are gone through
one by one, each once: until something is met that should not be, the contents follow from how far each thread has got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dagsched.proof.adversary_device import ISSUE, Device
from dagsched.proof.adversary_program import HOST, Program
from dagsched.proof.adversary_run import Outcome, Running, Subject, drive, first_issued
from dagsched.proof.adversary_storage import Touch, cut, meet
from dagsched.proof.adversary_values import Layout

Stop = Callable[[], bool]
"""Says that the time is up."""


def run_as_issued(subject: Subject) -> Outcome:
    """The run that keeps to the host's order as far as waits allow; it teaches an open reference what is meant."""
    outcome = drive(Running(subject), first_issued)
    if outcome.miss is None and subject.reference.open and subject.layout.frees:
        for place, number, _ in find_freed(subject, outcome):
            return Outcome(outcome.trail[: place + 1], miss=number, freed=True)
    return outcome


def find_freed(subject: Subject, outcome: Outcome) -> Iterator[tuple[int, int, tuple[Touch, int]]]:
    """The places in a run where something is read that was freed and not written since: (place, command, (access,
    free)). Another buffer that stands at the same addresses has contents of its own."""
    gone: list[tuple[Touch, int]] = []
    for place, (number, _) in enumerate(outcome.trail):
        command = subject.program.commands[number % ISSUE]
        if number >= ISSUE or not command.touches:
            continue
        if command.frees:
            gone += [(touch, number) for touch in command.touches]
            continue
        for touch in command.touches:
            for freed, free in gone if touch.mode.reads else ():
                if freed.root == touch.root and meet(freed, touch):
                    yield place, number, (touch, free)
        for touch in command.touches:
            if touch.mode.writes:
                gone = [(part, free) for freed, free in gone for part in cut(freed, touch)]


def conflicting(layout: Layout) -> set[int]:
    """The commands that share a cell with another command of which one changes it."""
    users: dict[int, list[int]] = {}
    changed: set[int] = set()
    for number, reach in layout.reach.items():
        for cell in (*reach.full, *reach.base):
            users.setdefault(cell, []).append(number)
        changed.update(reach.writes, reach.adds)
    return {number for cell, numbers in users.items() if cell in changed and len(numbers) > 1 for number in numbers}


def come_before(program: Program, numbers: Iterable[int]) -> set[int]:
    """All that must run before some commands can, and they themselves; everything, where objects have a say in it."""
    last = [-1] * len(program.threads)
    previous: list[tuple[int, int]] = []
    for command in program.commands:
        previous.append((last[command.thread], last[HOST]))
        last[command.thread] = command.number
    todo = list(numbers)
    found: set[int] = set()
    while todo:
        number = todo.pop()
        if number >= 0 and number not in found:
            found.add(number)
            todo += [*previous[number], *program.commands[number].needs]
    if any(program.commands[number].object >= 0 for number in found):
        return set(range(len(program.commands)))
    return found


def hold_each(subject: Subject, only: Callable[[int], bool] | None = None) -> Iterator[Outcome]:
    """For each piece of work, in the order in which it runs: hold it back as long as anything else can run."""
    worth = conflicting(subject.layout)
    running = Running(subject)
    while ready := running.device.ready():
        thread, _ = first_issued(running.device, ready)
        number = running.device.head(thread)
        if number in worth and (only is None or only(number)):
            yield _hold(running.copy(), thread)
        if not running.move(thread):
            yield running.finish(False)
            return


def _hold(running: Running, held: int) -> Outcome:
    device = running.device
    while others := [thread for thread in device.ready() if thread != held]:
        thread, _ = first_issued(device, others)
        if not running.move(thread):
            return running.finish(False)
    return running.finish(running.move(held))


@dataclass(slots=True)
class Exploration:
    """``complete``: every state that can be reached was visited. ``steps`` counts moves."""

    outcome: Outcome | None = None
    deadlock: Outcome | None = None
    states: int = 0
    steps: int = 0
    complete: bool = True


def explore(subject: Subject, most: int, stop: Stop, *, to_end: bool = False) -> Exploration:
    """Visit every state, depth first and as issued first; ``to_end``: go on behind the first failure for others."""
    found = Exploration()
    start = Running(subject)
    seen = {start.device.state()}
    stack: list[tuple[Running, list[int]]] = [(start, _in_order(start.device))]
    if not stack[0][1]:
        _note_end(found, start)
    while stack:
        running, threads = stack[-1]
        if not threads:
            stack.pop()
            continue
        if found.states >= most or stop():
            found.complete = False
            break
        thread = threads.pop()
        following = running.copy() if threads else running
        found.steps += 1
        fine = following.move(thread)
        if not fine and found.outcome is None:
            found.outcome = following.copy().finish(False)
            if not to_end:
                break
        state = following.device.state()
        if state in seen:
            if following is running:
                stack.pop()
            continue
        seen.add(state)
        found.states += 1
        ready = _in_order(following.device)
        if following is running:
            stack[-1] = (following, ready)
        else:
            stack.append((following, ready))
        if not ready:
            _note_end(found, following)
            if found.deadlock is not None and not to_end:
                break
    return found


def _in_order(device: Device) -> list[int]:
    """The ready threads, the one whose move was issued first at the end."""
    return sorted(device.ready(), key=lambda thread: (device.head(thread) or 0) % ISSUE, reverse=True)


def _note_end(found: Exploration, running: Running) -> None:
    outcome = running.copy().finish(True)
    if outcome.stuck and found.deadlock is None:
        found.deadlock = outcome
