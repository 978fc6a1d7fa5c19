"""Which loop counts to go through so that all are proved, and what to say of them.

For one parameter n: let every loop that it counts have shown, in the run of some n, the same relative state twice
before its ending, P iterations apart, and let its count grow by a multiple of P from n to n + Q. The run of n + Q then
goes through the same states, with some cycles more, and from there on does what the run of n did: the same checks with
the same outcome, and it shows the same again. So where that holds for Q neighbouring values, all larger ones follow by
induction, and smaller ones have been run one by one. Counts are linear in n but for ``//`` and ``%`` by constants, of
which Q is a multiple; a count with ``min`` or ``max`` is not taken to go on as it began. Several parameters are treated
as a grid, each axis by that argument. Regions can bound a count; then it is simply run up to there.

A parameter that only counts the last loop needs few runs: a smaller value's run is the beginning of a larger one's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import lcm

from dagsched.plan.expressions import Binary, Call, Expr, evaluate, names_in, names_in_condition
from dagsched.plan.model import Plan
from dagsched.proof.instances import PlannedSegment, divisors, find_box, largest_in_condition
from dagsched.proof.rhythm import NEVER
from dagsched.proof.run import Outcome, Run, Subject
from dagsched.schedule.model import EventStep, LoopStep, OpStep

MOST_VALUES = 100
"""Values of one parameter that are run at the most, each by itself."""

ONE_BY_ONE = 32
"""Values of a parameter that are run where no pattern is found: what is proved then ends there."""

MOST_ALONE = 2_000
"""The largest value where a few runs tell of all smaller ones."""

PROBED = 5_000
"""Iterations that a probe goes through at the most before it gives up on a loop's coming back."""

MOST_WORK = 100_000
"""Op instances that are run at the most, all runs together; or so many that each op has ``MOST_RUNS``."""

MOST_RUNS = 60


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was run: a text for people, and per parameter (largest value, Q; 0: bounded by regions, or not repeated).

    ``complete``: no count that can occur is left unproved.
    """

    text: str
    params: dict[str, tuple[int, int]]
    complete: bool = True


def run_counts(subject: Subject, outcome: Outcome) -> Coverage:
    """Run as many counts as it takes."""
    names = sorted({name for segment in subject.segments for name in names_in(segment.count)})
    fixed = {name: value or 0 for name, value in subject.plan.params.items() if name not in names}
    if not names:
        Run(subject, fixed, outcome).go()
        return Coverage("the counts that the plan states", {})
    axes = {name: _measure(subject, name, names, fixed) for name in names}
    values = [_values(subject, name, axes[name], names) for name in names]
    work = 0
    complete = True
    per_iteration = max([1, *(len(segment.ops) for segment in subject.segments)])
    most = max(MOST_WORK, MOST_RUNS * per_iteration)
    for choice in product(*values):
        params = fixed | dict(zip(names, choice, strict=True))
        if not _is_allowed(subject, params):
            continue
        work += per_iteration * (1 + sum(choice))
        if work > most:
            complete = False
            axes |= _reached(axes, names, choice)
            break
        run = Run(subject, params, outcome)
        run.go()
        for name in names:
            if params[name] > axes[name].most - axes[name].period and not _goes_on(
                run, subject, name, axes[name].period
            ):
                axes[name] = Axis(axes[name].most, 0, axes[name].bounded)
    ran = {name: (axes[name].most, axes[name].period) for name in names}
    whole = complete and all(axis.period or axis.bounded for axis in axes.values())
    return Coverage(_describe(names, axes, complete, most), ran, whole)


def _reached(axes: dict[str, Axis], names: list[str], choice: tuple[int, ...]) -> dict[str, Axis]:
    """A grid that was run up to a choice, in order: the first coordinate that had moved by then ends before it."""
    moved = next((n for n, value in enumerate(choice) if value > 0), 0)
    ended = {name: Axis(0, 0, False) for name in names[:moved]}
    return ended | {names[moved]: Axis(choice[moved] - 1, 0, False)}


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter: the largest value to run, Q (0: none was found), whether regions bound it there."""

    most: int
    period: int
    bounded: bool


