"""One run of the checker: a schedule for one set of loop counts, through all its stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dagsched.proof.check_clock import Order, clock_order
from dagsched.proof.check_expand import Program, expand
from dagsched.proof.check_explore import explore_order
from dagsched.proof.check_links import Links, bind
from dagsched.proof.check_races import Conflicts, find_conflicts
from dagsched.schedule.model import Schedule

EXPLORE = 30_000
"""Contended steps tried in one run."""
MOST = 2_000_000
"""Step instances beyond which one run is refused."""


@dataclass(slots=True)
class Run:
    """A schedule for one set of counts, checked."""

    program: Program
    links: Links
    order: Order
    conflicts: Conflicts


def run_schedule(
    schedule: Schedule,
    env: Mapping[str, int],
    budget: int = MOST,
    without: frozenset[int] = frozenset(),
    explore: int = EXPLORE,
) -> Run:
    """Expand, bind, order and compare; ``without`` drops static steps by number, ``explore`` bounds the
    contended steps tried. Raises ``TooManySteps``."""
    program = expand(schedule, env, budget, without)
    links = bind(program)
    order = explore_order(program, links, explore) if links.contended else clock_order(program, links)
    mutual = bool(links.gates or links.contended)
    return Run(program, links, order, find_conflicts(program, order, mutual))
