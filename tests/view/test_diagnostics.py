"""A diagnostic's text shows the place, underlines what it means, and passes nothing on to the terminal."""

from __future__ import annotations

import json
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from dagsched.diagnostics import Diagnostic, Label, Source, Where
from dagsched.view.annotations import diagnostic_data, github_commands, sarif_log
from dagsched.view.diagnostics import MOST_SHOWN, diagnostic_text, diagnostics_text
from dagsched.view.terminal import Paint, escape, width_of

PLAN = Source("detector.yaml", "dagsched: 1\nops:\n  - {name: decode, wirtes: [frame]}\n\t- 名前: x\n")


def test_text_reads_as_documented() -> None:
    found = Diagnostic(
        "P101",
        "unknown key `wirtes`",
        Where(3, 20, 6),
        PLAN,
        labels=(Label(Where(1, 1, 8), "a plan of version 1"),),
        notes=("keys of an op: `reads`, `writes`",),
        help="write `writes`",
    )
    assert diagnostic_text(found) == (
        "error[P101]: unknown key `wirtes`\n"
        " --> detector.yaml:3:20\n"
        "  |\n"
        "1 | dagsched: 1\n"
        "  | -------- a plan of version 1\n"
        "...\n"
        "3 |   - {name: decode, wirtes: [frame]}\n"
        "  |                    ^^^^^^\n"
        "  |\n"
        "  = note: keys of an op: `reads`, `writes`\n"
        "  = help: write `writes`\n"
    )


def test_wide_characters_and_tabs_keep_carets_in_place() -> None:
    line, under = diagnostic_text(Diagnostic("P101", "x", Where(4, 4, 2), PLAN)).splitlines()[3:5]
    assert line == "4 |     - 名前: x"
    assert under == "  |       ^^^^"


def test_without_a_place_there_is_no_snippet() -> None:
    assert diagnostic_text(Diagnostic("U001", "`x` cannot be read")) == "error[U001]: `x` cannot be read\n"
    shown = diagnostic_text(Diagnostic("P002", "the file is empty", None, Source("x.yaml", "")))
    assert shown == "error[P002]: the file is empty\n --> x.yaml\n"


def test_two_sides_on_one_line_are_both_marked() -> None:
    found = Diagnostic("P140", "x", Where(3, 20, 6), PLAN, labels=(Label(Where(3, 12, 6), "this one"),))
    assert diagnostic_text(found).splitlines()[4:6] == [
        "  |                    ^^^^^^",
        "  |            ------ this one",
    ]


LINES = st.text(st.one_of(st.characters(categories=["L", "N", "P"]), st.sampled_from(" \t\x1b名\u202e")), max_size=300)


@given(LINES, st.integers(1, 320), st.integers(1, 400), st.integers(30, 120))
def test_carets_stand_under_the_place_in_every_line(line: str, column: int, width: int, room: int) -> None:
    found = Diagnostic("P101", "x", Where(1, column, width), Source("x.yaml", line))
    source, under = diagnostic_text(found, width=room).splitlines()[3:5]
    assert width_of(source) <= room
    assert width_of(under) <= room + 1  # one caret may stand behind the line's end
    start = len(under) - len(under.lstrip("| ").lstrip())
    assert under.strip("| ").strip("^") == ""
    if column <= len(line) and not line[column - 1].isspace() and not unicodedata.combining(line[column - 1]):
        cells = [c for c in source for _ in range(width_of(c))]
        assert cells[start] == escape(line[column - 1])[0]


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_nothing_from_a_file_reaches_the_terminal_as_a_control(name: str, text: str, note: str, help_: str) -> None:
    found = Diagnostic("P101", note, Where(1, 1, 3), Source(name, text), (Label(Where(2, 1), help_),), (note,), help_)
    shown = diagnostic_text(found, paint=Paint(on=False))
    assert not [c for c in shown if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert len(shown.splitlines()) < 40 + 2 * len(note + help_)


def test_a_line_of_a_megabyte_is_shown_in_part() -> None:
    text = "x" * 500_000 + "HERE" + "y" * 500_000
    shown = diagnostic_text(Diagnostic("P003", "x", Where(1, 500_001, 4), Source("x.json", text)))
    line, under = shown.splitlines()[3:5]
    assert len(line) < 130
    assert line[under.index("^") : under.index("^") + 4] == "HERE"


def test_colour_only_adds_escapes() -> None:
    found = Diagnostic("P101", "unknown key", Where(3, 20, 6), PLAN, help="write `writes`")
    painted = diagnostic_text(found, paint=Paint(on=True))
    assert "\x1b[1;31m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == diagnostic_text(found)


def test_a_flood_of_errors_is_cut_and_counted() -> None:
    every = [Diagnostic("P101", f"number {n}") for n in range(MOST_SHOWN + 7)]
    shown = diagnostics_text(every)
    assert f"number {MOST_SHOWN - 1}" in shown
    assert f"number {MOST_SHOWN}" not in shown
    assert shown.endswith("... and 7 more like these\n")


@given(st.text(), st.text(), st.text())
def test_github_commands_are_one_line_and_read_back(name: str, headline: str, help_: str) -> None:
    text = github_commands([Diagnostic("P101", headline, Where(3, 4, 2), Source(name, ""), help=help_ or None)])
    assert text.count("\n") == 1
    assert "\r" not in text
    head, _, message = text.removesuffix("\n")[2:].partition("::")
    command, _, rest = head.partition(" ")
    fields = dict(field.partition("=")[::2] for field in rest.split(","))

    def unescape(part: str) -> str:
        for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            part = part.replace(code, character)
        return part

    assert command == "error"
    assert unescape(fields["file"]) == name
    assert (fields["line"], fields["col"], fields["endColumn"]) == ("3", "4", "6")
    assert fields["title"] == "dagsched P101"
    assert unescape(message) == headline + (f"\nhelp: {help_}" if help_ else "")


def test_sarif_log_has_what_viewers_need() -> None:
    label = Label(Where(1, 1, 8), "the other side")
    found = [
        Diagnostic("S201", "a race", Where(3, 20, 6), Source("dir/my plan.yaml", ""), (label,), ("why",), "do this"),
        Diagnostic("P230", "unread", None, Source("/tmp/名.yaml", ""), severity="warning"),
        Diagnostic("S201", "another", None, None, severity="note"),
    ]
    log = json.loads(sarif_log(found, "1.2"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["tool"]["driver"]["version"] == "1.2"
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["P230", "S201"]
    assert all(rule["shortDescription"]["text"] for rule in rules)
    first, second, third = run["results"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == ["S201", "P230", "S201"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "dir/my%20plan.yaml"
    assert place["region"] == {"startLine": 3, "startColumn": 20, "endColumn": 26}
    assert first["relatedLocations"][0]["message"]["text"] == "the other side"
    assert first["message"]["text"] == "a race\nline 1: the other side\nwhy\nhelp: do this"
    assert second["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "file:///tmp/%E5%90%8D.yaml"}}
    assert "locations" not in third


def test_data_says_everything() -> None:
    label = Label(Where(1, 1, 8), "there")
    data = diagnostic_data(Diagnostic("P101", "h", Where(3, 20, 6), PLAN, (label,), ("n",), "do", "warning"))
    assert data == {
        "code": "P101", "severity": "warning", "headline": "h", "file": "detector.yaml", "line": 3, "column": 20,
        "width": 6, "labels": [{"line": 1, "column": 1, "width": 8, "text": "there"}], "notes": ["n"], "help": "do",
    }  # fmt: skip
