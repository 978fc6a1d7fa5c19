"""``dagsched prove``: what it prints in each format, its exit status, its options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.plans import GOOD, RACING, STUCK

CONSISTENT = """
dagsched-schedule: 1
params: {n: null}
events: {ready: {ring: 2}}
steps:
  - loop: i
    count: n
    steps:
      - {stream: a, op: fill, writes: [x]}
      - {stream: a, record: ready@i}
      - {stream: b, wait: ready@i, label: W}
      - {stream: b, op: use, reads: [x]}
      - {stream: a, wait_stream: b}
      - {stream: a, wait_stream: b, label: twice}
"""


@pytest.fixture
def files(tmp_path: Path) -> None:
    for name, text in {"good": GOOD, "racing": RACING, "stuck": STUCK, "consistent": CONSISTENT}.items():
        (tmp_path / f"{name}.yaml").write_text(text)


@pytest.mark.usefixtures("files")
def test_a_plan_withstands_it(cli: Cli) -> None:
    result = cli("prove", "good.yaml", "--examples", "10")
    assert (result.status, result.err) == (0, "")
    assert "good.yaml: ok: no interleaving departs from the plan's meaning" in result.out
    assert "decided: each piece of work was held back" in result.out
    assert "dropped in turn" in result.out and "without it, " in result.out


@pytest.mark.usefixtures("files")
def test_a_race_is_shown_step_by_step(cli: Cli) -> None:
    result = cli("prove", "racing.yaml")
    assert (result.status, result.err) == (1, "")
    assert "error[S201]" in result.out and "racing.yaml:" in result.out
    assert "the shortest interleaving that fails" in result.out
    assert " !" in result.out and "and is meant to see" in result.out
    assert result.out.splitlines()[-2].startswith("  explored ") or "racing.yaml: race" in result.out


@pytest.mark.usefixtures("files")
def test_a_deadlock_is_shown_with_its_heads(cli: Cli) -> None:
    result = cli("prove", "stuck.yaml")
    assert result.status == 1
    assert "error[S301]" in result.out and "stuck.yaml: deadlock" in result.out


@pytest.mark.usefixtures("files")
def test_waits_are_needed_or_not(cli: Cli) -> None:
    result = cli("prove", "consistent.yaml", "--examples", "10")
    assert result.status == 0
    assert "note[S501]" in result.out and "needless at these counts" in result.out
    assert "W: wait ready@i" in result.out
    assert "counts n = 0, 1, 2, 3, 6" in result.out
    verbose = cli("prove", "consistent.yaml", "--examples", "10", "--verbose")
    assert "use@0 !" in verbose.out and "use@0 !" not in result.out
    plain = cli("prove", "consistent.yaml", "--examples", "10", "--no-waits")
    assert "dropped" not in plain.out
    counts = cli("prove", "consistent.yaml", "--examples", "10", "--counts", "5,2")
    assert "counts n = 2, 5" in counts.out


@pytest.mark.usefixtures("files")
def test_json_is_one_object(cli: Cli) -> None:
    data = json.loads(cli("prove", "racing.yaml", "--format", "json").out)
    assert (data["dagsched"], data["file"], data["verdict"]) == ("prove/1", "racing.yaml", "race")
    failure = data["failure"]
    assert failure["kind"] == "race" and failure["steps"][-1]["wrong"]
    assert {"first", "second", "buffer", "kinds", "distance", "counts"} <= failure.keys()
    checked = json.loads(cli("check", "racing.yaml", "--format", "json").out)
    named = [(race["first"]["op"], race["second"]["op"], race["buffer"]) for race in checked["races"]]
    assert (failure["first"]["op"], failure["second"]["op"], failure["buffer"]) in named
    good = json.loads(cli("prove", "good.yaml", "--examples", "10", "--format", "json").out)
    assert good["failure"] is None and good["explored"]["exhaustive"]
    assert good["waits"] and all(wait["result"] == "needed" for wait in good["waits"])


@pytest.mark.usefixtures("files")
def test_other_formats(cli: Cli) -> None:
    assert cli("prove", "racing.yaml", "--format", "github").out.startswith("::error ")
    log = json.loads(cli("prove", "racing.yaml", "--format", "sarif").out)
    assert log["runs"][0]["results"][0]["ruleId"] == "S201"


@pytest.mark.usefixtures("files")
def test_the_same_seed_prints_the_same(cli: Cli) -> None:
    words = ("prove", "good.yaml", "--seed", "3", "--examples", "20")
    first, second = cli(*words), cli(*words)
    assert first.out == second.out
    assert cli("prove", "good.yaml", "--examples", "5").out != first.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--examples", "many"), "no number of examples"),
        (("--time-limit", "-1"), "no time in seconds"),
        (("--counts", "1,x"), "no list of counts"),
        (("--counts", "99999"), "no list of counts"),
        (("--seed", "-1"), "no number of seed"),
    ],
)
@pytest.mark.usefixtures("files")
def test_options_are_checked(cli: Cli, words: tuple[str, ...], says: str) -> None:
    result = cli("prove", "good.yaml", *words)
    assert result.status == 2 and says in result.err and "error[U002]" in result.err


@pytest.mark.usefixtures("files")
def test_counts_need_a_parameter(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "fixed.yaml").write_text(CONSISTENT.replace("count: n", "count: 2").replace("params: {n: null}\n", ""))
    result = cli("prove", "fixed.yaml", "--counts", "1")
    assert result.status == 2 and "needs a parameter" in result.err


def test_an_expression_without_a_value(cli: Cli, tmp_path: Path) -> None:
    text = CONSISTENT.replace("wait: ready@i", "wait: ready@(4//(i-1))")
    (tmp_path / "odd.yaml").write_text(text)
    result = cli("prove", "odd.yaml")
    assert result.status == 1 and "error[S408]" in result.err
