"""Which parameter values stand for all: small ones one by one, and one that is large enough for the steady state."""

from __future__ import annotations

from itertools import product
from math import prod

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.plan.expressions import Int, evaluate, names_in
from dagsched.plan.model import Plan
from dagsched.plan.regions import largest_count, moves_with
from dagsched.plan.segments import Segment, counts_for

MANY = 1_000
"""A count that is past every start-up that a plan of ordinary rings can have."""

CEILING = 1 << 40
"""Counts from here on are taken as unbounded."""


MOST_SAMPLES = 20_000
"""Combinations of parameter values that are gone through; six parameters that each count a loop make 15,625."""


def find_limits(plan: Plan, segments: tuple[Segment, ...]) -> tuple[int, ...]:
    """The largest count of each segment for which every moving region stays inside its buffer."""
    limits = []
    for segment in segments:
        limit = CEILING
        if segment.loop:
            for op in segment.ops:
                for access in op.accesses:
                    if moves_with(access, segment.loop.index):
                        buffer = plan.buffers[access.buffer]
                        limit = min(limit, largest_count(access, buffer, segment.loop.index, CEILING))
        limits.append(limit)
    return _share_limits(segments, limits)


def _share_limits(segments: tuple[Segment, ...], limits: list[int]) -> tuple[int, ...]:
    """Loops that count by one parameter bound each other: the parameter cannot exceed what any of them allows."""
    shared = list(limits)
    for number, segment in enumerate(segments):
        names = names_in(segment.count)
        if limits[number] >= CEILING or len(names) != 1:
            continue
        (name,) = names
        most = _largest_value(segment, name, limits[number])
        for other, neighbour in enumerate(segments):
            if names_in(neighbour.count) == names:
                shared[other] = min(shared[other], max(0, evaluate(neighbour.count, {name: most})))
    return tuple(shared)


def _largest_value(segment: Segment, name: str, limit: int) -> int:
    """The largest parameter value, by doubling and bisection, that keeps a count (taken to rise) within a limit."""
    high = 1
    while high < CEILING and evaluate(segment.count, {name: high}) <= limit:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if evaluate(segment.count, {name: middle}) <= limit else (low, middle)
    return low


def choose_samples(
    plan: Plan, segments: tuple[Segment, ...], limits: tuple[int, ...], small: int = 3, many: int = MANY
) -> list[tuple[dict[str, int], tuple[int, ...]]]:
    """Parameter values with the counts that they give; counts that the plan's regions do not allow are left out.

    Raises :class:`PlanError` where the parameters' values make too many cases (P241).
    """
    names = sorted({name for segment in segments for name in names_in(segment.count)})
    values = {name: _values(segments, limits, name, small, many) for name in names}
    if prod(map(len, values.values())) > MOST_SAMPLES:
        raise PlanError([describe_cases(plan, segments)])
    samples = []
    for choice in product(*(values[name] for name in names)):
        params = dict.fromkeys(plan.params, 0) | dict(zip(names, choice, strict=True))
        if any(evaluate(segment.count, params) < 0 for segment in segments):
            continue
        counts = counts_for(segments, params)
        if all(
            count <= limit or not segment.loop for count, limit, segment in zip(counts, limits, segments, strict=True)
        ):
            samples.append((params, counts))
    return samples or [(dict.fromkeys(plan.params, 0), counts_for(segments, dict.fromkeys(plan.params, 0)))]


def _values(segments: tuple[Segment, ...], limits: tuple[int, ...], name: str, small: int, many: int) -> list[int]:
    values = set(range(small + 1))
    for segment, limit in zip(segments, limits, strict=True):
        if name in names_in(segment.count) and not isinstance(segment.count, Int):
            values.add(min(many, limit))
    return sorted(values)


def describe_cases(plan: Plan, segments: tuple[Segment, ...]) -> Diagnostic:
    """What is wrong where counts that do not depend on each other make too many cases."""
    loops = sum(1 for segment in segments if segment.loop and names_in(segment.count))
    return Diagnostic(
        code="P241",
        headline=f"{loops} loops of independent counts make more cases than can be gone through",
        source=plan.source,
        notes=("the waits between loops depend on every count; deep rings multiply the cases",),
        help="let the loops share one count, use shorter rings, or compile them as plans of their own",
    )
