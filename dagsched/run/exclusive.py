"""Which ops must not run at the same time although the schedule does not order them: accumulates of the same bytes.

Accumulates commute, so the plan leaves their order open; but a function that adds to an array reads and writes it, and
two of them at once would lose something. Devices have atomic adds for that; threads get a lock for each buffer.
"""

from __future__ import annotations

from itertools import combinations

from dagsched.plan.expressions import Int
from dagsched.plan.model import Access, Mode
from dagsched.plan.regions import box_of, intersect
from dagsched.run.program import OpPoint, Program


def find_exclusive(program: Program) -> dict[str, list[str]]:
    """For each buffer that needs a lock the ops that must hold it while they run, by name."""
    by_buffer: dict[str, list[tuple[int, str, Access]]] = {}
    for stream in program.streams:
        for _, points in stream.parts:
            for point in points:
                if isinstance(point, OpPoint):
                    for access in point.op.accesses:
                        if access.mode is Mode.ACCUMULATE:
                            by_buffer.setdefault(access.buffer, []).append((stream.number, point.op.name, access))
    found: dict[str, list[str]] = {}
    for name, uses in by_buffer.items():
        together = {
            op
            for a, b in combinations(uses, 2)
            if a[0] != b[0] and _may_meet(program, a[2], b[2])
            for op in (a[1], b[1])
        }
        if together:
            found[name] = sorted(together)
    return found


def _may_meet(program: Program, a: Access, b: Access) -> bool:
    bounds = [bound for access in (a, b) for part in access.region for bound in (part.lo, part.hi)]
    if any(bound is not None and not isinstance(bound, Int) for bound in bounds):
        return True
    buffer = program.plan.buffers[a.buffer]
    return intersect(box_of(a, buffer, {}), box_of(b, buffer, {})) is not None
