"""Unfold a schedule for given parameters: every instance of every step, in the order in which the host issues them.

Thread 0 is the issuing thread; every stream is a thread of its own. A ``wait_stream`` becomes a record on its target
and a wait for exactly that record, so later stages know one kind of wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dagsched.plan.expressions import expression_text, holds
from dagsched.plan.model import Access, Mode
from dagsched.proof.check_storage import Homes, Touch, value_of
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
WORK = ("op", "host", "free")
"""The actions that are nodes of the order; the others only make order."""

Handle = tuple[str, int | str]
Path = tuple[tuple[int, int], ...]


class TooManySteps(Exception):
    """The budget of step instances is used up."""


@dataclass(slots=True)
class Node:
    """One instance of a step. ``ordinal`` counts the work done on its thread up to and including this node.

    ``key`` is the handle, flag, lock, or (sync of a stream) the thread; ``raw`` is the index as written, before the
    ring; ``private`` marks the two halves of a ``wait_stream``. ``path`` holds the loops around it with their values,
    ``own`` the iteration that an op says it is (``op: download@i-1``).
    """

    index: int
    thread: int
    action: str
    step: AnyStep
    static: int
    path: Path
    key: Handle | None = None
    raw: int = 0
    private: bool = False
    touches: tuple[Touch, ...] = ()
    ordinal: int = 0
    own: int | None = None

    @property
    def instance(self) -> Path:
        """The path with the op's own iteration: what names it, where ``path`` says when it was issued."""
        return self.path if self.own is None or not self.path else (*self.path[:-1], (self.path[-1][0], self.own))


@dataclass(slots=True)
class Program:
    """All instances. ``marks`` holds (loop, value, node index) at the start of each iteration and (loop, None, index)
    at the end of a loop; ``statics`` holds every step once, in the order written."""

    schedule: Schedule
    nodes: list[Node] = field(default_factory=list)
    threads: list[str] = field(default_factory=lambda: ["host"])
    blocking: list[bool] = field(default_factory=lambda: [False])
    default: int | None = None
    marks: list[tuple[int, int | None, int]] = field(default_factory=list)
    statics: list[AnyStep] = field(default_factory=list)
    loops: dict[int, str] = field(default_factory=dict)
    env: Mapping[str, int] = field(default_factory=dict)
    workers: dict[tuple[int, int], Node] = field(default_factory=dict)

    def worker(self, thread: int, ordinal: int) -> Node:
        """The node of work of a thread with so much work up to it; all nodes are there."""
        if not self.workers:
            self.workers = {(node.thread, node.ordinal): node for node in self.nodes if node.action in WORK}
        return self.workers[thread, ordinal]

    def stream(self, node: Node) -> str | None:
        """The stream of a node, None for the issuing thread."""
        return None if node.thread == HOST else self.threads[node.thread]


def name_of(node: Node) -> str:
    """How races and chains name a node of work."""
    step = node.step
    if isinstance(step, OpStep):
        return step.op
    return step.host if isinstance(step, HostStep) else "host_free"


def indexed_text(name: Indexed) -> str:
    """``E@i%2`` as it was written."""
    return name.name if name.index is None else f"{name.name}@{expression_text(name.index)}"


def expand(schedule: Schedule, env: Mapping[str, int], budget: int, without: frozenset[int] = frozenset()) -> Program:
    """All instances of a schedule's steps; ``without`` leaves out static steps by their number.

    Raises :class:`TooManySteps`, and ``ExpressionError`` where an expression has no value.
    """
    return _Expander(schedule, env, budget, without).run()


