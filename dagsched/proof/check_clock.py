"""Happens-before of a program as vector clocks.

The clock of a node says, for every thread, how much of its work is certain to have run before the node runs. Where
every wait is bound to certain records a node's clock joins those of its predecessors. A gate (the first of several
records, the k-th of several sets) guarantees what *every* way of opening it guarantees: for each thread the k-th
smallest among its candidates, found by repeating until nothing changes. That is exact because such a system is
monotone: a node comes after x in every interleaving exactly where it cannot run while x is held back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from dagsched.proof.check_expand import HOST, WORK, Program
from dagsched.proof.check_gates import Board, Tally
from dagsched.proof.check_links import Links

Clock = dict[int, int]
"""Thread → how much of its work is certain; threads of which nothing is known are left out. Never changed in place."""


@dataclass(slots=True)
class Order:
    """What happens-before says.

    ``clocks[n]`` is None for a node that never runs; ``stuck`` holds the queue heads of a deadlock, ``trail`` contended
    nodes in an order that leads there. ``limited``: not all interleavings were explored; ``tried``: contended steps.
    """

    clocks: list[Clock | None]
    stuck: tuple[int, ...] = ()
    trail: tuple[int, ...] = ()
    limited: bool = False
    tried: int = 0


def join(mine: Clock, own: int, theirs: Clock, thread: int, ordinal: int) -> Clock:
    """The clock of a node on thread ``own`` that also comes after a node on ``thread`` with clock ``theirs``."""
    changed: Clock | None = None
    if len(theirs) > len(mine) + 8:  # Copying the longer one is quicker, and it does add something.
        mine, theirs, changed = theirs, mine, dict(theirs)
        changed.pop(own, None)
    for other, work in theirs.items():
        if work > mine.get(other, 0) and other != own:
            if changed is None:
                changed = dict(mine)
            changed[other] = work
    known = mine if changed is None else changed
    if thread != own and ordinal > known.get(thread, 0):
        if changed is None:
            changed = dict(mine)
        changed[thread] = ordinal
    return mine if changed is None else changed


def run_order(program: Program, links: Links) -> tuple[Sequence[int], tuple[int, ...]]:
    """An order in which the nodes can run, and the queue heads that never do. Nothing may be contended."""
    size = len(program.nodes)
    if not links.gates and all(not after or max(after) < node for node, after in enumerate(links.after)):
        return range(size), ()
    queues: list[list[int]] = [[] for _ in program.threads]
    for instance in program.nodes:
        queues[instance.thread].append(instance.index)
    done = bytearray(size)
    tally = Tally(program, links.gates)
    at = [0] * len(queues)
    waiters: dict[int, list[int]] = {}
    order: list[int] = []
    ready = deque(range(len(queues)))
    while ready:
        thread = ready.popleft()
        queue = queues[thread]
        while at[thread] < len(queue):
            node = queue[at[thread]]
            blockers = _blockers(program, links, done, tally, node)
            if blockers:
                for blocker in blockers:
                    waiters.setdefault(blocker, []).append(thread)
                break
            if tally.is_starved(node):
                break
            done[node] = 1
            tally.run(program, node)
            order.append(node)
            at[thread] += 1
            ready.extend(waiters.pop(node, ()))
    heads = (queue[at[thread]] for thread, queue in enumerate(queues) if at[thread] < len(queue))
    stuck = tuple(head for head in heads if links.issued[head] < 0 or done[links.issued[head]])
    return order, stuck


def _blockers(program: Program, links: Links, done: bytearray, tally: Tally, node: int) -> list[int]:
    """Nodes not yet run of which one has to run before ``node`` can."""
    issued = links.issued[node]
    if program.nodes[node].thread != HOST and issued >= 0 and not done[issued]:
        return [issued]
    for before in links.after[node]:
        if not done[before]:
            return [before]
    return tally.next(node) if tally.is_starved(node) else []  # Threads run in order: the next of each is enough.


def clock_order(program: Program, links: Links) -> Order:
    """The clocks of a program in which nothing is contended."""
    order, stuck = run_order(program, links)
    clocks: list[Clock | None] = [None] * len(program.nodes)
    boards = _Boards(program, links)
    _pass(program, links, order, clocks, boards)
    if any(needed < len(candidates) for needed, candidates in links.gates.values()):
        while _pass(program, links, order, clocks, boards):
            pass
    return Order(clocks, stuck)


class _Boards:
    """A board for the candidates of each gate; gates of the same candidates, which are one tuple, share it."""

    def __init__(self, program: Program, links: Links) -> None:
        self.program = program
        self.by_gate: dict[int, Board] = {}
        self.boards_of: dict[int, list[Board]] = {}
        for _, candidates in links.gates.values():
            if id(candidates) not in self.by_gate:
                board = self.by_gate[id(candidates)] = Board()
                for candidate in candidates:
                    self.boards_of.setdefault(candidate, []).append(board)

    def publish(self, index: int, clock: Clock) -> None:
        """Tell of a node's new clock."""
        if index in self.boards_of:
            node = self.program.nodes[index]
            known = join(clock, -1, {}, node.thread, node.ordinal)
            for board in self.boards_of[index]:
                board.publish(index, known)


def _pass(program: Program, links: Links, order: Sequence[int], clocks: list[Clock | None], boards: _Boards) -> bool:
    """Compute all clocks once, in an order in which the nodes can run; whether any changed."""
    nodes = program.nodes
    current: list[Clock] = [{} for _ in program.threads]
    seen_host = [-1] * len(program.threads)
    changed = False
    for index in order:
        node = nodes[index]
        thread = node.thread
        clock = current[thread]
        host = links.issued[index]
        if thread != HOST and host > seen_host[thread]:
            seen_host[thread] = host
            clock = join(clock, thread, clocks[host] or {}, HOST, nodes[host].ordinal)
        for before in links.after[index]:
            other = nodes[before]
            clock = join(clock, thread, clocks[before] or {}, other.thread, other.ordinal)
        gate = links.gates.get(index)
        if gate is not None:
            clock = join(clock, thread, boards.by_gate[id(gate[1])].certain(gate[0]), thread, 0)
        if clock is not clocks[index] and clock != clocks[index]:
            changed = True
            clocks[index] = clock
            boards.publish(index, clock)
        current[thread] = clock
    return changed


def is_before(program: Program, order: Order, first: int, second: int) -> bool:
    """Whether a node of work comes before another in every interleaving."""
    a, b = program.nodes[first], program.nodes[second]
    assert a.action in WORK
    if a.thread == b.thread:
        return first < second
    clock = order.clocks[second]
    return clock is not None and clock.get(a.thread, 0) >= a.ordinal
