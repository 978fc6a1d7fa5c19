"""Put ops whose starts are known on streams, so that none has to wait for its stream.

Ops are taken in the order in which they start. Each goes to a stream that is free by then: best to one whose newest op
it comes after anyway (no wait is needed then), else to the one that was busy last; a new stream is opened where none is
free. Where no more may be opened, it queues on the one that is free first.
"""

from __future__ import annotations

from dagsched.choice.list_schedule import Starts
from dagsched.choice.problem import FREE, Candidate, Problem


def place_ops(problem: Problem, starts: Starts, *, mixed: bool = False) -> Candidate:
    """Streams of one engine each; ``mixed``: chains of ops may share a stream across engines (host ops do not)."""
    first_free = len(problem.pinned)
    kinds: list[object] = [None] * first_free  # per stream: the engine, or host or device
    newest: list[int] = [-1] * first_free
    until: list[int] = [0] * first_free
    closed = first_free  # streams that were named for ops take no others
    stream_of = [0] * len(problem)
    before = [frozenset(row) for row in problem.before]
    for op in starts.order:
        chosen = problem.pin[op]
        if chosen == FREE:
            kind: object = problem.host[op] if mixed else (problem.host[op], problem.engine[op])
            chosen = _choose(kinds, newest, until, closed, kind, starts.start[op], before[op])
            if chosen < 0 and len(kinds) < problem.most:
                chosen = len(kinds)
                kinds.append(kind)
                newest.append(-1)
                until.append(0)
            elif chosen < 0:
                chosen = _least_busy(problem, kinds, until, closed, op)
        stream_of[op] = chosen
        newest[chosen] = op
        until[chosen] = max(until[chosen], starts.start[op]) + problem.ticks[op]
    return Candidate(tuple(starts.order), tuple(stream_of))


def _choose(
    kinds: list[object],
    newest: list[int],
    until: list[int],
    closed: int,
    kind: object,
    start: int,
    before: frozenset[int],
) -> int:
    """A stream of the kind that is free at ``start``, or -1."""
    best, found = (False, -1), -1
    for stream in range(closed, len(kinds)):
        if kinds[stream] == kind and until[stream] <= start:
            merit = newest[stream] in before, until[stream]
            if merit > best:
                best, found = merit, stream
    return found


def _least_busy(problem: Problem, kinds: list[object], until: list[int], closed: int, op: int) -> int:
    """Where no stream may be opened: the one that is free first, of host threads for host ops where there are any."""
    own: list[int] = []
    for stream in range(closed, len(kinds)):
        kind = kinds[stream]
        host = kind if isinstance(kind, bool) else kind[0]  # type: ignore[index]
        if host == problem.host[op]:
            own.append(stream)
    streams = own or list(range(closed, len(kinds))) or list(range(len(kinds)))
    return min(streams, key=lambda stream: (until[stream], stream))
