"""Explore the interleavings of a program whose waits depend on who comes first.

A state is how far every thread has got and the value of each contended object. Everything else runs as soon as it can
(it neither disables nor is disabled), so a step of the search is one use of a contended object. Partial-order
reduction by persistent sets: a set of threads such that nothing the others may still do interferes with their next
steps; every interleaving is then equal, up to swapping independent steps, to an explored one (P. Godefroid, LNCS 1032).

States are explored in layers of equal length. Of two equal states the one that is certain of more is dropped: whatever
order follows from it, no more follows from the other. The clock of a node is the smallest, thread by thread, over all
paths, which is exactly the order that holds in every interleaving. A layer wider than the budget is cut, and the result
says so: races and deadlocks found are real then, but others may be missed.
"""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.proof.check_clock import Clock, Order, join
from dagsched.proof.check_expand import HOST, WORK, Program
from dagsched.proof.check_links import Links

WIDTH = 2_000
"""The most states kept in one layer."""

DEPENDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("event", "record"): ("wait", "reset"),
    ("event", "wait"): ("record", "reset", "issue"),
    ("event", "reset"): ("record", "wait"),
    ("event", "issue"): ("wait",),
    ("flag", "set"): ("take",),
    ("flag", "take"): ("set", "take"),
    ("lock", "acquire"): ("acquire", "release"),
    ("lock", "release"): ("acquire", "release"),
}
"""Which uses of an object do not commute with a use of it; on different objects all do."""

ENABLES = {"wait": ("record", "issue"), "take": ("set",), "acquire": ("release",)}
"""What can unblock a blocked use."""

Trail = tuple["Trail | None", int]
Use = tuple[int, str]


@dataclass(slots=True)
class _State:
    """``at``: how far each thread has got (thread 0: the node index that the host issues next); ``values``: the
    objects; ``clocks``: what each thread knows; ``uses``: the clocks of each object by use; ``kept``: the clocks of
    nodes that others come after."""

    at: tuple[int, ...]
    values: tuple[int, ...]
    clocks: list[Clock]
    uses: dict[Use, Clock]
    kept: dict[int, Clock]
    trail: Trail | None


_Layer = dict[tuple[tuple[int, ...], tuple[int, ...]], list[_State]]


def explore_order(program: Program, links: Links, budget: int) -> Order:
    """The order that holds in every interleaving, and a deadlock where one can be reached.

    ``budget`` bounds the contended steps tried in all.
    """
    return _Explorer(program, links, budget).run()


