"""``dagsched fix`` and ``dagsched check --fix``: what they print and write, and what they leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.plans import GOOD

RACING = """\
dagsched-schedule: 1
buffers: {x: {place: device}}
steps:
  - {stream: a, op: put, writes: [x]}  # put it
  - {stream: b, op: get, reads: [x]}
"""
REPAIRED = """\
dagsched-schedule: 1
buffers: {x: {place: device}}
steps:
  - {stream: a, op: put, writes: [x]}  # put it
  - {stream: a, record: put_done}
  - {stream: b, wait: put_done}
  - {stream: b, op: get, reads: [x]}
"""
LOCKED = """\
dagsched-schedule: 1
steps:
  - {stream: a, acquire: A}
  - {stream: a, acquire: B}
  - {stream: a, release: B}
  - {stream: a, release: A}
  - {stream: b, acquire: B}
  - {stream: b, acquire: A}
  - {stream: b, release: A}
  - {stream: b, release: B}
"""
RIGHT = "ok with 1 wait, which cannot go, checked for the counts in the file"
SPARE = REPAIRED + "  - {stream: b, wait: put_done, label: W2}\n  - {stream: b, op: see, reads: [x]}\n"


@pytest.fixture
def racing(tmp_path: Path) -> str:
    (tmp_path / "racing.yaml").write_text(RACING)
    return "racing.yaml"


def test_fix_writes_another_file(cli: Cli, racing: str, tmp_path: Path) -> None:
    result = cli("fix", racing, "-o", "out/right.yaml")
    assert (result.status, result.out) == (0, "")
    assert (tmp_path / "out" / "right.yaml").read_text() == REPAIRED
    assert (tmp_path / racing).read_text() == RACING
    assert "add `{stream: a, record: put_done}` after `put` (line 4)" in result.err
    assert "orders `put` before `get` (RAW on `x`)" in result.err
    assert result.err.endswith(f"wrote out/right.yaml: 2 changes; {RIGHT}\n")
    assert cli("check", "out/right.yaml").status == 0


def test_fix_in_place_twice(cli: Cli, racing: str, tmp_path: Path) -> None:
    assert cli("fix", racing, "-o", racing).status == 0
    assert (tmp_path / racing).read_text() == REPAIRED
    result = cli("fix", racing, "-o", racing)
    assert (result.status, result.err) == (0, f"wrote racing.yaml: nothing to repair; {RIGHT}\n")
    assert (tmp_path / racing).read_text() == REPAIRED


def test_fix_from_stdin_to_stdout(cli: Cli) -> None:
    result = cli("fix", "-", "-o", "-", stdin=RACING)
    assert (result.status, result.out) == (0, REPAIRED)


def test_fix_leaves_everything_alone_where_it_knows_no_way(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "locked.yaml").write_text(LOCKED)
    result = cli("fix", "locked.yaml", "-o", "locked.yaml")
    assert (result.status, result.out) == (1, "")
    assert (tmp_path / "locked.yaml").read_text() == LOCKED
    assert "error[S301]" in result.err and "error[S421]" in result.err
    assert "would still block for ever: the lock `B` is held by `acquire B` on stream `b`" in result.err
    assert "acquire locks in the same order everywhere" in result.err
    assert result.err.endswith("locked.yaml: not repaired, nothing is written\n")


def test_fix_of_a_plan_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD)
    result = cli("fix", "plan.yaml", "-o", "x.yaml")
    assert result.status == 1
    assert "error[S100]: this is a plan" in result.err
    assert "`dagsched compile plan.yaml`" in result.err
    assert not (tmp_path / "x.yaml").exists()


def test_fix_of_a_wrong_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(RACING.replace("writes", "wirtes"))
    result = cli("fix", "wrong.yaml", "-o", "x.yaml")
    assert result.status == 1
    assert "`wirtes`" in result.err
    assert not (tmp_path / "x.yaml").exists()
    assert cli("fix", "wrong.yaml").status == 2  # -o is missing
    assert cli("fix", "missing.yaml", "-o", "-").status == 2


def test_fix_where_nothing_can_be_written(cli: Cli, racing: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    result = cli("fix", racing, "-o", "folder")
    assert result.status == 2
    assert "error[U010]" in result.err


def test_keep_waits(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "spare.yaml").write_text(SPARE)
    assert cli("fix", "spare.yaml", "-o", "-", "--keep-waits").out == SPARE
    assert cli("fix", "spare.yaml", "-o", "-").out == SPARE.replace("  - {stream: b, wait: put_done, label: W2}\n", "")


def test_check_fix_shows_a_diff_and_writes_nothing(cli: Cli, racing: str, tmp_path: Path) -> None:
    result = cli("check", "--fix", racing)
    assert (result.status, result.err) == (1, "")
    lines = result.out.splitlines()
    assert lines[-13:] == [
        "@@ -2,4 +2,6 @@",
        " buffers: {x: {place: device}}",
        " steps:",
        "   - {stream: a, op: put, writes: [x]}  # put it",
        "+  - {stream: a, record: put_done}",
        "+  - {stream: b, wait: put_done}",
        "   - {stream: b, op: get, reads: [x]}",
        "",
        "  add `{stream: a, record: put_done}` after `put` (line 4)",
        "  add `{stream: b, wait: put_done}` before `get` (line 5)",
        "      orders `put` before `get` (RAW on `x`)",
        "",
        "with 2 changes: ok, 1 wait; `dagsched fix racing.yaml -o racing.yaml` makes them",
    ]
    assert (tmp_path / racing).read_text() == RACING
    assert [path.name for path in tmp_path.iterdir()] == [racing]


def test_check_fix_in_json(cli: Cli, racing: str, tmp_path: Path) -> None:
    (tmp_path / "locked.yaml").write_text(LOCKED)
    (tmp_path / "right.yaml").write_text(REPAIRED)
    result = cli("check", "--fix", "--format", "json", racing, "locked.yaml", "right.yaml")
    race, locked, right = map(json.loads, result.out.splitlines())
    assert (race["verdict"], locked["verdict"], right["verdict"]) == ("race", "deadlock", "ok")
    assert race["edits"] == [
        {
            "action": "add",
            "text": "{stream: a, record: put_done}",
            "line": 4,
            "beside": "after `put`",
            "step": {"stream": "a", "record": "put_done"},
            "reason": "orders `put` before `get` (RAW on `x`)",
        },
        {
            "action": "add",
            "text": "{stream: b, wait: put_done}",
            "line": 5,
            "beside": "before `get`",
            "step": {"stream": "b", "wait": "put_done"},
            "reason": "orders `put` before `get` (RAW on `x`)",
        },
    ]
    assert locked["edits"] == right["edits"] == []
    assert {found["code"] for found in locked["diagnostics"]} == {"S301", "S421"}
    assert "edits" not in json.loads(cli("check", "--format", "json", racing).out)


def test_check_fix_for_code_scanners(cli: Cli, racing: str) -> None:
    """The regions of the SARIF fix, applied to the lines, give the repaired file."""
    log = json.loads(cli("check", "--fix", "--format", "sarif", racing).out)
    first, *others = log["runs"][0]["results"]
    assert first["ruleId"] == "S201" and not any("fixes" in other for other in others)
    [change] = first["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == racing
    lines = RACING.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    text = RACING
    for replacement in reversed(change["replacements"]):
        region = replacement["deletedRegion"]
        start = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        text = text[:start] + replacement["insertedContent"]["text"] + text[end:]
    assert text == REPAIRED


def test_check_fix_on_github(cli: Cli, racing: str) -> None:
    out = cli("check", "--fix", "--format", "github", racing).out
    assert "::notice file=racing.yaml,line=4" in out
    assert "title=dagsched S420::2 changes would make it right" in out


def test_check_fix_of_a_plan_proposes_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD)
    result = cli("check", "--fix", "plan.yaml")
    assert (result.status, result.out) == (0, cli("check", "plan.yaml").out)


def test_names_from_a_file_do_not_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    text = RACING.replace("put it", "\u202eput it").replace("op: put", 'op: "pu\\u0301t"')
    (tmp_path / "odd.yaml").write_text(text, encoding="utf-8")
    out = cli("check", "--fix", "odd.yaml").out
    assert "\u202e" not in out and "\\u202e" in out


def test_a_name_in_json_gets_json(cli: Cli, racing: str, tmp_path: Path) -> None:
    result = cli("fix", racing, "-o", "right.json")
    assert result.status == 0
    assert "right.json is written as JSON" in result.err
    assert len(json.loads((tmp_path / "right.json").read_text())["steps"]) == 4
    assert cli("check", "right.json").status == 0
