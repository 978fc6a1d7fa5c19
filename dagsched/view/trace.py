"""A timeline as Chrome trace JSON, which Perfetto (https://ui.perfetto.dev) and chrome://tracing open.

Each track is a thread, each span a complete event (``X``), each wait an arrow (flow events ``s`` and ``f``) from the
record's op to the op that waits. Times are microseconds, as the format has it. An arrow begins a nanosecond before its
span's end, because viewers tie it to the slice that is open at that moment.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from typing import Any

from dagsched.timeline import Flow, Span, Timeline

_PROCESS = 1
_INSIDE = 1e-9


def trace_json(timeline: Timeline) -> str:
    """The trace as one JSON document, pure ASCII, one event a line; equal timelines give equal bytes."""
    events = ",\n".join(json.dumps(event) for event in trace_events(timeline))
    other = {
        "name": timeline.name, "source": timeline.source, "makespan": timeline.makespan, "notes": list(timeline.notes),
    }  # fmt: skip
    return f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(other)}, "traceEvents": [\n{events}\n]}}\n'


def trace_events(timeline: Timeline) -> list[dict[str, Any]]:
    """The events as plain data: names of process and threads, then spans in their order, then arrows."""
    threads = {track: number for number, track in enumerate(timeline.tracks, 1)}
    title = f"{timeline.name} ({timeline.source})" if timeline.source else timeline.name
    events: list[dict[str, Any]] = [_named("process_name", {"name": title}, 0)]
    for track, thread in threads.items():
        events.append(_named("thread_name", {"name": track}, thread))
        events.append(_named("thread_sort_index", {"sort_index": thread}, thread))
    events += [_span_event(span, threads[span.track]) for span in timeline.spans]
    for number, flow in enumerate(timeline.flows, 1):
        events += _flow_events(timeline, flow, threads, number)
    return events


def _named(kind: str, args: dict[str, Any], thread: int) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": _PROCESS, "tid": thread, "args": args}


def _span_event(span: Span, thread: int) -> dict[str, Any]:
    facts = {
        "op": span.name,
        "iteration": span.iteration,
        "engine": span.engine,
        "issued_us": None if span.issued is None else _micros(span.issued),
        "causes": list(span.causes) or None,
    }
    return {
        "ph": "X", "name": span.text, "cat": span.engine or "op", "pid": _PROCESS, "tid": thread,
        "ts": _micros(span.start), "dur": _micros(max(0.0, span.end - span.start)),
        "args": {key: value for key, value in facts.items() if value is not None},
    }  # fmt: skip


def _flow_events(timeline: Timeline, flow: Flow, threads: dict[str, int], number: int) -> list[dict[str, Any]]:
    before, after = timeline.spans[flow.before], timeline.spans[flow.after]
    common = {"cat": "wait", "name": flow.event or "wait", "id": number, "pid": _PROCESS}
    start = max(before.start, before.end - _INSIDE)
    return [
        {"ph": "s", **common, "tid": threads[before.track], "ts": _micros(start)},
        {"ph": "f", "bp": "e", **common, "tid": threads[after.track], "ts": _micros(after.start)},
    ]


def _micros(seconds: float) -> float:
    """Microseconds to the picosecond."""
    return round(seconds * 1e6, 6)
