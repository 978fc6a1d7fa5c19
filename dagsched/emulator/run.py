"""Build an emitted pipeline against the emulator, run it, and hold what it did against the plan's meaning.

Invariant: a run that is called right has given exactly the bytes of the sequential meaning in every output and in every
block that it wrote last, its host functions have seen what they should have seen, and its trace shows no race.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy

from dagsched.compiled import Compiled
from dagsched.diagnostics import Diagnostic, Source, UsageError
from dagsched.emit.acl_cpp import ASCENDCL, emit_acl_cpp
from dagsched.emit.acl_graph import ASCENDCL_GRAPH, emit_acl_graph
from dagsched.emit.calls import CallList, Repeat
from dagsched.emit.cpp_graph import plan_graphs
from dagsched.emit.cpp_names import Names, name_everything, ordered_params
from dagsched.emit.cpp_runtime import Runtime
from dagsched.emit.cuda_cpp import CUDA, emit_cuda_cpp
from dagsched.emit.cuda_graph import CUDA_GRAPH, emit_cuda_graph
from dagsched.emit.lower import list_calls
from dagsched.emit.py_names import name_python
from dagsched.emit.pyacl import emit_pyacl
from dagsched.emulator.build import build_emulator
from dagsched.emulator.compilers import call_compiler
from dagsched.emulator.driver import write_driver
from dagsched.emulator.meaning import Meaning, execute, final
from dagsched.emulator.py_driver import write_py_driver

TARGETS: dict[str, tuple[str, Runtime, Callable[[Compiled], dict[str, str]]]] = {
    "acl-cpp": ("ascendcl", ASCENDCL, emit_acl_cpp),
    "cuda-cpp": ("cudart", CUDA, emit_cuda_cpp),
    "acl-graph": ("ascendcl", ASCENDCL_GRAPH, emit_acl_graph),
    "cuda-graph": ("cudart", CUDA_GRAPH, emit_cuda_graph),
}
"""C++ by name: the library to build against, the runtime, and what emits. Python is ``pyacl`` (:data:`PYTHON`)."""

PYTHON = "pyacl"

SANITIZERS = {"thread": "-fsanitize=thread", "address": "-fsanitize=address"}
FLAGS = ("-std=c++17", "-O1", "-g", "-Wall", "-Wextra")
RACES, ENDED_BY_EMULATOR, STUCK = 66, 86, 87
"""Exit statuses: of ThreadSanitizer, and of the emulator for misuse and for a program that waits for ever."""


@dataclass(frozen=True, slots=True)
class Program:
    """A built program and all that is needed to judge what it does: ``command`` runs it.

    ``phases`` are those of the loops that it captures in graphs (see :class:`dagsched.emulator.meaning.Meaning`).
    """

    folder: Path
    command: tuple[str, ...]
    compiled: Compiled
    calls: CallList
    phases: Mapping[int, int]

    def meaning(self, counts: Mapping[str, int]) -> Meaning:
        """What a run of it must come to; raises :class:`UsageError` (R310) for counts that it must refuse."""
        for name, largest in self.calls.proved.items():
            if counts[name] > largest:
                headline = f"the schedule is proved for `{name}` up to {largest:,}, and {name} = {counts[name]:,}"
                raise UsageError([Diagnostic("R310", headline, help=f"write `--count {name}={largest}`")])
        return execute(self.compiled.plan, counts, self.phases)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. ``code`` is what the pipeline returned, ``alive`` what it left unreleased, ``status`` the process's."""

    seed: int
    status: int
    code: int
    failure: str
    alive: int
    talk: str
    folder: Path


def build_program(compiled: Compiled, folder: Path, target: str = "acl-cpp", sanitizer: str | None = None) -> Program:
    """Emit, write the driver, and compile.

    Raises :class:`UsageError` (R301 to R303, U010 where the folder cannot be written), and :class:`PlanError` where the
    target cannot express the plan (E1xx).
    """
    if target == PYTHON:
        return _write_python(compiled, folder)
    library, runtime, emit = TARGETS[target]
    files = emit(compiled)
    calls, names, phases = _contents(compiled, target, runtime)
    emulator = build_emulator(library)
    header = f"{names.stem}.hpp"
    _write(folder, {header: files[header], "driver.cpp": write_driver(calls, names, runtime, header, library)})
    path = folder / "driver"
    flags = [*FLAGS, *([SANITIZERS[sanitizer]] if sanitizer else [])]
    command = [*emulator.compiler, *flags, str(folder / "driver.cpp"), *emulator.flags(), "-o", str(path)]
    said = call_compiler(command)
    if said is not None:
        headline = f"`{emulator.compiler[0]}` cannot build the emitted program"
        help_ = f"install the compiler's {sanitizer} sanitizer" if sanitizer and "san" in said else None
        raise UsageError([Diagnostic("R303", headline, notes=(said,), help=help_)])
    return Program(folder, (str(path),), compiled, calls, phases)