class _Expander:
    def __init__(self, schedule: Schedule, env: Mapping[str, int], budget: int, without: frozenset[int]) -> None:
        self.schedule = schedule
        self.program = Program(schedule, env=dict(env))
        self.env = dict(env)
        self.budget = budget
        self.without = without
        self.homes = Homes(schedule)
        self.work = [0]
        self.numbers: dict[int, int] = {}
        self.thread_of: dict[tuple[str, int | None], int] = {}
        for number, step in enumerate(schedule.walk()):
            self.numbers[id(step)] = number
            self.program.statics.append(step)
        self.bases = {name.name for step in self.program.statics for name in streams_of(step) if name.index is not None}

    def run(self) -> Program:
        self.steps(self.schedule.steps, ())
        return self.program

    def steps(self, steps: tuple[AnyStep, ...], path: Path) -> None:
        for step in steps:
            if step.when and not holds(step.when, self.env):
                continue
            number = self.numbers[id(step)]
            if number in self.without:
                continue
            if isinstance(step, LoopStep):
                self.loop(step, number, path)
            else:
                self.step(step, number, path)

    def loop(self, step: LoopStep, number: int, path: Path) -> None:
        self.program.loops[number] = step.index
        outer = self.env.get(step.index)
        lo, hi = value_of(step.lo, self.env), value_of(step.hi, self.env)
        for value in range(lo, hi):
            self.program.marks.append((number, value, len(self.program.nodes)))
            self.env[step.index] = value
            self.steps(step.steps, (*path, (number, value)))
            if value % 64 == 0:
                self.count()
        self.program.marks.append((number, None, len(self.program.nodes)))
        if outer is None:
            self.env.pop(step.index, None)
        else:
            self.env[step.index] = outer

    def step(self, step: AnyStep, number: int, path: Path) -> None:
        if isinstance(step, OpStep):
            self.add(self.thread(step.stream), "op", step, number, path, touches=self.touches(step.accesses))
            if step.iteration is not None:
                self.program.nodes[-1].own = value_of(step.iteration, self.env)
        elif isinstance(step, HostStep):
            self.add(HOST, "host", step, number, path, touches=self.touches(step.accesses))
        elif isinstance(step, FreeStep):
            freed = replace(step.access, mode=Mode.WRITE)
            self.add(HOST, "free", step, number, path, touches=self.touches((freed,)))
        elif isinstance(step, EventStep):
            thread = HOST if step.stream is None else self.thread(step.stream)
            key, raw = self.handle(step.event)
            self.add(thread, step.action, step, number, path, key, raw)
        elif isinstance(step, FlagStep):
            thread = HOST if step.stream is None else self.thread(step.stream)
            key, raw = self.handle(step.flag)
            self.add(thread, step.action, step, number, path, key, raw)
        elif isinstance(step, WaitStreamStep):
            target, stream = self.thread(step.target), self.thread(step.stream)
            private = ("", len(self.program.nodes))
            self.add(target, "record", step, number, path, private, private=True)
            self.add(stream, "wait", step, number, path, private, private=True)
        elif isinstance(step, SyncStep):
            sync_key: Handle | None = None
            if step.target is not None:
                target_key = self.thread(step.target) if step.kind == "stream" else -1
                sync_key = ("", target_key) if step.kind == "stream" else self.handle(step.target)[0]
            self.add(HOST, "sync", step, number, path, sync_key)

    def add(
        self,
        thread: int,
        action: str,
        step: AnyStep,
        number: int,
        path: Path,
        key: Handle | None = None,
        raw: int = 0,
        private: bool = False,
        touches: tuple[Touch, ...] = (),
    ) -> None:
        if action in WORK:
            self.work[thread] += 1
        nodes = self.program.nodes
        nodes.append(
            Node(len(nodes), thread, action, step, number, path, key, raw, private, touches, self.work[thread])
        )
        if len(nodes) > self.budget:
            raise TooManySteps

    def count(self) -> None:
        """Loops whose bodies issue nothing also use up the budget."""
        if len(self.program.marks) > self.budget:
            raise TooManySteps

    def thread(self, name: Indexed) -> int:
        """The number of a stream; ``a@1`` and a plain ``a1`` are one stream where ``a`` is indexed anywhere."""
        key: tuple[str, int | None] = (name.name, None if name.index is None else value_of(name.index, self.env))
        known = self.thread_of.get(key)
        if known is not None:
            return known
        asked = key
        base = name.name.rstrip("0123456789")
        digits = name.name[len(base) :]
        if key[1] is None and digits and base in self.bases and str(int(digits)) == digits:
            key = (base, int(digits))
        if key not in self.thread_of:
            program = self.program
            declared = self.schedule.streams.get(name.name) or self.schedule.streams.get(key[0])
            self.thread_of[key] = len(program.threads)
            if self.schedule.default_stream == "legacy" and name.name == "default" and key[1] is None:
                program.default = len(program.threads)
                program.blocking.append(False)
            else:
                program.blocking.append(not (declared and declared.nonblocking))
            program.threads.append(name.name if asked[1] is None else f"{name.name}@{asked[1]}")
            self.work.append(0)
        self.thread_of[asked] = self.thread_of[key]
        return self.thread_of[key]

    def handle(self, event: Indexed) -> tuple[Handle, int]:
        raw = 0 if event.index is None else value_of(event.index, self.env)
        declared = self.schedule.events.get(event.name)
        ring = declared.ring if declared else None
        return (event.name, raw % ring if ring else raw), raw

    def touches(self, accesses: tuple[Access, ...]) -> tuple[Touch, ...]:
        found = (self.homes.touch(access, self.env) for access in accesses)
        return tuple(touch for touch in found if touch is not None)


def streams_of(step: AnyStep) -> tuple[Indexed, ...]:
    """The streams that a step names."""
    if isinstance(step, OpStep):
        return (step.stream,)
    if isinstance(step, EventStep | FlagStep):
        return () if step.stream is None else (step.stream,)
    if isinstance(step, WaitStreamStep):
        return (step.stream, step.target)
    if isinstance(step, SyncStep) and step.kind == "stream" and step.target is not None:
        return (step.target,)
    return ()
