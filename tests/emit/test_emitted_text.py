"""Emitted programs as text: they compile without a warning, are formatted, and read as they should (golden files)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError, Source, UsageError
from dagsched.emit.acl_cpp import emit_acl_cpp
from dagsched.emit.acl_errors import ERROR_NAMES
from dagsched.emit.lower import list_calls
from dagsched.emit.targets import TARGETS, emit_targets
from dagsched.emulator.build import INCLUDE
from dagsched.plan.expressions import parse_expression
from dagsched.plan.reader import read_plan
from dagsched.schedule.model import EventStep, LoopStep
from tests.emit.headers import WHEEL, fetch_headers, find_headers
from tests.emit.pipelines import EXAMPLES, PLANS, Pipeline, compile_file

FILES = [*sorted(EXAMPLES.glob("*.yaml")), *sorted(PLANS.glob("*.yaml"))]
STYLE = (
    "{BasedOnStyle: Google, ColumnLimit: 120, AllowShortCaseLabelsOnASingleLine: true, "
    "PenaltyBreakBeforeFirstCallParameter: 1000}"
)
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


@pytest.fixture(scope="module")
def pipelines() -> dict[Path, Pipeline]:
    return {path: compile_file(path) for path in FILES}


def _compile(folder: Path, include: list[str], files: dict[str, str]) -> None:
    """The main programs, and all headers in one translation unit: pipelines live side by side."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    headers = [name for name in files if name.endswith(".hpp")]
    everything = "".join(f'#include "{name}"\n' for name in [*headers, *headers])
    (folder / "everything.cpp").write_text(everything, encoding="utf-8")
    units = ["everything.cpp", *(name for name in files if name.endswith(".cpp"))]
    for compiler in COMPILERS:
        command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", *include]
        chosen = units if compiler == COMPILERS[0] else units[:1]  # the programs' headers are in the first unit
        done = subprocess.run([*command, *chosen], capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stderr[:4000]


def _files(pipelines: dict[Path, Pipeline], group: Path, *endings: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for path, pipeline in pipelines.items():
        if path.parent == group:
            files |= {name: text for name, text in pipeline.emitted.files.items() if name.endswith(endings)}
    return files


def test_compiles_against_our_declarations(pipelines: dict[Path, Pipeline], tmp_path: Path) -> None:
    files = _files(pipelines, EXAMPLES, ".hpp", "detector_main.cpp", "batches_main.cpp")
    _compile(tmp_path, [f"-I{INCLUDE}"], files | _files(pipelines, PLANS, "script_main.cpp", "script.hpp"))


def test_compiles_against_the_real_headers(pipelines: dict[Path, Pipeline], tmp_path: Path) -> None:
    headers = find_headers()
    if headers is None and os.environ.get("DAGSCHED_FETCH_HEADERS"):
        headers = fetch_headers()
    if headers is None:
        pytest.skip(
            f"NOT COMPILED AGAINST ASCENDCL: the headers of {WHEEL} are missing; `python tests/emit/headers.py`"
        )
    for group, endings in ((EXAMPLES, (".hpp", ".cpp")), (PLANS, (".hpp",))):
        folder = tmp_path / group.name
        folder.mkdir()
        _compile(folder, ["-isystem", str(headers)], _files(pipelines, group, *endings))


def test_error_names_are_those_of_the_real_headers() -> None:
    headers = find_headers()
    if headers is None:
        pytest.skip(f"the headers of {WHEEL} are missing; get them with `python tests/emit/headers.py`")
    paths = (headers / "acl" / "error_codes" / "rt_error_codes.h", headers / "acl" / "acl_base_rt.h")
    words = " ".join(path.read_text(encoding="utf-8", errors="replace") for path in paths).replace("=", " ").split()
    known = {(name, value.rstrip(";")) for name, value in pairwise(words)}
    for code, name in ERROR_NAMES.items():
        assert (name, str(code)) in known or code == 0, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_is_formatted(path: Path, pipelines: dict[Path, Pipeline]) -> None:
    program = shutil.which("clang-format") or str(Path(sys.executable).parent / "clang-format")
    for text in pipelines[path].emitted.files.values():
        done = subprocess.run(
            [program, f"--style={STYLE}"], input=text, capture_output=True, text=True, check=True, encoding="utf-8"
        )
        assert done.stdout == text


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_is_deterministic_and_ends_with_a_newline(path: Path, pipelines: dict[Path, Pipeline]) -> None:
    again = compile_file(path)
    assert again.emitted.files == pipelines[path].emitted.files
    for text in again.emitted.files.values():
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert "\t" not in text
        assert all(line == line.rstrip() for line in text.splitlines())


def test_golden_listing(pipelines: dict[Path, Pipeline], golden: Callable[[str, str], None]) -> None:
    detector = pipelines[EXAMPLES / "detector.yaml"]
    for name, text in detector.emitted.files.items():
        golden(f"emit/{name}", text)
    golden("emit/detector.calls.txt", str(list_calls(detector.compiled)))
    for stem in ("regions", "mixed"):
        pipeline = pipelines[PLANS / f"{stem}.yaml"]
        golden(f"emit/{stem}.calls.txt", str(list_calls(pipeline.compiled)))


def test_every_wait_says_what_it_is_for(pipelines: dict[Path, Pipeline]) -> None:
    text = pipelines[EXAMPLES / "detector.yaml"].emitted.files["detector.hpp"]
    lines = [line.strip() for line in text[text.index("aclError issue(") :].splitlines()]
    calls = [n for n, line in enumerate(lines) if "aclrtStreamWaitEvent(" in line]
    assert calls
    for n in calls:
        above = lines[n - 1] if lines[n].startswith("DAGSCHED_TRY") else lines[n - 2]
        assert above.startswith("// ")
        assert " before " in above


def test_targets() -> None:
    compiled = compile_plan(read_plan(Source("x", (EXAMPLES / "add_one.yaml").read_text(encoding="utf-8"))))
    files = emit_targets(compiled, ["acl-cpp", "calls", "schedule", "acl-cpp"])
    assert list(files) == ["add_one.hpp", "add_one_main.cpp", "add_one.calls.txt", "add_one.schedule.json"]
    assert json.loads(files["add_one.schedule.json"])["name"] == "add_one"
    assert files["add_one.hpp"] == emit_acl_cpp(compiled)["add_one.hpp"]
    assert set(TARGETS) == {"schedule", "calls", "acl-cpp", "acl-graph", "cuda-cpp", "cuda-graph", "pyacl"}
    assert list(emit_targets(compiled, "calls")) == ["add_one.calls.txt"]  # a string is one name
    with pytest.raises(UsageError) as caught:
        emit_targets(compiled, ["acl-ccp", "fortran", "calls"])
    first, second = caught.value.diagnostics
    assert (first.code, second.code) == ("E101", "E101")
    assert first.help == "did you mean `--target acl-cpp`?"
    assert second.headline == "there is no target `fortran`"


def _faults(text: str) -> list[tuple[str, str]]:
    compiled = compile_plan(read_plan(Source("plan.yaml", text)))
    with pytest.raises(PlanError) as caught:
        emit_acl_cpp(compiled)
    return [(fault.code, fault.headline) for fault in caught.value.diagnostics]


def _plan(buffers: Mapping[str, object], ops: Sequence[object]) -> str:
    document = {"dagsched": 1, "name": "p", "buffers": buffers, "ops": ops}
    return yaml.safe_dump(document, sort_keys=False)


def test_copies_that_rows_cannot_express() -> None:
    buffers = {
        "a": {"place": "host", "shape": [6, 8], "dtype": "uint8", "input": True},
        "b": {"place": "device", "shape": [4, 9], "dtype": "uint8", "output": True},
    }
    ops = [{"name": "up", "copy": {"from": "a[0:3, 0:4]", "to": "b[0:2, 0:6]"}}]  # rows of 4 into rows of 6
    assert _faults(_plan(buffers, ops)) == [
        ("E102", "`up` copies between regions that no sequence of row copies expresses")
    ]


def test_regions_of_buffers_whose_size_varies() -> None:
    buffers = {
        "a": {"place": "host", "size": 64, "input": True, "dynamic": True},
        "b": {"place": "device", "size": 32, "output": True},
    }
    ops = [{"name": "up", "copy": {"from": "a[0:32]", "to": "b"}}]
    assert [code for code, _ in _faults(_plan(buffers, ops))] == ["E103"]


def test_counts_that_could_overflow_are_bounded() -> None:
    """With offsets of 2**40 bytes an iteration, counts above 2**23 would leave 64 bits."""
    compiled = compile_file(PLANS / "batches.yaml").compiled
    assert list_calls(compiled).max_count == 2**53
    huge = replace(compiled.resolved.buffers["all_batches"], shape=(8, 2**38), size=8 * 2**40)
    buffers = compiled.resolved.buffers | {"all_batches": huge}
    calls = list_calls(replace(compiled, resolved=replace(compiled.resolved, buffers=buffers)))
    assert calls.max_count == 2**23


@pytest.mark.parametrize(
    ("index", "headline"),
    [
        ("(i + 9223372036854775807) * 4", "`(i+9223372036854775807)*4` does not fit into 64 bits"),
        ("4 // i", "a divisor in `4//i` can be 0"),
        ("i + j", "`j` in `i+j` is no parameter and no index of a loop around it"),
    ],
)
def test_arithmetic_that_no_program_can_do(index: str, headline: str) -> None:
    compiled = compile_file(PLANS / "detector.yaml").compiled
    loop = next(step for step in compiled.schedule.steps if isinstance(step, LoopStep))
    record = next(step for step in loop.steps if isinstance(step, EventStep))
    damaged = replace(record, event=replace(record.event, index=parse_expression(index)))
    steps = tuple(
        replace(loop, steps=tuple(damaged if inner is record else inner for inner in loop.steps))
        if step is loop
        else step
        for step in compiled.schedule.steps
    )
    with pytest.raises(PlanError) as caught:
        list_calls(replace(compiled, schedule=replace(compiled.schedule, steps=steps)))
    assert [(fault.code, fault.headline) for fault in caught.value.diagnostics] == [("E105", headline)]


def test_a_schedule_that_no_program_expresses() -> None:
    pipeline = compile_file(PLANS / "detector.yaml")
    schedule = replace(pipeline.compiled.schedule, event_model="reevaluate")
    with pytest.raises(PlanError) as caught:
        emit_acl_cpp(replace(pipeline.compiled, schedule=schedule))
    (fault,) = caught.value.diagnostics
    assert fault.code == "E104"
    assert "`reevaluate`" in fault.headline
