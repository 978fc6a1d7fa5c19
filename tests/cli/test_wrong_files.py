"""Wrong files of every sort: a clear error with its place, exit status 1 or 2, nothing written, no traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.plans import WRONG


@pytest.fixture(params=WRONG, ids=lambda name: name.replace(" ", "-"))
def wrong(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, int, str, str | None]:
    data, status, code, place = WRONG[request.param]
    path = tmp_path / "wrong.yaml"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path.name, status, code, place


def test_check_says_what_is_wrong_and_where(cli: Cli, wrong: tuple[str, int, str, str | None]) -> None:
    name, status, code, place = wrong
    result = cli("check", name)
    assert result.status == status, result
    assert f"error[{code}" in result.out
    assert f"{name}:{place}" in result.out if place else name in result.out
    assert f"{name}: invalid" in result.out
    assert "Traceback" not in result.out + result.err
    assert "bug in dagsched" not in result.err
    assert len(result.out) < 20_000, "a message is read by people"


def test_check_says_the_same_as_json(cli: Cli, wrong: tuple[str, int, str, str | None]) -> None:
    name, status, code, place = wrong
    result = cli("check", "--format", "json", name)
    assert result.status == status
    (line,) = result.out.splitlines()
    data = json.loads(line)
    assert (data["dagsched"], data["file"], data["verdict"]) == ("check/1", name, "invalid")
    errors = [found for found in data["diagnostics"] if found["severity"] == "error"]
    found = errors[0]
    assert found["code"].startswith(code)
    if place:
        assert f"{found['line']}:{found['column']}".startswith(place)
    assert result.err == ""


def test_compile_writes_nothing(cli: Cli, wrong: tuple[str, int, str, str | None], tmp_path: Path) -> None:
    name, status, _, _ = wrong
    result = cli("compile", name, "-o", "out")
    assert result.status == status
    assert result.out == ""
    assert "error[" in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


@pytest.mark.parametrize("format", ["github", "sarif"])
def test_other_formats_name_the_place(cli: Cli, tmp_path: Path, format: str) -> None:
    data = WRONG["unknown key"][0]
    assert isinstance(data, str)
    (tmp_path / "p.yaml").write_text(data)
    result = cli("check", "--format", format, "p.yaml")
    assert result.status == 1
    if format == "github":
        assert result.out.startswith("::error file=p.yaml,line=8,col=30,")
    else:
        (found,) = json.loads(result.out)["runs"][0]["results"]
        region = found["locations"][0]["physicalLocation"]["region"]
        assert (found["ruleId"], region["startLine"], region["startColumn"]) == ("P101", 8, 30)


def test_all_errors_of_a_stage_come_at_once(cli: Cli, tmp_path: Path) -> None:
    text = "dagsched: 1\nname: a\nbufers: {}\nops:\n  - {name: f, compute: f, wirtes: [x], tiem: 1 us}\n"
    (tmp_path / "p.yaml").write_text(text)
    result = cli("check", "p.yaml")
    for meant in ("`buffers`", "`writes`", "`time`"):
        assert meant in result.out


def test_the_worst_of_several_files_decides(cli: Cli, tmp_path: Path) -> None:
    for name in ("unknown key", "a picture", "empty"):
        data = WRONG[name][0]
        (tmp_path / f"{name}.yaml").write_bytes(data if isinstance(data, bytes) else data.encode())
    result = cli("check", "--format", "json", "unknown key.yaml", "a picture.yaml", "missing.yaml", "empty.yaml")
    assert result.status == 2
    assert [json.loads(line)["verdict"] for line in result.out.splitlines()] == ["invalid"] * 4
