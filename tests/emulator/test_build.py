"""The cache of built libraries, with compilers that are made up: it is whole, and every failure has a message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dagsched.cli.main import main
from dagsched.diagnostics import UsageError
from dagsched.emulator.build import ABANDONED_HOURS, INCLUDE, Emulator, build_emulator
from tests.emit.pipelines import PLANS

COMPILER = """#!/bin/sh
for last; do :; done
case "$1" in --version) echo made up; exit 0;; esac
echo "$last" >> "$(dirname "$0")/calls"
[ -e "$(dirname "$0")/slow" ] && sleep 20
[ -e "$(dirname "$0")/full" ] && { echo "x.s: Fatal error: cannot write: No space left on device" >&2; exit 1; }
echo built > "$last"
"""
BUILD = "from dagsched.emulator.build import build_emulator; print(build_emulator('cudart').path)"


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that writes its last argument; the cache is empty."""
    path = tmp_path / "my tools" / "c++"
    path.parent.mkdir()
    path.write_text(COMPILER, encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return path


def links(compiler: Path) -> int:
    """How often a library has been linked."""
    return compiler.with_name("calls").read_text(encoding="utf-8").count(".so")


def test_it_is_built_once_and_found_again(compiler: Path) -> None:
    first = build_emulator()
    assert first.path.read_text(encoding="utf-8") == "built\n"
    assert (build_emulator(), links(compiler)) == (first, 1)
    assert build_emulator("cudart").path != first.path
    assert links(compiler) == 2


def test_processes_at_the_same_time_build_it_once(compiler: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", BUILD], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    found = {one.communicate(timeout=60)[0] for one in running}
    assert len(found) == 1
    assert Path(found.pop().strip()).is_file()
    assert links(compiler) == 1


def test_a_killed_build_does_no_harm(compiler: Path, tmp_path: Path) -> None:
    slow = compiler.with_name("slow")
    slow.touch()
    running = subprocess.Popen([sys.executable, "-c", BUILD], start_new_session=True)
    while not compiler.with_name("calls").exists():
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    slow.unlink()
    left = [path for path in (tmp_path / "cache" / "dagsched").iterdir() if path.name.startswith(".build-")]
    assert len(left) == 1
    long_ago = time.time() - 3600 * (ABANDONED_HOURS + 1)
    os.utime(left[0], (long_ago, long_ago))
    assert build_emulator("cudart").path.is_file()
    assert not left[0].exists()  # what the killed one has left goes after a while


def test_a_folder_without_its_library_is_filled(compiler: Path) -> None:
    emulator = build_emulator()
    emulator.path.unlink()
    (emulator.folder / "other").touch()
    assert build_emulator().path.is_file()


def test_what_a_compiler_said(compiler: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiler.with_name("full").touch()
    assert main(["run", str(PLANS / "detector.yaml"), "--backend", "emulated"]) == 2
    said = capsys.readouterr().err
    assert "cannot build the emulator" in said
    assert "note: x.s: Fatal error: cannot write: No space left on device" in said


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("no-such-compiler -O2", "R301", "`no-such-compiler`, which `CXX` names, is no program on the path"),
        ("g++ 'x", "R301", "a quote that does not end"),
        ("false", "R302", "it ended with status 1"),
        ("sh -c 'kill -9 $$'", "R302", "signal 9 ended it"),
        ("TMP/text", "R301", "cannot be started: exec format error"),
    ],
)
def test_compilers_that_are_none(
    given: str, code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_bytes(b"\x00text")
    (tmp_path / "text").chmod(0o755)
    monkeypatch.setenv("CXX", given.replace("TMP", str(tmp_path)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UsageError) as caught:
        build_emulator()
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert said in "\n".join((found.headline, *found.notes))


def test_arguments_of_a_compiler(compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"env SOME=thing '{compiler}' -DSOME")
    assert build_emulator().compiler == ("env", "SOME=thing", str(compiler), "-DSOME")


def test_caches_that_cannot_be(compiler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    with pytest.raises(UsageError, match="cannot be written: not a directory"):
        build_emulator()

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(UsageError, match="no home directory"):
        build_emulator()


def test_no_room_for_the_program(compiler: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    words = ["run", str(PLANS / "detector.yaml"), "--backend", "emulated", "--keep", str(tmp_path / "file" / "kept")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "error[U010]" in said
    assert "name another place with `--keep`" in said


@pytest.mark.parametrize("name", ["a b", "a,b", "é", "a'b"])
def test_programs_find_the_library_wherever_it_is(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    emulator = Emulator(INCLUDE, folder, "small", ("g++",))
    (tmp_path / "small.c").write_text("int answer(void) { return 42; }", encoding="utf-8")
    (tmp_path / "main.c").write_text("int answer(void); int main(void) { return answer(); }", encoding="utf-8")
    small = ["gcc", "-shared", "-fPIC", str(tmp_path / "small.c"), "-o", str(emulator.path)]
    subprocess.run(small, check=True)
    program = [str(tmp_path / "main.c"), *emulator.flags(), "-o", str(tmp_path / "main")]
    subprocess.run(["gcc", *program], check=True)
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 42
