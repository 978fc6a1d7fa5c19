"""Where the time of a run went: busy engines and streams, transfers against compute, overlap, and waits, as data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from dagsched.compiled import Compiled
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.engines import engine_capacity, engine_kind
from dagsched.plan.model import Loop, Op
from dagsched.timeline import Span, Timeline

KINDS = ("h2d", "compute", "d2h", "d2d", "host")


@dataclass(frozen=True, slots=True)
class Waited:
    """How long ``op`` waited for ``other`` in all its instances together, and how often."""

    op: str
    other: str
    seconds: float
    times: int


@dataclass(frozen=True, slots=True)
class Usage:
    """All of one run; seconds, and shares from 0 to 1 of ``window`` (from the first traced op's start to the end).

    ``kinds`` are seconds that ops of a kind took together, ``overlap`` how many ops ran at once on average while any
    did, ``two`` the share of that time in which more than one ran. ``interval`` is the time between two iterations in
    the steady state, where the run has enough of them.
    """

    window: float
    kinds: dict[str, float]
    engines: dict[str, float]
    streams: dict[str, float]
    overlap: float
    two: float
    waits: tuple[Waited, ...]
    interval: float | None


def find_usage(compiled: Compiled, timeline: Timeline, iterations: int, seconds: float) -> Usage:
    """Add up a timeline. Without spans (tracing was off) everything is empty."""
    plan = compiled.resolved
    costs = op_costs(plan, compiled.device)
    kind_of = {op.name: engine_kind(op, plan) for op in plan.ops()}
    spans = timeline.spans
    begin = min((span.start for span in spans), default=0.0)
    end = max((span.end for span in spans), default=0.0)
    window = max(end - begin, 1e-12)
    kinds = dict.fromkeys(KINDS, 0.0)
    engines: dict[str, float] = {}
    streams = dict.fromkeys(timeline.tracks, 0.0)
    for span in spans:
        took = span.end - span.start
        kinds[kind_of[span.name]] += took
        cost = costs[span.name]
        engines[cost.engine.name] = engines.get(cost.engine.name, 0.0) + took * _share(cost)
        streams[span.track] += took
    busy, two, work = _overlap(spans)
    return Usage(
        window=window if spans else 0.0,
        kinds=kinds,
        engines={name: time / window for name, time in engines.items()},
        streams={name: time / window for name, time in streams.items()},
        overlap=work / busy if busy else 0.0,
        two=two / busy if busy else 0.0,
        waits=_waits(timeline),
        interval=_interval(compiled, spans),
    )


def _share(cost: OpCost) -> float:
    return cost.share / engine_capacity(cost.engine)


def _overlap(spans: Iterable[Span]) -> tuple[float, float, float]:
    """Seconds in which at least one and at least two ops ran, and the ops' own seconds added up."""
    edges = sorted((time, step) for span in spans for time, step in ((span.start, 1), (span.end, -1)))
    busy, two, work = 0.0, 0.0, 0.0
    running = 0
    last = 0.0
    for time, step in edges:
        busy += (time - last) if running >= 1 else 0.0
        two += (time - last) if running >= 2 else 0.0
        work += (time - last) * running
        running += step
        last = time
    return busy, two, work


def _waits(timeline: Timeline) -> tuple[Waited, ...]:
    """Who waited for whom: from the end of the stream's op before (or of nothing) to the op's own start."""
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    times: Counter[tuple[str, str]] = Counter()
    before: dict[int, float] = {}
    last: dict[str, float] = {}
    for number, span in enumerate(timeline.spans):
        before[number] = last.get(span.track, 0.0)
        last[span.track] = span.end
    latest: dict[int, tuple[float, str]] = {}
    for flow in timeline.flows:
        if flow.binds:
            other = timeline.spans[flow.before]
            latest[flow.after] = max(latest.get(flow.after, (-1.0, "")), (other.end, other.name))
    for number, (_, other_name) in latest.items():
        span = timeline.spans[number]
        seconds[span.name, other_name] += max(0.0, span.start - before[number])
        times[span.name, other_name] += 1
    ordered = sorted(seconds.items(), key=lambda entry: -entry[1])
    return tuple(Waited(op, other, total, times[op, other]) for (op, other), total in ordered)


def _interval(compiled: Compiled, spans: tuple[Span, ...]) -> float | None:
    """The slowest loop's time between iterations: the slope of its last op's ends, the start-up left out."""
    found = []
    by_name: dict[str, list[Span]] = {}
    for span in spans:
        by_name.setdefault(span.name, []).append(span)
    for item in compiled.resolved.items:
        if not isinstance(item, Loop):
            continue
        own = by_name.get([op.name for op in item.body if isinstance(op, Op)][-1], [])
        if len(own) >= 8:
            skip = len(own) // 4
            found.append((own[-1].end - own[skip].end) / (len(own) - 1 - skip))
    return max(found, default=None)
