"""When a loop's state can be compared with an earlier one's: its stride, its settling, its ending.

A schedule's loop treats iteration i as it treats i + stride where everything that depends on i does: slots and handles
(``mod`` ring), ``//`` and ``%``, and guards. Guards with constants (``i >= 3``) hold evenly from the largest constant
on (*settled*); guards that look at the loop's end (``i == n-1``) matter in the last iterations only (*ending*).
Regions must be the same again (constants, ``%``), move as a whole with their buffer's others, or grow: of all others
the state does not tell what they touch next, and the loop is never settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import lcm
from typing import Literal

from dagsched.plan.expressions import (
    Binary,
    Call,
    Comparison,
    Expr,
    ExpressionError,
    Int,
    evaluate,
    linear_in,
    names_in,
    names_in_condition,
)
from dagsched.plan.model import Access, Plan, Slice
from dagsched.proof.growing import Growing, find_growing
from dagsched.proof.instances import PlannedSegment, divisors, find_box, largest_constant, largest_in_condition
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, OpStep, Schedule

NEVER = 2**62
"""Settled at no count: such loops are gone through one by one."""

NEAR_END = 1_024
"""A constant this close below a constant count is taken to look at the loop's end."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """See the module; ``windows`` maps buffers whose region moves to (step per iteration, lowest bound at 0).

    ``drain`` is how many rounds the loop goes on after its last iteration has begun (software pipelining); before round
    r, all ops of the iterations before r - drain have been issued.
    """

    stride: int
    settled: int
    ending: int
    constant: bool
    windows: dict[str, tuple[int, int]]
    drain: int = 0
    growing: dict[str, Growing] = field(default_factory=dict)

    def may_repeat(self, iteration: int, count: int) -> bool:
        """Whether the state before an iteration is worth comparing."""
        return iteration % self.stride == 0 and self.settled <= iteration <= count - self.ending


def find_rhythm(
    plan: Plan,
    schedule: Schedule,
    segment: PlannedSegment,
    loop: LoopStep | None,
    others: Iterable[PlannedSegment] = (),
) -> Rhythm:
    """The rhythm of one of the plan's segments, for the loop of the schedule that stands for it.

    ``others`` are the other segments: where they touch fixed parts of a buffer that this one goes through, the loop is
    settled only once it has passed them, and never where they go through that buffer themselves.
    """
    if segment.index is None or loop is None:
        return Rhythm(1, 0, 0, True, {})
    count = segment.count.value if isinstance(segment.count, Int) else None
    others = tuple(others)
    stride, settled, ending = 1, 0, 0
    for step in loop.steps:
        for c in step.when:
            stride = lcm(stride, divisors(c.left), divisors(c.right))
            reach, names = largest_in_condition((c,)), names_in_condition((c,))
            if loop.index in names and len(names) > 1:
                kind = _looks_at(c, loop.index, names - {loop.index}, segment.count)
                ending = max(ending, reach + 1 if kind == "end" else 0)
                settled = max(settled, reach + 1 if kind == "start" else 0 if kind == "end" else NEVER)
            elif loop.index in names and count is not None and abs(count - reach) <= NEAR_END and count > 2 * NEAR_END:
                ending = max(ending, count - reach + 1, 1)
            elif loop.index in names:
                settled = max(settled, reach + 1)
        stride = lcm(stride, _step_stride(schedule, step))
    for planned in segment.ops:
        settled = max([settled, *(distance for _, distance in planned.after)])
        for access in planned.op.accesses:
            storage = schedule.buffers.get(access.buffer)
            stride = lcm(stride, (storage.ring if storage else 1) * divisors(access.version))
            if access.version is not None and not _is_plain(access.version):
                settled = max(settled, largest_constant(access.version))
            for part in access.region:
                stride = lcm(stride, divisors(part.lo), divisors(part.hi))
    windows = _find_windows(plan, segment)
    settled = max([settled, *(_passed(plan, others, name, window) for name, window in windows.items())])
    drain = find_drain(loop) or 0
    growing = find_growing(plan, segment, others, windows)
    settled = max([settled, *(buffer.settled() for buffer in growing.values())])
    for access in (access for planned in segment.ops for access in planned.op.accesses):
        if access.buffer not in windows and access.buffer not in growing and _is_uneven(access, segment.index):
            settled = NEVER  # what it touches next, the state does not tell
    return Rhythm(stride, settled + drain, ending, count is not None, windows, drain, growing)


def _looks_at(
    comparison: Comparison, index: str, others: frozenset[str], count: Expr
) -> Literal["start", "end", "middle"]:
    """Where a guard with parameters looks: as far from the loop's start, or from its end, whatever the parameters are.

    Tried on values, a whole period of all divisors apart; ``middle`` is what keeps neither distance.
    """
    period = divisors(comparison.left) * divisors(comparison.right) * divisors(count)

    def difference(at: int, env: dict[str, int]) -> int:
        return evaluate(comparison.left, {**env, index: at}) - evaluate(comparison.right, {**env, index: at})

    beyond = 4 + largest_in_condition((comparison,)) + largest_constant(count)
    base = dict.fromkeys(others | names_in(count), beyond * period)
    moved = [{**base, name: base[name] + times * period} for name in sorted(base) for times in (1, 2)]
    try:
        ends = [evaluate(count, env) for env in (base, *moved)]
        for back in range(period + 1):
            if any(difference(back, env) != difference(back, base) for env in moved):
                break
        else:
            return "start"
        for back in range(period + 1):
            seen = {difference(end - 1 - back, env) for end, env in zip(ends, (base, *moved), strict=True)}
            if len(seen) > 1:
                return "middle"
    except ExpressionError:
        return "middle"
    return "end"


def find_drain(loop: LoopStep) -> int | None:
    """The most rounds that an op of a loop is late (``op: download@i-1``: 1); None where that is no number."""
    late = 0
    for step in loop.steps:
        if not isinstance(step, OpStep) or step.iteration is None:
            continue
        linear = linear_in(step.iteration, loop.index)
        if linear is None or linear[0] != 1 or not isinstance(linear[1], Int) or linear[1].value > 0:
            return None
        late = max(late, -linear[1].value)
    return late


def _passed(plan: Plan, others: Iterable[PlannedSegment], name: str, window: tuple[int, int]) -> int:
    """The iteration at which a moving region is past all that other segments single out of its buffer."""
    step, low = window
    reached = 0
    for segment in others:
        for planned in segment.ops:
            for access in planned.op.accesses:
                if access.buffer != name or not access.region:
                    continue
                bounds = [bound for bound in (access.region[0].lo, access.region[0].hi) if bound is not None]
                used = {other for bound in bounds for other in names_in(bound)} - {index for index, _ in planned.inner}
                if used:
                    return NEVER
                hi = access.region[0].hi
                end = plan.buffers[name].extents[0] if hi is None else evaluate(hi, dict(planned.inner))
                reached = max(reached, (end - low) // step + 2)
    return reached


def _is_plain(expr: Expr) -> bool:
    return not names_in(expr)


def _step_stride(schedule: Schedule, step: AnyStep) -> int:
    if isinstance(step, EventStep):
        event = schedule.events.get(step.event.name)
        return (event.ring or 1 if event else 1) * divisors(step.event.index)
    if isinstance(step, OpStep):
        result = 1
        for access in step.accesses:
            storage = schedule.buffers.get(access.buffer)
            result = lcm(result, (storage.ring if storage else 1) * divisors(access.version))
        return result
    return 1


def _find_windows(plan: Plan, segment: PlannedSegment) -> dict[str, tuple[int, int]]:
    """Buffers all of whose accesses move up by one step per iteration."""
    assert segment.index is not None
    found: dict[str, set[tuple[int, int] | None]] = {}
    for planned in segment.ops:
        for access in planned.op.accesses:
            found.setdefault(access.buffer, set()).add(_window(plan, segment.index, planned.inner, access))
    windows = {}
    for name, rows in found.items():
        steps = {row[0] for row in rows if row is not None}
        if None not in rows and len(steps) == 1 and (step := steps.pop()) > 0:
            windows[name] = (step, min(row[1] for row in rows if row is not None))
    return windows


def _window(plan: Plan, index: str, inner: tuple[tuple[str, int], ...], access: Access) -> tuple[int, int] | None:
    """How a region moves as a whole on its first axis; read from its form, since some iterations prove nothing."""
    if not access.region or any(_follows(part, index) for part in access.region[1:]):
        return None
    lo, hi = access.region[0].lo, _without_clamp(access.region[0].hi, plan.buffers[access.buffer].extents[0])
    below, above = (None if bound is None else linear_in(bound, index) for bound in (lo, hi))
    if below is None or above is None or below[0] != above[0] or below[0] <= 0:
        return None
    try:
        low = find_box(access, plan.buffers[access.buffer], {**dict(inner), index: 0})[0][0]
    except ValueError:
        return None
    return below[0], low


def _without_clamp(bound: Expr | None, extent: int) -> Expr | None:
    """An upper bound without a `min` with the buffer's end: what it cuts off does not exist."""
    if isinstance(bound, Call) and bound.function == "min":
        free = [argument for argument in bound.args if not (isinstance(argument, Int) and argument.value >= extent)]
        return free[0] if len(free) == 1 else bound
    return bound


def _follows(part: Slice, index: str) -> bool:
    return any(bound is not None and index in names_in(bound) for bound in (part.lo, part.hi))


def _is_even(expr: Expr | None, index: str) -> bool:
    """Whether an expression comes back to its values with the index: it is free of it but for ``%``."""
    if expr is None or index not in names_in(expr):
        return True
    if isinstance(expr, Binary):
        if expr.op == "%" and isinstance(expr.right, Int):
            linear = linear_in(expr.left, index)
            return linear is not None or _is_even(expr.left, index)
        return _is_even(expr.left, index) and _is_even(expr.right, index)
    if isinstance(expr, Call):
        return all(_is_even(argument, index) for argument in expr.args)
    return False


def _is_uneven(access: Access, index: str) -> bool:
    """Whether a region is not the same again some iterations later."""
    return not all(_is_even(bound, index) for part in access.region for bound in (part.lo, part.hi))
