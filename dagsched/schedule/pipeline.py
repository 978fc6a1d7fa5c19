"""Software pipelining: issue some ops of a loop rounds late, so that they do not hold up what shares their stream.

Where streams are few, an upload for the next iteration stands in its queue behind a download that waits for this
iteration's compute, and a host thread draws one frame before it decodes the next. Issuing the download (and all that
follows it) a round late puts the next upload in front of it. The body's order stays as the plan has it; cuts between
neighbouring ops say from where on everything is a round later. What each choice of cuts allows is told by the loop's
graph; of choices that are as fast, the one whose rings take the least memory is best. The caller simulates it and keeps
it only if it gains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from dagsched.cost.bounds import Bound
from dagsched.cost.loop_graph import LoopGraph, shift_graph

MOST_CUTS = 3
"""Stages are at most one more than this."""

MOST_TRIED = 400
"""Choices of cuts that are looked at in one loop of few ops."""

MOST_OPS = 8_000
"""Ops that are looked at in all choices together."""

MOST_EQUAL = 12
"""Choices that are looked at beyond the first that reaches the limit, and choices whose memory is compared."""

Price = Callable[[LoopGraph], tuple[int, int]]
"""What the rings take with which a loop is as fast as its streams allow: bytes, then slots."""


def shift_loops(graphs: Sequence[LoopGraph], bounds: Mapping[int, Bound], price: Price) -> list[LoopGraph] | None:
    """Graphs with shifted ops for the loops whose streams are slower than their bound (by segment).

    None where no shift gains.
    """
    moved = [_shift_loop(graph, bounds[graph.segment].ticks, price) for graph in graphs]
    return None if moved == list(graphs) else moved


def _shift_loop(graph: LoopGraph, limit: Fraction, price: Price) -> LoopGraph:
    """The fastest choice, of those the one of least memory, then of fewest cuts; the graph itself if none is faster."""
    if graph.floor <= limit or len(graph.ops) < 2 or max(map(len, graph.members), default=0) < 2:
        return graph
    floor, equal, left = graph.floor, [graph], MOST_EQUAL
    for cuts in _cuts(len(graph.ops)):
        if floor <= limit:
            left -= 1
        if left < 0:
            break
        shifts = [sum(position <= number for position in cuts) for number in range(len(graph.ops))]
        moved = shift_graph(graph, shifts)
        if moved is not None and moved.floor < floor:
            floor, equal = moved.floor, [moved]
        elif moved is not None and moved.floor == floor < graph.floor and len(equal) < MOST_EQUAL:
            equal.append(moved)
    return equal[0] if len(equal) == 1 else min(equal, key=price)


def _cuts(ops: int) -> Iterator[tuple[int, ...]]:
    """Positions between ops, fewest cuts first, and the last positions first: what is late needs longer rings."""
    tried = 0
    for number in range(1, MOST_CUTS + 1):
        for cuts in combinations(range(ops - 1, 0, -1), number):
            yield cuts
            tried += 1
            if tried >= MOST_TRIED or tried * ops >= MOST_OPS:
                return


def name_shifts(graphs: Sequence[LoopGraph]) -> dict[str, int]:
    """The ops that are issued late, with the number of rounds."""
    return {op: shift for graph in graphs for op, shift in zip(graph.ops, graph.shifts, strict=True) if shift}
