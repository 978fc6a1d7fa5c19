"""Ways to spoil a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis import strategies as st

from dagsched.plan.expressions import add
from dagsched.plan.model import Access, Loop, Op, Plan
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, OpStep, Schedule


def map_steps(steps: tuple[AnyStep, ...], change: Callable[[AnyStep], AnyStep | None]) -> tuple[AnyStep, ...]:
    """Change every step; None drops it."""
    out: list[AnyStep] = []
    for step in steps:
        if isinstance(step, LoopStep):
            out.append(replace(step, steps=map_steps(step.steps, change)))
            continue
        changed = change(step)
        if changed is not None:
            out.append(changed)
    return tuple(out)


def waits_of(schedule: Schedule) -> list[EventStep]:
    """All wait steps."""
    return [step for step in schedule.walk() if isinstance(step, EventStep) and step.action == "wait"]


def without(schedule: Schedule, gone: AnyStep) -> Schedule:
    """A schedule without one step."""
    return replace(schedule, steps=map_steps(schedule.steps, lambda step: None if step is gone else step))


def with_step(schedule: Schedule, old: AnyStep, new: AnyStep) -> Schedule:
    """A schedule with one step replaced."""
    return replace(schedule, steps=map_steps(schedule.steps, lambda step: new if step is old else step))


@st.composite
def mutated(draw: st.DrawFn, schedule: Schedule) -> Schedule:
    """A schedule with one thing changed."""
    choices = list(_mutations(schedule))
    return draw(st.sampled_from(choices)) if choices else schedule


def _mutations(schedule: Schedule) -> Iterator[Schedule]:
    names = sorted(schedule.streams)
    for step in schedule.walk():
        if isinstance(step, EventStep):
            yield without(schedule, step)
            if step.event.index is not None:
                for shift in (-1, 1):
                    moved = replace(step, event=replace(step.event, index=add(step.event.index, shift)))
                    yield with_step(schedule, step, moved)
            if step.when:
                yield with_step(schedule, step, replace(step, when=()))
        elif isinstance(step, OpStep):
            for name in names:
                if name != step.stream.name:
                    yield with_step(schedule, step, replace(step, stream=replace(step.stream, name=name)))
    for event in schedule.events.values():
        if event.ring is not None and event.ring > 1:
            yield replace(schedule, events={**schedule.events, event.name: replace(event, ring=event.ring - 1)})


# The six ways in which a compiled schedule is spoiled to see whether the judges notice. Each yields pairs of a plan and
# a schedule: the plan as it was, save where a region is widened, which both must know.

Pair = tuple[Plan, Schedule]


def drop_wait(plan: Plan, schedule: Schedule) -> Iterator[Pair]:
    """Without one of the waits."""
    for wait in waits_of(schedule):
        yield plan, without(schedule, wait)


def move_record_earlier(plan: Plan, schedule: Schedule) -> Iterator[Pair]:
    """With a record in front of a step that it stood behind, in the same body."""
    for body in _bodies(schedule.steps):
        for number, step in enumerate(body):
            if isinstance(step, EventStep) and step.action == "record":
                for place in range(number):
                    moved = (*body[:place], step, *body[place:number], *body[number + 1 :])
                    yield plan, replace(schedule, steps=_with_body(schedule.steps, body, moved))


def shrink_event_ring(plan: Plan, schedule: Schedule) -> Iterator[Pair]:
    """With fewer handles for an event."""
    for event in schedule.events.values():
        for ring in range(1, event.ring or 1):
            yield plan, replace(schedule, events={**schedule.events, event.name: replace(event, ring=ring)})


def swap_handles(plan: Plan, schedule: Schedule) -> Iterator[Pair]:
    """With the handles of two records, or of two waits, exchanged."""
    steps = [step for step in schedule.walk() if isinstance(step, EventStep)]
    for number, one in enumerate(steps):
        for other in steps[:number]:
            if one.action == other.action and one.event != other.event and _same_scope(schedule, one, other):
                new = {id(one): replace(one, event=other.event), id(other): replace(other, event=one.event)}
                yield plan, replace(schedule, steps=map_steps(schedule.steps, lambda s, new=new: new.get(id(s), s)))  # type: ignore[misc]


def repin_op(plan: Plan, schedule: Schedule) -> Iterator[Pair]:
    """With an op on another stream."""
    for step in schedule.walk():
        if isinstance(step, OpStep):
            for name in sorted(schedule.streams):
                if name != step.stream.name:
                    moved = replace(step, stream=replace(step.stream, name=name))
                    yield plan, with_step(schedule, step, moved)


def widen_region(plan: Plan, schedule: Schedule) -> Iterator[Pair]:
    """With an access to all of a buffer where the plan says a part of it."""
    for step in schedule.walk():
        if isinstance(step, OpStep):
            for number, access in enumerate(step.accesses):
                if access.region:
                    wide = _widened(step.accesses, number)
                    yield _with_accesses(plan, step.op, wide), with_step(schedule, step, replace(step, accesses=wide))


MUTATIONS: dict[str, Callable[[Plan, Schedule], Iterator[Pair]]] = {
    mutation.__name__: mutation
    for mutation in (drop_wait, move_record_earlier, shrink_event_ring, swap_handles, repin_op, widen_region)
}


def _bodies(steps: tuple[AnyStep, ...]) -> Iterator[tuple[AnyStep, ...]]:
    yield steps
    for step in steps:
        if isinstance(step, LoopStep):
            yield from _bodies(step.steps)


def _with_body(steps: tuple[AnyStep, ...], old: tuple[AnyStep, ...], new: tuple[AnyStep, ...]) -> tuple[AnyStep, ...]:
    if steps is old:
        return new
    return tuple(
        replace(step, steps=_with_body(step.steps, old, new)) if isinstance(step, LoopStep) else step for step in steps
    )


def _same_scope(schedule: Schedule, one: AnyStep, other: AnyStep) -> bool:
    """Whether both stand in one body, so that an index of one has a value at the other."""
    return any({id(one), id(other)} <= {id(step) for step in body} for body in _bodies(schedule.steps))


def _widened(accesses: tuple[Access, ...], number: int) -> tuple[Access, ...]:
    return tuple(replace(a, region=()) if at == number else a for at, a in enumerate(accesses))


def _with_accesses(plan: Plan, name: str, accesses: tuple[Access, ...]) -> Plan:
    def change(item: Op | Loop) -> Op | Loop:
        if isinstance(item, Loop):
            return replace(item, body=tuple(map(change, item.body)))
        return replace(item, accesses=accesses) if item.name == name else item

    return replace(plan, items=tuple(map(change, plan.items)))
