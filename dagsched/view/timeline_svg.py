"""A timeline as SVG: a row for each stream, a bar for each op instance, a curve for each wait.

Self-contained, readable in light and dark, with a hover text on every bar. Names are data: all of them are escaped, and
none becomes an id, a class or a style. Bars carry their ends as fractions of the whole (``data-a``, ``data-b``), by
which the HTML page zooms.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape as escape_html

from dagsched.timeline import Flow, Span, Timeline
from dagsched.view.terminal import clip, escape, width_of
from dagsched.view.units import time_text

MAX_SPANS = 4_000
MAX_FLOWS = 600
HUES = ("#4c7fe0", "#3fa35a", "#d07f2c", "#8a63d2", "#2f9a9c", "#cb5680", "#948c2c", "#76828f")
_ROW, _BAR, _TOP = 34, 20, 44
_HEAD_LONGEST = 20
_CELL = 6.6
_MOST_LEGEND = 40

STYLE = """\
.dst{font:12px system-ui,sans-serif}
.dst text{fill:#1f2933}.dst .dim{fill:#66717d}.dst .grid{stroke:#d9dee4}.dst .row{fill:#f4f6f8}
.dst .bar{rx:3px;stroke:#fff}.dst .in{fill:#fff;font-size:11px;pointer-events:none}
.dst .flow{fill:none;stroke:#66717d;stroke-width:1;opacity:.55}.dst .binds{stroke:#c2410c;opacity:.9;stroke-width:1.3}
.dst .mark{stroke:#b91c1c;stroke-width:2.5}.dst .back{fill:#fff}
@media(prefers-color-scheme:dark){.dst text{fill:#e3e8ee}.dst .dim{fill:#9aa5b1}.dst .grid{stroke:#39424d}
.dst .row{fill:#1c232b}.dst .bar{stroke:#12171d}.dst .in{fill:#fff}.dst .flow{stroke:#9aa5b1}
.dst .binds{stroke:#fb923c}.dst .back{fill:#12171d}}
"""


def timeline_svg(timeline: Timeline, *, width: int = 1100, marked: frozenset[int] = frozenset()) -> str:
    """The picture as a file; ``marked`` spans (by number) get a red frame."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{timeline_figure(timeline, width=width, marked=marked)}\n'


def timeline_figure(
    timeline: Timeline, *, width: int = 1100, marked: frozenset[int] = frozenset(), titled: bool = True
) -> str:
    """The ``<svg>`` element, to stand in a page; ``titled`` says in it whose run this is."""
    return "\n".join(_Picture(timeline, width, marked, titled).lines())


class _Picture:
    """Places of rows, and of times from ``left`` to ``right``."""

    def __init__(self, timeline: Timeline, width: int, marked: frozenset[int], titled: bool) -> None:
        self.timeline, self.width, self.marked, self.titled = timeline, width, marked, titled
        self.top = _TOP if titled else 8
        self.rows = {track: number for number, track in enumerate(timeline.tracks)}
        names = [clip(escape(track), _HEAD_LONGEST) for track in timeline.tracks]
        self.left = 24 + _CELL * max(map(width_of, names), default=0)
        self.right = width - 26  # half the last label of the axis
        self.end = timeline.makespan or 1.0
        self.hues = {name: HUES[n % len(HUES)] for n, name in enumerate(dict.fromkeys(s.name for s in timeline.spans))}
        self.shown = min(len(timeline.spans), MAX_SPANS)
        self.bottom = self.top + _ROW * len(self.rows)
        self.legend = list(self.place_legend())
        self.height = max([self.bottom + 30, *(y + 12 for _, y, _ in self.legend)])

    def place_legend(self) -> Iterator[tuple[float, float, str]]:
        """Where the name of each op stands below the axis, as many as there is sensible room for."""
        x, y = 12.0, self.bottom + 44.0
        for name in list(self.hues)[:_MOST_LEGEND]:
            width = 30 + _CELL * width_of(clip(escape(name), _HEAD_LONGEST))
            if x + width > self.width - 12:
                x, y = 12.0, y + 20
            yield x, y, name
            x += width

    def x(self, seconds: float) -> float:
        return self.left + (self.right - self.left) * seconds / self.end

    def y(self, track: str) -> float:
        return self.top + _ROW * self.rows[track]

    def lines(self) -> Iterator[str]:
        size = f'viewBox="0 0 {self.width} {self.height:g}" width="{self.width}" height="{self.height:g}"'
        sides = f'data-left="{self.left:g}" data-right="{self.right:g}"'
        yield f'<svg xmlns="http://www.w3.org/2000/svg" class="dst" role="img" {size} {sides}>'
        yield f"<style>{STYLE}</style>"
        title = f"{self.timeline.name}: {time_text(self.timeline.makespan)}"
        yield f"<title>{_text(title)}</title>"
        about = _text("; ".join(filter(None, [self.timeline.source, *self.timeline.notes, *self.left_out()])))
        if self.titled:  # a file of its own, wherever it is shown: text must not rely on what is behind it
            yield '<rect class="back" width="100%" height="100%"/>'
            yield (
                f'<text x="12" y="19" font-weight="600">{_text(title)}'
                f'<tspan class="dim" font-weight="400">  {about}</tspan></text>'
            )
        for track in self.timeline.tracks:
            y = self.y(track)
            if self.rows[track] % 2 == 0:
                yield f'<rect class="row" x="0" y="{y:g}" width="{self.width}" height="{_ROW}"/>'
            shown = _text(clip(escape(track), _HEAD_LONGEST))
            yield f'<text x="12" y="{y + _ROW / 2 + 4:g}">{shown}<title>{_text(track)}</title></text>'
        yield from self.axis()
        for number, span in enumerate(self.timeline.spans[: self.shown]):
            yield self.bar(number, span)
        for flow in self.flows():
            yield self.curve(flow)
        for x, y, name in self.legend:
            yield f'<rect x="{x:g}" y="{y - 9:g}" width="11" height="11" rx="2" fill="{self.hues[name]}"/>'
            yield f'<text class="dim" x="{x + 16:g}" y="{y:g}">{_text(clip(escape(name), _HEAD_LONGEST))}</text>'
        yield "</svg>"

    def left_out(self) -> list[str]:
        more = len(self.timeline.spans) - self.shown
        hidden = [f"{more:,} more ops are not drawn"] if more else []
        return hidden + ([] if self.flows() or not self.timeline.flows else ["waits are not drawn"])

    def flows(self) -> tuple[Flow, ...]:
        found = tuple(f for f in self.timeline.flows if max(f.before, f.after) < self.shown)
        return found if len(found) <= MAX_FLOWS else ()

    def axis(self) -> Iterator[str]:
        for seconds in ticks(self.timeline.makespan):
            x, at = self.x(seconds), _fraction(seconds / self.end)
            yield f'<g class="tick" data-a="{at}"><path class="grid" d="M{x:.2f} {self.top}V{self.bottom + 5}"/>'
            text = time_text(seconds) if seconds else "0"
            yield f'<text class="dim" x="{x:.2f}" y="{self.bottom + 19}" text-anchor="middle">{text}</text></g>'

    def bar(self, number: int, span: Span) -> str:
        x, width = self.x(span.start), max(0.8, self.x(span.end) - self.x(span.start))
        y = self.y(span.track) + (_ROW - _BAR) / 2
        ends = f'data-a="{_fraction(span.start / self.end)}" data-b="{_fraction(span.end / self.end)}"'
        thin = ' stroke-width="0"' if width < 3 else ""
        shade = ' fill-opacity=".78"' if (span.iteration or 0) % 2 else ""
        mark = " mark" if number in self.marked else ""
        label = clip(escape(span.text), 40)
        fits = _CELL * width_of(label) + 6 <= width
        hidden = "" if fits else ' visibility="hidden"'
        return (
            f'<g class="span" {ends}><title>{_text(hover(span))}</title>'
            f'<rect class="bar{mark}" x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{_BAR}" '
            f'fill="{self.hues[span.name]}"{shade}{thin}/>'
            f'<text class="in" x="{x + width / 2:.2f}" y="{y + 14:g}" text-anchor="middle"{hidden}>'
            f"{_text(label)}</text></g>"
        )

    def curve(self, flow: Flow) -> str:
        before, after = self.timeline.spans[flow.before], self.timeline.spans[flow.after]
        x, to = self.x(before.end), self.x(after.start)
        down = self.rows[after.track] >= self.rows[before.track]
        y = self.y(before.track) + (_ROW + _BAR) / 2 - (0 if down else _BAR)
        end = self.y(after.track) + (_ROW - _BAR) / 2 + (0 if down else _BAR)
        bend = (y + end) / 2
        kind = "flow binds" if flow.binds else "flow"
        ends = f'data-a="{_fraction(before.end / self.end)}" data-b="{_fraction(after.start / self.end)}"'
        path = f"M{x:.2f} {y:g}C{x:.2f} {bend:g} {to:.2f} {bend:g} {to:.2f} {end:g}"
        title = f"{after.text} waits for {before.text}" + (f" ({flow.event})" if flow.event else "")
        return f'<path class="{kind}" {ends} d="{path}"><title>{_text(title)}</title></path>'


def hover(span: Span) -> str:
    """What a bar says when the pointer rests on it, as lines."""
    lines = [
        f"{span.text} on {span.track}" + (f" ({span.engine})" if span.engine and span.engine != span.track else ""),
        f"{time_text(span.start)} to {time_text(span.end)}: {time_text(span.end - span.start)}",
        *span.causes,
    ]
    return "\n".join(lines)


def ticks(length: float, most: int = 9) -> list[float]:
    """Round times from 0 to ``length``, at most about ``most`` of them."""
    if length <= 0:
        return [0.0]
    step = 10.0**-15
    while length / step > most:
        for factor in (2, 5, 10):
            if length / (step * factor) <= most or factor == 10:
                step *= factor
                break
    return [n * step for n in range(int(length / step + 1e-9) + 1)]


def _fraction(value: float) -> str:
    return f"{value:.7f}".rstrip("0").rstrip(".") or "0"


def _text(text: str) -> str:
    """Escaped for XML: markup as entities, control and format characters as visible escapes, lines kept."""
    return escape_html("\n".join(map(escape, text.split("\n"))))
