"""The same plan with its ops in another order.

Only for plans whose inner loops are unrolled. Bodies stay bodies and what stands before them stays there; a name means
the same wherever it stands as long as the order respects every hazard within an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dagsched.plan.model import Loop, Op, Plan
from dagsched.plan.segments import split_segments


def reorder_ops(plan: Plan, order: Sequence[int]) -> Plan:
    """The ops in the order of these numbers, which keeps the segments apart."""
    ops = list(plan.ops())
    items: list[Op | Loop] = []
    for segment in split_segments(plan):
        row = tuple(ops[number] for number in order[segment.first : segment.first + len(segment.ops)])
        items += [replace(segment.loop, body=row)] if segment.loop else row
    return replace(plan, items=tuple(items))