def _measure(subject: Subject, name: str, names: list[str], fixed: dict[str, int]) -> Axis:
    """Probe when the loops of a parameter repeat: that many iterations, their ending, and Q values more."""
    loops = [n for n, segment in enumerate(subject.segments) if name in names_in(segment.count)]
    allowed = _largest_allowed(subject, {**fixed, **dict.fromkeys(names, 0)}, name)
    cap = MOST_ALONE if _is_last_alone(subject, name, names) else MOST_VALUES
    one_by_one = Axis(allowed, 0, True) if allowed <= MOST_VALUES else Axis(ONE_BY_ONE, 0, False)
    if any(subject.rhythms[n].settled >= NEVER or _clamps(subject.segments[n].count) for n in loops):
        return one_by_one
    if _is_in_regions(subject.plan, name):  # another value touches other bytes: its run is not this one, continued
        return one_by_one
    probe = {**fixed, **dict.fromkeys(names, min(PROBED, allowed))}
    probe = probe if _is_allowed(subject, probe) else {**fixed, **dict.fromkeys(names, 0), name: min(PROBED, allowed)}
    run = Run(subject, probe, Outcome(), probe=True)
    run.go()
    if any(n not in run.repeated for n in loops):
        return one_by_one
    period = _guard_period(subject, name)
    for n in loops:
        period = lcm(period, run.repeated[n][1] * divisors(subject.segments[n].count))
    value = 1 + _largest_outside(subject, name)
    for n in loops:
        enough = run.repeated[n][0] + subject.rhythms[n].ending + subject.rhythms[n].stride
        while value < cap and evaluate(subject.segments[n].count, {**probe, name: value}) < enough:
            value += 1
    most = value + (period - 1 if len(names) == 1 else 3 * period)  # other loops can delay the pattern
    if allowed <= min(most, cap):
        return Axis(allowed, 0, True)
    return Axis(most, period, False) if most <= cap else one_by_one


def _is_in_regions(plan: Plan, name: str) -> bool:
    return any(
        bound is not None and name in names_in(bound)
        for op in plan.ops()
        for access in op.accesses
        for part in access.region
        for bound in (part.lo, part.hi)
    )


def _goes_on(run: Run, subject: Subject, name: str, period: int) -> bool:
    """Whether every loop that a parameter counts has come back to a state, and grows by whole cycles with it."""
    later = {**run.params, name: run.params[name] + period}
    for n, segment in enumerate(subject.segments):
        if name in names_in(segment.count):
            more = evaluate(segment.count, later) - evaluate(segment.count, run.params)
            if n not in run.repeated or more < 0 or more % run.repeated[n][1]:
                return False
    return True


def _clamps(expr: Expr) -> bool:
    """Whether a count has ``min`` or ``max`` in it."""
    if isinstance(expr, Binary):
        return _clamps(expr.left) or _clamps(expr.right)
    return isinstance(expr, Call)


def _guard_period(subject: Subject, name: str) -> int:
    """After how many values what looks at a parameter repeats: guards and indices, by divisors and rings."""
    period = 1
    for step in subject.schedule.walk():
        for comparison in step.when if name in names_in_condition(step.when) else ():
            period = lcm(period, divisors(comparison.left), divisors(comparison.right))
        if isinstance(step, EventStep) and step.event.index is not None and name in names_in(step.event.index):
            event = subject.schedule.events.get(step.event.name)
            period = lcm(period, ((event.ring if event else None) or 1) * divisors(step.event.index))
        if isinstance(step, OpStep):
            for access in step.accesses:
                if access.version is not None and name in names_in(access.version):
                    storage = subject.schedule.buffers.get(access.buffer)
                    period = lcm(period, (storage.ring if storage else 1) * divisors(access.version))
    return period


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


def _values(subject: Subject, name: str, axis: Axis, names: list[str]) -> list[int]:
    """The values of one parameter to run: all up to the largest, save where runs of smaller counts only begin alike.

    What an output holds in the end depends on where the newest version lies, so a period of ends is looked at then.
    """
    if not _is_last_alone(subject, name, names):
        return list(range(axis.most + 1))
    rings = subject.schedule.buffers
    ends = any(b.output and rings[b.name].ring > 1 for b in subject.plan.buffers.values() if b.name in rings)
    first = axis.most + 1 - (axis.period or axis.most) if ends else axis.most
    return sorted({0, 1, axis.most - 1, *range(first, axis.most + 1)} - {-1})


def _is_last_alone(subject: Subject, name: str, names: list[str]) -> bool:
    """Whether a parameter counts the last loop, and nothing else looks at any."""
    last = len(subject.segments) - 1
    counted = [n for n, segment in enumerate(subject.segments) if name in names_in(segment.count)]
    return len(names) == 1 and counted == [last] and not _is_named_elsewhere(subject, name)


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


def _describe(names: list[str], axes: dict[str, Axis], complete: bool, most: int) -> str:
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
    return text if complete else f"{text} (as far as {most:,} op instances reach; not every combination)"
