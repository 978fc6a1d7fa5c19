"""Our headers declare what the real ones do: each function's type and each constant, asserted against both."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dagsched.emulator.build import INCLUDE
from dagsched.emulator.compilers import find_compiler
from tests.emit.headers import find_headers

HEADERS = {"acl/acl.h": "acl", "cuda_runtime.h": "cuda"}


def _text(header: str) -> str:
    text = (INCLUDE / header).read_text(encoding="utf-8").split("template <class T>")[0]
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def _without_names(parameters: str) -> str:
    """``void *ptr, size_t size`` as types only."""
    types = []
    for parameter in re.split(r",\s*", " ".join(parameters.split())):
        array = "[]" if parameter.endswith("[]") else ""
        types.append(re.sub(r"(?<=[\s*])\w+$", "", parameter.removesuffix("[]")).strip() + array)
    return ", ".join(type_ or "void" for type_ in types)


def write_asserts(header: str) -> list[str]:
    """One line for each function, constant and handle that our header declares."""
    text = _text(header)
    lines = []
    for result, name, parameters in re.findall(r"^([\w ]+?(?: |\* ?))(\w+)\(([^()]*)\);", text, flags=re.M):
        types = "" if parameters == "void" else _without_names(parameters)
        lines.append(f"const auto check_{name} = static_cast<{result.strip()} (*)({types})>(&{name});")
    for name, value in re.findall(r"static const int (\w+) = (\d+);", text):
        lines.append(f'static_assert({name} == {value}, "{name}");')
    for name, value in re.findall(r"^#define (\w+) (0x[0-9A-Fa-f]+)U$", text, flags=re.M):
        lines.append(f'static_assert({name} == {value}u, "{name}");')
    for body in re.findall(r"enum \w+ \{(.*?)\}", text, flags=re.S):
        for name, value in re.findall(r"(\w+) = (-?\w+)", body):
            lines.append(f'static_assert(static_cast<int>({name}) == {value}, "{name}");')
    for type_, name in re.findall(r"^typedef (void\*|int) (\w+);", text, flags=re.M):
        lines.append(f'static_assert(std::is_same<{name}, {type_}>::value, "{name}");')
    for result, name, parameters in re.findall(r"^typedef (\w+) \(\*(\w+)\)\((.*)\);", text, flags=re.M):
        alias = f"{result} (*)({_without_names(parameters)})"
        lines.append(f'static_assert(std::is_same<{name}, {alias}>::value, "{name}");')
    for name, alias in re.findall(r"^typedef struct (\w+)\* (\w+);", text, flags=re.M):
        lines.append(f'static_assert(std::is_same<{alias}, {name}*>::value, "{alias}");')
    return lines


def _compile(header: str, lines: list[str], include: Path, folder: Path) -> str:
    """What the compiler has against the lines; "" where it takes them."""
    source = folder / "asserts.cpp"
    source.write_text("\n".join(["#include <type_traits>", f"#include <{header}>", *lines, ""]), encoding="utf-8")
    command = [*find_compiler(), "-std=c++17", "-fsyntax-only", f"-I{include}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr or "failed"


def _real(kind: str) -> Path:
    """Where the real header is; skips where it is not."""
    if kind == "acl":
        found = find_headers()
        if found is None:
            pytest.skip("no AscendCL headers: `python tests/emit/headers.py` fetches them")
        return found
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on the path")
    # `nvcc` may be a script: ask it where its own files are.
    done = subprocess.run([nvcc, "--dryrun", "-c", "x.cu"], capture_output=True, text=True, check=False)
    top = re.search(r"TOP=(.+)", done.stderr)
    include = Path(top[1].strip() if top else nvcc) / "include"
    if not (include / "cuda_runtime.h").is_file():
        pytest.skip("nvcc does not say where its headers are")
    return include


@pytest.mark.parametrize("header", HEADERS)
def test_the_asserts_cover_the_header(header: str, tmp_path: Path) -> None:
    lines = write_asserts(header)
    text = _text(header)
    functions = len(re.findall(r"^(?!typedef|static|#).*\w\(", text, flags=re.M))
    assert sum(line.startswith("const auto") for line in lines) == functions > 40
    assert sum("static_assert" in line for line in lines) > 40
    assert _compile(header, lines, INCLUDE, tmp_path) == ""


@pytest.mark.parametrize("header", HEADERS)
def test_our_declarations_are_the_real_ones(header: str, tmp_path: Path) -> None:
    assert _compile(header, write_asserts(header), _real(HEADERS[header]), tmp_path) == ""


def test_parameters_of_ascendcl_are_in_order() -> None:
    """Its handles are all ``void*``, so that types alone would not tell (event, stream) from (stream, event)."""
    files = sorted((_real("acl") / "acl").rglob("*.h"))
    real = re.sub(r"/\*.*?\*/", "", "\n".join(path.read_text(errors="replace") for path in files), flags=re.S)
    for name, parameters in re.findall(r"(\w+)\(([^()]*)\);", _text("acl/acl.h")):
        found = re.search(rf"\b{name}\(([^;{{]*?)\);", real)
        assert found, name
        assert _names(parameters) == _names(found[1]), name


def _names(parameters: str) -> list[str]:
    words = [re.search(r"(\w+)(\[\])?$", parameter.strip()) for parameter in parameters.split(",")]
    return [word[1] for word in words if word and word[1] != "void"]


@pytest.mark.parametrize("header", HEADERS)
def test_a_wrong_declaration_is_noticed(header: str, tmp_path: Path) -> None:
    """Arguments of the wrong order, and a constant that is off by one."""
    lines = write_asserts(header)
    name = {"acl/acl.h": "aclrtStreamGetId", "cuda_runtime.h": "cudaEventRecord"}[header]
    (at,) = (n for n, line in enumerate(lines) if f"check_{name} " in line)
    swapped = re.sub(r"\(\*\)\(([\w*]+), ([\w*]+)\)", r"(*)(\2, \1)", lines[at])
    assert swapped != lines[at]
    assert name in _compile(header, [swapped], INCLUDE, tmp_path)
    constant = next(line for line in lines if line.startswith("static_assert(static_cast<int>("))
    assert _compile(header, [constant.replace("==", "== 1 +", 1)], INCLUDE, tmp_path)
