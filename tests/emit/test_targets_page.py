"""docs/targets.md is followed to the letter: its programs are built by its CMake files, and run."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from dagsched.emit.targets import TARGETS, emit_targets
from dagsched.emulator.build import build_emulator
from tests.emit.pipelines import EXAMPLES, compile_file
from tests.emit.test_pyacl_run import Program

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
FUNCTIONS = Path(__file__).parent / "my_functions.h"


def blocks(language: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _run(command: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def _cmake() -> str:
    program = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    if program is None:
        pytest.skip("NOT BUILT WITH CMAKE: there is none; pip install cmake")
    return program


def test_the_page_knows_every_target() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{name}` | " in text for name in TARGETS)


def test_the_ascendcl_project(tmp_path: Path) -> None:
    cmake = _cmake()
    (tmp_path / "detector.yaml").write_bytes((EXAMPLES / "detector.yaml").read_bytes())
    (tmp_path / "main.cpp").write_text(blocks("cpp")[0], encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(blocks("cmake")[0], encoding="utf-8")
    home = tmp_path / "ascend"
    emulator = build_emulator()
    shutil.copytree(emulator.include, home / "include")
    shutil.copy(FUNCTIONS, home / "include")
    (home / "lib64").mkdir()
    shutil.copy(emulator.path, home / "lib64")
    dagsched = Path(sys.executable).parent / "dagsched"
    _run([cmake, "-B", "build", f"-DDAGSCHED={dagsched}"], tmp_path, ASCEND_HOME_PATH=str(home))
    _run([cmake, "--build", "build"], tmp_path, ASCEND_HOME_PATH=str(home))
    shown = _run([str(tmp_path / "build" / "detector"), "5"], tmp_path, LD_LIBRARY_PATH=str(home / "lib64"))
    assert shown == "".join(f"{i} {100 + i}\n" for i in range(5))


def test_the_cuda_project(tmp_path: Path) -> None:
    cmake = _cmake()
    if shutil.which("nvcc") is None:
        pytest.skip("NOT BUILT WITH NVCC: there is none on the PATH")
    if "CI" not in os.environ and "DAGSCHED_CUDA_PROJECT" not in os.environ:
        pytest.skip("nvcc takes long: set DAGSCHED_CUDA_PROJECT=1 to build the page's CUDA project")
    for name, text in emit_targets(compile_file(EXAMPLES / "detector.yaml").compiled, "cuda-cpp").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(blocks("cmake")[1], encoding="utf-8")
    _run([cmake, "-B", "build"], tmp_path)
    _run([cmake, "--build", "build"], tmp_path)
    assert (tmp_path / "build" / "detector").exists()


def test_the_pyacl_program(tmp_path: Path) -> None:
    program = Program(compile_file(EXAMPLES / "detector.yaml"))
    shown: list[tuple[int, int]] = []

    def launch_resize(image: int, tensor: int, stream: int) -> int:
        return program.runtime.launch(stream, lambda: _copy(program, image, tensor))

    def launch_detector(tensor: int, weights: int, boxes: int, stream: int) -> int:
        return program.runtime.launch(stream, lambda: _copy(program, tensor, boxes, weights))

    scope: dict[str, Any] = {
        "read_frame": lambda i: i,
        "read_weights": lambda: 100,
        "launch_resize": launch_resize,
        "launch_detector": launch_detector,
        "show": lambda i, result: shown.append((i, int(numpy.asarray(result)[0]))),
    }
    text = blocks("python")[0].replace("frames=100", "frames=5")
    ast.parse(text)
    exec(compile(text, "page.py", "exec"), scope)
    assert shown == [(i, 100 + i) for i in range(5)]
    assert program.runtime.alive() == 0


def _copy(program: Program, source: int, target: int, more: int | None = None) -> None:
    value = program.runtime.read(source, 1)[0] + (program.runtime.read(more, 1)[0] if more is not None else 0)
    program.runtime.write(target, bytes([value]))
