"""Which loop counts to go through so that all are proved, and what to say of them.

For one parameter: let every loop that it counts have shown, in the run of count n, the same relative state twice before
its ending, at a distance P. A run of count n + P then goes through the same states, with the cycle once more, and from
there on does what the run of count n did: the same checks with the same outcome. So when that holds for P neighbouring
counts, all larger ones follow by induction, and smaller ones have been run one by one. Several parameters are treated
as a grid, each axis by that argument. Regions can bound a count; then it is simply run up to there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import lcm

from dagsched.plan.expressions import Expr, evaluate, names_in, names_in_condition
from dagsched.plan.model import Plan
from dagsched.proof.instances import PlannedSegment, find_box, largest_in_condition
from dagsched.proof.rhythm import NEVER
from dagsched.proof.run import Outcome, Run, Subject
from dagsched.schedule.model import EventStep, LoopStep, OpStep

MOST_VALUES = 100
"""Values of one parameter that are run at the most."""

PROBED = 5_000
"""Iterations that a probe goes through at the most before it gives up on a loop's coming back."""

MOST_WORK = 100_000
"""Op instances that are run at the most, all runs together."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was run: a text for people, and per parameter (values run, period; period 0: bounded or not repeated)."""

    text: str
    params: dict[str, tuple[int, int]]
    bounded: bool = False


