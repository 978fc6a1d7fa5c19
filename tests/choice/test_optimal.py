"""The solver proves what search cannot, and says so when it is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.stg import make_plan as make_graph
from dagsched.choice.evaluate import score_candidate
from dagsched.choice.optimal import solve_optimal
from dagsched.choice.problem import Candidate
from dagsched.choice.search import Found
from dagsched.cli.main import main
from dagsched.compiler import compile_plan
from tests.choice.exhaustive import every_candidate, orders
from tests.choice.plans import devices, plans
from tests.choice.test_evaluate import problem_of


def test_the_solver_proves_what_the_bound_leaves_open() -> None:
    """3 3 3 7 7 on two lanes take 13: no sum of some of them is 12, nor 11 (of 23 in all)."""
    pytest.importorskip("ortools")
    plan = make_graph("rounds", [3, 3, 3, 7, 7], [[] for _ in range(5)], 2)
    before, after = (compile_plan(plan, effort=effort).schedule.predicted for effort in ("normal", "max"))
    assert before is not None and after is not None
    assert (before["makespan"], before["bound"], before.get("optimal")) == (13, 12, None)
    assert (after["makespan"], after["bound"], after["optimal"]) == (13, 13, True)
    assert after["binds"] == "the solver found that nothing is quicker"


@settings(max_examples=25)
@given(st.data())
def test_its_limit_holds_for_all_and_its_answer_is_no_worse(data: st.DataObject) -> None:
    pytest.importorskip("ortools")
    plan, device = data.draw(plans(most=5, pins=False)), data.draw(devices())
    problem = problem_of(plan, device)
    if sum(1 for _ in orders(problem)) > 24:
        return
    first = Candidate(tuple(range(len(problem))), (0,) * len(problem))
    start = Found(score_candidate(problem, first), first)
    solved, findings = solve_optimal(problem, start, 0, None)
    assert solved is not None
    assert not findings
    best = min(score_candidate(problem, candidate).ticks for candidate in every_candidate(problem, len(problem)))
    assert solved.limit <= best <= solved.found.score.ticks <= start.score.ticks
    if not (problem.record or problem.wait or problem.issue):
        assert solved.limit == best


def test_without_the_solver_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)
    monkeypatch.setitem(sys.modules, "ortools.sat", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    lines = ["dagsched: 1", "device: {name: l, engines: {core: {kind: compute, lanes: 3}}}", "buffers: {}", "ops:"]
    lines += [f"  - {{name: t{n}, compute: f, time: {t} s}}" for n, t in enumerate([5, 5, 5, 4])]
    path = tmp_path / "rounds.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--effort", "max"]) == 0
    said = capsys.readouterr()
    assert "C120" in said.err
    assert "pip install --upgrade ortools" in said.err


def test_a_solver_that_is_too_old_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 9.8 its functions had other names."""

    class CpModel:
        NewFixedSizeIntervalVar = None

    sat = ModuleType("ortools.sat.python")
    old = ModuleType("ortools.sat.python.cp_model")
    old.CpModel, sat.cp_model = CpModel, old  # type: ignore[attr-defined]
    for name, module in (("ortools", ModuleType("ortools")), ("ortools.sat", ModuleType("ortools.sat"))):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", sat)
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", old)
    compiled = compile_plan(make_graph("rounds", [3, 3, 3, 7, 7], [[] for _ in range(5)], 2), effort="max")
    assert [found.headline.partition(":")[0] for found in compiled.warnings if found.code == "C120"] == [
        "OR-tools is older than 9.8"
    ]
