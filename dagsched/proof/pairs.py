"""An op's accesses in the plan beside those of its step in the schedule, made ready to be compared in every iteration.

What is the same in every iteration is worked out once: the box of a region without names, and whether the two agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.plan.expressions import names_in
from dagsched.plan.model import Access, Buffer, Mode, Op, Plan
from dagsched.proof.instances import Box, find_box
from dagsched.schedule.model import OpStep, Schedule


@dataclass(frozen=True, slots=True)
class Pair:
    """The plan's access, and the step's in the same place.

    ``alike``: they name the same buffer in the same mode. ``box`` is what both touch where that never changes (None: it
    depends on the iteration, or differs). ``ring`` is the schedule's; ``by_version``: each version is its own storage.
    """

    access: Access
    scheduled: Access
    buffer: Buffer
    ring: int
    by_version: bool
    alike: bool
    box: Box | None


def pair_accesses(plan: Plan, schedule: Schedule, by_version: frozenset[str], op: Op, step: OpStep) -> tuple[Pair, ...]:
    """The pairs of an op and its step, in the order in which accesses take effect: what is read comes first.

    Both have the same number of accesses.
    """
    pairs = []
    for access, scheduled in zip(op.accesses, step.accesses, strict=True):
        buffer, storage = plan.buffers[access.buffer], schedule.buffers.get(access.buffer)
        alike = scheduled.buffer == access.buffer and scheduled.mode is access.mode
        box = None
        if alike and not _varies(access) and not _varies(scheduled):
            box = find_box(access, buffer, {})
            box = box if find_box(scheduled, buffer, {}) == box else None
        named = access.buffer in by_version
        pairs.append(Pair(access, scheduled, buffer, storage.ring if storage else 1, named, alike, box))
    return tuple(sorted(pairs, key=lambda pair: pair.access.mode is not Mode.READ))


def _varies(access: Access) -> bool:
    """Whether a region depends on anything."""
    return any(bound is not None and names_in(bound) for part in access.region for bound in (part.lo, part.hi))