class _Explorer:
    def __init__(self, program: Program, links: Links, budget: int) -> None:
        self.program, self.links, self.budget = program, links, budget
        self.nodes = program.nodes
        self.queues: list[list[int]] = [[] for _ in program.threads]
        for node in self.nodes:
            self.queues[node.thread].append(node.index)
        self.place = [0] * len(self.nodes)
        for queue in self.queues:
            for at, index in enumerate(queue):
                self.place[index] = at
        self.reevaluate = program.schedule.event_model == "reevaluate"
        self.contend_gates()
        self.objects = {key: number for number, key in enumerate(dict.fromkeys(links.contended.values()))}
        self.uses: dict[int, list[tuple[int, str]]] = {}
        for index, key in links.contended.items():
            uses = [(self.objects[key], self.nodes[index].action)]
            self.uses[index] = uses
        self.kinds = [key[0] for key in self.objects]
        self.host_stops = self.find_host_stops()
        self.issue_stop = self.find_issue_stops()
        self.users = self.find_users()
        self.ends: dict[int, list[int]] = {}
        for before, users in self.users.items():
            for user in users:
                self.ends.setdefault(user, []).append(before)
        self.ended: list[int] = []
        """The kept clocks of which a thread has run the last user, since a state was last tidied."""
        self.future = self.find_futures()
        self.meet: list[Clock | None] = [None] * len(self.nodes)
        self.limited = False
        self.price = 1 + len(self.queues) // 8
        """A step of the search looks at every thread."""

    def contend_gates(self) -> None:
        """Gates that open in several ways are uses of an object here, so that every way is explored."""
        links = self.links
        for wait, (needed, candidates) in list(links.gates.items()):
            if needed >= len(candidates):
                continue
            key = self.nodes[wait].key
            assert key is not None
            kind = "event" if self.nodes[wait].action == "wait" else "flag"
            for node in self.nodes:
                if node.key == key and not node.private and node.action in ("record", "wait", "set", "take"):
                    links.contended[node.index] = (kind, key)
            for node_index in list(links.gates):
                if self.nodes[node_index].key == key:
                    del links.gates[node_index]

    def find_host_stops(self) -> list[int]:
        """Where the host's progress can be seen: its own nodes, and under ``reevaluate`` the issue of records."""
        stops = list(self.queues[HOST])
        if self.reevaluate:
            stops += [
                index
                for index in self.links.contended
                if self.nodes[index].action == "record" and self.nodes[index].thread != HOST
            ]
        return sorted(stops)

    def find_issue_stops(self) -> list[int]:
        """For each node the last stop of the host up to its issue, -1 where there is none."""
        last = -1
        stops = set(self.host_stops)
        found = []
        for index in range(len(self.nodes)):
            before = last
            if index in stops:
                last = index
            found.append(before if self.nodes[index].thread == HOST else last)
        return found

    def find_users(self) -> dict[int, list[int]]:
        """Whose clocks are kept (``~stop``: the host's at a stop), and the last node on each thread that needs it."""
        users: dict[int, dict[int, int]] = {}
        for node in self.nodes:
            needs = list(self.links.after[node.index])
            needs += self.links.gates.get(node.index, (0, ()))[1]
            if node.thread != HOST and self.issue_stop[node.index] >= 0:
                needs.append(~self.issue_stop[node.index])
            for before in needs:
                users.setdefault(before, {})[node.thread] = node.index
        return {before: list(last.values()) for before, last in users.items()}

    def find_futures(self) -> list[list[int]]:
        """For each thread and place in it, a bit for each use of an object that is still to come."""
        self.bits: dict[Use, int] = {}
        futures = []
        for thread, queue in enumerate(self.queues):
            stops = self.host_stops if thread == HOST else queue
            future = [0] * (len(stops) + 1)
            for at in range(len(stops) - 1, -1, -1):
                future[at] = future[at + 1]
                for use in self.uses_of(thread, stops[at]):
                    future[at] |= self.bit(use)
            futures.append(future)
        return futures

    def uses_of(self, thread: int, index: int) -> list[Use]:
        """What a thread does to objects at one of its stops."""
        if thread == HOST and self.nodes[index].thread != HOST:
            return [(self.objects[self.links.contended[index]], "issue")]
        return self.uses.get(index, [])

    def bit(self, use: Use) -> int:
        return self.bits.setdefault(use, 1 << len(self.bits))

    def run(self) -> Order:
        start = _State((0,) * len(self.queues), (0,) * len(self.objects), [{} for _ in self.queues], {}, {}, None)
        at = list(start.at)
        self.settle(at, start)
        start.at = tuple(at)
        self.forget(start)
        granted = self.budget
        layer: _Layer = {(start.at, start.values): [start]}
        stuck: tuple[int, ...] = ()
        trail: tuple[int, ...] = ()
        while layer:
            following: _Layer = {}
            for state in self.cut(layer):
                threads = self.persistent(state) if self.budget > 0 else self.any_enabled(state)
                if not threads and not stuck:
                    stuck = self.heads(state)
                    trail = _unroll(state.trail) if stuck else ()
                for thread in threads:
                    self.budget -= self.price
                    self.merge(following, self.step(state, thread))
            layer = following
        return Order(self.meet, stuck, trail, self.limited, granted - self.budget)

    def cut(self, layer: _Layer) -> list[_State]:
        """The states of a layer, as many as the budget allows."""
        states = [state for group in layer.values() for state in group]
        most = WIDTH if self.budget > 0 else 1
        if len(states) > most:
            self.limited = True
        return states[:most]

    def merge(self, layer: _Layer, state: _State) -> None:
        """Add a state unless one that is certain of no more stands there; drop those certain of no less."""
        known = layer.setdefault((state.at, state.values), [])
        if any(_is_within(other, state) for other in known):
            return
        known[:] = [other for other in known if not _is_within(state, other)]
        known.append(state)

    def forget(self, state: _State) -> None:
        """Drop the clocks that nothing to come can ask for, so that equal states look equal."""
        for before in self.ended:
            if before in state.kept and all(self.has_run(state.at, user) for user in self.users[before]):
                del state.kept[before]
        self.ended.clear()
        future = 0
        for thread, at in enumerate(state.at):
            future |= self.future[thread][at]
            stops = self.host_stops if thread == HOST else self.queues[thread]
            if at >= len(stops):
                state.clocks[thread] = {}
        for number, use in list(state.uses):
            mask = 0
            for other in DEPENDS[(self.kinds[number], use)]:
                mask |= self.bits.get((number, other), 0)
            if not mask & future:
                del state.uses[(number, use)]

    def next(self, at: tuple[int, ...] | list[int], thread: int) -> int | None:
        """The node that a thread does next (for the host: the node at its next stop)."""
        queue = self.host_stops if thread == HOST else self.queues[thread]
        return queue[at[thread]] if at[thread] < len(queue) else None

    def frontier(self, at: tuple[int, ...] | list[int]) -> int:
        """The node index up to which the host has issued."""
        return self.host_stops[at[HOST]] if at[HOST] < len(self.host_stops) else len(self.nodes)

    def has_run(self, at: tuple[int, ...] | list[int], index: int) -> bool:
        thread = self.nodes[index].thread
        if thread == HOST:
            return index < self.frontier(at)
        return self.place[index] < at[thread]

    def missing(self, at: tuple[int, ...] | list[int], thread: int, index: int) -> list[int]:
        """The threads of which one must move before a node can, objects aside; empty where none must."""
        if thread == HOST and self.nodes[index].thread != HOST:
            return []
        if thread != HOST and index >= self.frontier(at):
            return [HOST]
        for before in self.links.after[index]:
            if not self.has_run(at, before):
                return [self.nodes[before].thread]
        needed, candidates = self.links.gates.get(index, (0, ()))
        open_ones = [candidate for candidate in candidates if not self.has_run(at, candidate)]
        if len(candidates) - len(open_ones) >= needed:
            return []
        return [self.nodes[candidate].thread for candidate in open_ones] or [thread]

    def is_open(self, state: _State, thread: int, index: int) -> bool:
        """Whether the object allows the step."""
        for number, use in self.uses_of(thread, index):
            if use == "wait" and self.reevaluate:
                newest = state.values[number]
                if newest and not self.has_run(state.at, newest - 1):
                    return False
            elif use in ("wait", "take"):
                if state.values[number] <= 0:
                    return False
            elif use == "acquire" and state.values[number] > 0:
                return False
        return True

    def is_enabled(self, state: _State, thread: int) -> bool:
        index = self.next(state.at, thread)
        return index is not None and not self.missing(state.at, thread, index) and self.is_open(state, thread, index)

    def heads(self, state: _State) -> tuple[int, ...]:
        """The issued queue heads of a state in which nothing can move."""
        found = []
        for thread in range(len(self.queues)):
            index = self.next(state.at, thread)
            if index is not None and (thread == HOST or index < self.frontier(state.at)):
                found.append(index)
        return tuple(found)

    def persistent(self, state: _State) -> list[int]:
        """The enabled threads of a smallest persistent set found by growing one from each enabled thread."""
        enabled = {thread for thread in range(len(self.queues)) if self.is_enabled(state, thread)}
        best: list[int] = []
        for start in enabled:
            members = [start]
            inside = {start}
            for thread in members:
                for other in self.related(state, thread, thread in enabled):
                    if other not in inside:
                        inside.add(other)
                        members.append(other)
            chosen = [thread for thread in members if thread in enabled]
            if not best or len(chosen) < len(best):
                best = chosen
                if len(best) == 1:
                    break
        return best

    def any_enabled(self, state: _State) -> list[int]:
        """One enabled thread, if any: the budget is used up, and one interleaving is gone through to its end."""
        threads = range(len(self.queues))
        enabled = next((thread for thread in threads if self.is_enabled(state, thread)), None)
        if enabled is None:
            return []
        self.limited = self.limited or any(self.is_enabled(state, thread) for thread in threads[enabled + 1 :])
        return [enabled]

    def related(self, state: _State, thread: int, enabled: bool) -> list[int]:
        """The threads that may interfere with the next step of a thread, or that could unblock it."""
        index = self.next(state.at, thread)
        if index is None:
            return []
        if not enabled:
            missing = self.missing(state.at, thread, index)
            if missing:
                return missing[:1] if len(missing) == 1 else missing
        mask = 0
        for number, use in self.uses_of(thread, index):
            kind = self.kinds[number]
            for other in DEPENDS[(kind, use)] if enabled else ENABLES.get(use, ()):
                mask |= self.bits.get((number, other), 0)
        return [
            other for other in range(len(self.queues)) if other != thread and self.future[other][state.at[other]] & mask
        ]

    def step(self, state: _State, thread: int) -> _State:
        """The state after a thread's next step and all that then runs by itself."""
        new = _State(state.at, state.values, list(state.clocks), dict(state.uses), dict(state.kept), state.trail)
        at = list(state.at)
        self.perform(new, at, thread)
        self.settle(at, new)
        new.at = tuple(at)
        self.forget(new)
        return new

    def settle(self, at: list[int], state: _State) -> None:
        """Run everything that touches no contended object, as far as it goes."""
        moved = True
        while moved:
            moved = False
            for thread in range(len(self.queues)):
                while (index := self.next(at, thread)) is not None:
                    if self.uses_of(thread, index) or self.missing(at, thread, index):
                        break
                    self.perform(state, at, thread)
                    moved = True

    def perform(self, state: _State, at: list[int], thread: int) -> None:
        """Do the next step of a thread: its clock, its effect on objects, and its place in what others wait for."""
        index = self.next(at, thread)
        assert index is not None
        node = self.nodes[index]
        clock = state.clocks[thread]
        uses = self.uses_of(thread, index)
        issuing = thread == HOST and node.thread != HOST
        if not issuing:
            clock = self.arrive(state, thread, index, clock)
        for number, use in uses:
            for other in DEPENDS[(self.kinds[number], use)]:
                known = state.uses.get((number, other))
                if known:
                    clock = join(clock, thread, known, -1, 0)
        state.clocks[thread] = clock
        ordinal = self.work_before(index) if issuing else node.ordinal
        published = clock
        if uses or index in self.users or thread == HOST:
            published = join(clock, -1, {}, thread, ordinal)
        for number, use in uses:
            known = state.uses.get((number, use), {})
            state.uses[(number, use)] = join(known, -1, published, -1, 0)
            self.change(state, number, use, index)
        at[thread] += 1
        if thread == HOST and ~index in self.users:
            state.kept[~index] = published
        if issuing:
            return
        self.ended += self.ends.get(index, ())
        if index in self.users:
            state.kept[index] = published
        if node.action in WORK:
            known = self.meet[index]
            self.meet[index] = clock if known is None else _meet(known, clock)
        if uses:
            state.trail = (state.trail, index)

    def arrive(self, state: _State, thread: int, index: int, clock: Clock) -> Clock:
        """The clock of a node from its issue and from what it is bound to."""
        host = self.issue_stop[index]
        if thread != HOST and host >= 0:
            clock = join(clock, thread, state.kept[~host], -1, 0)
        for before in self.links.after[index]:
            clock = join(clock, thread, state.kept[before], -1, 0)
        for before in self.links.gates.get(index, (0, ()))[1]:
            clock = join(clock, thread, state.kept[before], -1, 0)
        return clock

    def work_before(self, index: int) -> int:
        """How much the host has done by the issue of a node."""
        host = self.links.issued[index]
        return self.nodes[host].ordinal if host >= 0 else 0

    def change(self, state: _State, number: int, use: str, index: int) -> None:
        values = list(state.values)
        if use == "issue":
            values[number] = index + 1
        elif use == "record" and self.reevaluate:
            if self.nodes[index].thread == HOST:
                values[number] = index + 1
        elif use in ("record", "acquire"):
            values[number] = 1
        elif use in ("reset", "release"):
            values[number] = 0
        elif use == "set":
            values[number] += 1
        elif use == "take":
            values[number] -= 1
        state.values = tuple(values)


def _meet(a: Clock, b: Clock) -> Clock:
    """What both clocks are certain of."""
    if a is b or a == b:
        return a
    return {thread: min(work, b[thread]) for thread, work in a.items() if thread in b}


def _is_below(a: Clock, b: Clock) -> bool:
    if a is not b:
        for thread, work in a.items():  # a loop: this is the hottest line of the exploration
            if work > b.get(thread, 0):
                return False
    return True


def _is_within(a: _State, b: _State) -> bool:
    """Whether ``a`` is certain of nothing that ``b`` is not certain of."""
    return (
        all(map(_is_below, a.clocks, b.clocks))
        and all(_is_below(clock, b.uses[use]) for use, clock in a.uses.items())
        and all(_is_below(clock, b.kept[node]) for node, clock in a.kept.items())
    )


def _unroll(trail: Trail | None) -> tuple[int, ...]:
    steps = []
    while trail is not None:
        trail, index = trail
        steps.append(index)
    return tuple(reversed(steps))
