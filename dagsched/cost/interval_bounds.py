"""A limit from crowded parts of a run: in some interval the instances must put more work on an engine than it can do.

For a makespan T, an instance cannot start before its head and must end its tail before T; so much of it as cannot lie
outside [a, b] lies inside, whatever the schedule. Where that exceeds the engine's capacity times (b - a), no run is as
short as T (Fernandez and Bussell 1973, *Bounds on the number of processors and time for multiprocessor optimal
schedules*). The largest such T is found by bisection over a sample of intervals; a sample makes the limit weaker, never
wrong, and so does rounding durations down.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dagsched.cost.bounds import Bound
from dagsched.cost.packing import Weighting
from dagsched.cost.run_bounds import Run, round_up, sample

_Row = NDArray[np.int64]

_POINTS = 48
"""How many beginnings and ends of intervals are looked at, at the most: a sample where there are more."""

_CELLS = 1 << 20
"""How many (instance, interval) pairs are looked at for one makespan, or a little more."""


def bound_intervals(run: Run, members: list[int], weighting: Weighting, name: str, best: Bound, most: int) -> Bound:
    """The longest makespan below ``most`` for which some interval is overfull, plus the least step in time."""
    unit = max(run.unit, most >> 30)
    share = np.array([weighting.weights[run.share[p]] for p in members], dtype=np.int64)
    ticks = np.array([run.ticks[p] // unit for p in members], dtype=np.int64)
    heads = np.array([run.heads[p] // unit for p in members], dtype=np.int64)
    tails = np.array([run.tails[p] // unit for p in members], dtype=np.int64)
    low, high = int(best.ticks) // unit - 1, -(-most // unit)
    while high - low > 1:
        middle = (low + high) // 2
        if _overfull(heads, ticks, tails, share, weighting.room, middle):
            low = middle
        else:
            high = middle
    limit_ticks = min(round_up((low + 1) * unit, run.unit), Fraction(most))
    if limit_ticks <= best.ticks:
        return best
    return Bound(limit_ticks, reason=f"{name} has too much to do in some part of any shorter run")


def _overfull(heads: _Row, ticks: _Row, tails: _Row, share: _Row, capacity: int, makespan: int) -> bool:
    """Whether in some interval of a run of this makespan more work must be done than the engine can do."""
    latest = makespan - tails - ticks  # the latest start
    points = max(4, min(_POINTS, isqrt(_CELLS // len(heads))))
    begins = np.array(sample({*heads.tolist(), *latest.tolist()}, points), dtype=np.int64)
    ends = np.array(sample({*(latest + ticks).tolist(), *(heads + ticks).tolist()}, points), dtype=np.int64)
    rows = max(1, _CELLS // (len(ends) * len(heads)))
    for first in range(0, len(begins), rows):
        begin = begins[first : first + rows, None, None]
        end = ends[None, :, None]
        inside = np.minimum(np.minimum(ticks, heads + ticks - begin), np.minimum(end - latest, end - begin))
        work = (np.maximum(inside, 0) * share).sum(axis=2)
        if bool((work > capacity * np.maximum(end[:, :, 0] - begin[:, :, 0], 0)).any()):
            return True
    return False
