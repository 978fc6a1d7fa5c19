"""The targets by name: what can be written from a compiled plan, and how.

A target is a function from :class:`Compiled` to file names and texts. Modules are imported when their target is asked
for, so that a command that emits nothing does not pay for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dagsched.compiled import Compiled
from dagsched.diagnostics import Diagnostic, UsageError, closest

Emit = Callable[[Compiled], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Target:
    """``emit`` raises :class:`PlanError` with codes E1xx for what the target cannot express."""

    name: str
    description: str
    emit: Emit


def _emit_schedule(compiled: Compiled) -> dict[str, str]:
    from dagsched.emit.names import file_stem
    from dagsched.schedule.writer import schedule_json

    return {f"{file_stem(compiled.plan.name)}.schedule.json": schedule_json(compiled.schedule)}


def _emit_calls(compiled: Compiled) -> dict[str, str]:
    from dagsched.emit.lower import list_calls
    from dagsched.emit.names import file_stem

    return {f"{file_stem(compiled.plan.name)}.calls.txt": str(list_calls(compiled))}


def _emit_acl_cpp(compiled: Compiled) -> dict[str, str]:
    from dagsched.emit.acl_cpp import emit_acl_cpp

    return emit_acl_cpp(compiled)


def _emit_cuda_cpp(compiled: Compiled) -> dict[str, str]:
    from dagsched.emit.cuda_cpp import emit_cuda_cpp

    return emit_cuda_cpp(compiled)


def _emit_acl_graph(compiled: Compiled) -> dict[str, str]:
    from dagsched.emit.acl_graph import emit_acl_graph

    return emit_acl_graph(compiled)


def _emit_cuda_graph(compiled: Compiled) -> dict[str, str]:
    from dagsched.emit.cuda_graph import emit_cuda_graph

    return emit_cuda_graph(compiled)


def _emit_pyacl(compiled: Compiled) -> dict[str, str]:
    from dagsched.emit.pyacl import emit_pyacl

    return emit_pyacl(compiled)


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("schedule", "the schedule as JSON, to be checked, compared and read back", _emit_schedule),
        Target("calls", "the runtime calls as text, neutral of the runtime", _emit_calls),
        Target("acl-cpp", "a C++17 class and program that call AscendCL", _emit_acl_cpp),
        Target("cuda-cpp", "a C++17 class and program that call the CUDA runtime, or HIP", _emit_cuda_cpp),
        Target("acl-graph", "the same as acl-cpp, with loops that are captured and replayed", _emit_acl_graph),
        Target("cuda-graph", "the same as cuda-cpp, with loops that are captured and replayed", _emit_cuda_graph),
        Target("pyacl", "a Python class and program that call AscendCL through pyACL", _emit_pyacl),
    )
}


def emit_targets(compiled: Compiled, names: str | Iterable[str]) -> dict[str, str]:
    """File names and texts of the named targets, each once, in the order given; a string is one name.

    Raises :class:`UsageError` for unknown targets (E101), all of them at once, before anything is emitted.
    """
    wanted = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in TARGETS]
    if unknown:
        raise UsageError([_unknown(name) for name in unknown])
    files: dict[str, str] = {}
    for name in wanted:
        files |= TARGETS[name].emit(compiled)
    return files


def _unknown(name: str) -> Diagnostic:
    near = closest(name, TARGETS)
    known = ", ".join(TARGETS)
    return Diagnostic(
        code="E101",
        headline=f"there is no target `{name}`",
        notes=(f"targets: {known}",),
        help=f"did you mean `--target {near}`?" if near else f"use one of {known}",
    )
