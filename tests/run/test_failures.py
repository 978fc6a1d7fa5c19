"""However a run ends, nothing of it is left, and whoever called it knows what happened where."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import dagsched
from dagsched.diagnostics import UsageError
from dagsched.run.errors import Head
from tests.run.plans import PIPELINE, schedule_of


def _functions(**others: Any) -> dict[str, Any]:
    return {"read": lambda a: None, "work": lambda x, y: None, "show": lambda b: None, **others}


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("dagsched:")}


@pytest.mark.parametrize("name", ["read", "work", "show"])
@pytest.mark.parametrize("iteration", [0, 1, 6])
def test_what_raises_ends_the_run(name: str, iteration: int) -> None:
    started: list[tuple[str, int]] = []

    def function(own: str) -> Any:
        def call(*views: Any, i: int) -> None:
            started.append((own, i))
            if own == name and i == iteration:
                raise ValueError("this frame is broken\nand more")

        return call

    with schedule_of(PIPELINE).executor({own: function(own) for own in ("read", "work", "show")}) as executor:
        with pytest.raises(dagsched.ExecutionError) as caught:
            executor.run(n=1000)
        error = caught.value
        assert (error.op, error.iteration) == (name, iteration)
        assert error.stream == executor.compiled.streams[name]  # type: ignore[attr-defined]
        finding = error.diagnostics[0]
        assert finding.code == "R201"
        assert finding.headline.endswith("raised ValueError: this frame is broken")
        line = next(n for n, text in enumerate(PIPELINE.splitlines(), 1) if f"name: {name}," in text)
        assert finding.where and finding.where.line == line
        assert isinstance(error.__cause__, ValueError)
        started.clear()
        name = ""
        assert executor.run(n=3).iterations == 3
        assert len(started) == 9
    assert not _threads()


APART = """
dagsched: 1
name: apart
device: host
params: {n: null}
buffers:
  a: {place: host, size: 8, output: true}
  b: {place: host, size: 8, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: one, host: one, writes: [a], time: 1 ms, stream: first}
      - {name: other, host: other, writes: [b], time: 1 ms, stream: second}
