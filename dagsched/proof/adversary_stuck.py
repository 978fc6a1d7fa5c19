"""Say of a device in which nothing can move any more what each queue head waits for."""

from __future__ import annotations

from dagsched.proof.adversary_device import Device
from dagsched.proof.adversary_model import Failure, ShownStep, StuckHead
from dagsched.proof.adversary_program import HOST, Command, command_text
from dagsched.proof.adversary_run import Outcome, Running, Subject

_OPENS = {"wait": "record", "take": "set", "acquire": "release"}


_LOCKS = "acquire locks in the same order everywhere, and hold none across a wait"
_LATE = "issue what unblocks it earlier, or on a stream that is not stuck behind it"


def describe_stuck(subject: Subject, outcome: Outcome, steps: tuple[ShownStep, ...]) -> Failure:
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
    return Failure(
        "deadlock",
        f"the schedule can hang: `{first.step}` blocks {on} for ever",
        tuple(sorted(program.env.items())),
        steps,
        tuple(name for name in program.threads if name in stuck or any(step.stream == name for step in steps)),
        heads=tuple(head for _, head in heads),
        texts=(f"`{first.step}` {first.why}" if first.why.startswith("waits") else f"`{first.step}`: {first.why}",),
        help=_LOCKS if any(head.step.startswith("acquire ") for _, head in heads[:1]) else _LATE,
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