def _write_python(compiled: Compiled, folder: Path) -> Program:
    """The emitted module as it is, and a driver beside it."""
    build_emulator()  # once, and not in the program, whose time is limited
    calls = list_calls(compiled)
    names = name_python(calls, PYTHON)
    module = f"{names.stem}.py"
    _write(folder, {module: emit_pyacl(compiled)[module], "driver.py": write_py_driver(calls, names)})
    command = (sys.executable, "-m", "dagsched.emulator.pyacl", str(folder / "driver.py"))
    return Program(folder, command, compiled, calls, {})


def _write(folder: Path, files: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        headline = f"`{folder}` cannot be written: {(error.strerror or str(error)).lower()}"
        raise UsageError([Diagnostic("U010", headline, help="name another place with `--keep`")]) from error


def _contents(compiled: Compiled, target: str, runtime: Runtime) -> tuple[CallList, Names, dict[int, int]]:
    """Calls and names of a program, and the windows of the loops that it captures by their number in the plan."""
    if not target.endswith("-graph"):
        calls = list_calls(compiled)
        return calls, name_everything(calls, runtime.suffix), {}
    program = plan_graphs(compiled, runtime, host_calls=target == "cuda-graph")
    windows = {id(loop.repeat): loop.window.size for loop in program.loops}
    loops = [call for call in program.calls.body if isinstance(call, Repeat)]
    phases = {n: windows[id(loop)] for n, loop in enumerate(loops) if id(loop) in windows}
    return program.calls, program.names, phases


def run_program(
    program: Program, counts: Mapping[str, int], seed: int, *, inject: str | None = None, timeout: float = 600
) -> Outcome:
    """Run once with one interleaving; raises :class:`UsageError` (R305) where it does not end in time."""
    folder = program.folder / f"seed-{seed}"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    limits = program.compiled.device.limits
    variables = {
        "DAGSCHED_EMU_SEED": str(seed),
        "DAGSCHED_EMU_TRACE": str(folder / "trace.json"),
        "DAGSCHED_EMU_LOG": str(folder / "log"),
        "DAGSCHED_EMU_STRICT": "1",
        "DAGSCHED_EMU_INJECT": inject or "",
        "TSAN_OPTIONS": f"exitcode={RACES}:atexit_sleep_ms=20",
        "ASAN_OPTIONS": "detect_leaks=1",
    }
    for name, value in (("STREAMS", limits.streams), ("EVENTS", limits.events), ("QUEUE_DEPTH", limits.queue_depth)):
        if value is not None:
            variables[f"DAGSCHED_EMU_{name}"] = str(value)
    values = [str(counts[name]) for name in ordered_params(program.calls)]
    command = [*program.command, str(folder), *values]
    try:
        done = subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        headline = f"the emitted program did not end within {timeout:g} s (seed {seed})"
        raise UsageError([Diagnostic("R305", headline, help="run fewer iterations: `--count`")]) from None
    answer: dict[str, Any] = {"code": 0, "failure": "", "alive": 0}
    if done.stdout.strip().startswith("{"):
        answer = json.loads(done.stdout)
    return Outcome(
        seed, done.returncode, answer["code"], answer["failure"], answer["alive"], done.stderr.strip(), folder
    )


def judge(program: Program, meaning: Meaning, outcome: Outcome) -> list[Diagnostic]:
    """All that is wrong with a run without faults: nothing, if dagsched, compiler and emulator are right."""
    seed = outcome.seed
    talk = tuple(outcome.talk.splitlines()[:2])
    if outcome.status == RACES:
        headline = f"ThreadSanitizer sees {outcome.talk.count('WARNING: ThreadSanitizer')} data races (seed {seed})"
        return [Diagnostic("R307", headline, notes=_first_race(outcome.talk))]
    if outcome.status != 0:
        why = {ENDED_BY_EMULATOR: "was ended for misuse of the runtime", STUCK: "waits for ever"}
        headline = f"the emitted program {why.get(outcome.status, f'ended with status {outcome.status}')} (seed {seed})"
        return [Diagnostic("R304", headline, notes=talk)]
    if outcome.code != 0:
        return [Diagnostic("R304", f"the emitted program failed (seed {seed})", notes=(outcome.failure,))]
    found = [*_compare_contents(program, meaning, outcome), *_compare_calls(meaning, outcome)]
    return found or _check_trace(outcome)


def _first_race(talk: str) -> tuple[str, ...]:
    lines = [line.strip() for line in talk.splitlines()]
    kinds = [line for line in lines if line.startswith(("Write of", "Read of", "Previous"))]
    return tuple(kinds[:2])


def _compare_contents(program: Program, meaning: Meaning, outcome: Outcome) -> list[Diagnostic]:
    """Outputs as far as they hold data; other blocks where their newest iteration has written them."""
    found = []
    for number, buffer in enumerate(program.calls.buffers):
        version = final(meaning, buffer.name, buffer.ring.depth or 1)
        if version is None:
            continue
        slot, block = version
        path = outcome.folder / f"{number}.{slot}"
        if not path.exists():
            continue
        got = numpy.fromfile(path, numpy.uint8)
        what = "output" if buffer.output else "buffer"
        if len(got) < block.used or (buffer.output and len(got) != block.used):
            headline = f"{what} `{buffer.name}` has {len(got):,} bytes, and should have {block.used:,}"
            found.append(Diagnostic("R304", f"{headline} (seed {outcome.seed})"))
            continue
        wrong = got[: block.used] != block.data[: block.used]
        if not buffer.output:
            wrong &= block.written[: block.used]
        if wrong.any():
            first = int(numpy.argmax(wrong))
            headline = f"{what} `{buffer.name}` differs from the sequential meaning in {int(wrong.sum()):,} bytes"
            note = f"first at byte {first:,} of slot {slot}: {got[first]:#04x} instead of {block.data[first]:#04x}"
            found.append(Diagnostic("R304", f"{headline} (seed {outcome.seed})", notes=(note,)))
    return found


def _compare_calls(meaning: Meaning, outcome: Outcome) -> list[Diagnostic]:
    """Host functions were called as often, and saw the same, as in the sequential meaning."""
    path = outcome.folder / "log"
    seen = sorted(path.read_text(encoding="utf-8").splitlines()) if path.exists() else []
    expected = sorted(meaning.log)
    if seen == expected:
        return []
    wrong = next((line for line in expected if line not in set(seen)), None) or "one call too many"
    headline = f"a host function saw something else than in the sequential meaning (seed {outcome.seed})"
    return [Diagnostic("R304", headline, notes=(f"call: {wrong}",))]


def _check_trace(outcome: Outcome) -> list[Diagnostic]:
    """Read back what the program did: races that this run happened not to show."""
    trace = (outcome.folder / "trace.json").read_text(encoding="utf-8")
    found = _check_text(trace)
    if found is None:
        return []
    verdict, *notes = found
    headline = f"the trace of the run is not right: {verdict} (seed {outcome.seed})"
    return [Diagnostic("R308", headline, notes=tuple(notes))]


@lru_cache(maxsize=4)
def _check_text(trace: str) -> tuple[str, ...] | None:
    """The verdict on a trace and what is wrong with it; None where nothing is.

    A program that issues the same calls leaves the same trace, whatever the interleaving: it is checked once.
    """
    from dagsched.proof.check import check_schedule
    from dagsched.schedule.reader import read_schedule

    verdict = check_schedule(read_schedule(Source("trace.json", trace)))
    if verdict.verdict == "ok":
        return None
    first = verdict.diagnostics()[0]
    return (verdict.verdict, first.headline, *first.notes[:1])


def judge_fault(outcome: Outcome, code: int) -> list[Diagnostic]:
    """All that is wrong with how a program took a fault: it must return the code and leave nothing behind."""
    faults = []
    if outcome.status != 0:
        faults.append(f"it ended with status {outcome.status}: {outcome.talk[:300]}")
    elif outcome.code == 0:
        return [Diagnostic("R306", f"the fault was not met: the run made no such call (seed {outcome.seed})")]
    elif outcome.code != code:
        faults.append(f"it returned {outcome.code} instead of {code}")
    if outcome.alive:
        faults.append(f"it left {outcome.alive} streams, events or blocks behind")
    headline = f"the emitted program did not take the fault well (seed {outcome.seed})"
    return [Diagnostic("R309", headline, notes=(fault,)) for fault in faults]
