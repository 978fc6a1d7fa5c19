"""Vector clocks of streams: for each stream, the newest thing on it that is known to be done (-1: nothing).

On few streams a clock is a list. On many it is an array, which is joined several times as fast. Whoever keeps a clock
copies it before changing it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

MANY_STREAMS = 48
"""From so many streams on clocks are arrays."""

Clock: TypeAlias = "list[int] | NDArray[int64]"


def make_clock(streams: int) -> tuple[Clock, Callable[[Clock, Clock], Clock]]:
    """A clock that knows of nothing, and the function that joins two into a new one."""
    if streams < MANY_STREAMS:
        return [-1] * streams, lambda mine, other: list(map(max, mine, other))
    import numpy

    return numpy.full(streams, -1, dtype=numpy.int64), numpy.maximum
