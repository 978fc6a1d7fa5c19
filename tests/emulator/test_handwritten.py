"""A hand-written AscendCL program with everything in it runs, and is read back: right, and with a wait gone."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from dagsched.emulator.build import build_emulator
from dagsched.proof.check import check_schedule
from dagsched.schedule.reader import read_schedule
from dagsched.sources import read_file

SOURCE = Path(__file__).parent / "programs" / "handwritten.cpp"
RIGHT = [*(i + 11 for i in range(6)), 18]
"""What the callbacks saw, in the order of the frames; and frame 4's output after three replays."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("handwritten") / "program"
    emulator = build_emulator()
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]
    subprocess.run([*emulator.compiler, *flags, str(SOURCE), *emulator.flags(), "-o", str(path)], check=True)
    return path


def run(program: Path, seed: int, trace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    variables = {"DAGSCHED_EMU_SEED": str(seed), "DAGSCHED_EMU_TRACE": str(trace), "TSAN_OPTIONS": "exitcode=66"}
    environment = {**os.environ, **variables}
    return subprocess.run(
        [str(program), *words], env=environment, capture_output=True, text=True, check=False, timeout=20
    )


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 6])
def test_it_is_right(seed: int, program: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    done = run(program, seed, trace)
    assert (done.returncode, done.stderr) == (0, "")
    assert [int(word) for word in done.stdout.split()] == RIGHT
    assert check_schedule(read_schedule(read_file(trace))).verdict == "ok"
    actions = {key for step in json.loads(trace.read_text(encoding="utf-8"))["steps"] for key in step}
    assert {"record", "wait", "reset", "set", "take", "sync", "op", "wait_stream"} <= actions


def test_a_wait_that_is_gone_is_found_in_every_trace(program: Path, tmp_path: Path) -> None:
    for seed in (0, 1, 3):
        trace = tmp_path / f"{seed}.json"
        run(program, seed, trace, "lacks-wait")
        verdict = check_schedule(read_schedule(read_file(trace)))
        assert verdict.verdict == "race"
        assert {"copy_h2d", "Add"} == {side.op for race in verdict.races[:1] for side in (race.first, race.second)}
