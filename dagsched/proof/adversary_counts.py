"""The small counts at which the adversary is set loose: 0, 1, 2, 3, and some that let every ring come round.

A ring of r slots first meets itself in iteration r, and a look back of d iterations first finds something in iteration
d; so counts beyond twice the largest of these are tried as well, where they are not too large. Nothing is claimed for
other counts: that is what the verifier and the checker are for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from dagsched.plan.expressions import Binary, Call, Expr, Int, Name, names_in, names_in_condition
from dagsched.plan.model import Access
from dagsched.proof.adversary_program import streams_in
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    LoopStep,
    OpStep,
    Schedule,
    SyncStep,
)

FIRST = (0, 1, 2, 3)
FARTHEST = 40
"""The largest count that is tried unasked."""
MOST = 40
"""Sets of counts tried, where there are several parameters."""


def choose_environments(schedule: Schedule, counts: Sequence[int] = ()) -> list[dict[str, int]]:
    """Values for the parameters that the schedule uses, small ones first; ``counts`` are the user's own."""
    params = [name for name in schedule.params if name in _used(schedule)]
    if not params:
        return [{}]
    if counts:
        values = sorted(set(counts))
        rows = list(product(values, repeat=len(params)))
    else:
        reach = find_reach(schedule)
        far = sorted({min(reach + 1, FARTHEST), min(2 * reach + 2, FARTHEST)} - set(FIRST))
        first = FIRST if len(params) < 3 else FIRST[:3]
        rows = [*product(first, repeat=len(params)), *((value,) * len(params) for value in far)]
        if len(params) > 1:
            for value in far[-1:]:
                for at in range(len(params)):
                    rows.append(tuple(value if n == at else 1 for n in range(len(params))))
    rows = sorted(set(rows), key=lambda row: (sum(row), row))
    if len(rows) > MOST and not counts:
        # The smallest ones, and those that go farthest.
        rows = [*rows[: MOST - 4], *rows[-4:]]
    return [dict(zip(params, row, strict=True)) for row in rows]


def find_reach(schedule: Schedule) -> int:
    """How many iterations apart two steps can still have to do with each other: rings and constants."""
    reach = 1
    for storage in schedule.buffers.values():
        reach = max(reach, storage.ring)
    for event in schedule.events.values():
        reach = max(reach, event.ring or 1)
    for step in schedule.walk():
        for expr in _offsets(step):
            reach = max(reach, _constant(expr))
        reach = max(reach, *(max(_constant(c.left), _constant(c.right)) for c in step.when), 1)
    return reach


def _used(schedule: Schedule) -> set[str]:
    used: set[str] = set()
    for step in schedule.walk():
        used |= names_in_condition(step.when)
        for expr in _expressions(step):
            used |= names_in(expr)
    return used


def _offsets(step: AnyStep) -> Iterable[Expr]:
    """The expressions that look back or ahead: indices and versions, not the bounds of regions and loops."""
    if isinstance(step, LoopStep):
        return ()
    names = [*streams_in(step)]
    if isinstance(step, EventStep):
        names.append(step.event)
    elif isinstance(step, FlagStep):
        names.append(step.flag)
    elif isinstance(step, SyncStep) and step.target is not None:
        names.append(step.target)
    found = [name.index for name in names if name.index is not None]
    return [*found, *(access.version for access in _accesses(step) if access.version is not None)]


def _expressions(step: AnyStep) -> list[Expr]:
    if isinstance(step, LoopStep):
        return [step.lo, step.hi]
    bounds = [bound for access in _accesses(step) for part in access.region for bound in (part.lo, part.hi)]
    return [*_offsets(step), *(bound for bound in bounds if bound is not None)]


def _accesses(step: AnyStep) -> tuple[Access, ...]:
    if isinstance(step, OpStep | HostStep):
        return step.accesses
    return (step.access,) if isinstance(step, FreeStep) else ()


def _constant(expr: Expr) -> int:
    """A bound on the constants of an expression taken together."""
    if isinstance(expr, Int):
        return abs(expr.value)
    if isinstance(expr, Name):
        return 0
    if isinstance(expr, Call):
        return max((_constant(argument) for argument in expr.args), default=0)
    assert isinstance(expr, Binary)
    return _constant(expr.left) + _constant(expr.right)
