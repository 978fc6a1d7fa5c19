"""Diagnostics as text for people: headline, place, the source lines of all sides with carets, notes and help.

::

    error[P102]: unknown key `wirtes`
      --> detector.yaml:12:37
       |
    12 |   - {name: decode, host: decode_frame, wirtes: [frame]}
       |                                        ^^^^^^
       |
       = help: write `writes`

``view/annotations.py`` has the forms for machines. Whatever comes from a file is escaped, a line that is longer than
the terminal is shown around its carets, and nothing depends on colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dagsched.diagnostics import Diagnostic, Source, Where
from dagsched.view.terminal import PLAIN, TAB, Paint, escape, escape_character, escape_lines, width_of

LINE_WIDTH = 120
"""Cells of a source line that are shown at the most."""

MOST_SHOWN = 50
"""Diagnostics that are printed in full; of the rest only the number is told."""

_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


@dataclass(frozen=True, slots=True)
class _Mark:
    """One span to underline; the ``main`` one with carets, others with dashes."""

    where: Where
    text: str
    main: bool


def diagnostics_text(diagnostics: Iterable[Diagnostic], *, paint: Paint = PLAIN, width: int = LINE_WIDTH) -> str:
    """All diagnostics as text, a blank line between them; ``width`` is the most cells of a source line."""
    every = tuple(diagnostics)
    blocks = [diagnostic_text(diagnostic, paint=paint, width=width) for diagnostic in every[:MOST_SHOWN]]
    if len(every) > MOST_SHOWN:
        blocks.append(f"... and {len(every) - MOST_SHOWN} more like these\n")
    return "\n".join(blocks)


def diagnostic_text(diagnostic: Diagnostic, *, paint: Paint = PLAIN, width: int = LINE_WIDTH) -> str:
    """One diagnostic as text that ends with a line end."""
    colour = _COLOURS[diagnostic.severity]
    head = paint(f"{diagnostic.severity}[{diagnostic.code}]", colour)
    lines = [f"{head}: {paint(escape(diagnostic.headline), 'bold')}"]
    marks = _marks(diagnostic)
    gutter = len(str(max((mark.where.line for mark in marks), default=1)))
    bar = paint("|", "blue")
    if diagnostic.source:
        lines.append(f"{' ' * gutter}{paint('-->', 'blue')} {place_text(diagnostic.source, diagnostic.where)}")
    if diagnostic.source and marks:
        lines.append(f"{' ' * gutter} {bar}")
        lines += _snippet(diagnostic.source, marks, gutter, colour, paint, max(20, width - gutter - 3))
    sayings = [("note", note) for note in diagnostic.notes]
    sayings += [("help", diagnostic.help)] if diagnostic.help else []
    if sayings and marks and diagnostic.source:
        lines.append(f"{' ' * gutter} {bar}")
    for word, saying in sayings:
        body = escape_lines(saying).replace("\n", "\n" + " " * (gutter + 9))
        lines.append(f"{' ' * gutter} {paint('=', 'blue')} {paint(word, 'bold')}: {body}")
    return "\n".join(lines) + "\n"


def place_text(source: Source, where: Where | None) -> str:
    """``file:line:column``, or just the file."""
    name = escape(source.name)
    return f"{name}:{where.line}:{where.column}" if where else name


def _marks(diagnostic: Diagnostic) -> list[_Mark]:
    marks = [_Mark(label.where, label.text, main=False) for label in diagnostic.labels]
    if diagnostic.where:
        marks.append(_Mark(diagnostic.where, "", main=True))
    return sorted(marks, key=lambda mark: (mark.where.line, not mark.main, mark.where.column))


def _snippet(
    source: Source, marks: Sequence[_Mark], gutter: int, colour: str, paint: Paint, width: int
) -> Iterable[str]:
    """The lines that hold marks, each followed by its underlines; ``...`` stands where lines are left out."""
    text = source.text.split("\n")
    before = None
    for number in sorted({mark.where.line for mark in marks}):
        if before is not None and number > before + 1:
            yield paint("...", "blue")
        before = number
        here = [mark for mark in marks if mark.where.line == number]
        line = text[number - 1].rstrip("\r") if 0 < number <= len(text) else ""
        shown, spans = _window(line, [mark.where for mark in here], width)
        yield f"{paint(str(number).rjust(gutter), 'blue')} {paint('|', 'blue')} {shown}".rstrip()
        for mark, (start, length) in zip(here, spans, strict=True):
            under = paint(("^" if mark.main else "-") * length, colour if mark.main else "blue")
            saying = f" {escape(mark.text)}" if mark.text else ""
            yield f"{' ' * gutter} {paint('|', 'blue')} {' ' * start}{under}{saying}"


def _window(line: str, places: Sequence[Where], width: int) -> tuple[str, list[tuple[int, int]]]:
    """The part of a line that is shown, and for each place the cell where its underline starts and how long it is.

    A line that fits is shown whole; of a longer one, ``width`` cells that hold the start of the first place.
    """
    # A line of megabytes (minified JSON) is cut before its characters are looked at one by one.
    first = min(max(0, min(place.column for place in places) - 1), len(line))
    skipped = max(0, first - width) if len(line) > 4 * width else 0
    cells = ["\t" if c == "\t" else escape_character(c) for c in line[skipped : skipped + 4 * width]]
    cells = [" " * TAB if cell == "\t" else cell for cell in cells]
    starts = [0]
    for cell in cells:
        starts.append(starts[-1] + width_of(cell))

    def cell_of(column: int) -> int:
        return starts[min(max(column - skipped, 0), len(cells))]

    left, right = 0, len(cells)
    if starts[-1] > width or skipped or skipped + len(cells) < len(line):
        target = max(0, cell_of(first) - width // 3)
        left = next(index for index in range(len(cells) + 1) if starts[index] >= target)
        while right > left and starts[right] - starts[left] > width - 2:
            right -= 1
    head = "…" if left or skipped else ""
    tail = "…" if right < len(cells) or skipped + len(cells) < len(line) else ""
    shown = head + "".join(cells[left:right]) + tail
    base = starts[left] - len(head)
    spans = []
    for place in places:
        begin = min(max(cell_of(place.column - 1) - base, 0), width_of(shown))
        end = min(cell_of(place.column - 1 + place.width) - base, width_of(shown))
        spans.append((begin, max(1, end - begin)))
    return shown, spans
