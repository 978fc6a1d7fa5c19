"""The makespan of a schedule whose counts are constants: simulated, the middle of long loops left out.

A long loop is cut to its first and last iterations; what is left out takes its steady state's interval each, if that is
what this schedule does: simulated again with one more period of a loop, it must take just that much longer. Where it
does not (two loops that run side by side, say), everything is simulated, and where that is too much (more than
``MANY_STEPS`` steps), the run is scaled from two shorter ones, and the figure is said to be an estimate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from dagsched.cost.counting import MANY_STEPS, count_of, count_steps, inner_steps, loop_texts, period_of
from dagsched.cost.durations import OpCost
from dagsched.cost.model import Device
from dagsched.cost.program import unroll_schedule
from dagsched.cost.simulator import run_program
from dagsched.cost.steady import find_steady_state
from dagsched.plan.expressions import Int, add
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, Schedule, SyncStep

LONG = 2_000
"""Iterations beyond this many are not simulated one by one, if the steady state says what they take."""

_KEPT = LONG // 8
"""Iterations that are kept at both ends of a long loop, at least."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A loop (by its place among the steps) of which ``left`` iterations can go, in steps of ``stride``."""

    at: int
    loop: LoopStep
    ticks: Fraction
    stride: int
    left: int


def find_makespan(schedule: Schedule, costs: Mapping[str, OpCost], device: Device) -> tuple[Fraction, bool]:
    """Ticks of a run, and whether that is what the simulator says; raises as :func:`unroll_schedule` does."""
    long = {at: step for at, step in enumerate(schedule.steps) if isinstance(step, LoopStep) and count_of(step) > LONG}
    if not long:
        return _simulate(schedule, costs, device), True
    cuts = [_cut(schedule, at, loop, costs, device) for at, loop in long.items()]
    known = [cut for cut in cuts if cut is not None]
    if len(known) == len(cuts):
        least = _simulate(_shorten(schedule, known), costs, device)
        # All together as well: of two loops that run side by side, either alone makes the run longer.
        grown = [[cut] for cut in known] + ([known] if len(known) > 1 else [])
        if all(
            _simulate(_shorten(schedule, _restore(known, some)), costs, device) - least
            == sum(cut.ticks * cut.stride for cut in some)
            for some in grown
        ):
            return least + sum(cut.ticks * cut.left for cut in known), True
    if count_steps(schedule.steps) <= MANY_STEPS:
        return _simulate(schedule, costs, device), True
    return _scale(schedule, long, costs, device), False


def _simulate(schedule: Schedule, costs: Mapping[str, OpCost], device: Device) -> Fraction:
    return Fraction(run_program(unroll_schedule(schedule, costs, device, {}), device, schedule).makespan)


def _cut(schedule: Schedule, at: int, loop: LoopStep, costs: Mapping[str, OpCost], device: Device) -> Cut | None:
    """How a long loop can be cut; None where its middle is not known to be all alike."""
    steady = find_steady_state(schedule, loop, costs, device)
    indexed = [event for step in inner_steps(loop) if (event := _event_of(step)) is not None]
    if not steady.exact or any(_ring(schedule, name) is None for name in indexed):
        return None
    assert isinstance(loop.lo, Int) and isinstance(loop.hi, Int)
    stride = steady.period
    for name in indexed:
        stride = lcm(stride, _ring(schedule, name) or 1)
    for text in loop_texts(loop):
        stride = lcm(stride, period_of(text))
        near = (int(number) for number in re.findall(r"[0-9]+", text))
        if any(loop.lo.value + _KEPT < number < loop.hi.value - _KEPT for number in near):
            return None
    left = (count_of(loop) - 2 * _KEPT) // stride * stride
    return Cut(at, loop, steady.ticks, stride, left) if left >= stride else None


def _restore(cuts: list[Cut], some: list[Cut]) -> list[Cut]:
    """The same with one stride less left out of some of the loops."""
    return [replace(cut, left=cut.left - cut.stride) if cut in some else cut for cut in cuts]


def _shorten(schedule: Schedule, cuts: list[Cut]) -> Schedule:
    """Each loop in two: its first iterations, and from ``left`` iterations later on the others, to the end."""
    steps: list[AnyStep] = []
    halves = {cut.at: cut for cut in cuts}
    for at, step in enumerate(schedule.steps):
        if at not in halves:
            steps.append(step)
            continue
        cut = halves[at]
        middle = add(cut.loop.lo, _KEPT)
        steps += [replace(cut.loop, hi=middle), replace(cut.loop, lo=add(middle, cut.left))]
    return replace(schedule, steps=tuple(steps))


def _scale(schedule: Schedule, long: Mapping[int, LoopStep], costs: Mapping[str, OpCost], device: Device) -> Fraction:
    """From two runs with all long loops shortened alike to the whole one."""
    part = Fraction(MANY_STEPS // 3, count_steps(schedule.steps))

    def shortened(part: Fraction) -> Fraction:
        steps = list(schedule.steps)
        for at, loop in long.items():
            steps[at] = replace(loop, hi=add(loop.lo, max(1, int(count_of(loop) * part))))
        return _simulate(replace(schedule, steps=tuple(steps)), costs, device)

    half, whole = shortened(part / 2), shortened(part)
    return whole + (whole - half) * (1 - part) / (part / 2)


def _event_of(step: AnyStep) -> str | None:
    """The event of a step that picks one of several handles."""
    if isinstance(step, EventStep):
        return step.event.name if step.event.index is not None else None
    if isinstance(step, SyncStep) and step.kind == "event" and step.target is not None:
        return step.target.name if step.target.index is not None else None
    return None


def _ring(schedule: Schedule, event: str) -> int | None:
    return schedule.events[event].ring if event in schedule.events else None
