"""What the adversary's device is given: every command that the host issues, in order, with what it must come after.

Thread 0 is the issuing thread, every stream is a thread of its own. Rules that are decided when a command is issued
(a latch wait and its record, what a sync covers, the legacy default stream) become ``needs``; what depends on who comes
first stays an *object* with a value (a flag, a lock, a counter, a handle that is looked at late) and is left to
``adversary_device``. Written from the schedule language alone: it shares no code with the checker or the verifier, so
that the three can be held against each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dagsched.plan.expressions import evaluate, expression_text, holds
from dagsched.proof.adversary_storage import Places, Touch
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Schedule,
    SyncStep,
    WaitStreamStep,
)

HOST = 0
Handle = tuple[str, str, int]
"""Kind (``event``, ``pair`` or ``lock``), name and index."""


@dataclass(slots=True)
class Command:
    """One instance of a step. ``what``: ``work``, ``record``, ``wait``, ``reset``, ``set``, ``take``, ``acquire``,
    ``release``, ``sync`` or ``nothing``; ``static`` numbers the steps as written; ``path`` holds the loops around it
    as (static, index, value). ``needs`` must have run before it, beside what precedes it on its thread; ``object`` is
    the object that it uses, and ``decides``: it makes a difference when it does so. ``private``: half of a
    ``wait_stream``."""

    number: int
    thread: int
    what: str
    step: AnyStep
    static: int
    path: tuple[tuple[int, str, int], ...]
    needs: tuple[int, ...] = ()
    handle: Handle | None = None
    object: int = -1
    decides: bool = False
    private: bool = False
    touches: tuple[Touch, ...] = ()
    frees: bool = False

    @property
    def name(self) -> str:
        """How reports call the work."""
        step = self.step
        if isinstance(step, OpStep):
            return step.op
        return step.host if isinstance(step, HostStep) else "host_free"

    @property
    def instance(self) -> str:
        """``upload@3``; nested loops give ``op@3,1``."""
        values = ",".join(str(value) for _, _, value in self.path)
        return f"{self.name}@{values}" if values else self.name


@dataclass(slots=True)
class Program:
    """All commands. ``objects`` are the handles with a value; ``monotone``: what a command may do never depends on who
    came first, so that running more never takes anything away. ``cut``: only a beginning was unfolded."""

    schedule: Schedule
    env: dict[str, int]
    commands: list[Command] = field(default_factory=list)
    threads: list[str | None] = field(default_factory=lambda: [None])
    objects: list[Handle] = field(default_factory=list)
    monotone: bool = True
    cut: bool = False

    def without(self, static: int) -> Program:
        """The same program with one step gone; commands keep their numbers, so that runs can be compared."""
        commands = [
            replace(command, what="nothing", needs=(), object=-1, decides=False, touches=())
            if command.static == static
            else command
            for command in self.commands
        ]
        return replace(self, commands=commands)


class _Full(Exception):
    """As many commands as were asked for are there."""


def unfold(schedule: Schedule, env: Mapping[str, int], most: int) -> Program:
    """The first ``most`` commands of a schedule for given parameters.

    Raises ``ExpressionError`` where an expression has no value.
    """
    unfolder = _Unfolder(schedule, env, most)
    try:
        unfolder.steps(schedule.steps, ())
    except _Full:
        unfolder.program.cut = True
    _share_objects(unfolder.program)
    return unfolder.program


def streams_in(step: AnyStep) -> tuple[Indexed, ...]:
    """The streams that a step names."""
    if isinstance(step, OpStep):
        return (step.stream,)
    if isinstance(step, EventStep | FlagStep):
        return (step.stream,) if step.stream is not None else ()
    if isinstance(step, WaitStreamStep):
        return (step.stream, step.target)
    if isinstance(step, SyncStep) and step.kind == "stream" and step.target is not None:
        return (step.target,)
    return ()


class _Unfolder:
    def __init__(self, schedule: Schedule, env: Mapping[str, int], most: int) -> None:
        self.schedule, self.env, self.most = schedule, dict(env), most
        self.program = Program(schedule, dict(env))
        self.places = Places(schedule)
        self.numbers = {id(step): number for number, step in enumerate(schedule.walk())}
        self.indexed = {name.name for step in schedule.walk() for name in streams_in(step) if name.index is not None}
        self.threads: dict[tuple[str, int | None], int] = {}
        self.blocking = [False]
        self.default = -1
        self.last = [-1]
        self.newest: dict[Handle, int] = {}
        self.rounds = 0

    def steps(self, steps: tuple[AnyStep, ...], path: tuple[tuple[int, str, int], ...]) -> None:
        for step in steps:
            if step.when and not holds(step.when, self.env):
                continue
            if not isinstance(step, LoopStep):
                self.issue(step, path)
                continue
            number = self.numbers[id(step)]
            before = self.env.get(step.index)
            for value in range(evaluate(step.lo, self.env), evaluate(step.hi, self.env)):
                self.rounds += 1
                if self.rounds > 4 * self.most:
                    raise _Full
                self.env[step.index] = value
                self.steps(step.steps, (*path, (number, step.index, value)))
            self.env.pop(step.index, None)
            if before is not None:
                self.env[step.index] = before

    def issue(self, step: AnyStep, path: tuple[tuple[int, str, int], ...]) -> None:
        if isinstance(step, OpStep):
            if step.iteration is not None and path:  # the instance that it is, not the round in which it is issued
                path = (*path[:-1], (*path[-1][:2], evaluate(step.iteration, self.env)))
            command = self.add("work", self.thread(step.stream), step, path)
            command.touches = self.places.touches(step.accesses, self.env)
        elif isinstance(step, HostStep):
            command = self.add("work", HOST, step, path)
            command.touches = self.places.touches(step.accesses, self.env)
        elif isinstance(step, FreeStep):
            command = self.add("work", HOST, step, path)
            command.touches = self.places.freed(step.access, self.env)
            command.frees = True
        elif isinstance(step, EventStep):
            self.event(step, path)
        elif isinstance(step, FlagStep):
            kind = "lock" if step.action in ("acquire", "release") else "pair"
            thread = HOST if step.stream is None else self.thread(step.stream)
            self.add(step.action, thread, step, path).handle = self.handle(kind, step.flag)
        elif isinstance(step, WaitStreamStep):
            target, stream = self.thread(step.target), self.thread(step.stream)
            record = self.add("record", target, step, path)
            wait = self.add("wait", stream, step, path)
            record.private = wait.private = True
            wait.needs = (*wait.needs, record.number)
        elif isinstance(step, SyncStep):
            self.sync(step, path)

    def add(self, what: str, thread: int, step: AnyStep, path: tuple[tuple[int, str, int], ...]) -> Command:
        commands = self.program.commands
        if len(commands) >= self.most:
            raise _Full
        number = len(commands)
        command = Command(number, thread, what, step, self.numbers[id(step)], path, needs=self.legacy(thread))
        commands.append(command)
        self.last[thread] = number
        return command

    def legacy(self, thread: int) -> tuple[int, ...]:
        """What the legacy default stream makes a command on a thread come after."""
        if self.default < 0 or thread == HOST:
            return ()
        if thread == self.default:
            return tuple(last for last, blocks in zip(self.last, self.blocking, strict=True) if blocks and last >= 0)
        return (self.last[self.default],) if self.blocking[thread] and self.last[self.default] >= 0 else ()

    def thread(self, name: Indexed) -> int:
        """The number of a stream. Where ``s`` is indexed anywhere, the plain name ``s1`` is ``s@1``."""
        index = None if name.index is None else evaluate(name.index, self.env)
        key = (name.name, index)
        if key in self.threads:
            return self.threads[key]
        base = name.name.rstrip("0123456789")
        digits = name.name[len(base) :]
        canonical = key
        if index is None and base in self.indexed and digits and (digits == "0" or digits[0] != "0"):
            canonical = (base, int(digits))
        if canonical not in self.threads:
            legacy = self.schedule.default_stream == "legacy" and name == Indexed("default")
            declared = self.schedule.streams.get(name.name) or self.schedule.streams.get(canonical[0])
            self.threads[canonical] = len(self.program.threads)
            if legacy:
                self.default = len(self.program.threads)
            self.program.threads.append(name.name if index is None else f"{name.name}@{index}")
            self.blocking.append(not legacy and not (declared is not None and declared.nonblocking))
            self.last.append(-1)
        self.threads[key] = self.threads[canonical]
        return self.threads[key]

    def handle(self, kind: str, name: Indexed) -> Handle:
        index = 0 if name.index is None else evaluate(name.index, self.env)
        declared = self.schedule.events.get(name.name)
        return (kind, name.name, index % declared.ring if declared and declared.ring else index)

    def event(self, step: EventStep, path: tuple[tuple[int, str, int], ...]) -> None:
        thread = HOST if step.stream is None else self.thread(step.stream)
        handle = self.handle("event", step.event)
        command = self.add(step.action, thread, step, path)
        command.handle = handle
        if step.action == "record":
            self.newest[handle] = command.number
        elif step.action == "wait" and self.schedule.event_model == "latch" and handle in self.newest:
            command.needs = (*command.needs, self.newest[handle])

    def sync(self, step: SyncStep, path: tuple[tuple[int, str, int], ...]) -> None:
        found: list[int] = []
        if step.kind == "event":
            assert step.target is not None
            newest = self.newest.get(self.handle("event", step.target))
            found = [] if newest is None else [newest]
        elif step.kind == "device":
            found = self.last[1:]
        else:
            assert step.target is not None
            thread = self.thread(step.target)
            found = [self.last[thread]]
            if thread == self.default:
                found += [last for last, blocks in zip(self.last, self.blocking, strict=True) if blocks]
        self.add("sync", HOST, step, path).needs = tuple(number for number in found if number >= 0)


def _share_objects(program: Program) -> None:
    """Give commands their objects, and find out where it matters who comes first.

    A record, a set and a release only ever let others go on. A wait for a flag that nothing resets stays possible
    once it is; so do the takes of a single taker, and a lock of one thread. All else decides something.
    """
    model = program.schedule.event_model
    users: dict[Handle, list[Command]] = defaultdict(list)
    for command in program.commands:
        if command.handle is not None:
            users[command.handle].append(command)
    for handle, commands in users.items():
        if handle[0] == "event":
            if model == "latch":
                continue
            decides = _flag_decides(commands) if model == "flag" else _late_decides(commands)
            if model == "reevaluate" and not decides:
                _bind_late(commands)
                continue
            deciding: tuple[str, ...] = ("record", "wait", "reset") if decides else ()
        else:
            blocking = "acquire" if handle[0] == "lock" else "take"
            shares = commands if handle[0] == "lock" else [c for c in commands if c.what == "take"]
            decides = len({command.thread for command in shares}) > 1
            deciding = (blocking,) if decides else ()
        number = len(program.objects)
        program.objects.append(handle)
        program.monotone = program.monotone and not decides
        for command in commands:
            command.object = number
            command.decides = command.what in deciding


def _flag_decides(commands: list[Command]) -> bool:
    return any(command.what == "reset" for command in commands)


def _late_decides(commands: list[Command]) -> bool:
    """Whether a wait on a stream may see a record that is issued after it."""
    first = next((command.number for command in commands if command.what == "wait" and command.thread != HOST), None)
    return first is not None and any(command.what == "record" and command.number > first for command in commands)


def _bind_late(commands: list[Command]) -> None:
    """Bind each wait to the record issued last before it, where none can come in between."""
    newest: int | None = None
    for command in commands:
        if command.what == "record":
            newest = command.number
        elif command.what == "wait" and newest is not None:
            command.needs = (*command.needs, newest)


def command_text(program: Program, command: Command) -> str:
    """A command in a few words, with the handle that it really uses."""
    if command.what == "work":
        return f"free {command.touches[0].buffer}" if command.frees and command.touches else command.instance
    step = command.step
    if isinstance(step, WaitStreamStep):
        target = named(step.target)
        return f"record on {target}" if command.what == "record" else f"wait_stream {target}"
    if isinstance(step, SyncStep):
        return "sync device" if step.target is None else f"sync {step.kind} {named(step.target)}"
    if command.handle is not None and isinstance(step, EventStep | FlagStep):
        index = (step.event if isinstance(step, EventStep) else step.flag).index
        at = f"@{command.handle[2]}" if index is not None else ""
        return f"{step.action} {command.handle[1]}{at}"
    return command.what


def named(name: Indexed) -> str:
    """``E@i%2`` as it was written."""
    return name.name if name.index is None else f"{name.name}@{expression_text(name.index)}"


def wait_text(step: AnyStep) -> str:
    """A wait as it was written: ``wait E@i-2``."""
    if isinstance(step, EventStep):
        return f"{step.action} {named(step.event)}"
    if isinstance(step, FlagStep):
        return f"{step.action} {named(step.flag)}"
    if isinstance(step, WaitStreamStep):
        return f"wait_stream {named(step.target)}"
    if isinstance(step, SyncStep):
        return "sync device" if step.target is None else f"sync {step.kind} {named(step.target)}"
    return ""