"""


def test_no_op_starts_after_a_failure() -> None:
    """The other stream waits for nothing, so that only the failure can end it."""
    started = 0

    def one(a: Any, i: int) -> None:
        if i == 20:
            raise KeyError(i)
        time.sleep(0.001)

    def other(b: Any) -> None:
        nonlocal started
        started += 1
        time.sleep(0.001)

    with schedule_of(APART).executor({"one": one, "other": other}) as executor:
        with pytest.raises(dagsched.ExecutionError, match="`one@20`"):
            executor.run(n=10**6)
        seen = started
        assert seen < 10_000
        time.sleep(0.02)
        assert started == seen


def test_many_short_runs_with_sources_of_which_some_fail() -> None:
    """What an earlier run has left asleep (a source's thread) must not disturb a later one."""
    broken = False

    def read(item: int, a: Any) -> None:
        if broken and item == 12:
            raise ValueError(item)

    with schedule_of(PIPELINE).executor(_functions(read=read)) as executor:
        for number in range(300):
            broken = number % 3 == 0
            try:
                assert executor.run(n=iter(range(20)), timeout=20).iterations == 20
            except dagsched.ExecutionError as error:
                assert broken and error.op == "read"


def test_exit_of_the_interpreter_in_an_op_is_a_failure_too() -> None:
    def show(b: Any) -> None:
        raise SystemExit(3)

    executor = schedule_of(PIPELINE).executor(_functions(show=show))
    with executor, pytest.raises(dagsched.ExecutionError, match="SystemExit"):
        executor.run(n=5)


def test_a_timeout_says_what_every_stream_is_at() -> None:
    release = threading.Event()

    def work(x: Any, y: Any, i: int) -> None:
        if i == 2:
            release.wait(20)

    with schedule_of(PIPELINE).executor(_functions(work=work), grace=0.1) as executor:
        begun = time.monotonic()
        with pytest.raises(dagsched.RunTimeout, match="R203") as caught:
            executor.run(n=100, timeout=1)  # a busy machine needs a while to get as far as `i == 2`
        assert time.monotonic() - begun < 15  # well before `work` returns by itself, 20 s later
        assert isinstance(caught.value, TimeoutError)
        heads = {head.stream: head for head in caught.value.heads}
        stuck = heads[executor.compiled.streams["work"]]  # type: ignore[attr-defined]
        assert (stuck.state, stuck.op, stuck.iteration) == ("runs", "work", 2)
        shower = heads["shower"]
        assert (shower.state, shower.op, shower.iteration) == ("waits for", "show", 2)
        assert shower.awaited and shower.awaited.startswith("`down@2`")
        with pytest.raises(UsageError, match=r"R132.*`work@2`"):  # it is still running
            executor.run(n=1)
        release.set()
        time.sleep(0.1)
        assert executor.run(n=1).iterations == 1


def test_a_watchdog_tells_once_when_nothing_moves() -> None:
    told: list[tuple[Head, ...]] = []

    def work(x: Any, y: Any, i: int) -> None:
        if i == 1:
            time.sleep(0.5)

    with schedule_of(PIPELINE).executor(_functions(work=work)) as executor:
        executor.run(n=3, watchdog=0.1, on_stall=told.append)
    assert len(told) == 1
    assert any("runs `work@1`" in str(head) for head in told[0])


def test_a_stall_is_logged_where_nobody_asks_for_it(caplog: pytest.LogCaptureFixture) -> None:
    with schedule_of(PIPELINE).executor(_functions(show=lambda b: time.sleep(0.4))) as executor:
        executor.run(n=1, watchdog=0.1)
    assert "nothing moves: " in caplog.text and "`show@0`" in caplog.text


def test_a_second_caller_is_refused() -> None:
    running = threading.Event()
    go_on = threading.Event()

    def show(b: Any) -> None:
        running.set()
        go_on.wait(20)

    with schedule_of(PIPELINE).executor(_functions(show=show)) as executor:
        first = threading.Thread(target=executor.run, kwargs={"n": 2})
        first.start()
        running.wait(20)
        with pytest.raises(UsageError, match="R131"):
            executor.run(n=1)
        go_on.set()
        first.join(20)
        executor.run(n=1)
    with pytest.raises(UsageError, match="R130"):
        executor.run(n=1)


def test_closing_and_stopping_from_another_thread() -> None:
    for end in ("stop", "close"):
        executor = schedule_of(PIPELINE).executor(_functions(show=lambda b: time.sleep(0.001)))
        stop = functools.partial(executor.stop, now=True) if end == "stop" else executor.close  # type: ignore[call-arg]
        ender = threading.Timer(0.1, stop)
        ender.start()
        with pytest.raises(dagsched.RunStopped):
            executor.run(n=10**6)
        ender.join()
        executor.close()
        executor.close()
        assert not _threads()


def test_an_executor_that_nobody_closes_leaves_no_threads() -> None:
    executor = schedule_of(PIPELINE).executor(_functions())
    executor.run(n=2)
    assert _threads()
    del executor
    import gc

    gc.collect()
    deadline = time.monotonic() + 30
    while _threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _threads()


INTERRUPTED = """
import sys, time
sys.path.insert(0, {root!r})
from tests.run.plans import PIPELINE, schedule_of
functions = {{"read": lambda a: None, "work": lambda x, y: time.sleep({pause}), "show": lambda b: None}}
with schedule_of(PIPELINE).executor({functions}) as executor:
    print("running", flush=True)
    {call}
"""


@pytest.mark.parametrize("functions", ["functions", "None"], ids=["functions", "dry"])
@pytest.mark.parametrize("call", ["executor.run(n=10**7)", "list(executor.stream(n=10**7))"], ids=["run", "stream"])
def test_ctrl_c_ends_within_a_second(functions: str, call: str) -> None:
    root = str(Path(__file__).parents[2])
    program = INTERRUPTED.format(root=root, pause=0.05, functions=functions, call=call)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"running\n"
        time.sleep(0.3)
        begun = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - begun < 20  # a second, and what a busy machine adds; without Ctrl-C it is hours
        assert b"KeyboardInterrupt" in errors and b"Traceback" in errors
