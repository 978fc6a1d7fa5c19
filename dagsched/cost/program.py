"""From a schedule to tasks: loops unrolled for given counts, guards applied, every wait bound to its record.

Each command becomes one task in its stream's queue (ops, records, waits), each thing that the issuing thread does
itself becomes a task of the host. Under the event model ``latch`` a wait binds to the handle's newest record, under
``flag`` to the newest since the last reset, or else to the next one.
Invariant: tasks stand in the order in which the host issues them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dagsched.cost.durations import OpCost
from dagsched.cost.engines import engine_capacity
from dagsched.cost.model import Device
from dagsched.cost.queues import HOST_QUEUE, NO_ENGINE, Tasks, to_ticks
from dagsched.diagnostics import Diagnostic, ScheduleError, Where, closest
from dagsched.plan.expressions import ExpressionError, evaluate, holds, names_in, names_in_condition
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
    Step,
    Stream,
    SyncStep,
    WaitStreamStep,
)

MAX_COMMANDS = 5_000_000
"""More commands than this are refused: memory would run out before anybody could look at the result."""


@dataclass(slots=True)
class Program:
    """Tasks with what they stand for: ``named`` holds (task, op, iteration, stream, engine) in issue order, ``rounds``
    the iteration of the outermost loop for each of these, ``events`` the handle of each task that waits for one."""

    tasks: Tasks
    engines: dict[str, int] = field(default_factory=dict)
    named: list[tuple[int, str, int | None, str | None, str]] = field(default_factory=list)
    rounds: list[int | None] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    events: dict[int, str] = field(default_factory=dict)
    queues: dict[str, int] = field(default_factory=dict)


def unroll_schedule(
    schedule: Schedule, costs: Mapping[str, OpCost], device: Device, counts: Mapping[str, int]
) -> Program:
    """All tasks of a schedule for given parameter values.

    Raises :class:`ScheduleError` for parameters without a value (D130), ops without a cost (D131), expressions that
    cannot be computed (D132), steps whose order a simulation cannot know beforehand (D133: locks, and waits under
    ``reevaluate``), a record that an event's waiter never gets (D134), and too many commands (D135).
    """
    env = {name: value for name, value in {**schedule.params, **counts}.items() if value is not None}
    used = _names_used(schedule)
    missing = [name for name in schedule.params if name not in env and name in used]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise ScheduleError([Diagnostic("D130", f"a simulation needs a value for {names}", source=schedule.source)])
    if schedule.event_model == "reevaluate" and any(isinstance(s, EventStep) for s in schedule.walk()):
        headline = "event model `reevaluate` cannot be simulated: what a wait waits for depends on the run"
        raise ScheduleError([Diagnostic("D133", headline, source=schedule.source, help="write `event_model: latch`")])
    unroller = _Unroller(schedule, costs, device)
    unroller.run(schedule.steps, env, None)
    unroller.bind_open_waits()
    return unroller.program


def _names_used(schedule: Schedule) -> frozenset[str]:
    """The names that decide what is issued and what waits for what (a size that varies decides neither)."""
    names: frozenset[str] = frozenset()
    for step in schedule.walk():
        names |= names_in_condition(step.when)
        if isinstance(step, LoopStep):
            names |= names_in(step.lo) | names_in(step.hi)
        if isinstance(step, OpStep) and step.iteration is not None:
            names |= names_in(step.iteration)
        for key in ("stream", "event", "target", "flag"):
            indexed = getattr(step, key, None)
            if indexed is not None and indexed.index is not None:
                names |= names_in(indexed.index)
    return names


class _Unroller:
    """The host's walk through a schedule, with what it has to remember."""

    def __init__(self, schedule: Schedule, costs: Mapping[str, OpCost], device: Device) -> None:
        self.schedule = schedule
        self.costs = costs
        self.program = Program(Tasks())
        self.issue = to_ticks(device.calls.issue)
        self.record = to_ticks(device.calls.record)
        self.wait = to_ticks(device.calls.wait)
        self.numbers: dict[str, int] = {}  # per engine: its place among the capacities
        self.last: dict[str, int] = {}  # per stream: its newest task
        self.records: dict[tuple[str, int], int] = {}  # per event handle: its newest record
        self.open: dict[tuple[str, int], list[tuple[int, Step]]] = {}  # waits for a record that is still to come
        self.sets: dict[tuple[str, int], list[int]] = {}
        self.takes: dict[tuple[str, int], list[tuple[int, Step]]] = {}
        self.outer: int | None = None  # the iteration of the outermost loop, from inside of another one
        self.blocked: list[int] = []  # what the host must wait for before its next call

    def run(self, steps: tuple[AnyStep, ...], env: dict[str, int], iteration: int | None) -> None:
        for step in steps:
            try:
                if not holds(step.when, env):
                    continue
                if isinstance(step, LoopStep):
                    outer = self.outer
                    self.outer = iteration if outer is None else outer
                    for value in range(evaluate(step.lo, env), evaluate(step.hi, env)):
                        self.run(step.steps, {**env, step.index: value}, value)
                    self.outer = outer
                else:
                    self.command(step, env, iteration)
            except ExpressionError as error:
                finding = Diagnostic("D132", error.message, step.where, self.schedule.source)
                raise ScheduleError([finding]) from None
            if len(self.program.tasks) > MAX_COMMANDS:
                headline = f"the schedule issues more than {MAX_COMMANDS:,} commands; simulate a smaller count"
                raise ScheduleError([Diagnostic("D135", headline, step.where, self.schedule.source)])

    def command(self, step: AnyStep, env: dict[str, int], iteration: int | None) -> None:
        if isinstance(step, OpStep):
            self.run_op(step, env, iteration)
        elif isinstance(step, HostStep):
            cost = self.costs.get(step.host)
            task = self.on_host(to_ticks(cost.seconds) if cost else 0)
            self.name(task, step.host, iteration, None, "host")
            if cost is None or not cost.known:
                self.program.unknown.add(step.host)
        elif isinstance(step, EventStep):
            self.run_event(step, env)
        elif isinstance(step, WaitStreamStep):
            target = self.stream_name(step.target, env)
            recorded = self.add(target, call=self.record)
            self.add(self.stream_name(step.stream, env), call=self.wait, predecessors=(recorded,))
        elif isinstance(step, SyncStep):
            self.on_host(0, self.synced(step, env))
        elif isinstance(step, FlagStep):
            self.run_flag(step, env)
        else:
            assert isinstance(step, FreeStep)
            self.on_host(0)

    def run_op(self, step: OpStep, env: dict[str, int], iteration: int | None) -> None:
        cost = self.costs.get(step.op)
        if cost is None:
            near = closest(step.op, self.costs)
            help_ = f"did you mean `{near}`?" if near else None
            headline = f"nothing says what op `{step.op}` costs: the plan has no such op"
            raise ScheduleError([Diagnostic("D131", headline, step.where, self.schedule.source, help=help_)])
        engine = cost.engine
        number = self.numbers.setdefault(engine.name, len(self.numbers))
        if number == len(self.program.engines):
            self.program.engines[engine.name] = engine_capacity(engine)
        if not cost.known:
            self.program.unknown.add(step.op)
        stream = self.stream_name(step.stream, env)
        task = self.add(stream, number, to_ticks(cost.seconds), share=cost.share, call=self.issue)
        if cost.blocks:
            self.blocked.append(task)
        own = iteration if step.iteration is None else evaluate(step.iteration, env)
        self.name(task, step.op, own, stream, engine.name)

    def name(self, task: int, op: str, iteration: int | None, stream: str | None, engine: str) -> None:
        """Say what a task stands for."""
        self.program.named.append((task, op, iteration, stream, engine))
        self.program.rounds.append(iteration if self.outer is None else self.outer)

    def run_event(self, step: EventStep, env: dict[str, int]) -> None:
        handle = self.handle(step.event, env)
        stream = None if step.stream is None else self.stream_name(step.stream, env)
        if step.action == "record":
            task = self.on_host(self.record) if stream is None else self.add(stream, call=self.record)
            self.records[handle] = task
            for waiter, _ in self.open.pop(handle, ()):
                self.bind(waiter, task)
        elif step.action == "wait":
            bound = self.records.get(handle)
            predecessors = () if bound is None else (bound,)
            if stream is None:
                task = self.on_host(self.wait, predecessors)
            else:
                task = self.add(stream, call=self.wait, predecessors=predecessors)
            name, value = handle
            self.program.events[task] = name if step.event.index is None else f"{name}@{value}"
            if bound is None and self.schedule.event_model == "flag":
                self.open.setdefault(handle, []).append((task, step))
        else:
            if self.schedule.event_model == "flag":
                self.records.pop(handle, None)
            if stream is None:
                self.on_host(self.record)
            else:
                self.add(stream, call=self.record)

    def run_flag(self, step: FlagStep, env: dict[str, int]) -> None:
        if step.action in ("acquire", "release"):
            headline = "a lock cannot be simulated: who gets it first depends on the run"
            raise ScheduleError([Diagnostic("D133", headline, step.where, self.schedule.source)])
        flag = self.handle(step.flag, env)
        call = self.record if step.action == "set" else self.wait
        stream = None if step.stream is None else self.stream_name(step.stream, env)
        task = self.on_host(call) if stream is None else self.add(stream, call=call)
        if step.action == "set":
            self.sets.setdefault(flag, []).append(task)
        else:
            self.takes.setdefault(flag, []).append((task, step))

    def bind_open_waits(self) -> None:
        """Bind each take to the set of its number; refuse waits that nothing will ever satisfy."""
        unmet = [waiter for waiters in self.open.values() for waiter in waiters]
        for flag, takes in self.takes.items():
            sets = self.sets.get(flag, [])
            for (task, _), setter in zip(takes, sets, strict=False):
                self.bind(task, setter)
            unmet += takes[len(sets) :]
        if unmet:
            headline = "this step waits for ever: nothing sets what it waits for"
            places: list[Where | None] = [*sorted({step.where for _, step in unmet if step.where})] or [None]
            raise ScheduleError([Diagnostic("D134", headline, where, self.schedule.source) for where in places])

    def synced(self, step: SyncStep, env: dict[str, int]) -> tuple[int, ...]:
        if step.kind == "device":
            return tuple(self.last.values())
        assert step.target is not None
        if step.kind == "stream":
            newest = self.last.get(self.stream_name(step.target, env))
        else:
            newest = self.records.get(self.handle(step.target, env))
        return () if newest is None else (newest,)

    def add(
        self,
        stream: str,
        engine: int = NO_ENGINE,
        ticks: int = 0,
        *,
        share: int = 1,
        call: int = 0,
        predecessors: tuple[int, ...] = (),
    ) -> int:
        declared = self.schedule.streams.get(stream) or self.schedule.streams.get(stream.partition("@")[0])
        if self.schedule.default_stream == "legacy":
            predecessors += self.legacy_order(stream, declared)
        task = self.program.tasks.add(
            self.program.queues.setdefault(stream, len(self.program.queues)),
            engine,
            ticks,
            share=share,
            call=call,
            priority=(declared.priority or 0) if declared else 0,
            predecessors=predecessors,
            holds=tuple(self.blocked),
        )
        self.blocked.clear()
        self.last[stream] = task
        return task

    def on_host(self, ticks: int, predecessors: tuple[int, ...] = ()) -> int:
        task = self.program.tasks.add(HOST_QUEUE, ticks=ticks, predecessors=predecessors, holds=tuple(self.blocked))
        self.blocked.clear()
        return task

    def bind(self, waiter: int, setter: int) -> None:
        tasks = self.program.tasks
        tasks.predecessors[waiter] = (*tasks.predecessors[waiter], setter)

    def legacy_order(self, stream: str, declared: Stream | None) -> tuple[int, ...]:
        """CUDA's legacy default stream: it comes after all blocking streams, and they come after it."""
        if stream != "default":
            blocking = not (declared and declared.nonblocking)
            return (self.last["default"],) if blocking and "default" in self.last else ()
        streams = self.schedule.streams
        return tuple(task for name, task in self.last.items() if not (name in streams and streams[name].nonblocking))

    def stream_name(self, stream: Indexed, env: dict[str, int]) -> str:
        return stream.name if stream.index is None else f"{stream.name}@{evaluate(stream.index, env)}"

    def handle(self, event: Indexed, env: dict[str, int]) -> tuple[str, int]:
        value = 0 if event.index is None else evaluate(event.index, env)
        declared = self.schedule.events.get(event.name)
        return event.name, value % declared.ring if declared and declared.ring else value
