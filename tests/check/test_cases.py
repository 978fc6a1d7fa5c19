"""The schedules in ``cases/``: what is wrong with each, what is ordered, which waits can go.

``expected.yaml`` lists every race, so a schedule that shows none there must have none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dagsched.diagnostics import Source
from dagsched.proof.check import check_schedule, orders
from dagsched.schedule.model import Schedule
from dagsched.schedule.reader import read_schedule

CASES = Path(__file__).parent / "cases"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((CASES / "expected.yaml").read_text("utf-8"))


def read(name: str) -> Schedule:
    path = CASES / f"{name}.schedule.yaml"
    return read_schedule(Source(path.name, path.read_text("utf-8")))


def test_each_file_has_an_expectation() -> None:
    assert {path.name.removesuffix(".schedule.yaml") for path in CASES.glob("*.schedule.yaml")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_verdict(name: str) -> None:
    expected = EXPECTED[name]
    verdict = check_schedule(read(name))
    data = verdict.as_data(name)
    races = {
        " ".join(
            [race["first"]["op"], race["second"]["op"], race["buffer"]]
            + ([f"d={race['distance']}"] if race["distance"] is not None else [])
            + [",".join(race["kinds"])]
        )
        for race in data["races"]
    }
    assert data["verdict"] == expected["verdict"]
    assert races == set(expected.get("races", ()))
    assert (data["deadlock"] is not None) == (expected["verdict"] == "deadlock")
    assert verdict.counts_text == expected.get("counts", "the counts in the file")
    assert not verdict.limited


@pytest.mark.parametrize("name", EXPECTED)
def test_waits_that_can_go(name: str) -> None:
    expected = EXPECTED[name]
    waits = check_schedule(read(name)).as_data(name)["waits"]
    redundant = {wait["label"] for wait in waits["redundant"]} - {None}
    removable = {wait["label"] for wait in waits["removable"]} - {None}
    assert redundant == set(expected.get("redundant", ()))
    assert removable == set(expected.get("removable", ()))
    assert not redundant & set(expected.get("needed", ()))


@pytest.mark.parametrize("name", [name for name in EXPECTED if {"ordered", "unordered"} & EXPECTED[name].keys()])
def test_order(name: str) -> None:
    schedule = read(name)
    for pair in EXPECTED[name].get("ordered", ()):
        first, second = pair.split()
        chain = orders(schedule, first, second)
        assert chain is not None, pair
        assert chain[0].text.split("@")[0] == first.split("[")[0]
        assert chain[-1].text.split("@")[0] == second.split("[")[0]
        assert orders(schedule, second, first) is None
    for pair in EXPECTED[name].get("unordered", ()):
        assert orders(schedule, *pair.split()) is None, pair


@pytest.mark.parametrize("name", EXPECTED)
def test_diagnostics(name: str) -> None:
    """Each has a place, a code of its own family and, for errors, a change to type."""
    schedule = read(name)
    verdict = check_schedule(schedule)
    found = verdict.diagnostics(schedule.source)
    codes = {diagnostic.code for diagnostic in found}
    assert set(EXPECTED[name].get("findings", ())) <= codes
    assert ("S201" in codes) == bool(verdict.races)
    assert ("S301" in codes) == (verdict.deadlock is not None)
    for diagnostic in found:
        assert diagnostic.where is not None
        assert diagnostic.source == schedule.source
        assert diagnostic.code[:2] in ("S2", "S3", "S4")
        assert diagnostic.headline[-1] not in ".!" and len(diagnostic.notes) <= 2
        assert diagnostic.help or diagnostic.severity != "error"
