"""How large loop counts may be: no index, version or offset that a program computes may leave 64 bits.

A product of a count and a size can overflow, and what wraps round could land inside a buffer. Emitted programs refuse
counts above the limit found here, so that their arithmetic is that of the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dagsched.diagnostics import Diagnostic, Where
from dagsched.emit.ranges import LARGEST_COUNT, Range, fits, range_of
from dagsched.plan.expressions import Expr, expression_text
from dagsched.plan.model import Plan

Loops = tuple[tuple[str, Expr, Expr], ...]
"""The loops around an expression, outermost first: index, first value, end."""


@dataclass(frozen=True, slots=True)
class Scoped:
    """An expression that the program computes, and the loops around it."""

    expr: Expr
    loops: Loops
    where: Where | None


def find_max_count(plan: Plan, expressions: Sequence[Scoped]) -> tuple[int, list[Diagnostic]]:
    """The largest power of two up to which every parameter can be chosen, and the expressions that never fit (E105)."""
    unique = {(scoped.expr, scoped.loops): scoped for scoped in expressions}
    faults = [fault for scoped in unique.values() if (fault := _fault(plan, scoped)) is not None]
    limit = LARGEST_COUNT
    while not faults and limit > 1 and not all(_fits(plan, scoped, limit) for scoped in unique.values()):
        limit //= 2
    return limit, faults


def _fault(plan: Plan, scoped: Scoped) -> Diagnostic | None:
    text = expression_text(scoped.expr)
    try:
        if _fits(plan, scoped, 1):
            return None
        headline, help_ = f"`{text}` does not fit into 64 bits", "use smaller factors"
    except ZeroDivisionError:
        headline, help_ = f"a divisor in `{text}` can be 0", "divide by a constant, or by `max(1, ...)`"
    except KeyError as error:
        headline = f"`{error.args[0]}` in `{text}` is no parameter and no index of a loop around it"
        help_ = "use the parameters of the plan and the index of the loop"
    return Diagnostic("E105", headline, scoped.where, plan.source if scoped.where else None, help=help_)


def _fits(plan: Plan, scoped: Scoped, limit: int) -> bool:
    names: dict[str, Range] = dict.fromkeys(plan.params, (0, limit))
    for index, lo, hi in scoped.loops:
        least = range_of(lo, names)[0]
        names[index] = (least, max(least, range_of(hi, names)[1] - 1))
    return fits(scoped.expr, names)
