"""Try which waits of a schedule can go.

A wait is *redundant* where dropping it, in every instance at once, leaves the clock of all work as it was; *removable*
where it changes the order but every access stays ordered. Nothing is checked afresh: the clocks change only
downstream of the wait, so new ones are computed from there in issue order until they agree with the old ones again.
Where waits depend on who comes first (flags, locks) the schedule without the wait is checked as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from dagsched.proof.check_clock import Clock, Order, join
from dagsched.proof.check_expand import HOST, WORK, Program, name_of
from dagsched.proof.check_links import Links
from dagsched.proof.check_races import Conflicts, distance_of
from dagsched.proof.check_text import instance_text
from dagsched.schedule.model import AnyStep, EventStep, FlagStep, SyncStep, WaitStreamStep

MAX_FORBIDS = 4
"""The most lost overlaps named for one wait."""


@dataclass(slots=True)
class Trial:
    """What dropping a wait does. ``lost``: pairs of nodes of work no longer ordered, the nearest ones."""

    same: bool = True
    safe: bool = True
    lost: list[tuple[int, int]] = field(default_factory=list)


def is_wait(step: AnyStep) -> bool:
    """Whether a step counts as a wait: ``wait`` and ``wait_stream`` on a stream, and what blocks the host, or takes a
    flag, where it has a label."""
    if isinstance(step, EventStep):
        return step.action == "wait" and (step.stream is not None or step.label is not None)
    if isinstance(step, FlagStep):
        return step.action == "take" and step.label is not None
    return isinstance(step, WaitStreamStep) or (isinstance(step, SyncStep) and step.label is not None)


class Trials:
    """Drops the waits of one program in turn. ``work`` counts the clocks recomputed, for budgets."""

    def __init__(self, program: Program, links: Links, order: Order, conflicts: Conflicts) -> None:
        self.program, self.links, self.order = program, links, order
        self.needs = conflicts.needs
        self.work = 0
        nodes = program.nodes
        self.instances: dict[int, list[int]] = {}
        for node in nodes:
            if node.action in ("wait", "sync"):
                self.instances.setdefault(node.static, []).append(node.index)
        self.work_on: list[list[int]] = [[-1] for _ in program.threads]
        self.previous = [-1] * len(nodes)
        self.following: list[list[int]] = [[] for _ in nodes]
        last = [-1] * len(program.threads)
        issued_at = [-1] * len(program.threads)
        for node in nodes:
            index, thread = node.index, node.thread
            if node.action in WORK:
                self.work_on[thread].append(index)
            if last[thread] >= 0:
                self.previous[index] = last[thread]
                self.following[last[thread]].append(index)
            last[thread] = index
            for before in links.after[index]:
                self.following[before].append(index)
            host = links.issued[index]
            if thread != HOST and host >= 0 and issued_at[thread] < host:
                issued_at[thread] = host
                self.following[host].append(index)

    def drop(self, static: int, races_matter: bool) -> Trial:
        """What changes without one static wait; stops at the first change unless ``races_matter``."""
        trial = Trial()
        program, links, clocks = self.program, self.links, self.order.clocks
        nodes = program.nodes
        dropped = set(self.instances.get(static, ()))
        heap = sorted(dropped)
        queued = set(dropped)
        changed: dict[int, Clock] = {}

        def clock_of(index: int) -> Clock:
            found = changed.get(index)
            return found if found is not None else clocks[index] or {}

        while heap:
            index = heappop(heap)
            node = nodes[index]
            thread = node.thread
            self.work += 1
            before = self.previous[index]
            clock = clock_of(before) if before >= 0 else {}
            host = links.issued[index]
            if thread != HOST and host >= 0:
                clock = join(clock, thread, clock_of(host), HOST, nodes[host].ordinal)
            if index not in dropped:
                for other in links.after[index]:
                    clock = join(clock, thread, clock_of(other), nodes[other].thread, nodes[other].ordinal)
            old = clocks[index] or {}
            if clock == old:
                continue
            changed[index] = clock
            if node.action in WORK:
                trial.same = False
                if not races_matter:
                    return trial
                needs = self.needs.get(index)
                if needs and any(clock.get(t, 0) < ordinal for t, ordinal in needs.items()):
                    trial.safe = False
                    return trial
                self.lose(trial, index, clock, old)
            for other in self.following[index]:
                if other not in queued:
                    queued.add(other)
                    heappush(heap, other)
        return trial

    def lose(self, trial: Trial, index: int, new: Clock, old: Clock) -> None:
        """Note the nearest work that a node no longer comes after."""
        if len(trial.lost) >= 64:
            return
        for thread, ordinal in old.items():
            if new.get(thread, 0) < ordinal:
                trial.lost.append((self.work_on[thread][ordinal], index))

    def forbidden(self, trial: Trial) -> tuple[str, ...]:
        """The overlaps that a removable wait forbids, as text, each once."""
        nodes, loops = self.program.nodes, self.program.loops
        seen: dict[str, None] = {}
        for first, second in trial.lost:
            a, b = nodes[first], nodes[second]
            distance = distance_of(a.instance, b.instance)
            if distance is None:
                text = f"{instance_text(b)} with {instance_text(a)}"
            else:
                index = loops[b.path[0][0]]
                back = f"-{distance}" if distance else ""
                text = f"{name_of(b)}@{index} with {name_of(a)}@{index}{back}"
            seen.setdefault(text)
        return tuple(seen)[:MAX_FORBIDS]

    def serialises(self, static: int) -> tuple[int, int] | None:
        """The two threads of a wait, where no work on one can ever run beside work on the other."""
        threads: set[tuple[int, int]] = set()
        for index in self.instances.get(static, ()):
            for before in self.links.after[index]:
                threads.add((self.program.nodes[index].thread, self.program.nodes[before].thread))
        if len(threads) != 1:
            return None
        mine, other = threads.pop()
        if mine == other or len(self.work_on[mine]) < 3 or len(self.work_on[other]) < 3:
            return None
        return (mine, other) if not self.can_overlap(mine, other) else None

    def can_overlap(self, one: int, other: int) -> bool:
        """Whether any work on one thread is unordered with any on another."""
        clocks = self.order.clocks
        theirs = self.work_on[other]
        for ordinal, index in enumerate(self.work_on[one]):
            if index < 0:
                continue
            next_one = (clocks[index] or {}).get(other, 0) + 1
            if next_one < len(theirs) and (clocks[theirs[next_one]] or {}).get(one, 0) < ordinal:
                return True
        return False


def drop_whole(
    program: Program,
    order: Order,
    conflicts: Conflicts,
    other: Program,
    other_order: Order,
    other_conflicts: Conflicts,
) -> Trial:
    """The same from a whole check of the schedule without the wait (``other``)."""
    trial = Trial()
    mine = [order.clocks[node.index] for node in program.nodes if node.action in WORK]
    theirs = [other_order.clocks[node.index] for node in other.nodes if node.action in WORK]
    names = [program.threads[node.thread] for node in program.nodes if node.action in WORK]
    other_names = [other.threads[node.thread] for node in other.nodes if node.action in WORK]
    trial.same = names == other_names and all(
        _named(program, a) == _named(other, b) for a, b in zip(mine, theirs, strict=True)
    )
    trial.same = trial.same and bool(order.stuck) == bool(other_order.stuck)
    worse = bool(other_order.stuck) and not order.stuck
    trial.safe = not worse and not other_conflicts.races.keys() - conflicts.races.keys()
    return trial


def _named(program: Program, clock: Clock | None) -> dict[str, int] | None:
    """A clock by the streams' names, since threads are numbered anew."""
    return None if clock is None else {program.threads[thread]: work for thread, work in clock.items()}
