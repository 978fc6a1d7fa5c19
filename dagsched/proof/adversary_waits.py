"""Drop each wait in turn and look for the interleaving that breaks.

Without a wait, the only accesses that can newly come too early are those that conflict with work which the wait's
record comes after; where the program is monotone it is enough to hold back that work. Elsewhere all work is held back,
and then the states are gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dagsched.proof.adversary_device import wire
from dagsched.proof.adversary_model import WaitTrial
from dagsched.proof.adversary_program import Program, wait_text
from dagsched.proof.adversary_report import describe
from dagsched.proof.adversary_run import Outcome, Subject
from dagsched.proof.adversary_search import Stop, come_before, explore, hold_each, run_as_issued
from dagsched.proof.adversary_shrink import shrink
from dagsched.schedule.model import AnyStep, EventStep, FlagStep, Schedule, SyncStep, WaitStreamStep

MOST_STATES = 5_000


def is_wait(step: AnyStep) -> bool:
    """What counts as a wait: waits of streams, and what blocks otherwise where it has a label."""
    if isinstance(step, EventStep):
        return step.action == "wait" and (step.stream is not None or step.label is not None)
    if isinstance(step, FlagStep):
        return step.action == "take" and step.label is not None
    return isinstance(step, WaitStreamStep) or (isinstance(step, SyncStep) and step.label is not None)


def list_waits(schedule: Schedule) -> list[tuple[int, AnyStep]]:
    """The waits of a schedule by their number among all steps as written."""
    return [(number, step) for number, step in enumerate(schedule.walk()) if is_wait(step)]


@dataclass(slots=True)
class _Try:
    outcome: Outcome | None = None
    subject: Subject | None = None
    whole: bool = True
    bound: bool = False


def drop_waits(
    schedule: Schedule,
    subjects: Sequence[Subject],
    stop: Callable[[float], Stop],
    progress: Callable[[str, float], None],
) -> tuple[WaitTrial, ...]:
    """Drop every wait, at the smallest counts first; ``stop(share)`` gives a part of the time that is left."""
    waits = list_waits(schedule)
    trials = []
    for done, (number, step) in enumerate(waits):
        progress(f"dropping wait {done + 1} of {len(waits)}: {wait_text(step)}", done / len(waits))
        limit = stop(1 / (len(waits) - done))
        found = _drop(number, subjects, limit)
        failure = None
        result: Literal["needed", "needless", "open"] = "needless" if found.whole else "open"
        if found.outcome is not None and found.subject is not None:
            failure = describe(found.subject, shrink(found.subject, found.outcome, limit))
            result = "needed"
        stream = getattr(step, "stream", None)
        trials.append(
            WaitTrial(wait_text(step), stream.name if stream else None, step.label, step.where, result, failure)
        )
    return tuple(trials)


def _drop(number: int, subjects: Sequence[Subject], stop: Stop) -> _Try:
    found = _Try()
    for subject in subjects:
        if stop():
            found.whole = False
            break
        commands = [command.number for command in subject.program.commands if command.static == number]
        if not commands:
            continue
        program = subject.program.without(number)
        # What is meant stays what it was: nothing that was never met before is let pass.
        other = Subject(program, wire(program), subject.layout, replace(subject.reference))
        found.outcome = _attack(subject.program, other, commands, stop, found)
        if found.outcome is not None:
            found.subject = other
            break
        found.whole = found.whole and not subject.program.cut
    return found


def _attack(before: Program, subject: Subject, dropped: list[int], stop: Stop, found: _Try) -> Outcome | None:
    monotone = before.monotone and subject.program.monotone
    static = monotone and all(before.commands[number].object < 0 for number in dropped)
    waited = [need for number in dropped for need in before.commands[number].needs]
    behind = come_before(before, waited) if static else None
    outcome = Outcome([]) if static else run_as_issued(subject)
    if outcome.failed and not outcome.freed:
        return outcome
    for attempt in (0, 1):
        near = _near(before, dropped) if attempt == 0 else set()
        for outcome in hold_each(subject, _only(behind, near if attempt == 0 else None)):
            if outcome.failed:
                return outcome
            if stop():
                found.whole = False
                return None
    if not monotone:
        exploration = explore(subject, MOST_STATES, stop)
        found.whole = found.whole and exploration.complete
        return exploration.outcome or exploration.deadlock
    return None


def _only(behind: set[int] | None, near: set[int] | None) -> Callable[[int], bool]:
    return lambda number: (behind is None or number in behind) and (near is None or number in near)


def _near(program: Program, dropped: list[int]) -> set[int]:
    """Work that a bound wait's record follows at once, as the likeliest to be missed."""
    found = set()
    for number in dropped:
        for need in program.commands[number].needs:
            thread = program.commands[need].thread
            last = next(
                (
                    n
                    for n in range(need, -1, -1)
                    if program.commands[n].thread == thread and program.commands[n].what == "work"
                ),
                None,
            )
            if last is not None:
                found.add(last)
    return found
