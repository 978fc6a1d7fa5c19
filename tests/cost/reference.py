"""The machine of ``dagsched.cost.queues`` once more, said plainly: look at everything at each instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dagsched.cost.queues import HOST_QUEUE, NO_ENGINE, Tasks


@dataclass
class Reference:
    """The state at time ``now``; None stands for what has not happened yet."""

    tasks: Tasks
    capacities: Sequence[int]
    depth: int | None
    now: int = 0
    next_call: int = 0
    call_until: int | None = None
    host_busy: bool = False
    issued: dict[int, int] = field(default_factory=dict)
    ready: dict[int, int] = field(default_factory=dict)
    start: dict[int, int] = field(default_factory=dict)
    end: dict[int, int] = field(default_factory=dict)

    def run(self) -> dict[int, tuple[int, int]] | None:
        """(start, end) of every task, or None where some can never finish."""
        while True:
            while self.settle() or self.dispatch():
                pass
            running = [self.start[t] + self.tasks.ticks[t] for t in self.start if t not in self.end]
            if self.call_until is not None:
                running.append(self.call_until)
            if not running:
                break
            self.now = min(running)
        return None if len(self.end) < len(self.tasks) else {t: (self.start[t], self.end[t]) for t in self.end}

    def settle(self) -> bool:
        """One thing that can happen now without an engine."""
        tasks = self.tasks
        for task in range(len(tasks)):
            running = task in self.start and task not in self.end and tasks.queue[task] != HOST_QUEUE
            if running and self.start[task] + tasks.ticks[task] <= self.now:
                self.end[task] = self.now
                return True
        if self.step_host():
            return True
        for task in range(len(tasks)):
            if task not in self.ready and tasks.queue[task] != HOST_QUEUE and self.is_ready(task):
                self.ready[task] = self.now
                if tasks.engine[task] == NO_ENGINE:
                    self.start[task] = self.end[task] = self.now
                return True
        return False

    def step_host(self) -> bool:
        tasks, task = self.tasks, self.next_call
        if task == len(tasks) or (self.call_until is not None and self.call_until > self.now):
            return False
        on_host = tasks.queue[task] == HOST_QUEUE
        if self.call_until is None:
            needed = [*tasks.holds[task], *(tasks.predecessors[task] if on_host else ())]
            if not all(held in self.end for held in needed) or self.is_full(tasks.queue[task]):
                return False
            self.call_until = self.now + tasks.call[task]
            return True
        if on_host and task not in self.start:
            self.issued[task] = self.start[task] = self.now
            self.call_until = self.now + tasks.ticks[task]
            return True
        if on_host:
            self.end[task] = self.now
        else:
            self.issued[task] = self.now
        self.call_until = None
        self.next_call += 1
        return True

    def is_full(self, queue: int) -> bool:
        if queue == HOST_QUEUE or self.depth is None:
            return False
        return sum(self.tasks.queue[t] == queue and t not in self.end for t in self.issued) >= self.depth

    def is_ready(self, task: int) -> bool:
        before = [t for t in range(task) if self.tasks.queue[t] == self.tasks.queue[task]]
        return task in self.issued and all(t in self.end for t in [*before, *self.tasks.predecessors[task]])

    def dispatch(self) -> bool:
        """Let every engine take what it can; nothing may be left to settle."""
        tasks, started = self.tasks, False
        for engine, capacity in enumerate(self.capacities):
            own = [t for t in self.ready if tasks.engine[t] == engine and t not in self.end]
            line = sorted((tasks.priority[t], self.ready[t], t) for t in own if t not in self.start)
            for _, _, task in line:
                taken = sum(tasks.share[t] for t in own if t in self.start)
                if taken + tasks.share[task] > capacity:
                    break
                self.start[task] = self.now
                started = True
        return started
