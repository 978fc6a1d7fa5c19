"""What only a process of its own shows: start-up, pipes, signals, encodings and terminals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.plans import GOOD

COMMAND = [sys.executable, "-m", "dagsched"]
CLEAN = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "DAGSCHED_DEBUG", "COLUMNS")}


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def run(words: Sequence[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *words], cwd=folder, env={**CLEAN, **environment}, capture_output=True, timeout=60, check=False
    )


def test_module_and_script_are_the_same_program(tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "dagsched"
    version = run(["--version"], tmp_path).stdout
    assert version.startswith(b"dagsched ")
    assert subprocess.run([script, "--version"], capture_output=True, check=True).stdout == version


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (["compile", "plan.yaml", "-o", "out"], {"numpy", "hypothesis", "jsonschema"}),
        (["--version"], {"yaml", "pydantic", "networkx", "numpy", "graphviz", "hypothesis"}),
        (["explain", "P101"], {"yaml", "pydantic", "networkx", "numpy", "graphviz", "hypothesis"}),
        (["devices"], {"pydantic", "networkx", "numpy", "graphviz", "hypothesis"}),
        (["graph", "plan.yaml", "-o", "x.dot"], {"numpy", "hypothesis", "jsonschema"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_imports_only_what_it_needs(plan: Path, words: list[str], unneeded: set[str]) -> None:
    code = (
        "import json, sys; from dagsched.cli.main import main; status = main(sys.argv[1:]);"
        "sys.stdout.flush(); print('\\n' + json.dumps([status, sorted(sys.modules)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=plan.parent, env=CLEAN, capture_output=True, check=True
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert not unneeded & set(modules)


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """More than a pipe holds is written to a reader that reads one line."""
    process = subprocess.Popen(
        [*COMMAND, "schema", "plan"], cwd=tmp_path, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


@pytest.mark.parametrize(
    ("redirect", "status", "said"),
    [
        ("explain P101 >&-", 2, b"error[U010]: standard output cannot be written: it is closed"),
        ("explain P101 >/dev/full", 2, b"error[U010]: standard output cannot be written: no space left on device"),
        ("nope --format json >/dev/full", 2, b"error[U003]"),
        ("graph plan.yaml --format png >/dev/full", 2, b"error[U010]"),
        ("check missing.yaml --format json >&-", 2, b"error[U010]"),
        ("explain P101 2>&-", 0, b"P101"),
        ("nope 2>&-", 2, b""),
        ("check - <&-", 2, b"error[U001]: `-` cannot be read: it is closed"),
    ],
)
def test_a_stream_that_is_closed_or_full(plan: Path, redirect: str, status: int, said: bytes) -> None:
    command = f"{sys.executable} -m dagsched {redirect}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=plan.parent, env=CLEAN, capture_output=True, timeout=60, check=False
    )
    text = done.stderr + done.stdout
    assert done.returncode == status
    assert text.startswith(said)
    assert b"Traceback" not in text
    assert b"Exception" not in text


def test_an_interrupt_is_quiet_and_writes_nothing(tmp_path: Path) -> None:
    """The process waits for its stdin when the signal comes."""
    process = subprocess.Popen(
        [*COMMAND, "compile", "-", "-o", "out"],
        cwd=tmp_path, env=CLEAN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    status_of = Path(f"/proc/{process.pid}/wchan")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and "pipe" not in status_of.read_text():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_an_encoding_without_the_letters_does_not_fail(plan: Path) -> None:
    plan.write_text(GOOD.replace("name: batches", "name: 名前"), encoding="utf-8")
    done = run(["compile", "plan.yaml", "-o", "out"], plan.parent, PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert b"\\u540d\\u524d: 3 ops" in done.stdout


def on_terminal(words: Sequence[str], folder: Path, **environment: str) -> bytes:
    """What a command shows on a terminal (stdout and stderr)."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=folder, env={**CLEAN, "TERM": "xterm", **environment}, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # Linux says so when the last writer has closed a terminal
        pass
    os.close(ours)
    process.wait(timeout=60)
    return shown


def test_colour_is_for_terminals_and_can_be_turned_off(plan: Path) -> None:
    plan.write_text(GOOD.replace("reads: [x]", "raeds: [x]"), encoding="utf-8")
    words = ["check", "plan.yaml"]
    assert b"\x1b[1;31merror" in on_terminal(words, plan.parent)
    assert b"\x1b[1;31m" not in on_terminal(words, plan.parent, NO_COLOR="1")
    assert b"\x1b[1;31m" not in on_terminal(words, plan.parent, TERM="dumb")
    assert b"\x1b" not in run(words, plan.parent).stdout


def test_progress_is_for_terminals(plan: Path) -> None:
    words = ["check", "plan.yaml", "plan.yaml"]
    assert b"checking 2 of 2: plan.yaml" in on_terminal(words, plan.parent)
    done = run(words, plan.parent)
    assert b"checking" not in done.stdout + done.stderr


def test_png_does_not_go_to_a_terminal(plan: Path) -> None:
    shown = on_terminal(["graph", "plan.yaml", "--format", "png"], plan.parent, NO_COLOR="1")
    assert b"U006" in shown
    assert b"PNG\r" not in shown
