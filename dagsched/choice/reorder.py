"""The same plan with its ops in another order.

Only for resolved plans without loops: versions are explicit there, so that an op means the same wherever it stands as
long as the order respects every hazard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dagsched.plan.model import Plan


def reorder_ops(plan: Plan, order: Sequence[int]) -> Plan:
    """The ops in the order of these numbers."""
    ops = list(plan.ops())
    return replace(plan, items=tuple(ops[number] for number in order))
