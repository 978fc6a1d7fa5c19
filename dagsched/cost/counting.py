"""How often each op of a schedule runs: in one run, or in an iteration of a loop that goes on and on.

Guards count: an op with ``when: i % 4 == 0`` runs in every fourth iteration. Invariant: never more than the truth, so
that limits made of it are limits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from math import lcm, prod
from typing import Literal

from dagsched.plan.expressions import Expr, Int, condition_text, evaluate, expression_text, holds
from dagsched.schedule.model import AnyStep, HostStep, LoopStep, OpStep, Schedule

MANY_STEPS = 300_000
"""A run of more steps is not walked: ops with guards are left out of the count then."""

_MOST_ROUNDS = 5_040
"""The same for the iterations after which the guards of a loop repeat."""

_LATE = 1 << 30
"""An iteration far from a loop's ends."""


Thread = Literal["stream", "issuing"]
"""Where something runs: on a stream, or on the issuing thread itself (a host step)."""


def count_run(schedule: Schedule, names: Collection[str], thread: Thread = "stream") -> Counter[str]:
    """How often each of the named ops runs there, in a schedule whose loops have constant counts."""
    if count_steps(schedule.steps) <= MANY_STEPS:
        known = {name: value for name, value in schedule.params.items() if value is not None}
        return Counter(name for name in _walk(schedule.steps, known, thread) if name in names)
    found: Counter[str] = Counter()

    def multiply(steps: tuple[AnyStep, ...], times: int) -> None:
        for step in steps:
            if isinstance(step, LoopStep):
                multiply(step.steps, times * (0 if step.when else count_of(step)))
            elif not step.when and (name := _name(step, thread)) is not None and name in names:
                found[name] += times

    multiply(schedule.steps, 1)
    return found


def count_iteration(
    loop: LoopStep, names: Collection[str], params: Mapping[str, int], thread: Thread = "stream"
) -> dict[str, Fraction]:
    """How often each of the named ops runs there in an iteration, on average; open ``params`` are large."""
    rounds = lcm(1, *map(period_of, loop_texts(loop)))
    guarded = rounds > _MOST_ROUNDS
    if guarded:
        rounds = 1
    found: Counter[str] = Counter()
    for at in range(_LATE, _LATE + rounds):
        env = {**params, loop.index: at}
        found.update(name for name in _walk(loop.steps, env, thread, guarded) if name in names)
    return {name: Fraction(times, rounds) for name, times in found.items()}


def count_of(loop: LoopStep) -> int:
    """Iterations of a loop of constant count; 0 for others."""
    return max(0, loop.hi.value - loop.lo.value) if isinstance(loop.lo, Int) and isinstance(loop.hi, Int) else 0


def count_steps(steps: tuple[AnyStep, ...]) -> int:
    """Steps in one run, guards passed over."""
    return sum(count_of(step) * count_steps(step.steps) if isinstance(step, LoopStep) else 1 for step in steps)


def period_of(text: str) -> int:
    """After how many iterations an expression or a condition repeats, or a multiple of that: what it divides by."""
    return prod(int(number) or 1 for number in re.findall(r"(?:%|//) ?([0-9]+)", text))


def loop_texts(loop: LoopStep) -> Iterator[str]:
    """The expressions that say what a loop's iterations do."""
    for step in inner_steps(loop):
        yield condition_text(step.when)
        keys = ("stream", "event", "target", "flag")
        found: list[Expr | None] = [getattr(getattr(step, key, None), "index", None) for key in keys]
        if isinstance(step, LoopStep):
            found += [step.lo, step.hi]
        elif isinstance(step, OpStep):
            found.append(step.iteration)
        yield from (expression_text(expr) for expr in found if expr is not None)


def inner_steps(loop: LoopStep) -> Iterator[AnyStep]:
    """All steps in a loop, those of loops in it included."""
    for step in loop.steps:
        yield step
        if isinstance(step, LoopStep):
            yield from inner_steps(step)


def _walk(steps: tuple[AnyStep, ...], env: dict[str, int], thread: Thread, unguarded: bool = False) -> Iterator[str]:
    for step in steps:
        if (step.when and unguarded) or not holds(step.when, env):
            continue
        if isinstance(step, LoopStep):
            for at in range(evaluate(step.lo, env), evaluate(step.hi, env)):
                yield from _walk(step.steps, {**env, step.index: at}, thread, unguarded)
        elif (name := _name(step, thread)) is not None:
            yield name


def _name(step: AnyStep, thread: Thread) -> str | None:
    if isinstance(step, OpStep):
        return step.op if thread == "stream" else None
    return step.host if isinstance(step, HostStep) and thread == "issuing" else None
