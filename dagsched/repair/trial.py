"""Try a draft: build it, check it, and compare what is wrong with it with what was wrong before."""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.plan.expressions import ExpressionError
from dagsched.proof.check import BUDGET, Examined, examine_schedule
from dagsched.proof.check_expand import TooManySteps
from dagsched.proof.check_races import FoundRace
from dagsched.proof.check_shape import used_params
from dagsched.repair.draft import Built, Draft, Origin
from dagsched.repair.places import Family, family_of

MOST_STEPS = 60_000
"""Step instances of one trial, beyond which long constant loops are cut to an equivalent length. What is proposed is
checked once more without this limit."""

RaceKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Trial:
    """A draft, the schedule that it makes, and what the checker says of that."""

    draft: Draft
    built: Built
    examined: Examined
    family: Family

    def origin(self, number: int) -> Origin:
        """Where a step of the changed schedule comes from."""
        return self.built.origins[number]


def try_draft(draft: Draft, built: Built | None = None) -> Trial | None:
    """Check a draft; None where it has no meaning for some count."""
    built = draft.build() if built is None else built
    try:
        budget = BUDGET if used_params(built.schedule) else MOST_STEPS
        return Trial(draft, built, examine_schedule(built.schedule, budget=budget), family_of(built.schedule))
    except (ExpressionError, TooManySteps):
        return None


def is_no_worse(after: Examined, before: Examined) -> bool:
    """Whether every fault after a change was there before."""
    if after.gathered.deadlock is not None and before.gathered.deadlock is None:
        return False
    if len(after.gathered.dangling) > len(before.gathered.dangling):
        return False
    if len(after.gathered.reused) > len(before.gathered.reused) or (after.limited and not before.limited):
        return False
    return all(key in before.gathered.races for key in after.gathered.races)


def races_of(examined: Examined) -> list[tuple[RaceKey, FoundRace]]:
    """The races in issue order of their sides, the nearest first."""
    found = [(key, race) for key, (race, _) in examined.gathered.races.items()]
    return sorted(found, key=lambda entry: (entry[1].second.static, -entry[1].first.static, entry[0]))


def stuck_nodes(examined: Examined) -> int:
    """How many instances never run, in the runs that hang."""
    run = examined.stuck
    if run is None:
        return 0
    return max(1, sum(clock is None for clock in run.order.clocks))
