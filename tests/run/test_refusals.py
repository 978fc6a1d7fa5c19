"""What a run refuses says what was meant, where it stands, and what to type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import dagsched
from dagsched.diagnostics import Source
from dagsched.run.backend import BACKENDS
from dagsched.schedule.reader import read_schedule
from tests.cli.conftest import Cli, cli  # noqa: F401 - the fixture

PLAN = """\
dagsched: 1
params: {n: null}
buffers:
  file: {place: host, size: 4, input: true}
  y: {place: device, size: 4, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: work, compute: f, reads: [file], writes: [y], time: 1 us}
"""


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("{stream: s, acquire: lock}", "the step `acquire`"),
        ("{take: flag}", "the step `take` without a stream"),
        ("{stream: s, reset: done}", "the step `reset`"),
        ("{record: done}", "the step `record` without a stream"),
        ("{host: look, reads: [y]}", "the step `host`, which the issuing thread does itself,"),
        ("{free: y}", "the step `free`"),
        ("{stream: s, wait_stream: t}", "the step `wait_stream`"),
        ("{stream: s@0, op: work, writes: [y]}", "the indexed stream `s@0`"),
        ("{stream: s, op: other, writes: [y]}", "the op `other`, which the plan does not have"),
    ],
)
def test_a_step_that_no_backend_runs_is_named_as_in_its_file(step: str, said: str) -> None:
    text = f"dagsched-schedule: 1\nbuffers: {{y: {{size: 4}}}}\nsteps:\n  - {step}\n"
    compiled = dagsched.compile(dagsched.loads(PLAN)).compiled
    by_hand = read_schedule(Source("by-hand.yaml", text))
    with pytest.raises(dagsched.UsageError) as caught:
        dagsched.Schedule(replace(compiled, schedule=by_hand)).executor()
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.headline) == ("R101", f"a schedule with {said} cannot be run")
    assert str(finding).startswith("by-hand.yaml:4:5: ")


@pytest.mark.parametrize(
    ("words", "module", "said"),
    [
        ("--backend emulatd", "", "did you mean `emulated`?"),
        ("--backend quantum", "", f"there are {', '.join(f'`{name}`' for name in BACKENDS)}, `emulated`"),
        ("--count nn=1", "", "did you mean `n`?"),
        ("--count frames=1", "", "drop it, or declare `params: {frames: null}` in the plan"),
        ("--count n=1 --functions my.py", "def g(): ...", "add `def f(file, y): ...` to the functions"),
        ("--count n=1 --functions my.py", "def f(file, y): ...", '`inputs = {"file": array}` in the module'),
        (
            "--count n=1 --functions my.py",
            "inputs = {'file': bytearray(4)}\ndef f(file, y, item): ...",
            '`sources = {"n": items}` in the module',
        ),
        ("--count n=1 --functions my.py", "\n\nimport nowhere", "my.py:3"),
        ("--count n=1 --functions my.py", "\n\ndef f(:", "my.py:3"),
        ("--count n=1 --functions my.py", "\n1 / 0", "try `python my.py`"),
        ("--count n=1 --functions me.py", "", "there is no file `me.py`"),
        ("--count n=1 --functions nowhere.at", "", "try `python -c 'import nowhere.at'`"),
        ("--count n=100000 --timeout 0.05", "", "give it more time, such as 0.5 s"),
    ],
)
def test_the_help_can_be_typed(cli: Cli, tmp_path: Path, words: str, module: str, said: str) -> None:  # noqa: F811
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "my.py").write_text(module, encoding="utf-8")
    result = cli("run", "plan.yaml", *words.split())
    assert result.status != 0
    assert said in result.err
