"""A flat plan as a sequence of segments: runs of single ops, and loops of ops, in the order written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dagsched.plan.expressions import Expr, Int, evaluate
from dagsched.plan.model import Loop, Op, Plan


@dataclass(frozen=True, slots=True)
class Segment:
    """``ops`` run once in order, or ``loop.count`` times; ``first`` is the number of the first op in the whole plan."""

    ops: tuple[Op, ...]
    loop: Loop | None
    first: int

    @property
    def count(self) -> Expr:
        """How many times the ops run."""
        return self.loop.count if self.loop else Int(1)


def split_segments(plan: Plan) -> tuple[Segment, ...]:
    """The segments of a plan whose loops hold ops only."""
    segments: list[Segment] = []
    run: list[Op] = []
    number = 0
    for item in plan.items:
        if isinstance(item, Op):
            run.append(item)
            continue
        if run:
            segments.append(Segment(tuple(run), None, number))
            number += len(run)
            run = []
        ops = tuple(op for op in item.body if isinstance(op, Op))
        segments.append(Segment(ops, item, number))
        number += len(ops)
    if run:
        segments.append(Segment(tuple(run), None, number))
    return tuple(segments)


def counts_for(segments: tuple[Segment, ...], params: Mapping[str, int]) -> tuple[int, ...]:
    """How often each segment runs for given parameters (a negative count is no run)."""
    return tuple(max(0, evaluate(segment.count, params)) for segment in segments)


def iterate(segments: tuple[Segment, ...], counts: tuple[int, ...]) -> Iterator[tuple[int, int, Segment]]:
    """``(segment number, iteration, segment)`` in the plan's order."""
    for number, segment in enumerate(segments):
        for iteration in range(counts[number]):
            yield number, iteration, segment
