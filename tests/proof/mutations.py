"""Ways to spoil a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis import strategies as st

from dagsched.plan.expressions import add
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
