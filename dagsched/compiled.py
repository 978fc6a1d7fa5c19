"""What ``compile`` yields: the schedule with everything that led to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dagsched.cost.depths import RingChoice
from dagsched.cost.model import Device
from dagsched.diagnostics import Diagnostic
from dagsched.hazards.model import Hazards
from dagsched.plan.model import Plan
from dagsched.proof.model import Proof
from dagsched.schedule.model import Schedule


@dataclass(frozen=True, slots=True)
class Spared:
    """What ``--sync fewest`` did: how many waits there were before order was added, and how sure it is.

    ``exact``: no schedule on these streams has fewer waits; ``greedy``: none was found.
    """

    before: int
    method: Literal["greedy", "exact"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A proved schedule.

    ``plan`` is as written, ``resolved`` has rings, versions and flat loops; ``streams`` maps each op's name to its
    stream; ``warnings`` are what the user should look at. Counts: ``waits_found`` cross-stream hazards before
    elision, ``waits_kept`` wait steps in the schedule, ``handles`` event handles. ``rings`` says how the depths of
    rings were chosen, where there was a choice. ``shifts`` says which ops of loops are issued rounds late (software
    pipelining), ``unshifted`` how many seconds it would take otherwise, ``spared`` what adding order has saved.
    ``by_hand`` is the schedule as written, where no compiler made it.
    """

    plan: Plan
    resolved: Plan
    device: Device
    hazards: Hazards
    streams: dict[str, str]
    schedule: Schedule
    proof: Proof
    policy: str
    waits_found: int
    waits_kept: int
    handles: int
    rings: RingChoice | None = None
    shifts: dict[str, int] = field(default_factory=dict)
    unshifted: float | None = None
    spared: Spared | None = None
    warnings: tuple[Diagnostic, ...] = ()
    by_hand: Schedule | None = None
