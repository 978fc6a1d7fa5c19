"""For which loop counts a schedule is checked, and why that is enough.

Runs with equal counts modulo the period, all loops of which have become steady, pass through the same states: each
loop is entered in the same state, repeats the same iterations, and is left in the same state. So once every run of the
last ``period`` counts is steady, those and all smaller ones stand for every count. Where no such argument is known
(:class:`~dagsched.proof.check_shape.OutOfReach`) as many counts as the budget allows are checked, and the text says so.
Counts at which a region leaves its buffer are none (``check_roofs``): where those before are few, all are checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from math import lcm

from dagsched.plan.expressions import Int, Name, evaluate, names_in, substitute
from dagsched.proof.check_expand import TooManySteps
from dagsched.proof.check_roofs import find_roofs
from dagsched.proof.check_shape import OutOfReach, Shape, find_shape, used_params
from dagsched.schedule.model import AnyStep, LoopStep, Schedule

Repeats = dict[int, tuple[int, int]]
Try = Callable[[dict[str, int], Shape], Repeats | None]
Size = Callable[[dict[str, int]], int]
FAR = 64
"""Loops with constant counts up to this are always enumerated."""
BLIND = 32
"""Counts tried, from 0 up, where no argument for all of them is known."""
GRID = 20_000
"""The most combinations of counts looked at, where there are several parameters."""


@dataclass(slots=True)
class Counts:
    """The values of parameters to check, largest last, and for which counts that holds.

    ``schedule`` is the one to check (long constant loops may be cut to an equivalent length). ``whole`` is False where
    the answer holds for these counts only, for the ``reason`` given.
    """

    schedule: Schedule
    environments: list[dict[str, int]] = field(default_factory=list)
    text: str = "the counts in the file"
    whole: bool = True
    reason: str = ""

    def upto(self, environments: list[dict[str, int]]) -> str:
        """For which counts an answer holds that was found for some of the environments."""
        if self.whole or not self.reason:
            return self.text
        top = max((max(env.values()) for env in environments), default=0)
        names = ", ".join(f"`{name}`" for name in environments[0]) if environments else "the parameters"
        return f"counts {names} from 0 to {top} only: {self.reason}"


def choose_counts(schedule: Schedule, attempt: Try, size_of: Size, max_count: int, budget: int) -> Counts:
    """Choose the counts to check. ``attempt`` runs one and says how its loops repeat; ``size_of`` counts instances."""
    params = used_params(schedule)
    if not params:
        return Counts(schedule, [{}])
    roofs = find_roofs(schedule, params)
    reason = ""
    try:
        shape = find_shape(schedule, params)
        environments = _prove(params, shape, attempt, size_of, min((max_count, *roofs.values())), budget)
        if environments is not None:
            return Counts(schedule, environments, "every count from 0 up")
        reason = "the loops do not reach a steady state soon enough to say more"
    except OutOfReach as error:
        reason = str(error)
    environments = []
    last = max(roofs.values()) if len(roofs) == len(params) else max_count
    for top in range(min(BLIND, max_count) + 1):
        if top > last:
            return Counts(schedule, environments, _within(roofs))
        if top and (top + 1) ** len(params) > GRID:
            break
        following = [dict(zip(params, values, strict=True)) for values in product(range(top + 1), repeat=len(params))]
        following = [
            env
            for env in following
            if max(env.values()) == top and all(env[name] <= roof for name, roof in roofs.items())
        ]
        try:
            budget -= sum(map(size_of, following))
        except TooManySteps:
            break
        if budget < 0 and environments:
            break
        environments += following
    return Counts(schedule, environments, "", False, reason)


def _within(roofs: dict[str, int]) -> str:
    tops = ", ".join(f"`{name}` from 0 to {roof}" for name, roof in roofs.items())
    return f"every count {tops}, the largest that regions allow"


def _prove(
    params: tuple[str, ...], shape: Shape, attempt: Try, size_of: Size, max_count: int, budget: int
) -> list[dict[str, int]] | None:
    """The environments that stand for every count, or None."""
    top = min(shape.settled + shape.tail + 2 * shape.period + 4, max_count)
    most = min(16 * top, max_count)
    while True:
        env = dict.fromkeys(params, top)
        if size_of(env) > budget // 4:
            return None
        repeats = attempt(env, shape)
        if repeats is None:
            return None
        if repeats.keys() == shape.loops.keys():
            period = lcm(shape.period, *(length for _, length in repeats.values()))
            reach = max((start + length for start, length in repeats.values()), default=0)
            needed = max(reach + shape.tail, shape.settled) + period
            if needed <= top:
                break
            top, longer = needed, needed
        else:
            longer = 2 * top
            top = longer
        if longer > most:
            return None
    if not shape.ends_with_work:  # Shorter runs are beginnings of the longest.
        return [dict.fromkeys(params, count) for count in (0, 1, needed)]
    if (needed + 1) ** len(params) > GRID:
        return None
    environments = [dict(zip(params, values, strict=True)) for values in product(range(needed + 1), repeat=len(params))]
    if sum(map(size_of, environments)) > budget:
        return None
    if len(shape.loops) > 1 or len(params) > 1:
        for env in environments:
            if max(env.values()) > needed - period and not _is_steady(env, shape, attempt(env, shape), needed, period):
                return None
    return environments


def _is_steady(env: dict[str, int], shape: Shape, repeats: Repeats | None, needed: int, period: int) -> bool:
    """Whether every loop that runs for one of the last ``period`` counts was seen to repeat."""
    if repeats is None:
        return False
    for number, loop in shape.loops.items():
        if any(env.get(name, 0) > needed - period for name in names_in(loop.hi)):
            start, length = repeats.get(number, (needed, 1))
            if start + length + shape.tail > needed or period % length:
                return False
    return True


def shorten(
    schedule: Schedule, attempt: Callable[[Schedule, dict[str, int], Shape], Repeats | None]
) -> Schedule | None:
    """A schedule with shorter constant loops that behaves the same, or None where none is found."""
    bounds: dict[str, int] = {}
    steps = []
    for step in schedule.steps:
        if isinstance(step, LoopStep) and not names_in(step.hi) | names_in(step.lo):
            count = evaluate(step.hi, {})
            if count - evaluate(step.lo, {}) > FAR:
                name = f"the count of the loop {len(bounds)}"
                bounds[name] = count
                step = replace(step, hi=Name(name))
        steps.append(step)
    if not bounds:
        return None
    open_ended = replace(schedule, steps=tuple(steps), params={**schedule.params, **dict.fromkeys(bounds)})
    try:
        shape = find_shape(open_ended, bounds)
    except OutOfReach:
        return None
    top = shape.settled + shape.tail + 3 * shape.period + 4
    for _ in range(6):
        if top >= max(bounds.values()):
            return None
        env = {name: min(count, top) for name, count in bounds.items()}
        try:
            repeats = attempt(open_ended, env, shape)
        except TooManySteps:
            return None
        if repeats is None:
            return None
        if repeats.keys() == shape.loops.keys():
            period = lcm(shape.period, *(length for _, length in repeats.values()))
            reach = max(start + length for start, length in repeats.values()) + shape.tail
            lengths = {
                name: count if count <= top else reach + (count - reach) % period for name, count in bounds.items()
            }
            again = attempt(open_ended, lengths, shape)
            if again is not None and all(
                number in again and sum(again[number]) + shape.tail <= evaluate(loop.hi, lengths)
                for number, loop in shape.loops.items()
            ):
                return _with_counts(open_ended, schedule, lengths)
        top *= 2
    return None


def _with_counts(open_ended: Schedule, schedule: Schedule, lengths: dict[str, int]) -> Schedule:
    steps = []
    for step in open_ended.steps:
        if isinstance(step, LoopStep):
            step = replace(step, hi=substitute(step.hi, {name: Int(count) for name, count in lengths.items()}))
        steps.append(step)
    return replace(schedule, steps=tuple(steps))


def count_steps(schedule: Schedule, env: dict[str, int]) -> int:
    """How many instances a schedule has, guards aside."""
    return _count(schedule.steps, dict(env))


def _count(steps: tuple[AnyStep, ...], env: dict[str, int]) -> int:
    total = 0
    for step in steps:
        if not isinstance(step, LoopStep):
            total += 1
            continue
        lo, hi = evaluate(step.lo, env), evaluate(step.hi, env)
        inner = [s for s in step.steps if isinstance(s, LoopStep)]
        if any(step.index in names_in(loop.lo) | names_in(loop.hi) for loop in inner):
            total += sum(_count(step.steps, {**env, step.index: value}) + 1 for value in range(lo, hi))
        else:
            total += max(hi - lo, 0) * (_count(step.steps, {**env, step.index: lo}) + 1)
    return total
