"""The machine under every prediction: a host that issues tasks to in-order queues, and engines that run them.

A task starts when the host has issued it, when the task before it in its queue and all its predecessors have finished,
and when its engine has room. Time is a whole number of picoseconds, so that equal plans give equal figures to the last
digit and a steady state can be recognised exactly.

At each instant, first everything that finishes or becomes ready is seen, then every engine takes ready tasks in the
order of (priority, time of becoming ready, issue order) for as long as the first of them fits; a task that does not
fit holds back those behind it, so none starves. The host runs ahead as far as queue depth and syncs let it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

HOST_QUEUE = -1
"""The queue of the issuing thread itself: such a task runs as the host reaches it, and keeps the host busy."""

NO_ENGINE = -1
"""The engine of tasks that take no engine's time (records and waits)."""

TICKS = 10**12
"""Ticks in a second."""


def to_ticks(seconds: float) -> int:
    """Seconds as a whole number of picoseconds."""
    return round(seconds * TICKS)


@dataclass(slots=True)
class Tasks:
    """Tasks in the order in which the host issues them, as parallel lists.

    ``ticks`` is how long a task runs, ``share`` how much of its engine's capacity it takes, ``call`` the host's time
    to issue it. ``predecessors`` must finish before the task starts, ``holds`` before the host begins to issue it;
    both are task numbers, and predecessors may come later in the order (a flag that is set further down).
    """

    queue: list[int] = field(default_factory=list)
    engine: list[int] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    share: list[int] = field(default_factory=list)
    call: list[int] = field(default_factory=list)
    priority: list[int] = field(default_factory=list)
    predecessors: list[Sequence[int]] = field(default_factory=list)
    holds: list[Sequence[int]] = field(default_factory=list)

    def add(
        self,
        queue: int,
        engine: int = NO_ENGINE,
        ticks: int = 0,
        *,
        share: int = 1,
        call: int = 0,
        priority: int = 0,
        predecessors: Sequence[int] = (),
        holds: Sequence[int] = (),
    ) -> int:
        """Append a task and return its number."""
        self.queue.append(queue)
        self.engine.append(engine)
        self.ticks.append(ticks)
        self.share.append(share)
        self.call.append(call)
        self.priority.append(priority)
        self.predecessors.append(predecessors)
        self.holds.append(holds)
        return len(self.queue) - 1

    def __len__(self) -> int:
        return len(self.queue)


@dataclass(frozen=True, slots=True)
class Times:
    """When each task was issued, became ready (lacked only its engine), started and ended; when the host was done."""

    issued: list[int]
    ready: list[int]
    start: list[int]
    end: list[int]
    host: int

    @property
    def makespan(self) -> int:
        """When everything, the host included, was done."""
        return max(self.host, max(self.end, default=0))


class StuckError(Exception):
    """Tasks that can never finish: ``tasks`` are the unfinished heads of the queues and what the host is held by."""

    def __init__(self, tasks: list[int]) -> None:
        super().__init__(f"{len(tasks)} queues are stuck")
        self.tasks = tasks


