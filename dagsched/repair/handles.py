"""Give an event as many handles as its waits need, where one is recorded again before the wait for it is issued."""

from __future__ import annotations

from collections.abc import Iterator

from dagsched.proof.check_findings import Gathered
from dagsched.repair.draft import Built, Draft
from dagsched.schedule.model import EventStep

MOST = 64
"""Longer rings than this are not tried."""


def lengthen_rings(draft: Draft, built: Built, gathered: Gathered) -> Iterator[Draft]:
    """Drafts with one longer ring each, the shortest first."""
    steps = tuple(built.schedule.walk())
    seen: set[str] = set()
    for wait, (_, wanted, got) in gathered.reused.items():
        step = steps[wait]
        assert isinstance(step, EventStep)
        name = step.event.name
        declared = built.schedule.events.get(name)
        if declared is None or declared.ring is None or name in seen:
            continue
        seen.add(name)
        ring = declared.ring
        away = max(abs(got - wanted), 1)
        for longer in dict.fromkeys((ring + away, *range(ring + 1, ring + away), 2 * ring + away)):
            if longer <= MOST:
                reason = f"the handle of `{name}@{wanted}` is recorded again, as `{name}@{got}`, before a wait for it"
                yield draft.set_ring(name, longer, reason)
