"""What users do by accident: close from within, fork, forget to close, raise what cannot be printed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from dagsched.diagnostics import UsageError
from dagsched.run.errors import ExecutionError, RunStopped
from tests.run.plans import OUTPUT, PIPELINE, schedule_of

FUNCTIONS: dict[str, Any] = {
    "read": lambda a, i: a.fill(i),
    "work": lambda x, y: np.copyto(y, x),
    "show": lambda b: int(b[0]),
}


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("dagsched:")]


class _MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_exception_without_a_text_ends_the_run() -> None:
    def work(x: Any, y: Any) -> None:
        raise _MuteError

    with (
        schedule_of(PIPELINE).executor({**FUNCTIONS, "work": work}) as executor,
        pytest.raises(ExecutionError, match=r"raised _MuteError"),
    ):
        executor.run(n=3, timeout=10)


def test_closed_by_a_function_of_its_own() -> None:
    box: list[Any] = []
    executor: Any = schedule_of(PIPELINE).executor({**FUNCTIONS, "show": lambda b: box[0].close()})
    box.append(executor)
    with pytest.raises(RunStopped):
        executor.run(n=100, timeout=5)
    assert not _threads()
    with pytest.raises(UsageError, match=r"R130"):
        executor.run(n=1)


def test_dropped_after_a_failure() -> None:
    def fail() -> None:
        executor = schedule_of(PIPELINE).executor({**FUNCTIONS, "work": lambda x, y: np.copyto(y, np.zeros(7))})
        with pytest.raises(ExecutionError):
            executor.run(n=2)

    fail()
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("dagsched:"):
            thread.join(5)
    assert not _threads()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked() -> None:
    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor:
        executor.run(n=2)
        child = os.fork()
        if child == 0:
            try:
                executor.run(n=1)
            except UsageError as error:
                os._exit(7 if error.diagnostics[0].code == "R133" else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert executor.run(n=2).iterations == 2


@pytest.mark.parametrize("given", [{"timeout": 0}, {"timeout": "1"}, {"watchdog": -1.0}, {"timeout": True}])
def test_seconds(given: Any) -> None:
    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor, pytest.raises(UsageError, match=r"R107"):
        executor.run(n=1, **given)


def test_inputs_that_are_none() -> None:
    with schedule_of(OUTPUT).executor({"scale": lambda t, sums: None}) as executor:
        with pytest.raises(UsageError, match=r"R109.*`list`"):
            executor.run(n=1, inputs=[1])
        with pytest.raises(UsageError, match=r"R110.*`table`"):
            executor.run(n=1, inputs={"table": [[1], [2, 3]]})


def test_ctrl_c_does_not_wait_for_a_function_that_never_returns(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PIPELINE)
    text = "import time\ndef read(a): pass\ndef work(x, y): print(1, flush=True); time.sleep(60)\ndef show(b): pass\n"
    (tmp_path / "stuck.py").write_text(text)
    words = [sys.executable, "-m", "dagsched", "run", "plan.yaml", "--functions", "stuck.py", "--count=n=9"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        process.send_signal(signal.SIGINT)
        began = monotonic()
        assert process.wait(30) == 130
        assert monotonic() - began < 8  # about half a second on a quiet machine, ten without care
