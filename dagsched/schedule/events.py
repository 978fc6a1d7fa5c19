"""Give every record an event handle, with as few handles as the event model allows.

Under the latch model a wait binds, when it is issued, to the newest record of its handle. A handle is therefore free
again once the last wait for its record has been issued: records outside loops, and records in a loop body whose waits
all stand in the same iteration, share handles by interval colouring over [record, last wait issued]. Otherwise an op in
a loop records into a ring, iteration x into handle ``x mod m``, and m is the smallest for which no handle is recorded
again before the last wait for its earlier record: d for a wait d iterations later that stands before the record in the
body, d + 1 for one that stands behind it, k + 1 for one for the k-th iteration before the loop's last. Where ops are
shifted, d counts the rounds between record and wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from dagsched.hazards.sweep import Sweep
from dagsched.plan.expressions import Comparison, Condition, Expr, Int, Name, add
from dagsched.schedule.rules import WaitRule


@dataclass(frozen=True, slots=True)
class Recording:
    """One record step: after op ``source``, into ``event`` (a ring of ``ring`` handles), where ``guard`` holds."""

    source: int
    event: str
    ring: int
    index: Expr | None
    guard: Condition
    rules: tuple[WaitRule, ...]


def allocate_events(sweep: Sweep, rules: list[WaitRule]) -> list[Recording]:
    """A recording for every op that is waited for; an op has two where a single iteration is awaited apart."""
    groups: dict[tuple[int, str, int], list[WaitRule]] = {}
    for rule in rules:
        apart = rule.form in ("fixed", "index")
        groups.setdefault((rule.source, rule.form if apart else "", rule.offset if apart else 0), []).append(rule)
    shared = _share(sweep, groups)
    recordings = []
    taken: set[str] = set()
    for key, members in sorted(groups.items()):
        source, form, offset = key
        loop = sweep.segments[sweep.segment_of[source]].loop
        name = shared.get(key) or _free_name(f"{sweep.ops[source].name}.done" + (f".{offset}" if form else ""), taken)
        taken.add(name)
        index = Name(loop.index) if loop else None
        recordings.append(
            Recording(source, name, _ring(sweep, members), index, _record_guard(sweep, members), tuple(members))
        )
    return recordings


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _ring(sweep: Sweep, rules: list[WaitRule]) -> int:
    """The shortest ring in which no handle is recorded again too early."""
    source = rules[0].source
    number = sweep.segment_of[source]
    needed = 1
    for rule in rules:
        if rule.form == "distance":
            rounds = rule.offset + sweep.shifts[rule.waiter] - sweep.shifts[source]
            needed = max(needed, rounds + (0 if rule.waiter <= source else 1))
        elif rule.form == "end":
            needed = max(needed, rule.offset + 1)
        elif rule.form == "index":
            count = sweep.segments[number].count
            most = count.value if isinstance(count, Int) else sweep.limits[number]
            needed = max(needed, min(most, sweep.limits[number]) - max(0, rule.offset))
    return needed


def _record_guard(sweep: Sweep, rules: list[WaitRule]) -> Condition:
    """Which iterations have to be recorded: only the last ones where all waits count from the loop's end."""
    segment = sweep.segments[sweep.segment_of[rules[0].source]]
    if segment.loop is None:
        return ()
    index = Name(segment.loop.index)
    if all(rule.form == "fixed" for rule in rules):
        return (Comparison(index, "==", Int(rules[0].offset)),)
    if all(rule.form == "end" for rule in rules):
        back = max(rule.offset for rule in rules)
        return (Comparison(index, ">=" if back else "==", add(segment.count, -1 - back)),)
    return ()


def _share(sweep: Sweep, groups: dict[tuple[int, str, int], list[WaitRule]]) -> dict[tuple[int, str, int], str]:
    """Colour the intervals of handles that can be shared; names are given to those that really are."""
    intervals: list[tuple[int, int, tuple[int, str, int]]] = []
    bodies: dict[int, list[tuple[int, int, tuple[int, str, int]]]] = {}
    for key, rules in groups.items():
        source = key[0]
        number = sweep.segment_of[source]
        if sweep.segments[number].loop is None:
            intervals.append((2 * source + 1, max(_issued(sweep, rule) for rule in rules), key))
        elif sweep.drains[number]:
            continue  # the handle of one iteration is in use while another's is recorded
        elif all(rule.form == "distance" and rule.offset == 0 and not rule.guard for rule in rules):
            bodies.setdefault(number, []).append((2 * source + 1, max(2 * rule.waiter for rule in rules), key))
    names: dict[tuple[int, str, int], str] = {}
    used = {f"{op.name}.done" for op in sweep.ops}
    for group in [intervals, *bodies.values()]:
        for colour in _colour(sorted(group)):
            if len(colour) > 1:
                name = _free_name(_joint_name([sweep.ops[key[0]].name for key in colour]), used)
                used.add(name)
                names |= dict.fromkeys(colour, name)
    return names


def _joint_name(ops: list[str]) -> str:
    """A handle of few ops is named after them all, one of many after the first."""
    return "+".join(ops) + ".done" if len(ops) <= 3 else f"{ops[0]}+{len(ops) - 1}.done"


def _issued(sweep: Sweep, rule: WaitRule) -> int:
    """When the last wait of a rule has been issued for good; 2n stands before op n, 2n + 1 behind it."""
    segment = sweep.segments[sweep.segment_of[rule.waiter]]
    if segment.loop is None:
        return 2 * rule.waiter
    return 2 * segment.first if rule.hoisted else 2 * (segment.first + len(segment.ops)) - 1


def _colour(
    intervals: list[tuple[int, int, tuple[int, str, int]]],
) -> list[list[tuple[int, str, int]]]:
    """Fewest classes of intervals that do not meet: by start, each into a class that is free."""
    free: list[tuple[int, int]] = []
    classes: list[list[tuple[int, str, int]]] = []
    for start, end, key in intervals:
        if free and free[0][0] < start:
            _, chosen = heappop(free)
            classes[chosen].append(key)
        else:
            chosen = len(classes)
            classes.append([key])
        heappush(free, (end, chosen))
    return classes
