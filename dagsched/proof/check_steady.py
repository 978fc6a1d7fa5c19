"""See that a loop has become steady: the dynamic half of the argument for every loop count.

At the start of an iteration, everything that later steps can ask about is this: what each thread and each live handle
is certain of, and the latest access of each step at each place. Only work on one thread is ever compared, and new work
is newer than all of it, so the numbers are replaced by their ranks; places and handles are written relative to the
iteration. When such a state comes back, the iterations between repeat for ever.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from dagsched.plan.expressions import evaluate
from dagsched.proof.check_clock import Clock, Order
from dagsched.proof.check_expand import Handle, Program
from dagsched.proof.check_links import Links
from dagsched.proof.check_shape import Shape
from dagsched.proof.check_storage import Box, Touch, meets

EFFORT = 300_000
"""The sizes of all states together beyond which the search for a repeat ends: they grow, or are very large."""
OLD_AGE = 3
"""Iterations, in periods, beyond which the age of an access is not told apart."""


@dataclass(slots=True)
class _Live:
    """What is certain so far, as nodes."""

    last: list[int]
    newest: dict[Handle, int] = field(default_factory=dict)
    pending: dict[Handle, list[int]] = field(default_factory=dict)
    accesses: dict[tuple[Any, ...], int] = field(default_factory=dict)
    freed: dict[Touch, int] = field(default_factory=dict)


def find_repeats(program: Program, links: Links, order: Order, shape: Shape) -> dict[int, tuple[int, int]] | None:
    """For each loop of the shape that was seen to repeat (first iteration of the repeating part, its length).

    None where a wait looks ahead of the issue order, so that there is no such state.
    """
    ahead = any(max(some, default=1 << 60) > node for node, (_, some) in links.gates.items())
    if order.stuck or links.contended or ahead:
        return None
    live = _Live([-1] * len(program.threads))
    marks: dict[int, list[tuple[int, int | None]]] = {}
    for loop, value, at in program.marks:
        if loop in shape.loops:
            marks.setdefault(at, []).append((loop, value))
    seen: dict[int, dict[Hashable, int]] = {loop: {} for loop in shape.loops}
    found: dict[int, tuple[int, int]] = {}
    lows = {loop: evaluate(step.lo, program.env) for loop, step in shape.loops.items()}
    effort = EFFORT
    for index in range(len(program.nodes) + 1):
        for loop, value in marks.get(index, ()):
            if value is None or loop in found or abs(value) < shape.settled:
                continue
            effort -= len(live.accesses) + len(live.newest) + 1
            if effort < 0:
                return found
            state = _state(program, order, shape, live, loop, value)
            before = seen[loop].setdefault(state, value)
            if before != value:
                found[loop] = (before - lows[loop], value - before)
        if index < len(program.nodes):
            _advance(program, live, index)
    return found


def _advance(program: Program, live: _Live, index: int) -> None:
    node = program.nodes[index]
    live.last[node.thread] = index
    if node.action == "record" and not node.private:
        assert node.key is not None
        live.newest[node.key] = index
    elif node.action == "set":
        assert node.key is not None
        live.pending.setdefault(node.key, []).append(index)
    elif node.action == "take":
        assert node.key is not None
        live.pending[node.key].pop(0)
    for number, touch in enumerate(node.touches):
        place = (touch.storage, touch.slot)
        live.accesses[(*place, touch.box, node.thread, node.static, number)] = index
        if node.action == "free":
            live.freed[touch] = node.static
        elif touch.mode.writes:
            live.freed = {gone: free for gone, free in live.freed.items() if not meets(gone, touch)}


def _state(program: Program, order: Order, shape: Shape, live: _Live, loop: int, value: int) -> Hashable:
    """The state at the start of an iteration, relative to it."""
    nodes = program.nodes
    certain: dict[Hashable, tuple[int, Clock]] = {}

    def keep(key: Hashable, index: int) -> None:
        certain[key] = (index, order.clocks[index] or {})

    for thread, index in enumerate(live.last):
        if index >= 0:
            keep(("thread", thread), index)
    for handle, index in live.newest.items():
        name = _handle_name(program, shape, handle, loop, value)
        if name is not None:
            keep(name, index)
    for handle, pending in live.pending.items():
        name = _handle_name(program, shape, handle, loop, value)
        for at, index in enumerate(pending):
            keep(("set", name or handle, at), index)
    entries: dict[Hashable, int] = {}
    _forget(program, order, live)
    for (storage, slot, box, thread, static, number), index in live.accesses.items():
        place = (storage, slot, _place(shape, storage, box, loop, value), thread, static, number)
        entries[place] = max(entries.get(place, -1), index)
    ranks: list[set[int]] = [set() for _ in program.threads]
    for index, clock in certain.values():
        ranks[nodes[index].thread].add(nodes[index].ordinal)
        for thread, work in clock.items():
            ranks[thread].add(work)
    for index in entries.values():
        ranks[nodes[index].thread].add(nodes[index].ordinal)
    rank = [{work: at for at, work in enumerate(sorted(some))} for some in ranks]
    old = OLD_AGE * shape.period
    freed = frozenset(
        (gone.storage, gone.slot, _place(shape, gone.storage, gone.box, loop, value), free)
        for gone, free in live.freed.items()
    )
    parts: list[Hashable] = [value % shape.period, freed]
    for key, (index, clock) in certain.items():
        node = nodes[index]
        known = frozenset((thread, rank[thread][work]) for thread, work in clock.items())
        parts.append((key, node.thread, rank[node.thread][node.ordinal], known))
    for entry, index in entries.items():
        node = nodes[index]
        age = min(value - node.path[0][1], old) if node.path and node.path[0][0] == loop else None
        parts.append((entry, rank[node.thread][node.ordinal], age))
    return frozenset(parts)


def _forget(program: Program, order: Order, live: _Live) -> None:
    """Drop accesses that every thread is certain of: nothing to come can race with them."""
    nodes = program.nodes
    sure = [order.clocks[index] or {} if index >= 0 else {} for index in live.last]
    floors = [
        min(clock.get(thread, 0) for other, clock in enumerate(sure) if other != thread) if len(sure) > 1 else 0
        for thread in range(len(sure))
    ]
    for entry in [e for e, index in live.accesses.items() if nodes[index].ordinal <= floors[nodes[index].thread]]:
        del live.accesses[entry]


def _handle_name(program: Program, shape: Shape, handle: Handle, loop: int, value: int) -> Hashable | None:
    """A handle relative to the iteration; None for one that nothing can ask for again."""
    name, number = handle
    loops = shape.handles.get(name)
    if loops is None or not isinstance(number, int):
        return handle
    if number in shape.fixed.get(name, ()):
        return handle
    ((own, (slope, low)),) = loops.items()
    if own != loop:  # Its own loop is over or still to come: only the handles near its end are asked for.
        value = evaluate(shape.loops[own].hi, program.env)
        if name not in shape.relative:
            return None
    where = "now" if own == loop else "end"
    return (name, where, number - slope * value) if number >= slope * value + low else None


def _place(shape: Shape, storage: tuple[str, str], box: Box, loop: int, value: int) -> Hashable:
    """A box relative to the iteration; all that a moving region has left behind is one place."""
    loops = shape.moving.get(storage)
    if loops is None:
        return box
    lo, hi = box[0]
    if loop not in loops or lo < -(1 << 70):
        return "moved" if loop not in loops else "whole"
    slope, low = loops[loop]
    return "behind" if hi <= slope * value + low else (lo - slope * value, hi - slope * value, box[1:])
