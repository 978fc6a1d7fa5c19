"""What holds a loop up: the chain of waits that goes round once an interval, read off a simulated run.

Every op starts when the last thing that it lacked is there: the op before it in its stream, a record that it waits for,
room on its engine, or the call that issues it. Going back from one such thing to the next, from late in the run, the
same op comes by again some iterations earlier; what lies between is the cycle that sets the pace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dagsched.cost.program import Program
from dagsched.cost.queues import HOST_QUEUE, Times

Why = Literal["wait", "stream", "engine", "issue"]


@dataclass(frozen=True, slots=True)
class Hold:
    """``after`` could not start before ``before`` had ended (op and iteration each), and why; ``on``: where."""

    before: tuple[str, int]
    after: tuple[str, int]
    why: Why
    on: str


def find_holds(program: Program, times: Times, period: int = 1) -> tuple[Hold, ...]:
    """The cycle, in the order of execution; empty where the issuing thread alone sets the pace, or nothing repeats.

    ``period`` is that of the steady state: what holds up one iteration of it may differ from the next.
    """
    named = {task: (op, iteration) for task, op, iteration, _, _ in program.named if iteration is not None}
    if not named:
        return ()
    newest = max(iteration for _, iteration in named.values())
    late = [task for task, (_, iteration) in named.items() if iteration == newest * 3 // 4]
    start = max(late, key=lambda task: (times.end[task], task), default=None)
    if start is None:
        return ()
    chain: list[Hold] = []
    seen = {(named[start][0], named[start][1] % period): 0}
    for before, after, why, on in _trace(program, times, start, set(named)):
        chain.append(Hold(named[before], named[after], why, on))
        op = (named[before][0], named[before][1] % period)
        if op in seen:
            return tuple(reversed(chain[seen[op] :]))
        seen[op] = len(chain)
    return ()


def rotate_holds(holds: Sequence[Hold], order: Sequence[str]) -> tuple[Hold, ...]:
    """The same cycle, begun at the op that is issued first in an iteration; what is moved behind is a turn later."""
    if not holds:
        return ()
    first = min(range(len(holds)), key=lambda n: order.index(holds[n].before[0]))
    turn = holds[-1].after[1] - holds[0].before[1]
    later = [
        replace(hold, before=(hold.before[0], hold.before[1] + turn), after=(hold.after[0], hold.after[1] + turn))
        for hold in holds[:first]
    ]
    return (*holds[first:], *later)


def _trace(program: Program, times: Times, task: int, named: set[int]) -> Iterator[tuple[int, int, Why, str]]:
    """Pairs of ops (before, after) going back in time, each with what tied them."""
    tasks = program.tasks
    previous = _previous(program)
    on_engine = _by_end(program, times)
    places = {t: (stream or "host", engine) for t, _, _, stream, engine in program.named}
    after, why = task, None
    while True:
        cause: tuple[int, Why] | None = None
        if task in named and times.start[task] > times.ready[task]:
            found = on_engine.get((tasks.engine[task], times.start[task]))
            cause = None if found is None else (found, "engine")
        if cause is None:
            cause = _cause(program, times, task, previous)
        if cause is None:
            return
        task, step = cause
        why = why or (step if step != "stream" else None)
        if task in named:
            stream, engine = places[after]
            kind: Why = why or "stream"
            yield task, after, kind, engine if kind == "engine" else stream
            after, why = task, None


def _cause(program: Program, times: Times, task: int, previous: dict[int, int]) -> tuple[int, Why] | None:
    """What a task was ready after: a record waited for, its stream, or whatever held the issuing thread."""
    tasks, ready = program.tasks, times.ready[task]
    for predecessor in tasks.predecessors[task]:
        if times.end[predecessor] == ready and tasks.queue[task] != HOST_QUEUE:
            return predecessor, "wait"
    if task in previous and times.end[previous[task]] == ready:
        return previous[task], "stream"
    while task >= 0:  # the issuing thread: back to what it last waited for
        called = times.issued[task] - tasks.call[task]
        held = [*tasks.holds[task], *(tasks.predecessors[task] if tasks.queue[task] == HOST_QUEUE else ())]
        for holder in held:
            if times.end[holder] == called:
                return holder, "issue"
        if task and called > max(times.issued[task - 1], times.end[task - 1] if _is_host(program, task - 1) else 0):
            return None  # a full queue: no single op is to blame
        task -= 1
        if task >= 0 and _is_host(program, task) and times.end[task] > times.start[task]:
            return task, "issue"
    return None


def _is_host(program: Program, task: int) -> bool:
    return program.tasks.queue[task] == HOST_QUEUE


def _previous(program: Program) -> dict[int, int]:
    """The task before each in its queue."""
    last: dict[int, int] = {}
    found: dict[int, int] = {}
    for task, queue in enumerate(program.tasks.queue):
        if queue == HOST_QUEUE:
            continue
        if queue in last:
            found[task] = last[queue]
        last[queue] = task
    return found


def _by_end(program: Program, times: Times) -> dict[tuple[int, int], int]:
    """Which op ended on an engine at an instant."""
    return {
        (program.tasks.engine[task], times.end[task]): task
        for task, *_ in program.named
        if times.end[task] > times.start[task]
    }
