"""Gather what the runs of one schedule show, for all its loop counts together, and put names to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dagsched.diagnostics import Diagnostic, Label, Where, closest
from dagsched.plan.expressions import ExpressionError
from dagsched.proof.check_clock import Order
from dagsched.proof.check_expand import Node, Program, indexed_text, name_of
from dagsched.proof.check_links import Links
from dagsched.proof.check_model import KINDS, Deadlock, Race, Side
from dagsched.proof.check_races import Conflicts, FoundRace
from dagsched.proof.check_slots import one_slot_note
from dagsched.proof.check_stuck import make_deadlock
from dagsched.proof.check_text import event_text, instance_text
from dagsched.schedule.model import EventStep, LoopStep, OpStep, Schedule, SyncStep, WaitStreamStep


@dataclass(slots=True)
class Gathered:
    """The union over all runs. ``bound`` and ``waited``: static waits that some instance of binds, static records that
    some wait is bound to; ``reused``: static wait → static record whose later instance it saw."""

    schedule: Schedule
    races: dict[tuple[str, str, str], tuple[FoundRace, Race]] = field(default_factory=dict)
    deadlock: Deadlock | None = None
    dangling: dict[tuple[int, int], tuple[Node, Node]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    bound: set[int] = field(default_factory=set)
    waited: set[int] = field(default_factory=set)
    reused: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    limited: bool = False
    complete: bool = True

    def add(self, program: Program, links: Links, order: Order, conflicts: Conflicts) -> None:
        """Add what one run shows."""
        for key, found in conflicts.races.items():
            known = self.races.get(key)
            if known is not None:
                found.kinds |= known[0].kinds
                known[0].kinds |= found.kinds
                if found.distance is None or (known[0].distance is not None and known[0].distance <= found.distance):
                    self.races[key] = (known[0], make_race(program, order, known[0], known[1]))
                    continue
            self.races[key] = (found, make_race(program, order, found))
        if order.stuck and self.deadlock is None:
            self.deadlock = make_deadlock(program, links, order)
        for pair, nodes in conflicts.dangling.items():
            self.dangling.setdefault(pair, nodes)
        self.limited = self.limited or order.limited
        self.complete = self.complete and conflicts.complete
        self.add_bindings(program, links)

    def add_bindings(self, program: Program, links: Links) -> None:
        nodes = program.nodes
        busy = [False] * len(program.threads)
        idle_records: set[int] = set()
        by_key: dict[object, list[int]] = {}
        for node in nodes:
            if node.action == "record":
                if node.private and not busy[node.thread] and not links.after[node.index]:
                    idle_records.add(node.index)
                elif not node.private:
                    by_key.setdefault(node.key, []).append(node.static)
            busy[node.thread] = True
        for node in nodes:
            index = node.index
            if node.action != "wait" and not (node.action == "sync" and index in links.bound):
                if node.action == "record":
                    self.seen.add(node.static)
                continue
            self.seen.add(node.static)
            if index in links.gates or index in links.contended:
                self.bound.add(node.static)
                self.waited.update(by_key.get(node.key, ()))
                continue
            record = links.bound.get(index)
            if record is None or record in idle_records:
                continue
            self.bound.add(node.static)
            self.waited.add(nodes[record].static)
            if node.raw != nodes[record].raw and node.action == "wait" and not node.private:
                self.reused.setdefault(node.static, (nodes[record].static, node.raw, nodes[record].raw))

    def all_races(self) -> tuple[Race, ...]:
        """Every race, in the order of the file."""
        races = [race for _, race in self.races.values()]
        far = 1 << 60
        return tuple(
            sorted(races, key=lambda r: (r.first.line or far, r.second.line or far, r.first.op, r.second.op, r.buffer))
        )


def make_race(program: Program, order: Order, found: FoundRace, known: Race | None = None) -> Race:
    """A race with names; ``known`` gives all but the kinds, where the nodes are another run's."""
    kinds = tuple(kind for kind in KINDS if kind in found.kinds)
    if known is not None:
        return replace(known, kinds=kinds)
    first, second = found.first, found.second
    distance = found.distance
    index = program.loops[first.path[0][0]] if distance is not None else None
    if index is not None and distance is not None:
        record_after, wait_before = f"{name_of(first)}@{index}", f"{name_of(second)}@{index}"
        wait_before += f"+{distance}" if distance else ""
    else:
        record_after, wait_before = instance_text(first), instance_text(second)
    return Race(
        found.buffer,
        kinds,
        distance,
        _side(program, first, index),
        _side(program, second, index),
        record_after,
        wait_before,
        _sure_of(program, order, first, second),
        one_slot_note(program, first, second, found.buffer, index),
    )


def _side(program: Program, node: Node, index: str | None) -> Side:
    """A side of a race; the stream is as written where the race is between ``op@i`` and ``op@i+1``."""
    stream = program.stream(node)
    if index is not None and isinstance(node.step, OpStep):
        stream = indexed_text(node.step.stream)
    return Side(name_of(node), stream, node.step.where, index)


def _sure_of(program: Program, order: Order, first: Node, second: Node) -> str | None:
    """What the second is certain to come after on the first's stream, as a sentence."""
    work = (order.clocks[second.index] or {}).get(first.thread, 0)
    if not work:
        return None
    known = program.worker(first.thread, work)
    return (
        f"for one, `{instance_text(second)}` is certain to come after `{instance_text(known)}` on that stream, "
        f"but not after `{instance_text(first)}`"
    )


