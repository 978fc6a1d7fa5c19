"""Fold the waits of single iterations into rules: one line of a schedule each.

A rule says of an op which iteration of another it waits for, counted in one of four ways: ``once`` (the other is in no
loop), ``distance`` (iterations back in the common loop), ``end`` (iterations before the last one of an earlier loop),
``index`` (the same iteration of an earlier loop, plus a constant) or ``fixed`` (one iteration of it). A guard says in
which cases the rule applies; none is needed where it applies whenever the instance waited for exists, since a wait for
a record that has not been made is no wait.

Iterations are always those of the ops themselves, also where ops are shifted against each other. The last rounds of
such a loop lack the ops that run ahead, so that a wait which these imply elsewhere can be needed there: it gets a rule
of its own, with a guard that counts from the loop's end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import lcm

from dagsched.hazards.sweep import Regime, Sample, Sweep
from dagsched.plan.expressions import Comparison, Condition, Expr, Int, Name, add, holds, names_in
from dagsched.schedule.guards import Case, Variable, find_guards
from dagsched.schedule.waits import Need, Needs, Reasons

INDEXED_RING = 256
"""The most event handles that waits from one loop into another, iteration by iteration, may take."""

_Key = tuple[str, int]
_PREFERENCE = {"once": 0, "distance": 1, "end": 2, "index": 3, "fixed": 4}


@dataclass(frozen=True, slots=True)
class WaitRule:
    """Op ``waiter`` waits for an iteration of op ``source`` (both by number); ``hoisted``: before the waiter's loop."""

    waiter: int
    source: int
    form: str
    offset: int
    guard: Condition
    reasons: Reasons
    hoisted: bool = False


def fold_waits(sweep: Sweep, needs: Needs, stream_of: list[int]) -> list[WaitRule]:
    """All rules, by waiting op."""
    rules: list[WaitRule] = []
    for (waiter, source), points in sorted(needs.by_pair.items()):
        rules += _fold_pair(sweep, needs, waiter, source, points)
    return _merge_hoisted(sweep, [_hoist(sweep, rule, stream_of) for rule in rules], stream_of)


def _fold_pair(sweep: Sweep, needs: Needs, waiter: int, source: int, points: list[Need]) -> list[WaitRule]:
    samples = needs.samples
    here = sweep.segment_of[waiter]
    if here == sweep.segment_of[source] and sweep.drains[here]:
        return _fold_shifted(sweep, needs, waiter, source, points)
    rules = []
    rest = points
    indexed = _may_index(sweep, source)
    if not indexed and _reaches_back(sweep, samples, waiter, source, points):
        return [_coarse(sweep, waiter, source, points)]
    while rest:
        key = _best_key(sweep, samples, waiter, source, rest, indexed)
        covered = [point for point in rest if key in _keys(sweep, samples, waiter, source, point)]
        reasons = frozenset(reason for point in covered for reason in point.reasons)
        for guard in _guards(sweep, needs, waiter, source, key, covered):
            rules.append(WaitRule(waiter, source, key[0], key[1], guard, reasons))
        done = {(point.sample, point.iteration, point.source) for point in covered}
        rest = [point for point in rest if (point.sample, point.iteration, point.source) not in done]
    return rules


def _fold_shifted(sweep: Sweep, needs: Needs, waiter: int, source: int, points: list[Need]) -> list[WaitRule]:
    """The rules of two ops of one loop with shifted ops: by distance, then by how far the loop's end is."""
    here = sweep.segment_of[waiter]
    loop, drain = sweep.segments[here].loop, sweep.drains[here]
    assert loop is not None
    counts = [sample.counts[here] for sample in needs.samples]
    index = Variable(Name(loop.index), True, 2 * max(1, needs.regimes[here].period))
    rules = []
    for distance in sorted({point.iteration - point.source for point in points}):
        found = [point for point in points if point.iteration - point.source == distance]
        reasons = frozenset(reason for point in found for reason in point.reasons)
        within: set[Case] = {(point.iteration,) for point in found if point.iteration < counts[point.sample] - drain}
        domain: set[Case] = {(iteration,) for count in counts for iteration in range(distance, count - drain)}
        guards = find_guards(within, domain | within, (index,)) if within else []
        rules += [WaitRule(waiter, source, "distance", distance, guard, reasons) for guard in guards]
        rest = [
            counts[point.sample] - point.iteration
            for point in found
            if not any(holds(guard, {loop.index: point.iteration}) for guard in guards)
        ]
        if rest:
            ending = (Comparison(Name(loop.index), ">=", add(loop.count, -max(rest))),)
            rules.append(WaitRule(waiter, source, "distance", distance, ending, reasons))
    return rules


