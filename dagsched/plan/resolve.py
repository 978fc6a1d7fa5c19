"""Make explicit what a plan leaves open: inner loops, the order, ring depths and versions.

The result means what the plan as written means. It is the form that all later passes read.
"""

from __future__ import annotations

from dataclasses import replace

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.plan.expressions import Expr
from dagsched.plan.meaning import find_unused_writes
from dagsched.plan.model import Access, Loop, Op, Plan
from dagsched.plan.order import order_ops
from dagsched.plan.rings import choose_rings, set_depths
from dagsched.plan.segments import split_segments
from dagsched.plan.unroll import unroll_loops
from dagsched.plan.versions import bare_version, find_newest


def resolve_plan(plan: Plan) -> Plan:
    """Unroll, order, and fix rings and versions; raises :class:`PlanError` with all that is wrong."""
    return resolve_rings(*order_plan(plan))


def order_plan(plan: Plan) -> tuple[Plan, list[Diagnostic]]:
    """The plan with inner loops unrolled and its ops in an order that can be issued, and what stands in the way."""
    return order_ops(unroll_loops(plan))


def resolve_rings(ordered: Plan, faults: list[Diagnostic]) -> Plan:
    """Fix rings and versions of an ordered plan; raises :class:`PlanError` with its faults and those of the rings."""
    depths, wrong = choose_rings(ordered, split_segments(ordered))
    if faults or wrong:
        raise PlanError([*faults, *wrong])
    return resolve_depths(ordered, depths)


def resolve_depths(ordered: Plan, depths: dict[str, int]) -> Plan:
    """Fix the rings of an ordered plan at depths that keep its meaning, and name versions."""
    return name_versions(set_depths(ordered, depths))


def name_versions(plan: Plan) -> Plan:
    """Give every access of a buffer with several slots its version; buffers of one slot have none."""
    segments = split_segments(plan)
    ringed = {name for name, buffer in plan.buffers.items() if (buffer.ring.depth or 1) > 1}
    touched: dict[str, list[list[tuple[Op, Access]]]] = {name: [[] for _ in segments] for name in ringed}
    for number, segment in enumerate(segments):
        for op in segment.ops:
            for access in op.accesses:
                if access.buffer in ringed:
                    touched[access.buffer][number].append((op, access))
    newest = {name: find_newest(segments, name, rows) for name, rows in touched.items()}
    items: list[Op | Loop] = []
    for number, segment in enumerate(segments):
        bare = {name: bare_version(segments, versions, number) for name, versions in newest.items()}
        ops = tuple(
            replace(op, accesses=tuple(_name_version(access, bare) for access in op.accesses)) for op in segment.ops
        )
        if segment.loop:
            items.append(replace(segment.loop, body=ops))
        else:
            items.extend(ops)
    return replace(plan, items=tuple(items))


def _name_version(access: Access, bare: dict[str, Expr | None]) -> Access:
    if access.buffer not in bare:
        return access if access.version is None else replace(access, version=None)
    return access if access.version is not None else replace(access, version=bare[access.buffer])


def find_warnings(plan: Plan) -> list[Diagnostic]:
    """What a resolved plan's author should look at: buffers whose contents nothing uses."""
    unused = find_unused_writes(plan, split_segments(plan))
    return [
        Diagnostic(
            code="P230",
            headline=f"nothing reads `{name}`, which `{unused[name].name}` writes",
            where=buffer.where,
            source=plan.source,
            help=f"mark `{name}` with `output: true` if the program's user reads it",
            severity="warning",
        )
        for name, buffer in plan.buffers.items()
        if name in unused
    ]