def run_queues(tasks: Tasks, capacities: Sequence[int], depth: int | None = None) -> Times:
    """Run tasks on engines of the given capacities, with at most ``depth`` unfinished tasks in a queue.

    Takes O(log n) a task. Raises :class:`StuckError` where some task can never finish.
    """
    count = len(tasks)
    queue, engine, ticks, share = tasks.queue, tasks.engine, tasks.ticks, tasks.share
    call, priority = tasks.call, tasks.priority
    holds = tasks.holds if depth is None else _holds_with_depth(tasks, depth)
    successors, missing = _successors(tasks)

    issued, ready = [0] * count, [0] * count
    start, end = [0] * count, [-1] * count  # end is -1 until the task has finished
    free = list(capacities)
    waiting: list[list[tuple[int, int, int]]] = [[] for _ in capacities]
    events: list[tuple[int, int]] = []  # (time, task) becomes ready; (time, ~task) ends
    host_at, clock, held_by = 0, 0, -1
    now = 0

    def issue_ahead() -> None:
        """Let the host go on until it is held by a task that has not finished."""
        nonlocal host_at, clock, held_by
        while host_at < count:
            task = host_at
            for held in holds[task]:
                if end[held] < 0:
                    held_by = held
                    return
                clock = max(clock, end[held])
            if queue[task] == HOST_QUEUE:
                # The host cannot sleep on a predecessor, so one of its own tasks is held by them all the same.
                for held in tasks.predecessors[task]:
                    if end[held] < 0:
                        held_by = held
                        return
                    clock = max(clock, end[held])
                clock += call[task]
                issued[task] = ready[task] = start[task] = clock
                clock += ticks[task]
                end[task] = clock
                host_at += 1
                for successor in successors[task]:
                    arrive(successor, clock)
                continue
            clock += call[task]
            issued[task] = clock
            host_at += 1
            arrive(task, clock)
        held_by = -1

    def arrive(task: int, time: int) -> None:
        """One more of the things that a task needs is there at ``time``."""
        if time > ready[task]:
            ready[task] = time
        missing[task] -= 1
        if missing[task] == 0:
            heappush(events, (ready[task], task))

    def finish(task: int) -> None:
        end[task] = now
        for successor in successors[task]:
            arrive(successor, now)
        if task == held_by:
            issue_ahead()

    issue_ahead()
    while events:
        now = events[0][0]
        touched = set()
        while events and events[0][0] == now:
            task = heappop(events)[1]
            if task < 0:
                task = ~task
                free[engine[task]] += share[task]
                touched.add(engine[task])
                finish(task)
            elif engine[task] == NO_ENGINE:
                start[task] = now
                finish(task)
            else:
                heappush(waiting[engine[task]], (priority[task], now, task))
                touched.add(engine[task])
        for unit in touched:
            line = waiting[unit]
            while line and free[unit] >= share[line[0][2]]:
                task = heappop(line)[2]
                start[task] = now
                free[unit] -= share[task]
                heappush(events, (now + ticks[task], ~task))

    if host_at < count or -1 in end:
        raise StuckError(_stuck(tasks, end, host_at, held_by))
    return Times(issued, ready, start, end, clock)


def _successors(tasks: Tasks) -> tuple[list[list[int]], list[int]]:
    """Who waits for each task, and how many things each task waits for (its issue among them)."""
    successors: list[list[int]] = [[] for _ in tasks.queue]
    missing = [1] * len(tasks)
    last: dict[int, int] = {}
    for task, queue in enumerate(tasks.queue):
        if queue == HOST_QUEUE:
            continue
        for predecessor in tasks.predecessors[task]:
            successors[predecessor].append(task)
        missing[task] += len(tasks.predecessors[task])
        if queue in last:
            successors[last[queue]].append(task)
            missing[task] += 1
        last[queue] = task
    return successors, missing


def _holds_with_depth(tasks: Tasks, depth: int) -> list[Sequence[int]]:
    """Queue depth as holds: a queue is in order, so its task ``k`` fits once its task ``k - depth`` has finished."""
    members: dict[int, list[int]] = {}
    holds: list[Sequence[int]] = []
    for task, queue in enumerate(tasks.queue):
        members.setdefault(queue, []).append(task)
        line = members[queue]
        full = queue != HOST_QUEUE and len(line) > depth
        holds.append((*tasks.holds[task], line[-1 - depth]) if full else tasks.holds[task])
    return holds


def _stuck(tasks: Tasks, end: list[int], host_at: int, held_by: int) -> list[int]:
    """The heads of the queues that cannot go on, and the task that holds the host."""
    heads: dict[int, int] = {}
    for task in range(host_at):
        if end[task] < 0:
            heads.setdefault(tasks.queue[task], task)
    return sorted({*heads.values(), *([held_by] if held_by >= 0 else [])})
