"""Show a run in which two op instances that nothing orders collide: both at once, or either first.

A run is a list of node instances in an order in which a device may do them. Where no wait depends on who comes first,
the two are held back while all else runs; each gets as far as it can without the other (``check_clock`` says why that
is enough), and of that only what the two need is kept. Where waits do depend on it, the interleavings are searched.
Invariant: a run that is returned keeps the order of every thread, of issue, and of every wait; the tests replay it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dagsched.proof.check_clock import run_order
from dagsched.proof.check_expand import HOST, WORK, Node
from dagsched.proof.check_links import Links
from dagsched.proof.check_run import Run
from dagsched.proof.check_storage import conflict, meets
from dagsched.proof.check_text import node_text

MAX_STATES = 20_000
"""States of a search through interleavings."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A node of a run: ``node`` is its number in issue order; work lasts one unit of time, all else none."""

    node: int
    text: str
    stream: str | None
    work: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Collision:
    """``runs`` has one run in which both are at work at once (``overlap``), or two in which either comes first.

    It is empty where the search gave up. ``first`` and ``second`` are the node numbers of the two; ``conflicts`` says
    what they both touch so that it matters (``x: RAW``).
    """

    first: int
    second: int
    overlap: bool
    runs: tuple[tuple[Moment, ...], ...]
    conflicts: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "overlap": self.overlap,
            "conflicts": list(self.conflicts),
            "runs": [
                [{"step": m.text, "stream": m.stream, "start": m.start, "end": m.end} for m in moments]
                for moments in self.runs
            ],
        }


def find_collision(run: Run, first: Node, second: Node) -> Collision:
    """A collision of two nodes of work that happens-before leaves unordered."""
    overlap, runs = _find_runs(run, (first.index, second.index))
    return Collision(first.index, second.index, overlap, runs, _conflicts(first, second))


def _conflicts(first: Node, second: Node) -> tuple[str, ...]:
    """What two nodes both touch, with the hazards in the order in which they are issued."""
    one, other = sorted((first, second), key=lambda node: node.index)
    found: dict[str, dict[str, None]] = {}
    for a in one.touches:
        for b in other.touches:
            kinds = conflict(a.mode, b.mode) if meets(a, b) else ()
            if kinds:
                name = a.buffer if a.buffer == b.buffer else f"{a.buffer}/{b.buffer}"
                found.setdefault(name, {}).update(dict.fromkeys(kinds))
    return tuple(f"{name}: {', '.join(kinds)}" for name, kinds in found.items())


def _find_runs(run: Run, pair: tuple[int, int]) -> tuple[bool, tuple[tuple[Moment, ...], ...]]:
    if not run.links.contended:
        before = _run_without(run, pair)
        return True, (_timed(run, [*before, *pair], pair),) if before is not None else ()
    search = _Search(run, pair)
    both = search.find(pair, lambda _: True)
    if both is not None:
        return True, (_timed(run, [*both, *pair], pair),)
    orders = []
    for one, other in (pair, pair[::-1]):
        found = search.find((other,), lambda done, one=one: one in done)  # type: ignore[misc]
        orders.append(None if found is None else [*found, other])
    if None in orders:
        return False, ()
    return False, tuple(_timed(run, order, ()) for order in orders if order is not None)


def _run_without(run: Run, pair: tuple[int, int]) -> list[int] | None:
    """What the two need, in an order in which it can run while both are held back."""
    links = run.links
    # A node that waits for itself never runs.
    after = list(links.after)
    for index in pair:
        after[index] = (*after[index], index)
    order, _ = run_order(run.program, replace(links, after=after))
    place = {index: at for at, index in enumerate(order)}
    previous = _previous(run)
    needed: set[int] = set()
    todo = list(pair)
    while todo:
        for before in _needs(links, previous, place, todo.pop()):
            if before not in place:
                return None
            if before not in needed:
                needed.add(before)
                todo.append(before)
    return sorted(needed, key=place.__getitem__)


def _needs(links: Links, previous: list[int], place: dict[int, int], index: int) -> list[int]:
    """The nodes that one needs directly; of a gate's candidates those that ran first."""
    found = [before for before in (previous[index], links.issued[index], *links.after[index]) if before >= 0]
    needed, candidates = links.gates.get(index, (0, ()))
    return found + sorted(candidates, key=lambda node: place.get(node, len(previous)))[:needed]


def _previous(run: Run) -> list[int]:
    last = [-1] * len(run.program.threads)
    previous = []
    for node in run.program.nodes:
        previous.append(last[node.thread])
        last[node.thread] = node.index
    return previous


def _timed(run: Run, order: Sequence[int], together: tuple[int, ...]) -> tuple[Moment, ...]:
    """Times for a run: each node as early as what it needs allows, the two that collide at the same time."""
    program, links = run.program, run.links
    previous = _previous(run)
    place = {index: at for at, index in enumerate(order)}
    end: dict[int, int] = {}
    moments = []
    latest = 0  # Contended objects change in the order of the run.

    def ready(index: int) -> int:
        known = [end[n] for n in _needs(links, previous, place, index) if n in end]
        return max([0, *known, latest if links.contended else 0])

    for index in order:
        start = ready(index)
        if index in together:
            start = max(map(ready, together))
        node = program.nodes[index]
        work = node.action in WORK
        end[index] = start + 1 if work else start
        latest = max(latest, start if index in together else end[index])
        moments.append(Moment(index, node_text(program, node), program.stream(node), work, start, end[index]))
    return tuple(moments)


