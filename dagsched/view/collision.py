"""A run in which two ops collide, as rows of bars on a terminal: one row a stream, time to the right.

::

  copy     ├ upload@0 ┤├ upload@1 ┤┣ upload@2 ┫
  compute              …            ┣ infer@0 ━┫

All ops last one unit of time, as nothing is known of them but their order. Only what the two need has run, and only the
end of a long run is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from dagsched.proof.check_collide import Collision, Moment
from dagsched.timeline import HOST_TRACK
from dagsched.view.glyphs import UNICODE, Glyphs
from dagsched.view.terminal import PLAIN, Paint, clip, escape, pad, width_of

_LONGEST = 24


def collision_picture(collision: Collision, width: int = 100, glyphs: Glyphs = UNICODE, paint: Paint = PLAIN) -> str:
    """One picture for each run of a collision, with what the two ops both touch below."""
    parts = [_picture(collision, moments, width, glyphs, paint) for moments in collision.runs]
    return "\n".join(parts)


def _picture(collision: Collision, moments: Sequence[Moment], width: int, glyphs: Glyphs, paint: Paint) -> str:
    work = [moment for moment in moments if moment.work]
    lanes = list(dict.fromkeys(_lane(moment) for moment in work))
    names = {lane: clip(escape(lane), _LONGEST) for lane in lanes}
    head = max(map(width_of, names.values()))
    columns: dict[int, int] = {}
    for moment in work:
        columns[moment.start] = max(columns.get(moment.start, 0), width_of(_text(moment)) + 4)
    first = _first_shown(columns, width - head - 6)
    lines = []
    for lane in lanes:
        mine = {moment.start: moment for moment in work if _lane(moment) == lane}
        earlier = any(start < first for start in mine)
        mark = pad(glyphs.dots if earlier else "", width_of(glyphs.dots)) if first > min(columns) else ""
        bars = [
            _bar(mine[start], cells, collision, glyphs, paint) if start in mine else " " * cells
            for start, cells in sorted(columns.items())
            if start >= first
        ]
        lines.append(f"  {pad(names[lane], head)}  {mark}{''.join(bars)}".rstrip())
    return "\n".join(lines) + "\n"


def _first_shown(columns: dict[int, int], room: int) -> int:
    """The earliest time from which all columns fit; at least the last one is shown."""
    first = max(columns)
    for start in sorted(columns, reverse=True):
        room -= columns[start]
        if room < 0:
            break
        first = start
    return first


def _bar(moment: Moment, cells: int, collision: Collision, glyphs: Glyphs, paint: Paint) -> str:
    text = _text(moment)
    if moment.node in (collision.first, collision.second):
        fill = glyphs.heavy * (cells - 4 - width_of(text))
        return paint(f"{glyphs.heavy_left} {text} {fill}{glyphs.heavy_right}", "red")
    fill = glyphs.line * (cells - 4 - width_of(text))
    return f"{glyphs.left} {text} {fill}{glyphs.right}"


def _text(moment: Moment) -> str:
    return clip(escape(moment.text), _LONGEST)


def _lane(moment: Moment) -> str:
    return moment.stream if moment.stream is not None else HOST_TRACK
