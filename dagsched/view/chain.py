"""A chain that orders two ops, as a small picture on a terminal: one row a stream, a corner wherever a wait leads over.

::

  copy     upload@3 ──● ready@1
                      │
  compute             ╰▶ infer@3

Links that only pass through a stream (a record that this chain does not use, say) are left out. Where the picture gets
too wide it goes on below, beginning with the op that the part above ended with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dagsched.proof.check_paths import Chain, PathStep
from dagsched.view.glyphs import UNICODE, Glyphs
from dagsched.view.terminal import clip, escape, pad, width_of

HOST_ROW = "host"
_LONGEST = 28
_GAP = 2


@dataclass(frozen=True, slots=True)
class Hop:
    """One thing to draw: ``text`` on the row of ``lane``; ``over`` says what leads here from another row.

    ``sign`` marks a wait or a sync, for which the work behind it stands in.
    """

    lane: str
    text: str
    over: str | None = None
    sign: bool = False


def chain_picture(chain: Chain, width: int = 100, glyphs: Glyphs = UNICODE) -> str:
    """The picture of a chain, lines of at most ``width`` cells where a single link fits at all."""
    hops = hops_of(chain)
    lanes = list(dict.fromkeys(hop.lane for hop in hops))
    parts: list[str] = []
    start = 0
    while start < len(hops) - 1 or not parts:
        stop = len(hops)
        while stop > start + 2 and _draw(hops[start:stop], lanes, glyphs).width > width:
            stop -= 1
        parts.append(_draw(hops[start:stop], lanes, glyphs).text())
        start = stop - 1
    return "\n".join(parts)


def hops_of(chain: Chain) -> list[Hop]:
    """The links that matter: work, and how the chain gets from one stream to the next."""
    hops: list[Hop] = []
    for number, link in enumerate(chain):
        before = chain[number - 1] if number else None
        crosses = before is not None and before.stream != link.stream
        if crosses:
            assert before is not None
            over = _leaving(before, link)
            hops.append(Hop(_lane(link), _shown(link), over, _is_sign(link)))
        elif not _is_sign(link):
            # A wait or a sync is a way in, not a stop: what comes after it on the same row takes its place.
            arrived = hops and hops[-1].over is not None and hops[-1].sign
            if arrived:
                hops[-1] = Hop(hops[-1].lane, _shown(link), hops[-1].over)
            else:
                hops.append(Hop(_lane(link), _shown(link)))
    return hops


def _leaving(before: PathStep, link: PathStep) -> str:
    """What a line between two rows is labelled with."""
    if link.by == "issued later by the host":
        return "issues"
    return _shown(before).removeprefix("record ") if _is_sign(before) else link.by


def _is_sign(link: PathStep) -> bool:
    """Whether a link only makes order (a record, a wait, a sync)."""
    return link.text.partition(" ")[0] in ("record", "wait", "wait_stream", "sync", "set", "take", "acquire", "release")


def _lane(link: PathStep) -> str:
    return link.stream if link.stream is not None else HOST_ROW


def _shown(link: PathStep) -> str:
    return clip(escape(link.text.partition(" (")[0] if _is_sign(link) else link.text), _LONGEST)


def _draw(hops: Sequence[Hop], lanes: Sequence[str], glyphs: Glyphs) -> _Canvas:
    used = [lane for lane in lanes if any(hop.lane == lane for hop in hops)]
    canvas = _Canvas(used, glyphs)
    row = canvas.row(hops[0].lane)
    canvas.put(row, canvas.margin, hops[0].text)
    for hop in hops[1:]:
        target = canvas.row(hop.lane)
        if hop.over is None:
            at = canvas.end(row)
            canvas.put(row, at, f" {glyphs.line * 2} {hop.text}")
        else:
            canvas.lead(row, target, hop.over, hop.text)
        row = target
    return canvas


class _Canvas:
    """Rows of cells; every stream has a row, with a row for lines between two."""

    def __init__(self, lanes: Sequence[str], glyphs: Glyphs) -> None:
        self.glyphs = glyphs
        names = [clip(escape(lane), _LONGEST) for lane in lanes]
        head = max(map(width_of, names))
        self.margin = 2 + head + _GAP
        self.lanes = list(lanes)
        self.rows: list[list[str]] = []
        for number, name in enumerate(names):
            self.rows += [[]] if number else []
            self.rows.append(list(f"  {pad(name, head)}"))
        self.shift = [width_of("".join(row)) - len(row) for row in self.rows]  # Wide characters take two cells.

    def row(self, lane: str) -> int:
        return 2 * self.lanes.index(lane)

    def end(self, row: int) -> int:
        return len(self.rows[row]) + self.shift[row]

    @property
    def width(self) -> int:
        return max(self.end(row) for row in range(len(self.rows)))

    def put(self, row: int, column: int, text: str) -> None:
        cells = self.rows[row]
        cells += " " * (column - self.end(row))
        cells += text
        self.shift[row] += width_of(text) - len(text)

    def lead(self, source: int, target: int, label: str, text: str) -> None:
        """A line from the end of a row over to another, and on to a text there."""
        glyphs = self.glyphs
        step = 1 if target > source else -1
        crossed = range(source + step, target + step, step)
        column = max([self.end(source) + 3, *(self.end(row) + 1 for row in crossed)])
        self.put(source, self.end(source), " " + glyphs.line * (column - self.end(source) - 1) + glyphs.record)
        self.put(source, self.end(source), f" {label}")
        for row in crossed[:-1]:
            self.put(row, column, glyphs.bar)
        self.put(target, column, (glyphs.down_right if step > 0 else glyphs.up_right) + glyphs.arrow + " " + text)

    def text(self) -> str:
        return "".join("".join(row).rstrip() + "\n" for row in self.rows)
