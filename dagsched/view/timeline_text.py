"""A timeline on a terminal: a row for each stream, a letter for each op, in capitals in every other iteration.

::

  h2d      aA a  A   a
  ai-core   bbccccBBCCCC

A cell shows the op that fills most of it; an op too short for a cell still shows where the cell would be empty.
"""

from __future__ import annotations

from string import ascii_lowercase

from dagsched.timeline import Span, Timeline
from dagsched.view.terminal import PLAIN, Paint, clip, escape, pad, width_of, wrap_names
from dagsched.view.units import time_text

_LONGEST = 24
_COLOURS = ("blue", "green", "yellow", "cyan", "red", "bold")


def timeline_text(timeline: Timeline, *, width: int = 100, paint: Paint = PLAIN) -> str:
    """The picture, at most ``width`` cells wide, with what the letters mean and how busy each stream is."""
    letters = {}
    for number, name in enumerate(dict.fromkeys(span.name for span in timeline.spans)):
        letters[name] = ascii_lowercase[number % len(ascii_lowercase)]
    names = {track: clip(escape(track), min(_LONGEST, width // 3)) for track in timeline.tracks}
    head = max(map(width_of, names.values()), default=0)
    room = max(10, width - head - 10)
    about = "; ".join(filter(None, [timeline.source, *timeline.notes]))
    lines = [
        f"{paint(escape(timeline.name), 'bold')}: {time_text(timeline.makespan)}",
        *([f"  {escape(about)}"] if about else []),
        "",
    ]
    for track in timeline.tracks:
        spans = [span for span in timeline.spans if span.track == track]
        busy = sum(span.end - span.start for span in spans)
        share = f"{busy / timeline.makespan:4.0%}" if timeline.makespan else ""
        row = _row(spans, letters, room, timeline.makespan, paint)
        lines.append(f"  {pad(names[track], head)}  {row} {share}".rstrip())
    lines.append(f"  {' ' * head}  {_scale(timeline.makespan, room)}")
    legend = [f"{letter} {clip(escape(name), _LONGEST)}" for name, letter in letters.items()]
    lines += ["", f"  {wrap_names(legend, width, 2)}"] if legend else []
    return "\n".join(lines) + "\n"


def _row(spans: list[Span], letters: dict[str, str], room: int, end: float, paint: Paint) -> str:
    cells: list[tuple[float, str, str]] = [(0.0, " ", "")] * room
    for span in spans:
        letter = letters[span.name]
        shown = letter.upper() if (span.iteration or 0) % 2 else letter
        colour = _COLOURS[(ord(letter) - ord("a")) % len(_COLOURS)]
        first, last = (room * at / end if end else 0.0 for at in (span.start, span.end))
        for cell in range(min(int(first), room - 1), min(int(last), room - 1) + 1):
            share = min(last, cell + 1) - max(first, cell)
            if share > cells[cell][0] or (cells[cell][1] == " " and (share > 0 or first == last)):
                cells[cell] = (share, shown, colour)
    return "".join(paint(shown, colour) if colour else shown for _, shown, colour in cells)


def _scale(end: float, room: int) -> str:
    """``0`` at the left edge and the whole time at the right."""
    text = time_text(end)
    return f"0{text:>{room - 1}}"
