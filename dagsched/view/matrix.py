"""The dependency matrix: row before column, each cell the hazards that order the two, as ``RAW`` or ``WAR@2``.

``@d`` is the distance in iterations where it is not 0. The table is for a terminal and made to fit it: ops are named
in the head while there is room, numbered where there is not, and where even that is too wide the columns are printed
in blocks that leave out rows with nothing in them. CSV and JSON are for programs and hold everything.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from dagsched.hazards.model import Hazard, Hazards
from dagsched.view.terminal import clip, escape, pad, width_of

_GAP = "  "
_LONGEST_NAME = 24
_NOTHING = "."

Cells = dict[tuple[str, str], tuple[str, ...]]


def matrix_cells(hazards: Hazards) -> Cells:
    """What stands in each cell that is not empty, by (before, after): kinds with distances, nearest first."""
    entries: dict[tuple[str, str], set[tuple[int, str]]] = {}
    for hazard in hazards.entries:
        entries.setdefault((hazard.before, hazard.after), set()).add((hazard.distance or 0, hazard.kind))
    return {pair: tuple(_cell(kind, distance) for distance, kind in sorted(found)) for pair, found in entries.items()}


def _cell(kind: str, distance: int) -> str:
    return f"{kind}@{distance}" if distance else kind


def matrix_table(hazards: Hazards, width: int = 100) -> str:
    """The matrix as an aligned table of at most ``width`` cells, where a single column fits at all."""
    cells = matrix_cells(hazards)
    if not hazards.ops:
        return "no ops\n"
    names = {op: clip(escape(op), _LONGEST_NAME) for op in hazards.ops}
    rows = [(op, names[op]) for op in hazards.ops]
    table = _Table(cells, rows, [(op, names[op]) for op in hazards.ops])
    if table.width > width:
        digits = len(str(len(rows)))
        numbered = [(op, f"{number:>{digits}} {names[op]}") for number, op in enumerate(hazards.ops, 1)]
        table = _Table(cells, numbered, [(op, str(number)) for number, op in enumerate(hazards.ops, 1)])
    lines = ["row before column; @d: d iterations later; . : no direct hazard", ""]
    for number, block in enumerate(table.blocks(width)):
        lines += [""] if number else []
        lines += block
    lines += ["", f"{len(hazards.ops)} ops, {len(hazards.entries)} hazards between {len(cells)} pairs"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


class _Table:
    """Rows and columns with their widths; kinds of one cell stand under each other."""

    def __init__(self, cells: Cells, rows: Sequence[tuple[str, str]], columns: Sequence[tuple[str, str]]) -> None:
        self.cells, self.rows, self.columns = cells, rows, columns
        self.head = max(width_of(title) for _, title in rows)
        self.widths = {op: max(1, width_of(title)) for op, title in columns}
        for (_, after), entries in cells.items():
            self.widths[after] = max(self.widths[after], *map(len, entries))

    @property
    def width(self) -> int:
        return self.head + sum(len(_GAP) + width for width in self.widths.values())

    def blocks(self, width: int) -> Iterator[list[str]]:
        """The table as blocks of lines; one block where it fits."""
        taken = 0
        while taken < len(self.columns):
            first, used = taken, self.head
            while taken < len(self.columns):
                used += len(_GAP) + self.widths[self.columns[taken][0]]
                if used > width and taken > first:
                    break
                taken += 1
            yield self._block(self.columns[first:taken], whole=taken - first == len(self.columns))

    def _block(self, columns: Sequence[tuple[str, str]], *, whole: bool) -> list[str]:
        head = [pad(title, self.widths[op], right=True) for op, title in columns]
        lines = [_GAP.join([" " * self.head, *head])]
        for op, title in self.rows:
            entries = [self.cells.get((op, column), ()) for column, _ in columns]
            if not whole and not any(entries):
                continue
            for level in range(max(1, *map(len, entries))):
                texts = [_line_of(kinds, level) for kinds in entries]
                row = [text.rjust(self.widths[column]) for text, (column, _) in zip(texts, columns, strict=True)]
                lines.append(_GAP.join([pad(title if level == 0 else "", self.head), *row]))
        return lines


def _line_of(kinds: Sequence[str], level: int) -> str:
    """What a cell shows on its line ``level``; an empty cell has a dot on its first."""
    if not kinds:
        return "" if level else _NOTHING
    return kinds[level] if level < len(kinds) else ""


def matrix_csv(hazards: Hazards) -> str:
    """The matrix as CSV: the head row and first column name the ops, a cell holds its kinds separated by spaces."""
    cells = matrix_cells(hazards)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["", *map(escape, hazards.ops)])
    for op in hazards.ops:
        writer.writerow([escape(op), *(" ".join(cells.get((op, after), ())) for after in hazards.ops)])
    return out.getvalue()


def matrix_data(hazards: Hazards, name: str) -> dict[str, Any]:
    """All ops in order and all hazards, as plain data; distances are null where no common loop holds both ops."""
    return {
        "dagsched": "matrix/1",
        "plan": name,
        "ops": list(hazards.ops),
        "hazards": [_hazard_data(hazard) for hazard in hazards.entries],
    }


def matrix_json(hazards: Hazards, name: str) -> str:
    """:func:`matrix_data` as one JSON document."""
    return json.dumps(matrix_data(hazards, name), indent=2) + "\n"


def _hazard_data(hazard: Hazard) -> dict[str, Any]:
    return {
        "before": hazard.before,
        "after": hazard.after,
        "buffer": hazard.buffer,
        "kind": hazard.kind,
        "distance": hazard.distance,
    }
