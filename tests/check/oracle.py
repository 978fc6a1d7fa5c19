"""A brute-force judge of small schedules: run every interleaving, compare nothing but what really happened.

It shares no code with the checker: the schedule is unfolded here, a state is how far the host and every stream have got
plus the value of each object, every state that can be reached is visited, and one piece of work comes before another
exactly where it had run in every state in which the other could run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

from dagsched.plan.expressions import evaluate, holds
from dagsched.plan.model import Access, Mode
from dagsched.schedule.model import (
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    LoopStep,
    OpStep,
    Schedule,
    SyncStep,
    WaitStreamStep,
)

MAX_STATES = 200_000


class TooBig(Exception):
    """More states than the judge is willing to visit."""


@dataclass
class Command:
    """Something that the host or a stream does. ``needs``: commands bound to it when it was issued."""

    what: str
    thread: str
    number: int
    name: str = ""
    index: int | None = None
    handle: Any = None
    accesses: list[tuple[str, Any, Any, Any, Mode]] = field(default_factory=list)
    needs: list[int] = field(default_factory=list)


@dataclass
class Judgement:
    """``before[b]``: work that had run whenever b ran (None: b never runs)."""

    commands: list[Command]
    before: dict[int, frozenset[int] | None]
    deadlock: bool
    states: int

    def races(self) -> set[tuple[str, str, str, str]]:
        """(first, second, buffer, kind) of every pair that nothing orders."""
        work = [c for c in self.commands if c.what == "work"]
        found = set()
        for at, b in enumerate(work):
            for a in work[:at]:
                before_a, before_b = self.before[a.number], self.before[b.number]
                if before_a is None or before_b is None or a.number in before_b or b.number in before_a:
                    continue
                found |= conflicts(a, b)
        return found

    def ordered(self) -> set[tuple[int, int]]:
        """All ordered pairs of work, by their numbers in issue order."""
        return {(a, b) for b, some in self.before.items() if some is not None for a in some}


def conflicts(a: Command, b: Command) -> set[tuple[str, str, str, str]]:
    """The hazards between two commands, element by element."""
    found = set()
    for name, root, slot, box, mode in a.accesses:
        for other_name, other_root, other_slot, other_box, other_mode in b.accesses:
            if root != other_root or (slot is not None and other_slot is not None and slot != other_slot):
                continue
            if not all(x[0] < y[1] and y[0] < x[1] for x, y in zip(box, other_box, strict=False)):
                continue
            if mode is other_mode is Mode.ACCUMULATE:
                continue
            buffer = name if name == other_name else f"{name}/{other_name}"
            if mode is not Mode.READ and other_mode is not Mode.WRITE:
                found.add((a.name, b.name, buffer, "RAW"))
            if mode is not Mode.WRITE and other_mode is not Mode.READ:
                found.add((a.name, b.name, buffer, "WAR"))
            if mode is not Mode.READ and other_mode is not Mode.READ:
                found.add((a.name, b.name, buffer, "WAW"))
    return found


def unfold(schedule: Schedule, params: dict[str, int]) -> list[Command]:
    """All commands in issue order."""
    commands: list[Command] = []
    newest: dict[Any, int] = {}
    legacy = schedule.default_stream == "legacy"

    def blocking(thread: str) -> bool:
        declared = schedule.streams.get(thread)
        return thread not in ("<host>", "default") and not (declared and declared.nonblocking)

    def add(what: str, thread: str, **more: Any) -> Command:
        command = Command(what, thread, len(commands), **more)
        if legacy and thread != "<host>":
            for earlier in commands:
                if (thread == "default" and blocking(earlier.thread)) or (
                    blocking(thread) and earlier.thread == "default"
                ):
                    command.needs.append(earlier.number)
        commands.append(command)
        return command

    def access(a: Access, env: dict[str, int]) -> tuple[str, Any, Any, Any, Mode]:
        storage = schedule.buffers.get(a.buffer)
        version = evaluate(a.version, env) if a.version else 0
        box: Any = tuple(
            (evaluate(p.lo, env) if p.lo else -inf, evaluate(p.hi, env) if p.hi else inf) for p in a.region
        ) or ((-inf, inf),)
        root = storage
        while root is not None and root.alias:
            root = schedule.buffers.get(root.alias)
        if root is not None and root.at is not None:
            size = (root.at[1] - root.at[0]) // root.ring
            base = root.at[0] + version % root.ring * size
            lo, hi = box[0]
            box = ((base + max(lo, 0), min(base + size, base + hi)),)
            return (a.buffer, ("space", root.space), None, box, a.mode)
        ring = root.ring if root else 1
        return (a.buffer, root.name if root else a.buffer, version % ring, box, a.mode)

    def handle(e: Any, env: dict[str, int]) -> Any:
        value = evaluate(e.index, env) if e.index else 0
        declared = schedule.events.get(e.name)
        return (e.name, value % declared.ring if declared and declared.ring else value)

    def stream(e: Any, env: dict[str, int]) -> str:
        return e.name if e.index is None else f"{e.name}{evaluate(e.index, env)}"

    def issue(step: Any, env: dict[str, int], index: int | None) -> None:
        thread = stream(step.stream, env) if getattr(step, "stream", None) else "<host>"
        if isinstance(step, OpStep | HostStep):
            name = step.op if isinstance(step, OpStep) else step.host
            add("work", thread, name=name, index=index, accesses=[access(a, env) for a in step.accesses])
        elif isinstance(step, FreeStep):
            name, root, slot, box, _ = access(step.access, env)
            add("work", thread, name="host_free", index=index, accesses=[(name, root, slot, box, Mode.WRITE)])
        elif isinstance(step, WaitStreamStep):
            record = add("record", stream(step.target, env), handle=("private", len(commands)))
            add("bound", thread).needs.append(record.number)
        elif isinstance(step, SyncStep):
            sync = add("bound", "<host>")
            if step.kind == "event":
                sync.needs += [newest[h] for h in [handle(step.target, env)] if h in newest]
            else:
                target = stream(step.target, env) if step.target else None
                sync.needs += [
                    c.number
                    for c in commands
                    if c.thread != "<host>"
                    and (target in (None, c.thread) or (legacy and target == "default" and blocking(c.thread)))
                ]
        elif isinstance(step, EventStep):
            key = handle(step.event, env)
            if step.action == "wait" and schedule.event_model == "latch":
                bound = add("bound", thread)
                bound.needs += [newest[key]] if key in newest else []
            else:
                command = add(step.action, thread, handle=key)
                if step.action == "record":
                    newest[key] = command.number
        elif isinstance(step, FlagStep):
            add(step.action, thread, handle=(step.action in ("set", "take"), *handle(step.flag, env)))

    def unroll(steps: Any, env: dict[str, int], index: int | None) -> None:
        for step in steps:
            if not holds(step.when, env):
                continue
            if isinstance(step, LoopStep):
                for value in range(evaluate(step.lo, env), evaluate(step.hi, env)):
                    unroll(step.steps, {**env, step.index: value}, value if index is None else index)
            else:
                issue(step, env, index)

    unroll(schedule.steps, dict(params), None)
    return commands


def judge(schedule: Schedule, params: dict[str, int] | None = None) -> Judgement:
    """Visit every state; raises :class:`TooBig`."""
    commands = unfold(schedule, params or {})
    model = schedule.event_model
    threads = sorted({c.thread for c in commands} | {"<host>"})
    queues = {t: [c for c in commands if c.thread == t] for t in threads}
    place = {c.number: at for t in threads for at, c in enumerate(queues[t])}
    before: dict[int, int | None] = {c.number: None for c in commands if c.what == "work"}
    objects = sorted({c.handle for c in commands if c.handle is not None}, key=repr)
    slot = {key: at for at, key in enumerate(objects)}
    # The host's own thread: it issues the commands of the streams and does its own, in order.
    start = (0, tuple(0 for _ in threads), tuple(0 for _ in objects))
    seen = {start}
    todo = [start]
    deadlock = False

    def ran(state: Any, number: int) -> bool:
        c = commands[number]
        if c.thread == "<host>":
            return bool(number < state[0])
        return bool(place[number] < state[1][threads.index(c.thread)])

    def allowed(state: Any, c: Command) -> bool:
        if not all(ran(state, n) for n in c.needs):
            return False
        if c.what == "wait" and model == "flag":
            return bool(state[2][slot[c.handle]])
        if c.what == "wait":
            issued = [r.number for r in commands[: state[0]] if r.what == "record" and r.handle == c.handle]
            return not issued or ran(state, issued[-1])
        if c.what == "take":
            return bool(state[2][slot[c.handle]] > 0)
        if c.what == "acquire":
            return not state[2][slot[c.handle]]
        return True

    def act(values: Any, c: Command) -> Any:
        if c.handle is None:
            return values
        at = slot[c.handle]
        change = {"record": 1, "reset": 0, "acquire": 1, "release": 0}
        value = values[at]
        if c.what in change:
            value = change[c.what]
        elif c.what in ("set", "take"):
            value += 1 if c.what == "set" else -1
        return (*values[:at], value, *values[at + 1 :])

    while todo:
        state = todo.pop()
        moves: list[tuple[Command | None, Any]] = []
        host, at, values = state
        executed = None
        if host < len(commands):
            c = commands[host]
            if c.thread != "<host>":
                moves.append((None, (host + 1, at, values)))
            elif allowed(state, c):
                moves.append((c, (host + 1, at, act(values, c))))
        for number, thread in enumerate(threads):
            if thread == "<host>" or at[number] >= len(queues[thread]):
                continue
            c = queues[thread][at[number]]
            if c.number < host and allowed(state, c):
                moves.append((c, (host, (*at[:number], at[number] + 1, *at[number + 1 :]), act(values, c))))
        done = all(thread == "<host>" or at[n] == len(queues[thread]) for n, thread in enumerate(threads))
        if not moves and (host < len(commands) or not done):
            deadlock = True
        for moved, following in moves:
            if moved is not None and moved.what == "work":
                if executed is None:
                    executed = sum(1 << w for w in before if ran(state, w))
                known = before[moved.number]
                before[moved.number] = executed if known is None else known & executed
            if following not in seen:
                seen.add(following)
                todo.append(following)
        if len(seen) > MAX_STATES:
            raise TooBig
    result = {
        number: None if mask is None else frozenset(w for w in before if mask >> w & 1)
        for number, mask in before.items()
    }
    return Judgement(commands, result, deadlock, len(seen))
