"""Every form of a timeline behind one function, for the command line, reports and executors."""

from __future__ import annotations

from dagsched.timeline import Timeline
from dagsched.view.terminal import PLAIN, Paint


def draw_timeline(timeline: Timeline, format: str, *, width: int = 100, paint: Paint = PLAIN) -> str:
    """A timeline as ``text``, ``svg``, ``html`` or ``json`` (a Chrome trace); ``width`` and ``paint`` are for text."""
    if format == "svg":
        from dagsched.view.timeline_svg import timeline_svg

        return timeline_svg(timeline)
    if format == "html":
        from dagsched.view.timeline_html import timeline_html

        return timeline_html(timeline)
    if format == "json":
        from dagsched.view.trace import trace_json

        return trace_json(timeline)
    if format != "text":
        raise ValueError(f"format is {format!r}, not one of text, svg, html, json")
    from dagsched.view.timeline_text import timeline_text

    return timeline_text(timeline, width=width, paint=paint)
