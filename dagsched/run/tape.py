"""What a run remembers of itself: when ops ran on each stream, and which waits it slept in.

One short tuple an op, kept for the last so many ops, so that a run of any length takes the same memory.
Times are nanoseconds of ``time.perf_counter_ns``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

OpMark = tuple[int, int, int, int]
"""Op number, iteration, start, end."""

WaitMark = tuple[int, int, int, int, int, int]
"""Number of the op behind the wait, its iteration, record number, iteration awaited, start, end."""


@dataclass(frozen=True, slots=True)
class Tape:
    """Marks by stream, oldest first; ``limit`` is how many ops each stream keeps."""

    ops: tuple[deque[OpMark], ...]
    waits: tuple[deque[WaitMark], ...]
    limit: int


def new_tape(streams: int, limit: int) -> Tape:
    """An empty tape that keeps at most ``limit`` ops in all, shared out evenly among the streams."""
    each = max(1, limit // max(1, streams))
    return Tape(
        tuple(deque(maxlen=each) for _ in range(streams)), tuple(deque(maxlen=each) for _ in range(streams)), each
    )