def _keys(sweep: Sweep, samples: tuple[Sample, ...], waiter: int, source: int, point: Need) -> tuple[_Key, ...]:
    """The ways in which one wait can be counted."""
    here, there = sweep.segment_of[waiter], sweep.segment_of[source]
    if sweep.segments[there].loop is None:
        return (("once", 0),)
    if here == there:
        return (("distance", point.iteration - point.source),)
    count = samples[point.sample].counts[there]
    keys: tuple[_Key, ...] = (("end", count - 1 - point.source), ("fixed", point.source))
    if sweep.segments[here].loop is not None:
        keys = (*keys, ("index", point.source - point.iteration))
    return keys


def _best_key(
    sweep: Sweep, samples: tuple[Sample, ...], waiter: int, source: int, points: list[Need], indexed: bool
) -> _Key:
    """The way of counting that covers most of the waits."""
    votes = Counter(
        key for point in points for key in _keys(sweep, samples, waiter, source, point) if indexed or key[0] != "index"
    )
    return min(votes, key=lambda key: (-votes[key], _PREFERENCE[key[0]], abs(key[1])))


def _may_index(sweep: Sweep, source: int) -> bool:
    """Whether a handle per iteration of the source's loop can be had."""
    number = sweep.segment_of[source]
    count = sweep.segments[number].count
    most = count.value if isinstance(count, Int) else sweep.limits[number]
    return min(most, sweep.limits[number]) <= INDEXED_RING


def _reaches_back(sweep: Sweep, samples: tuple[Sample, ...], waiter: int, source: int, points: list[Need]) -> bool:
    """Whether one loop waits for another's iterations from its first on, one by one (and not for its last few)."""
    here, there = sweep.segment_of[waiter], sweep.segment_of[source]
    if here == there or sweep.segments[here].loop is None or sweep.segments[there].loop is None:
        return False
    longest = max(sample.counts[there] for sample in samples)
    sources = {p.source for p in points if samples[p.sample].counts[there] == longest}
    return longest > 4 and len(sources) > longest // 2


def _coarse(sweep: Sweep, waiter: int, source: int, points: list[Need]) -> WaitRule:
    """One wait for the whole of an earlier loop, where a handle per iteration cannot be had."""
    reasons = frozenset(reason for point in points for reason in point.reasons)
    loop = sweep.segments[sweep.segment_of[waiter]].loop
    first = min(point.iteration for point in points)
    guard: Condition = (Comparison(Name(loop.index), "==", Int(first)),) if loop else ()
    return WaitRule(waiter, source, "end", 0, guard, reasons)


def _guards(sweep: Sweep, needs: Needs, waiter: int, source: int, key: _Key, covered: list[Need]) -> list[Condition]:
    """Under which conditions a rule applies: needed cases against those in which the source instance exists."""
    samples, regimes = needs.samples, needs.regimes
    here, there = sweep.segment_of[waiter], sweep.segment_of[source]
    loop = sweep.segments[here].loop
    names = sorted({name for segment in sweep.segments for name in names_in(segment.count)})
    constant = isinstance(sweep.segments[here].count, Int)
    longest = max(sample.counts[here] for sample in samples)
    cut = constant and longest < _constant_count(sweep, here)
    variables = tuple(Variable(Name(name), True, _tail(sweep, regimes, name)) for name in names)
    if loop:
        own = 2 * max(1, regimes[here].period)
        variables = (Variable(Name(loop.index), not constant or cut, own), *variables)

    def case(index: int, iteration: int) -> Case:
        params = dict(samples[index].params)
        return (*((iteration,) if loop else ()), *(params[name] for name in names))

    needed = {case(point.sample, point.iteration) for point in covered}
    domain: set[Case] = set()
    for index, sample in enumerate(samples):
        for iteration in range(sample.counts[here]):
            target = _target(key, iteration, sample.counts[there])
            # Behind its loop a ring is full: an index outside it would find another iteration's record.
            if key[0] == "index" or 0 <= target < sample.counts[there]:
                domain.add(case(index, iteration))
    return find_guards(needed, domain | needed, variables)


