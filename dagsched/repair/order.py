"""The ways to order two op instances that race, those that a user would type first first.

A wait for a record that stands there already, a record for a wait that stands there and binds to nothing, a
``wait_stream`` in a file that has such steps, a new event, and last a wait for all that the stream was given so far,
which always orders but may order more than is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from dagsched.node_edits import Side
from dagsched.plan.expressions import Comparison, Condition, Expr, Int, Name, add, all_of, names_in, substitute
from dagsched.proof.check_expand import indexed_text, streams_of
from dagsched.proof.check_text import step_text
from dagsched.repair.draft import Built, Draft
from dagsched.repair.places import (
    Pair,
    back,
    index_name,
    lowest,
    stream_of,
)
from dagsched.repair.scene import Scene
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    FlagStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Protected,
    SyncStep,
    WaitStreamStep,
)

LONGEST_STEM = 200
"""Characters of an op's name that go into the name of an event."""

MOST_STREAMS = 16
"""Streams of one indexed name that are waited for one by one."""


class Orderer:
    """Proposes drafts that order one pair; ``why`` says which accesses need it, ``protects`` the same as data."""

    def __init__(self, scene: Scene, pair: Pair, why: str, protects: tuple[Protected, ...]) -> None:
        self.scene, self.pair, self.why = scene, pair, why
        self.draft, self.built, self.family = scene.draft, scene.built, scene.family
        self.model = scene.built.schedule.event_model
        stream = stream_of(pair.first)
        assert stream is not None  # the host's own work comes before all that is issued later
        self.source, self.target = stream, stream_of(pair.second)
        self.protects = protects if scene.annotated else ()

    def drafts(self) -> Iterator[Draft]:
        """The proposals, the best first."""
        yield from self.with_earlier_issue()
        yield from self.with_idle_wait()
        yield from self.with_known_record()
        yield from self.with_record_in_loop()
        direct = self.scene.pulls or self.target is None
        if direct and not self.protects and self.scene.is_last_on_stream(self.pair):
            yield from self.with_whole_stream()
        yield from self.with_new_event()
        yield from self.with_whole_stream()

    # a wait that stands there and binds to nothing

    def idle_waits(self, before: int, stream: Indexed | None) -> Iterator[tuple[int, EventStep]]:
        """The waits without a record between a step and the work in front of it, on one stream."""
        if not self.scene.idle:
            return
        for number in self.family.before(before):
            step = self.family.steps[number]
            if isinstance(step, OpStep | HostStep | LoopStep) and (isinstance(step, LoopStep) or _on(step, stream)):
                return  # What is issued in between would wait as well.
            if number in self.scene.idle and isinstance(step, EventStep) and step.stream == stream and not step.when:
                yield number, step

    def with_earlier_issue(self) -> Iterator[Draft]:
        """A wait in front of the first op is meant for a record behind the second: issue that side first."""
        pair, family = self.pair, self.family
        apart = family.parents[pair.record_after] != family.parents[pair.wait_before]
        if pair.distance or apart or isinstance(family.steps[pair.record_after], LoopStep):
            return
        for number, wait in self.idle_waits(pair.record_after, self.source):
            behind = family.behind(pair.wait_before)
            record = next((at for at in behind if _is_record(family.steps[at], wait.event, self.target)), None)
            if record is None:
                continue
            between = [at for at in family.behind(number) if at <= record]
            block = [at for at in between if _on(family.steps[at], self.target)]
            if any(isinstance(family.steps[at], LoopStep) for at in between):
                continue
            draft = self.draft
            reason = f"`{step_text(wait)}` was issued before its record, and so waited for nothing"
            for at in block:
                draft = move(draft, self.built, at, family.steps[at], number, reason)
            yield draft

    def with_idle_wait(self) -> Iterator[Draft]:
        pair, family = self.pair, self.family
        if self.is_indexed_within(self.source):
            return
        for number, step in self.idle_waits(pair.wait_before, self.target):
            index = self.record_index(step.event.index)
            event = Indexed(step.event.name, index)
            origin = self.built.origins[number]
            draft = self.draft.keep(origin) if isinstance(origin, int) else self.draft
            record = EventStep(action="record", event=event, stream=self.source)
            idle_record = (at for at in self.scene.unheard if _is_record(family.steps[at], event, self.source))
            elsewhere = next(idle_record, None)
            if elsewhere is not None:
                record = replace(record, label=family.steps[elsewhere].label)
                reason = f"`{step_text(step)}` was issued before its record; {self.why}"
                yield move(draft, self.built, elsewhere, record, pair.record_after, reason, "after")
            reason = f"`{step_text(step)}` waits for a record that nothing makes; {self.why}"
            yield draft.add(record, "after", self.built.origins[pair.record_after], reason)

    def record_index(self, index: Expr | None) -> Expr | None:
        """The index of the record that a wait with an index asks for."""
        if index is None or self.pair.loop is None:
            return index
        name = index_name(self.family, self.pair)
        return back(index, name, -self.pair.distance)

    # a record that stands there

    def with_known_record(self) -> Iterator[Draft]:
        pair, family = self.pair, self.family
        for number in family.behind(pair.record_after):
            step = family.steps[number]
            if isinstance(step, EventStep) and step.action == "record" and step.stream == self.source:
                clear = self.model == "latch" or step.event.name not in self.scene.resets
                if clear and step.when in ((), family.steps[pair.record_after].when):
                    yield from self.with_record(step, number)
            elif isinstance(step, LoopStep) or self.source in streams_of(step):
                return  # A later record would cover more.

    def with_record(self, record: EventStep, number: int) -> Iterator[Draft]:
        """A wait for one record."""
        pair = self.pair
        name = record.event.name
        event, draft = record.event, self.draft
        guard: Condition = ()
        later = self.family.within(pair.wait_before, number) or pair.wait_before < number
        newest = int(later)
        if pair.loop is not None and pair.distance != newest:
            index = index_name(self.family, pair)
            if event.index is None or index not in names_in(event.index):
                return
            event = Indexed(name, back(event.index, index, pair.distance))
            ring = self.built.schedule.events[name].ring if name in self.built.schedule.events else None
            needed = pair.distance - newest + 1
            if ring is not None and ring < needed:
                reason = f"a wait for `{indexed_text(event)}` is issued {_after(needed - 1)}"
                draft = draft.set_ring(name, needed, reason)
            guard = self.first_guard()
        elif pair.loop is not None and event.index is not None and pair.distance:
            event = Indexed(name, back(event.index, index_name(self.family, pair), pair.distance))
            guard = self.first_guard()
        yield self.add_wait(draft, event, guard)

    def with_record_in_loop(self) -> Iterator[Draft]:
        """The last record that an inner loop makes, where one stands right after the op in it."""
        pair, family = self.pair, self.family
        loop = family.steps[pair.record_after]
        static = pair.first.static
        inside = isinstance(loop, LoopStep) and family.parents[static] == pair.record_after
        if not inside or not isinstance(loop, LoopStep) or self.model != "latch" or pair.distance > pair.newest:
            return
        for number in family.behind(static):
            step = family.steps[number]
            if isinstance(step, EventStep) and step.action == "record" and step.stream == self.source:
                event = step.event
                if event.index is not None:
                    event = Indexed(event.name, substitute(event.index, {loop.index: add(loop.hi, -1)}))
                if step.when in ((), family.steps[static].when):
                    yield self.add_wait(self.draft, event, ())
            elif isinstance(step, LoopStep) or _on(step, self.source):
                break
        if self.is_indexed_within(self.source):
            name = Indexed(self.free_name())
            record = EventStep(action="record", event=name, stream=self.source)
            draft = self.draft.add(record, "after", self.built.origins[static], self.why)
            yield self.add_wait(draft, name, ())

    # a new event

    def with_new_event(self) -> Iterator[Draft]:
        pair = self.pair
        if self.is_indexed_within(self.source):
            return
        name = self.free_name()
        record, wait = Indexed(name), Indexed(name)
        draft = self.draft
        guard: Condition = ()
        plain = self.model == "latch" and pair.ring <= 1
        if pair.loop is not None and not plain:
            index = index_name(self.family, pair)
            if self.model == "latch":
                draft = draft.set_ring(name, pair.ring, self.why)
            elif pair.nested:
                return  # A handle of its own for every instance needs one index that counts them all.
            record = Indexed(name, Name(index))
            wait = Indexed(name, add(Name(index), -pair.distance))
            guard = self.first_guard()
        step = EventStep(action="record", event=record, stream=self.source)
        draft = draft.add(step, "after", self.built.origins[pair.record_after], self.why)
        yield self.add_wait(draft, wait, guard)

    def free_name(self) -> str:
        """A name for an event that is not taken."""
        op = re.sub(r"[^\w.+-]", "_", getattr(self.pair.first.step, "op", "work"))[:LONGEST_STEM]
        stem = f"{op}.done" if self.built.schedule.plan is not None else f"{op}_done"
        name, number = stem, 1
        while name in self.scene.events:
            number += 1
            name = f"{stem}{number}"
        return name

    # everything that a stream was given so far

    def with_whole_stream(self) -> Iterator[Draft]:
        draft = self.draft
        sources = self.streams_to_wait_for()
        if not sources or len(sources) > MOST_STREAMS:
            return
        for source, guard in sources:
            step: AnyStep
            when = all_of((self.wait_guard(), guard))
            if self.target is None:
                step = SyncStep(kind="stream", target=source, when=when)
            else:
                step = WaitStreamStep(stream=self.target, target=source, when=when)
            draft = draft.add(step, "before", self.built.origins[self.wait_place()], self.why)
        yield draft

    def streams_to_wait_for(self) -> list[tuple[Indexed, Condition]]:
        """The first op's streams as the second has to name them, with guards."""
        pair, source = self.pair, self.source
        if source.index is None or not self.is_indexed_within(source):
            if source.index is None or pair.loop is None or not pair.distance:
                return [(source, ())]
            index = back(source.index, index_name(self.family, pair), pair.distance)
            return [(Indexed(source.name, index), () if "%" in indexed_text(source) else self.first_guard(True))]
        values: dict[int, None] = {}
        program = self.scene.program
        for node in program.nodes:
            if node.static == pair.first.static:
                name = program.threads[node.thread]
                digits = name.rpartition("@")[2] if "@" in name else name.removeprefix(source.name)
                values[int(digits)] = None
        return [(Indexed(source.name, Int(value)), ()) for value in sorted(values)]

    # common parts

    def is_indexed_within(self, stream: Indexed) -> bool:
        """Whether a stream's index has no value where the record would stand."""
        if stream.index is None:
            return False
        inner = self.family.indices_around(self.pair.first.static)
        return bool(names_in(stream.index) & (inner - self.family.indices_around(self.pair.record_after)))

    def first_guard(self, always: bool = False) -> Condition:
        """Keeps a wait from asking for what an earlier run of the loop recorded, or nobody."""
        pair = self.pair
        if pair.loop is None or not pair.distance or (self.model == "latch" and not pair.nested and not always):
            return ()
        low = add(lowest(self.family, pair.loop), pair.distance)
        return (Comparison(Name(index_name(self.family, pair)), ">=", low),)

    def wait_guard(self) -> Condition:
        return self.family.steps[self.pair.wait_before].when

    def add_wait(self, draft: Draft, event: Indexed, guard: Condition) -> Draft:
        when = all_of((self.wait_guard(), guard))
        step: AnyStep
        if self.target is None:
            step = SyncStep(kind="event", target=event, when=when)
        else:
            step = EventStep(action="wait", event=event, stream=self.target, when=when, protects=self.protects)
        return draft.add(step, "before", self.built.origins[self.wait_place()], self.why)

    def wait_place(self) -> int:
        """The step that the wait stands before: the second op, or the lock that its stream holds by then, since
        whoever waits with a lock in hand keeps others from what it waits for."""
        family, number = self.family, self.pair.wait_before
        if not self.scene.locks:
            return number
        held: dict[Indexed, int] = {}
        for at in reversed(list(family.before(number))):
            step = family.steps[at]
            if isinstance(step, FlagStep) and step.stream == self.target:
                if step.action == "acquire":
                    held.setdefault(step.flag, at)
                elif step.action == "release":
                    held.pop(step.flag, None)
        return min(held.values(), default=number)


def move(
    draft: Draft, built: Built, number: int, step: AnyStep, anchor: int, reason: str, side: Side = "before"
) -> Draft:
    """The draft with a step beside another one instead of where it stands."""
    origin = built.origins[number]
    source = origin if isinstance(origin, int) else origin.moved
    return draft.drop(origin, reason).add(step, side, built.origins[anchor], reason, source)


def _on(step: AnyStep, stream: Indexed | None) -> bool:
    """Whether a step acts on a stream; None is the issuing thread."""
    streams = streams_of(step)
    return stream in streams or (stream is None and (not streams or isinstance(step, SyncStep)))


def _is_record(step: AnyStep, event: Indexed, stream: Indexed | None) -> bool:
    return isinstance(step, EventStep) and step.action == "record" and (step.event, step.stream) == (event, stream)


def _after(records: int) -> str:
    return "after the next record" if records == 1 else f"after {records} more records"
