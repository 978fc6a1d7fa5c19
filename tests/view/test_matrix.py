"""The matrix says the same as the hazards in each of its forms, and the table fits the terminal."""

from __future__ import annotations

import csv
import io
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from dagsched.hazards.model import Hazard, Hazards
from dagsched.view.matrix import matrix_cells, matrix_csv, matrix_data, matrix_json, matrix_table
from dagsched.view.terminal import width_of
from tests.view.sample import detector


@st.composite
def hazards(draw: st.DrawFn, alphabet: str = 'abc名é_<\x1b,"') -> Hazards:
    ops = draw(st.lists(st.text(alphabet, min_size=1, max_size=12), min_size=1, max_size=14, unique=True))
    entry = st.builds(
        Hazard,
        before=st.sampled_from(ops),
        after=st.sampled_from(ops),
        buffer=st.sampled_from(["x", "y"]),
        kind=st.sampled_from(["RAW", "WAR", "WAW", "AFTER"]),
        distance=st.sampled_from([None, 0, 1, 2, 12]),
    )
    return Hazards(tuple(ops), tuple(draw(st.lists(entry, max_size=20))))


def test_table_of_the_detector() -> None:
    lines = matrix_table(detector().hazards).splitlines()
    assert lines[2].split() == ["load", "decode", "upload", "resize", "infer", "download", "draw"]
    assert lines[5].split() == ["upload", ".", "WAR@2", ".", "RAW", ".", ".", "."]
    assert lines[-1] == "7 ops, 12 hazards between 12 pairs"


@given(hazards(), st.integers(60, 120))
def test_table_fits_the_terminal(found: Hazards, width: int) -> None:
    table = matrix_table(found, width)
    assert all(width_of(line) <= max(width, 64) for line in table.splitlines())
    assert "\x1b" not in table


@given(hazards(alphabet="abcdef"), st.sampled_from([60, 10_000]))
def test_table_reads_back(found: Hazards, width: int) -> None:
    """Every entry ends at its column's right edge and stands in its row, in one block or in many."""
    read: dict[tuple[str, str], list[str]] = {}
    numbers = {str(number): op for number, op in enumerate(found.ops, 1)}
    ends: dict[int, str] = {}
    row = ""
    for line in matrix_table(found, width).splitlines()[2:-2]:
        words = [(match.group(), match.end()) for match in re.finditer(r"\S+", line)]
        titles = [numbers.get(word, word) for word, _ in words]
        if line.startswith(" ") and titles and set(titles) <= set(found.ops):
            ends = {end: title for title, (_, end) in zip(titles, words, strict=True)}
            continue
        if len(words) > 1 and words[0][0] in numbers and words[1][0] in found.ops:
            row = words[1][0]
            words = words[2:]
        elif words and not line.startswith(" "):
            row = words[0][0]
            words = words[1:]
        for word, end in words:
            if word != ".":
                read.setdefault((row, ends[end]), []).append(word)
    assert {pair: tuple(entries) for pair, entries in read.items()} == matrix_cells(found)


@given(hazards())
def test_csv_reads_back(found: Hazards) -> None:
    head, *rows = list(csv.reader(io.StringIO(matrix_csv(found))))
    assert len(head) == len(found.ops) + 1
    assert [row[0] for row in rows] == head[1:]
    cells = {
        (before, after): tuple(text.split())
        for before, row in zip(found.ops, rows, strict=True)
        for after, text in zip(found.ops, row[1:], strict=True)
        if text
    }
    assert cells == matrix_cells(found)


@given(hazards())
def test_json_holds_every_hazard(found: Hazards) -> None:
    data = json.loads(matrix_json(found, "名"))
    assert data == matrix_data(found, "名")
    assert tuple(data["ops"]) == found.ops
    assert tuple(Hazard(**entry) for entry in data["hazards"]) == found.entries


def test_distances_stand_nearest_first_and_once() -> None:
    found = Hazards(("a", "b"), (
        Hazard("a", "b", "y", "WAR", 2), Hazard("a", "b", "x", "RAW", 0), Hazard("a", "b", "y", "RAW", 0),
    ))  # fmt: skip
    assert matrix_cells(found) == {("a", "b"): ("RAW", "WAR@2")}


def test_no_ops() -> None:
    assert matrix_table(Hazards((), ())) == "no ops\n"
