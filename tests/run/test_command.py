"""``dagsched run``: what it prints, writes, and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 - the fixture
from tests.run.plans import OUTPUT, PIPELINE

MODULE = """
import numpy as np
seen = []
def inputs(): return {"table": np.arange(3)}
def scale(t, sums, i):
    sums[:] = t * i
"""
ITEMS = """
sources = {"n": [4, 5, 6]}
def read(item, a): a[:] = item
def work(x, y): y[:] = x
def show(b): print("saw", b[0])
"""
BROKEN = """
def read(a, i):
    if i == 3:
        raise OSError("no more\\x1b[31m")
def work(x, y): pass
def show(b): pass
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {
        "pipeline.yaml": PIPELINE,
        "output.yaml": OUTPUT,
        "my_output.py": MODULE,
        "items.py": ITEMS,
        "broken.py": BROKEN,
        "wrong.py": "import does_not_exist",
        "listed.py": MODULE.replace('{"table": np.arange(3)}', "[1]"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_dry_run(cli: Cli, files: Path) -> None:  # noqa: F811
    result = cli("run", "pipeline.yaml", "--count", "n=5", "--trace", "out/t.json")
    assert result.status == 0
    assert result.out.startswith("pipeline on cpu, dry\n  run        5 iterations in ")
    trace = json.loads((files / "out" / "t.json").read_text())
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == 25
    assert "out/t.json" in result.err


def test_a_run_with_functions(cli: Cli, files: Path) -> None:  # noqa: F811
    result = cli(
        "run", "output.yaml", "--functions", "my_output", "--count", "n=4", "--repeat", "2", "--format", "json"
    )
    assert result.status == 0, result.err
    data = json.loads(result.out)
    assert data["dagsched"] == "run/1" and data["backend"] == "cpu" and data["counts"] == {"n": 4}
    assert data["iterations"] == 4 and data["kinds"]["h2d"] > 0


def test_a_module_by_its_path_with_a_source(cli: Cli, files: Path, capfd: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    result = cli("run", "pipeline.yaml", "--functions", str(files / "items.py"))
    assert result.status == 0, result.err
    assert "3 iterations" in result.out


def test_an_op_that_raises(cli: Cli, files: Path) -> None:  # noqa: F811
    result = cli("run", "pipeline.yaml", "--functions", "broken", "--count", "n=9")
    assert result.status == 1
    line = next(n for n, text in enumerate(PIPELINE.splitlines(), 1) if "name: read," in text)
    assert "error[R201]: op `read@3` on stream `reader` raised OSError: no more\\x1b[31m" in result.err
    assert f"--> pipeline.yaml:{line}:" in result.err
    assert f"raised in `read`, {files / 'broken.py'}:4" in result.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["pipeline.yaml"], "R105"),
        (["pipeline.yaml", "--count", "n"], "U002"),
        (["pipeline.yaml", "--count", "n=-1"], "U002"),
        (["pipeline.yaml", "--count", "n=1", "--count", "m=1"], "R103"),
        (["pipeline.yaml", "--count", "m=1"], "R103"),
        (["pipeline.yaml", "--count", "n=1", "--backend", "gpu"], "R102"),
        (["pipeline.yaml", "--count", "n=1", "--functions", "nowhere"], "R115"),
        (["pipeline.yaml", "--count", "n=1", "--functions", "wrong.py"], "R115"),
        (["pipeline.yaml", "--count", "n=1", "--functions", "my_output"], "R120"),
        (["output.yaml", "--count", "n=1", "--functions", "listed"], "R116"),
        (["pipeline.yaml", "--count", "n=1", "--timeout", "0"], "U002"),
        (["pipeline.yaml", "--count", "n=1", "--repeat", "0"], "U002"),
    ],
)
def test_what_is_refused(cli: Cli, files: Path, words: list[str], code: str) -> None:  # noqa: F811
    result = cli("run", *words)
    assert result.status == 2
    assert f"error[{code}]" in result.err
    assert "Traceback" not in result.err
    if code == "R105":
        assert "add `--count n=100`" in result.err


def test_a_timeout(cli: Cli, files: Path) -> None:  # noqa: F811
    result = cli("run", "pipeline.yaml", "--count", "n=100000", "--timeout", "0.2")
    assert result.status == 1
    assert "error[R203]: the run did not end within 0.2 s" in result.err


def test_a_module_that_exits_or_whose_inputs_raise(files: Path, cli: Cli) -> None:  # noqa: F811 - the fixture
    (files / "leaves.py").write_text("import sys; sys.exit(5)")
    result = cli("run", str(files / "output.yaml"), "--functions", str(files / "leaves.py"), "--count=n=2")
    assert result.status == 2 and "R115" in result.err and "SystemExit: 5" in result.err
    (files / "lost.py").write_text("def inputs(): raise OSError('disk')\ndef scale(t, sums): pass\n")
    result = cli("run", str(files / "output.yaml"), "--functions", str(files / "lost.py"), "--count=n=2")
    assert result.status == 2 and "R116" in result.err and "OSError: disk" in result.err
