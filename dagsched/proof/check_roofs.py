"""The largest values of parameters at which a schedule's regions stay inside their buffers.

Beyond them nobody can run the schedule, so it is not checked there. Looked at are accesses of loops of which a bound
moves up with the loop's index, in buffers of known extents, where the loop ends by a linear expression of one parameter
(or the step's guard ends it earlier). What is not seen here bounds nothing: more counts are checked then, not fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dagsched.plan.expressions import Comparison, Expr, Int, Name, add, linear_in, names_in
from dagsched.schedule.model import AnyStep, HostStep, LoopStep, OpStep, Schedule, Storage


def find_roofs(schedule: Schedule, params: Iterable[str]) -> dict[str, int]:
    """Parameters that regions bound, with the largest value of each; those at which not even 0 will do are left out."""
    known = frozenset(params)
    roofs: dict[str, int] = {}
    for step in schedule.steps:
        if not isinstance(step, LoopStep) or step.when:
            continue
        for ends, limit in _limits(step, schedule.buffers):
            bounds = [bound for end in ends if (bound := _bound(end, limit, known)) is not None]
            names = {name for name, _ in bounds}
            if len(bounds) == len(ends) and len(names) == 1:
                value = max(value for _, value in bounds)  # one end in time is enough
                if value >= 0:
                    (name,) = names
                    roofs[name] = min(value, roofs.get(name, value))
    return roofs


def _limits(loop: LoopStep, buffers: Mapping[str, Storage]) -> Iterator[tuple[tuple[Expr, ...], int]]:
    """The ends of an access's iterations, of which the first holds, and the largest that its region allows."""
    for step in loop.steps:
        reach = _reach(step, loop)
        if reach is None or not isinstance(step, OpStep | HostStep):
            continue
        start, ends = reach
        for access in step.accesses:
            for part, extent in zip(access.region, _extents(buffers.get(access.buffer)), strict=False):
                for bound, most in ((part.lo, extent - 1), (part.hi, extent)):
                    linear = linear_in(bound, loop.index) if bound is not None else None
                    if linear is not None and linear[0] > 0 and isinstance(linear[1], Int):
                        limit = (most - linear[1].value) // linear[0] + 1
                        if start <= limit:
                            yield ends, limit


def _reach(step: AnyStep, loop: LoopStep) -> tuple[int, tuple[Expr, ...]] | None:
    """From which iteration on a step runs, and where it ends; None where its guard says more than that."""
    if not isinstance(loop.lo, Int):
        return None
    start, ends = loop.lo.value, [loop.hi]
    for comparison in step.when:
        if comparison.left != Name(loop.index) or loop.index in names_in(comparison.right):
            return None
        found = _read_guard(comparison)
        if isinstance(found, int):
            start = max(start, found)
        elif found is not None:
            ends.append(found)
        else:
            return None
    return start, tuple(ends)


def _read_guard(comparison: Comparison) -> int | Expr | None:
    """The start that a guard of the index gives, or the end."""
    right = comparison.right
    if comparison.op in (">=", ">") and isinstance(right, Int):
        return right.value + (comparison.op == ">")
    if comparison.op in ("<", "<="):
        return right if comparison.op == "<" else add(right, 1)
    return None


def _bound(end: Expr, limit: int, params: frozenset[str]) -> tuple[str, int] | None:
    """The parameter that an end grows with, and its largest value for which the end is in time."""
    names = names_in(end)
    if len(names) != 1 or not names <= params:
        return None
    (name,) = names
    linear = linear_in(end, name)
    if linear is None or linear[0] <= 0 or not isinstance(linear[1], Int):
        return None
    return name, (limit - linear[1].value) // linear[0]


def _extents(storage: Storage | None) -> tuple[int, ...]:
    if storage is None:
        return ()
    return storage.shape or (() if storage.size is None else (storage.size,))