def _tail(sweep: Sweep, regimes: tuple[Regime, ...], name: str) -> int:
    """Two periods of all loops that a parameter counts."""
    period = 1
    for segment, regime in zip(sweep.segments, regimes, strict=True):
        if name in names_in(segment.count):
            period = lcm(period, max(1, regime.period))
    return 2 * period


def _constant_count(sweep: Sweep, number: int) -> int:
    count = sweep.segments[number].count
    return count.value if isinstance(count, Int) else 0


def _target(key: _Key, iteration: int, count: int) -> int:
    """The source iteration that a rule names."""
    form, offset = key
    if form == "distance":
        return iteration - offset
    if form == "end":
        return count - 1 - offset
    if form == "index":
        return iteration + offset
    return offset


def source_index(sweep: Sweep, rule: WaitRule) -> Expr | None:
    """The iteration that a rule waits for, as an expression at the place of the wait; None for an op in no loop."""
    if rule.form == "once":
        return None
    loop = sweep.segments[sweep.segment_of[rule.waiter]].loop
    here: Expr = Int(0) if loop is None or rule.hoisted else Name(loop.index)
    if rule.form == "distance":
        return add(here, -rule.offset)
    if rule.form == "end":
        return add(sweep.segments[sweep.segment_of[rule.source]].count, -1 - rule.offset)
    if rule.form == "index":
        return add(here, rule.offset)
    return Int(rule.offset)


def _hoist(sweep: Sweep, rule: WaitRule, stream_of: list[int]) -> WaitRule:
    """Move a wait of iteration 0 in front of its loop, where its op is the stream's first in the body."""
    segment = sweep.segments[sweep.segment_of[rule.waiter]]
    if segment.loop is None or sweep.segment_of[rule.source] == sweep.segment_of[rule.waiter]:
        return rule
    if sweep.drains[sweep.segment_of[rule.waiter]]:
        return rule  # another op may come first in the stream
    first = Comparison(Name(segment.loop.index), "==", Int(0))
    own = stream_of[rule.waiter]
    body = range(segment.first, segment.first + len(segment.ops))
    only = isinstance(segment.count, Int) and segment.count.value == 1 and not rule.guard
    if not (first in rule.guard or only) or next(n for n in body if stream_of[n] == own) != rule.waiter:
        return rule
    guard = tuple(comparison for comparison in rule.guard if comparison != first)
    follows = any(stream == own for stream in stream_of[body.stop :])
    if follows and not isinstance(segment.count, Int):
        guard = (Comparison(segment.count, ">=", Int(1)), *guard)
    return replace(rule, guard=guard, hoisted=True)


def _merge_hoisted(sweep: Sweep, rules: list[WaitRule], stream_of: list[int]) -> list[WaitRule]:
    """Join a wait in front of a loop that ran with the same wait behind it for a loop that did not.

    Where the op behind is the next of the stream, one wait in front of the loop does for both.
    """
    merged = list(rules)
    for early in [rule for rule in rules if rule.hoisted]:
        number = sweep.segment_of[early.waiter]
        segment = sweep.segments[number]
        ran = Comparison(segment.count, ">=", Int(1))
        idle = Comparison(segment.count, "==", Int(0))
        own = stream_of[early.waiter]
        stop = segment.first + len(segment.ops)
        behind = next((n for n in range(stop, len(stream_of)) if stream_of[n] == own), None)
        if behind is None or sweep.segments[sweep.segment_of[behind]].loop is not None or early.guard != (ran,):
            continue
        for late in merged:
            same = (late.waiter, late.source, late.form, late.offset) == (
                behind,
                early.source,
                early.form,
                early.offset,
            )
            if same and late.guard in ((idle,), (Comparison(segment.count, "<=", Int(0)),)):
                merged.remove(late)
                merged[merged.index(early)] = replace(early, guard=(), reasons=early.reasons | late.reasons)
                break
    return merged