def make_findings(gathered: Gathered, counts_text: str, whole: bool, tried: bool) -> tuple[Diagnostic, ...]:
    """What is neither a race, a deadlock nor a needless wait."""
    statics = list(gathered.schedule.walk())
    found: list[Diagnostic] = []
    for free, use in gathered.dangling.values():
        found.append(_dangling(free, use))
    for wait, (record, wanted, got) in gathered.reused.items():
        found.append(_reused(statics[wait], statics[record], wanted, got))
    recorded = {step.event.name for step in statics if isinstance(step, EventStep) and step.action == "record"}
    for number in sorted(gathered.seen - gathered.bound):
        step = statics[number]
        if isinstance(step, SyncStep | WaitStreamStep) or (isinstance(step, EventStep) and step.action == "wait"):
            found.append(_unbound(step, recorded))
    for number in sorted(gathered.seen - gathered.waited):
        step = statics[number]
        if isinstance(step, EventStep) and step.action == "record":
            found.append(
                Diagnostic(
                    "S405",
                    f"nothing waits for the record of `{event_text(step)}`",
                    step.where,
                    help="drop the record, or wait for it where its order is meant to hold",
                    severity="note",
                )
            )
    for step in statics:
        if isinstance(step, EventStep) and step.action == "reset" and gathered.schedule.event_model != "flag":
            found.append(
                Diagnostic(
                    "S406",
                    f"a reset does nothing in the event model `{gathered.schedule.event_model}`",
                    step.where,
                    help="drop the reset, or set `event_model: flag` if the events are flags",
                    severity="warning",
                )
            )
    if gathered.limited:
        found.append(
            Diagnostic(
                "S302",
                "not every interleaving was explored",
                notes=("what was found is real, but another race or deadlock may have been missed",),
                help="check a smaller count, or reset fewer flags on more than one stream",
                severity="warning",
            )
        )
    if not whole:
        where = next((step.where for step in statics if isinstance(step, LoopStep)), None)
        found.append(
            Diagnostic(
                "S407", f"checked for {counts_text}", where, help="make the counts constants", severity="warning"
            )
        )
    if not tried:
        found.append(
            Diagnostic("S409", "not every wait was tried for removal: the schedule is too large", severity="note")
        )
    if not gathered.complete:
        found.append(
            Diagnostic(
                "S203",
                "too many races to look at each pair of instances",
                notes=("distances may be larger than the smallest, and races may be missing from the list",),
                severity="warning",
            )
        )
    return tuple(found)


def _dangling(free: Node, use: Node) -> Diagnostic:
    name = next(touch.buffer for touch in use.touches if touch.mode.reads)
    for touch in use.touches:
        if touch.mode.reads and touch.storage == free.touches[0].storage:
            name = touch.buffer
    labels = (Label(free.step.where, f"`{free.touches[0].buffer}` is freed here"),) if free.step.where else ()
    return Diagnostic(
        "S202",
        f"`{name_of(use)}` reads `{name}` after it was freed",
        use.step.where,
        labels=labels,
        notes=("nothing has written it since",),
        help=f"move the free behind `{name_of(use)}` and a sync with its stream",
    )


def _reused(wait: object, record: object, wanted: int, got: int) -> Diagnostic:
    assert isinstance(wait, EventStep) and isinstance(record, EventStep)
    name = wait.event.name
    labels = (Label(record.where, f"`{name}@{got}` is recorded here, into the same handle"),) if record.where else ()
    return Diagnostic(
        "S401",
        f"the handle of `{name}@{wanted}` was recorded again, as `{name}@{got}`, before this wait for it",
        wait.where,
        labels=labels,
        notes=("a wait binds to the newest record of its handle",),
        help=f"make the ring of `{name}` longer by {max(abs(got - wanted), 1)}",
        severity="warning",
    )


def _unbound(step: EventStep | SyncStep | WaitStreamStep, recorded: set[str]) -> Diagnostic:
    if isinstance(step, WaitStreamStep):
        name = step.target.name
        return Diagnostic(
            "S402",
            f"waits for nothing: nothing was issued on the stream `{name}` before",
            step.where,
            help="name the stream that is meant, or move this below the work it should wait for",
            severity="warning",
        )
    event = step.event if isinstance(step, EventStep) else step.target
    assert event is not None
    near = closest(event.name, recorded - {event.name}) if event.name not in recorded else None
    way = f"wait for `{near}`" if near else f"record `{event.name}` after the work that this should wait for"
    return Diagnostic(
        "S402",
        f"waits for nothing: no record of `{event_text(step)}` is issued before it",
        step.where,
        notes=("a wait for a handle never recorded is no wait at all",),
        help=way if event.name not in recorded else f"issue the record of `{event.name}` before this wait",
        severity="warning",
    )


def describe_invalid(schedule: Schedule, error: ExpressionError) -> Diagnostic:
    """An expression that has no value for some instance."""
    where: Where | None = next((step.where for step in schedule.walk() if step.where), None)
    return Diagnostic("S408", f"an expression has no value: {error.message}", where)
