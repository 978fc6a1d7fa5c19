"""Programs for CUDA, HIP and Python as text: real compilers and linters have nothing to say against them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError
from dagsched.emit.targets import emit_targets
from dagsched.emulator.build import INCLUDE
from tests.emit.headers import cache_folder, find_headers
from tests.emit.pipelines import EXAMPLES, PLANS, read

FILES = [*sorted(EXAMPLES.glob("*.yaml")), *sorted(PLANS.glob("*.yaml"))]
STYLE = (
    "{BasedOnStyle: Google, ColumnLimit: 120, AllowShortCaseLabelsOnASingleLine: true, "
    "PenaltyBreakBeforeFirstCallParameter: 1000}"
)
BIN = Path(sys.executable).parent
FAKE_HIP = Path(__file__).parent / "fake_hip"
REAL_HIP = Path("/usr/include/hip/hip_runtime.h")
NVCC_FLAGS = ["-std=c++17", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


@pytest.fixture(scope="module")
def emitted() -> dict[Path, dict[str, str]]:
    """The files of every plan, by the plan's file."""
    return {path: _emit(path) for path in FILES}


def _emit(path: Path) -> dict[str, str]:
    """What all targets of this test write; those with graphs only where a loop can be captured."""
    compiled = compile_plan(read(path))
    files = emit_targets(compiled, ["cuda-cpp", "pyacl"])
    for target in ("acl-graph", "cuda-graph"):
        with contextlib.suppress(PlanError):
            files |= emit_targets(compiled, target)
    return files


def _write(folder: Path, emitted: dict[Path, dict[str, str]], group: Path, *endings: str) -> list[str]:
    """The files with such endings of one group of plans; returns their names."""
    names = []
    for path, files in emitted.items():
        for name, text in files.items() if path.parent == group else ():
            if name.endswith(endings):
                (folder / name).write_text(text, encoding="utf-8")
                names.append(name)
    return list(dict.fromkeys(names))


def _cuda_units(folder: Path, emitted: dict[Path, dict[str, str]]) -> list[str]:
    """One unit with all headers of all plans, and a program."""
    headers = [
        name
        for group in (EXAMPLES, PLANS)
        for name in _write(folder, emitted, group, "_cuda.hpp", "_cuda_graph.hpp", ".h")
        if name.endswith(".hpp")
    ]
    _write(folder, emitted, EXAMPLES, "_main.cu")
    (folder / "all.cu").write_text("".join(f'#include "{name}"\n' for name in dict.fromkeys(headers)), encoding="utf-8")
    return ["all.cu", "detector_cuda_main.cu"]


def test_nvcc_takes_all_of_them(emitted: dict[Path, dict[str, str]], tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("NOT COMPILED WITH NVCC: there is none on the PATH")
    units = _cuda_units(tmp_path, emitted)
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256(repr((version, NVCC_FLAGS)).encode())
    for path in sorted(tmp_path.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    passed = cache_folder().parent / f"nvcc-{digest.hexdigest()[:32]}"
    if passed.exists() and "CI" not in os.environ:  # the same bytes, the same compiler: it has passed before
        return
    for unit in units:
        done = subprocess.run(
            [nvcc, *NVCC_FLAGS, "-c", unit, "-o", "unit.o"], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[:4000]
    passed.parent.mkdir(parents=True, exist_ok=True)
    passed.touch()


@pytest.mark.parametrize("headers", ["ours", "real"])
def test_the_same_source_builds_for_hip(headers: str, emitted: dict[Path, dict[str, str]], tmp_path: Path) -> None:
    if headers == "real" and not REAL_HIP.exists():
        pytest.skip("NOT COMPILED AGAINST HIP: its headers are missing (Debian: libamdhip64-dev)")
    include = [f"-I{FAKE_HIP}"] if headers == "ours" else []
    for compiler in COMPILERS[-1:] if headers == "real" else COMPILERS[:1]:
        command = [compiler, "-x", "c++", "-std=c++17", "-D__HIP_PLATFORM_AMD__", "-Wall", "-Wextra", "-Werror"]
        done = subprocess.run(
            [*command, "-fsyntax-only", *include, *_cuda_units(tmp_path, emitted)],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.parametrize("headers", ["ours", "real"])
def test_ascendcl_graphs_compile(headers: str, emitted: dict[Path, dict[str, str]], tmp_path: Path) -> None:
    include = INCLUDE if headers == "ours" else find_headers()
    if include is None:
        pytest.skip("NOT COMPILED AGAINST ASCENDCL: `python tests/emit/headers.py` gets its headers")
    units = [*_write(tmp_path, emitted, EXAMPLES, "_acl_graph.hpp", "_acl_graph_main.cpp")]
    assert "denoise_acl_graph_main.cpp" in units
    for compiler in COMPILERS:
        command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-isystem", str(include)]
        done = subprocess.run(
            [*command, *(unit for unit in units if unit.endswith(".cpp"))],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_cpp_is_formatted(path: Path, emitted: dict[Path, dict[str, str]]) -> None:
    program = shutil.which("clang-format", path=str(BIN)) or "clang-format"
    for name, text in emitted[path].items():
        if name.endswith((".hpp", ".cu")):
            command = [program, f"--style={STYLE}", "--assume-filename=x.cpp"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, encoding="utf-8")
            assert done.stdout == text, name


def test_python_is_formatted_typed_and_clean(emitted: dict[Path, dict[str, str]], tmp_path: Path) -> None:
    names = []
    for group in (EXAMPLES, PLANS):
        names += _write(tmp_path, emitted, group, ".py")
    runs = [
        [sys.executable, "-W", "error", "-m", "py_compile", *names],
        [str(BIN / "ruff"), "format", "--check", "--isolated", "--line-length", "120", *names],
        [str(BIN / "ruff"), "check", "--isolated", "--line-length", "120",
         "--select", "E,W,F,I,N,UP,B,BLE,D1,PL,RET,SIM", "--ignore", "PLR,PLC0415,D105,D107,N801,N802,N803", *names],
        [str(BIN / "mypy"), "--strict", "--ignore-missing-imports", "--cache-dir", os.devnull, "detector_pyacl_main.py",
         "regions_pyacl_main.py", "dynamic_pyacl.py"],
    ]  # fmt: skip
    for command in runs:
        if not Path(command[0]).exists():
            pytest.skip(f"{command[0]} is missing: pip install 'dagsched[dev]'")
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, (done.stdout + done.stderr)[:3000]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_same_plan_gives_the_same_bytes(path: Path, emitted: dict[Path, dict[str, str]]) -> None:
    assert _emit(path) == emitted[path]
    for text in emitted[path].values():
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert all(line == line.rstrip() for line in text.splitlines())


def test_golden_listings(emitted: dict[Path, dict[str, str]], golden: Callable[[str, str], None]) -> None:
    graphs = {n: t for n, t in emitted[EXAMPLES / "denoise.yaml"].items() if n.endswith("_graph.hpp")}
    for name, text in (emitted[EXAMPLES / "detector.yaml"] | graphs).items():
        if name.startswith("detector_cuda_graph"):
            continue  # one listing of graphs is enough
        golden(f"emit/{name}{'.txt' if name.endswith('.py') else ''}", text)  # not for linters and the like