def run_counts(subject: Subject, outcome: Outcome) -> Coverage:
    """Run as many counts as it takes; stops early where a problem shows."""
    names = sorted({name for segment in subject.segments for name in names_in(segment.count)})
    fixed = {name: value or 0 for name, value in subject.plan.params.items() if name not in names}
    if not names:
        Run(subject, fixed, outcome).go()
        return Coverage("the counts that the plan states", {})
    axes = {name: _measure(subject, name, names, fixed) for name in names}
    values = [_values(subject, name, axes[name], alone=len(names) == 1) for name in names]
    work = 0
    complete = True
    per_iteration = max([1, *(len(segment.ops) for segment in subject.segments)])
    for choice in product(*values):
        params = fixed | dict(zip(names, choice, strict=True))
        if not _is_allowed(subject, params):
            continue
        work += per_iteration * (1 + sum(choice))
        if work > MOST_WORK:
            complete = False
            break
        run = Run(subject, params, outcome)
        run.go()
        for name in names:
            if params[name] > axes[name].most - axes[name].period and not _has_repeated(run, subject, name):
                axes[name] = Axis(axes[name].most, 0, axes[name].bounded)
    ran = {name: (axes[name].most, axes[name].period) for name in names}
    bounded = not complete or any(not axis.period and not axis.bounded for axis in axes.values())
    return Coverage(_describe(names, axes, complete), ran, bounded)


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter: the largest value to run, the period shown (0: none), whether regions bound it there."""

    most: int
    period: int
    bounded: bool


def _measure(subject: Subject, name: str, names: list[str], fixed: dict[str, int]) -> Axis:
    """Probe when the loops of a parameter repeat: that many iterations, their ending, and a period of counts more."""
    loops = [n for n, segment in enumerate(subject.segments) if name in names_in(segment.count)]
    period = 1
    for n in loops:
        period = lcm(period, subject.rhythms[n].stride)
    allowed = _largest_allowed(subject, {**fixed, **dict.fromkeys(names, 0)}, name)
    probe = {**fixed, **dict.fromkeys(names, min(PROBED, allowed)), name: min(PROBED, allowed)}
    probe = probe if _is_allowed(subject, probe) else {**fixed, **dict.fromkeys(names, 0), name: min(PROBED, allowed)}
    if any(subject.rhythms[n].settled >= NEVER for n in loops):
        return Axis(min(allowed, MOST_VALUES), 0, allowed <= MOST_VALUES)
    run = Run(subject, probe, Outcome(), probe=True)
    run.go()
    if any(n not in run.repeated for n in loops) or period > MOST_VALUES:
        return Axis(min(allowed, MOST_VALUES), 0, allowed <= MOST_VALUES)
    value = 1 + _largest_outside(subject, name)
    for n in loops:
        enough = run.repeated[n] + subject.rhythms[n].ending + subject.rhythms[n].stride
        while value < MOST_VALUES and evaluate(subject.segments[n].count, {**probe, name: value}) < enough:
            value += 1
    most = value + (period - 1 if len(names) == 1 else 3 * period)  # other loops can delay the pattern
    return Axis(min(most, allowed), period, allowed <= most)


def _has_repeated(run: Run, subject: Subject, name: str) -> bool:
    """Whether every loop that a parameter counts has come back to a state in a run."""
    return all(n in run.repeated for n, segment in enumerate(subject.segments) if name in names_in(segment.count))


def _largest_allowed(subject: Subject, params: dict[str, int], name: str) -> int:
    """The largest value up to ``PROBED`` that regions and counts allow; allowed values are taken to have no gaps."""
    low = next((value for value in range(64) if _is_allowed(subject, {**params, name: value})), 0)
    if _is_allowed(subject, {**params, name: PROBED}):
        return PROBED
    high = PROBED
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_allowed(subject, {**params, name: middle}) else (low, middle)
    return low


def _values(subject: Subject, name: str, axis: Axis, *, alone: bool) -> list[int]:
    """The values of one parameter to run: all up to the largest, save where runs of smaller counts only begin alike."""
    last = len(subject.segments) - 1
    only_last = [n for n, segment in enumerate(subject.segments) if name in names_in(segment.count)] == [last]
    if alone and only_last and not _is_named_elsewhere(subject, name):
        return sorted({0, 1, axis.most - 1, axis.most} - {-1})
    return list(range(axis.most + 1))


def _is_named_elsewhere(subject: Subject, name: str) -> bool:
    """Whether anything but counts looks at a parameter."""
    expressions: list[Expr | None] = []
    for step in subject.schedule.walk():
        if name in names_in_condition(step.when):
            return True
        if isinstance(step, EventStep):
            expressions.append(step.event.index)
        elif isinstance(step, OpStep):
            for access in step.accesses:
                expressions += [access.version, *(b for part in access.region for b in (part.lo, part.hi))]
    return any(expr is not None and name in names_in(expr) for expr in expressions)


def _largest_outside(subject: Subject, name: str) -> int:
    """The largest constant in a guard that looks at a parameter: from there on guards hold evenly."""
    reach = 0
    for step in subject.schedule.walk():
        if not isinstance(step, LoopStep) and name in names_in_condition(step.when):
            reach = max(reach, largest_in_condition(step.when))
    return min(reach, MOST_VALUES)


def _is_allowed(subject: Subject, params: dict[str, int]) -> bool:
    """Whether counts are not negative and regions stay inside their buffers."""
    return all(_segment_fits(subject.plan, segment, params) for segment in subject.segments)


def _segment_fits(plan: Plan, segment: PlannedSegment, params: dict[str, int]) -> bool:
    count = evaluate(segment.count, params)
    if count < 0:
        return False
    if segment.index is None or count == 0:
        return True
    for planned in segment.ops:
        for access in planned.op.accesses:
            bounds = [bound for part in access.region for bound in (part.lo, part.hi) if bound is not None]
            if not any(segment.index in names_in(bound) for bound in bounds):
                continue
            buffer = plan.buffers[access.buffer]
            for iteration in {0, count // 2, count - 1}:
                box = find_box(access, buffer, {**params, **dict(planned.inner), segment.index: iteration})
                if not all(0 <= lo < hi <= extent for (lo, hi), extent in zip(box, buffer.extents, strict=True)):
                    return False
    return True


def _describe(names: list[str], axes: dict[str, Axis], complete: bool) -> str:
    parts = []
    for name in names:
        axis = axes[name]
        if axis.period:
            parts.append(f"every count `{name}` from 0 up")
        elif axis.bounded:
            parts.append(f"every count `{name}` from 0 to {axis.most}, the largest that its regions allow")
        else:
            parts.append(f"every count `{name}` from 0 to {axis.most}")
    text = ", ".join(parts)
    return text if complete else f"{text} (as far as {MOST_WORK:,} op instances reach; not every combination)"
