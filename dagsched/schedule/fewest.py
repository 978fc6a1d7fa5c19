"""Save waits by adding order (``--sync fewest``): let a wait that is there wait for more, so that a later one can go.

Two waits of one stream for another can be one where the earlier waits for the later one's record. That is an order
that no hazard asks for: it is added to the plan's op like an ``after:``, and the waits are worked out anew. What saves
most stays, as long as the simulator sees no loss anywhere: in no loop's interval, in no run of a few iterations.
Optimal is set-cover hard; a result is known to be the fewest only where no stream that has to wait at all has more than
one wait left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Generic, Literal, TypeVar

from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import After, Loop, Op, Plan
from dagsched.schedule.rules import WaitRule

MOST_BUILT = 60
"""Orders that are tried at the most."""

Order = tuple[int, int, int]
"""(before, after, distance): op ``after`` of iteration i is to come after op ``before`` of iteration i - distance."""

Result = TypeVar("Result")
Method = Literal["greedy", "exact"]


class Attempt(Generic[Result]):
    """A plan with some orders added, what was built of it, the rules of its waits, and all the times that it takes."""

    def __init__(self, plan: Plan, built: Result, rules: Sequence[WaitRule], times: Sequence[Fraction]) -> None:
        self.plan, self.built, self.rules, self.times = plan, built, rules, times


def spare_waits(
    start: Attempt[Result],
    stream_of: Sequence[int],
    shifts: dict[str, int],
    build: Callable[[Plan], tuple[Result, Sequence[WaitRule], Callable[[], Sequence[Fraction]]]],
) -> tuple[Attempt[Result], Method]:
    """The attempt with the fewest waits that takes no longer than ``start`` by any of its times, and how sure it is.

    ``build`` makes a schedule of a plan: the result, the rules of its waits, and a function that measures it.
    """
    best, left = start, MOST_BUILT
    improved = True
    while improved and left > 0 and not _is_fewest(best.rules, stream_of):
        improved = False
        for order in list_orders(Sweep(best.plan, shifts), best.rules, stream_of):
            if left <= 0:
                break
            left -= 1
            plan = add_order(best.plan, order)
            built, rules, measure = build(plan)
            if len(rules) >= len(best.rules):
                continue
            times = measure()
            if all(after <= before for before, after in zip(start.times, times, strict=True)):
                best = Attempt(plan, built, rules, times)
                improved = True
                break
    return best, "exact" if _is_fewest(best.rules, stream_of) else "greedy"


def _is_fewest(rules: Sequence[WaitRule], stream_of: Sequence[int]) -> bool:
    """Whether each stream that waits has a single wait: one that has to wait for another at all needs that."""
    return len(rules) == len({stream_of[rule.waiter] for rule in rules})


def list_orders(sweep: Sweep, rules: Sequence[WaitRule], stream_of: Sequence[int]) -> Iterator[Order]:
    """Orders that let one wait stand for another of the same two streams, in the order of the rules."""
    for early in rules:
        for late in rules:
            if early is late or early.form not in ("once", "distance") or late.form not in ("once", "distance"):
                continue
            ops = early.waiter, early.source, late.waiter, late.source
            streams = [stream_of[op] for op in ops]
            if len({sweep.segment_of[op] for op in ops}) > 1 or streams[:2] != streams[2:]:
                continue
            looped = sweep.segments[sweep.segment_of[early.waiter]].loop is not None
            behind = _rounds(sweep, early.waiter, late.waiter)
            distance = late.offset - behind
            if distance < 0 or (behind and not looped):
                continue
            rounds = sweep.shifts[early.waiter] + distance - sweep.shifts[late.source]
            if rounds > 0 or (rounds == 0 and late.source < early.waiter):
                yield late.source, early.waiter, distance


def _rounds(sweep: Sweep, early: int, late: int) -> int:
    """How many iterations before ``late`` the op ``early`` stands in front of it in their stream."""
    later = sweep.shifts[late] - sweep.shifts[early]
    return max(0, -later) + (1 if early > late and later <= 0 else 0)


def add_order(plan: Plan, order: Order) -> Plan:
    """The plan with one more ``after:``."""
    names = [op.name for op in plan.ops()]
    before, after, distance = order
    edge = After(names[before], distance)

    def ordered(item: Op | Loop) -> Op | Loop:
        if isinstance(item, Loop):
            return replace(item, body=tuple(ordered(inner) for inner in item.body))
        return replace(item, after=(*item.after, edge)) if item.name == names[after] else item

    return replace(plan, items=tuple(ordered(item) for item in plan.items))
