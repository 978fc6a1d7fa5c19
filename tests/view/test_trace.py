"""Chrome traces: what a viewer relies on holds for any timeline."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.timeline import Flow, Span, Timeline
from dagsched.view.trace import trace_json

NAMES = st.text(min_size=1, max_size=8)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Tracks with spans one after another (some of no length), and flows between any of them."""
    tracks = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    spans = []
    for track in tracks:
        at = 0.0
        for _ in range(draw(st.integers(0, 4))):
            start = at + draw(st.sampled_from([0.0, 1e-9, 3e-6, 0.25]))
            at = start + draw(st.sampled_from([0.0, 1e-12, 2.5e-6, 1e-3]))
            iteration = draw(st.none() | st.integers(0, 9))
            spans.append(Span(track, draw(NAMES), start, at, iteration, draw(st.none() | NAMES)))
    numbers = st.integers(0, len(spans) - 1)
    flows = draw(st.lists(st.builds(Flow, numbers, numbers, NAMES), max_size=4)) if spans else []
    return Timeline(draw(NAMES), tuple(tracks), tuple(spans), tuple(flows), draw(st.sampled_from([0.0, 2.0])))


@given(timelines())
def test_a_trace_says_what_the_timeline_says(timeline: Timeline) -> None:
    text = trace_json(timeline)
    assert text.isascii()
    document = json.loads(text)
    events = document["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["ph"] == "M"}
    assert tuple(threads.values()) == timeline.tracks
    slices = [event for event in events if event["ph"] == "X"]
    assert [(threads[e["tid"]], e["name"]) for e in slices] == [(s.track, s.text) for s in timeline.spans]
    for event, span in zip(slices, timeline.spans, strict=True):
        assert event["ts"] == pytest.approx(span.start * 1e6, abs=1e-6)
        assert event["dur"] == pytest.approx((span.end - span.start) * 1e6, abs=2e-6)
    arrows: dict[int, dict[str, Any]] = {}
    for event in events:
        if event["ph"] in "sf":
            arrows.setdefault(event["id"], {})[event["ph"]] = event
    assert len(arrows) == len(timeline.flows)
    for arrow, flow in zip(arrows.values(), timeline.flows, strict=True):
        for end, number in (("s", flow.before), ("f", flow.after)):
            span = timeline.spans[number]
            assert threads[arrow[end]["tid"]] == span.track
            assert span.start * 1e6 - 1e-6 <= arrow[end]["ts"] <= span.end * 1e6 + 1e-6


def test_timelines_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ValueError, match="tracks"):
        Timeline("t", ("a",), (Span("b", "x", 0.0, 1.0),))
    with pytest.raises(ValueError, match="flow"):
        Timeline("t", ("a",), (Span("a", "x", 0.0, 1.0),), (Flow(0, 1),))
