"""How two ops stand to each other: one before the other, neither, or differently for different iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dagsched.diagnostics import Diagnostic, ScheduleError
from dagsched.proof.check_clock import is_before
from dagsched.proof.check_collide import Collision, find_collision
from dagsched.proof.check_paths import Chain, find_chain, find_instances
from dagsched.proof.check_text import instance_text
from dagsched.schedule.model import Schedule


@dataclass(frozen=True, slots=True)
class Relation:
    """``first`` and ``second`` are the instances that decide, as text.

    ``verdict``: ``before`` (every first comes before every second; ``chain`` is that of the first pair), ``after`` (the
    other way round), ``apart`` (nothing orders this pair; ``collision`` shows it), or ``mixed`` (each pair is ordered,
    but not all of them the same way: ``chain`` is that of the pair at hand, ``other`` a pair the other way round).
    """

    verdict: Literal["before", "after", "apart", "mixed"]
    first: str
    second: str
    chain: Chain | None = None
    collision: Collision | None = None
    other: tuple[str, str] | None = None


def relate(schedule: Schedule, first: str, second: str, params: Mapping[str, int] | None = None) -> Relation:
    """The relation of two instances (or of all that two names stand for); names as in ``check_paths.orders``.

    ``params`` fixes parameters; others are taken as just large enough.

    Raises :class:`~dagsched.diagnostics.ScheduleError` (S410) for an instance that never occurs, and where both are
    the same.
    """
    run, firsts, seconds = find_instances(schedule, first, second, params)
    pairs = [(a, b) for a in firsts for b in seconds if a.index != b.index]
    if not pairs:
        headline = f"`{first}` and `{second}` are one and the same op instance"
        raise ScheduleError([Diagnostic("S410", headline, source=schedule.source, help="name two instances")])
    forward = backward = None
    for a, b in pairs:
        if is_before(run.program, run.order, a.index, b.index):
            forward = forward or (a, b)
        elif is_before(run.program, run.order, b.index, a.index):
            backward = backward or (a, b)
        else:
            texts = instance_text(a), instance_text(b)
            return Relation("apart", *texts, collision=find_collision(run, a, b))
    if forward is not None and backward is not None:
        texts, other = [(instance_text(a), instance_text(b)) for a, b in (forward, backward)]
        return Relation("mixed", *texts, chain=find_chain(run, *forward), other=other)
    if forward is not None:
        a, b = forward
        return Relation("before", instance_text(a), instance_text(b), chain=find_chain(run, a, b))
    assert backward is not None
    a, b = backward
    return Relation("after", instance_text(a), instance_text(b), chain=find_chain(run, b, a))