_State = tuple[tuple[int, ...], tuple[int, ...]]
"""How far each thread has come, and the value of each object."""


class _Search:
    """Interleavings of a program, breadth first, with the values of events, flags and locks.

    The host issues a node as late as it can: under ``reevaluate`` what is issued earlier only blocks more waits. In the
    other models nothing but contended nodes can stand in another's way, so all else runs as soon as it may.
    """

    def __init__(self, run: Run, pair: tuple[int, int]) -> None:
        self.run, self.pair = run, pair
        self.nodes = run.program.nodes
        self.queues: list[list[int]] = [[] for _ in run.program.threads]
        for node in self.nodes:
            self.queues[node.thread].append(node.index)
        keys = sorted({node.key for node in self.nodes if node.key is not None}, key=repr)
        self.slot = {key: at for at, key in enumerate(keys)}
        self.reevaluate = run.program.schedule.event_model == "reevaluate"
        self.records: dict[object, list[int]] = {}
        for node in self.nodes:
            if node.action == "record" and self.reevaluate:
                self.records.setdefault(node.key, []).append(node.index)

    def find(self, goals: tuple[int, ...], accept: Callable[[set[int]], bool]) -> list[int] | None:
        """A run after which all goals may run and that is acceptable; None where there is none, or no time."""
        start, first = self.settle((tuple(0 for _ in self.queues), tuple(0 for _ in self.slot)), goals)
        came: dict[_State, tuple[_State, list[int]] | None] = {start: None}
        todo = deque([start])
        while todo and len(came) <= MAX_STATES:
            state = todo.popleft()
            ready = self.ready(state)
            if set(goals) <= set(ready):
                path = _path(came, state, first)
                if accept(set(path)):
                    return path
            for index in ready:
                if index not in goals:
                    new, others = self.settle(self.step(state, index), goals)
                    if new not in came:
                        came[new] = (state, [index, *others])
                        todo.append(new)
        return None

    def settle(self, state: _State, goals: tuple[int, ...]) -> tuple[_State, list[int]]:
        """Run what cannot stand in anybody's way."""
        steps: list[int] = []
        moved = not self.reevaluate
        while moved:
            moved = False
            for index in self.ready(state):
                if index not in goals and index not in self.run.links.contended:
                    steps.append(index)
                    state, moved = self.step(state, index), True
        return state, steps

    def ready(self, state: _State) -> list[int]:
        at, values = state
        heads = [queue[at[thread]] for thread, queue in enumerate(self.queues) if at[thread] < len(queue)]
        return [index for index in heads if self.may_run(at, values, index)]

    def step(self, state: _State, index: int) -> _State:
        at, values = state
        thread = self.nodes[index].thread
        return (*at[:thread], at[thread] + 1, *at[thread + 1 :]), self.act(values, index)

    def has_run(self, at: tuple[int, ...], index: int) -> bool:
        queue = self.queues[self.nodes[index].thread]
        place = at[self.nodes[index].thread]
        return place >= len(queue) or index < queue[place]

    def may_run(self, at: tuple[int, ...], values: tuple[int, ...], index: int) -> bool:
        links, node = self.run.links, self.nodes[index]
        host = links.issued[index]
        if node.thread != HOST and host >= 0 and not self.has_run(at, host):
            return False
        if not all(self.has_run(at, before) for before in links.after[index]):
            return False
        needed, candidates = links.gates.get(index, (0, ()))
        if sum(self.has_run(at, candidate) for candidate in candidates) < needed:
            return False
        if index not in links.contended or node.key is None:
            return True
        value = values[self.slot[node.key]]
        if node.action == "wait" and self.reevaluate:
            return self.newest_has_run(at, node)
        return value > 0 if node.action in ("wait", "take") else value == 0 if node.action == "acquire" else True

    def newest_has_run(self, at: tuple[int, ...], node: Node) -> bool:
        """Under ``reevaluate``: whether the newest record that must have been issued by now has run."""
        done = [queue[place - 1] for queue, place in zip(self.queues, at, strict=True) if place]
        issued = [record for record in self.records.get(node.key, ()) if record < max([node.index, *done]) + 1]
        return not issued or self.has_run(at, issued[-1])

    def act(self, values: tuple[int, ...], index: int) -> tuple[int, ...]:
        node = self.nodes[index]
        if node.key is None or index not in self.run.links.contended:
            return values
        slot = self.slot[node.key]
        change = {"record": 1, "acquire": 1, "reset": 0, "release": 0}
        value = change.get(node.action, values[slot] + (node.action == "set") - (node.action == "take"))
        return (*values[:slot], value, *values[slot + 1 :])


def _path(came: Mapping[_State, tuple[_State, list[int]] | None], state: _State, first: list[int]) -> list[int]:
    parts = []
    while (step := came[state]) is not None:
        state, indices = step
        parts.append(indices)
    return [*first, *(index for part in reversed(parts) for index in part)]
