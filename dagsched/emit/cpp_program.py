"""A C++ target's files: a header with one class that owns a pipeline and runs it, and a program that uses it.

``NAME.hpp`` holds the hooks that the user fills in and the class ``Pipeline`` (``init``, ``run``, ``release``);
``NAME_main.cpp`` starts the runtime and runs it with hooks that do nothing yet. The text depends on the compiled
plan alone: same input, same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from dagsched.emit.calls import CallList
from dagsched.emit.cpp_main import write_main
from dagsched.emit.cpp_names import Names, hook_signature, name_everything
from dagsched.emit.cpp_pipeline import Extras, write_pipeline
from dagsched.emit.cpp_runtime import Runtime, Words
from dagsched.emit.cpp_text import WIDTH, Invocation, comment, lay_out_call
from dagsched.emit.names import cpp_comment
from dagsched.emit.statements import callers_of
from dagsched.plan.model import OpKind

INCLUDES = (
    "algorithm", "array", "atomic", "complex", "cstddef", "cstdint", "cstdlib", "cstring", "deque", "exception",
    "functional", "memory", "mutex", "new", "string", "type_traits", "utility", "vector",
)  # fmt: skip


def emit_cpp(calls: CallList, runtime: Runtime) -> dict[str, str]:
    """File names and texts; raises :class:`PlanError` for copies that no rows express (E102)."""
    names = name_everything(calls, runtime.suffix)
    return {
        f"{names.stem}.hpp": write_header(calls, names, runtime),
        f"{names.stem}_main{runtime.main}": write_main(calls, names, runtime),
    }


def write_header(
    calls: CallList,
    names: Names,
    runtime: Runtime,
    extras: Extras | None = None,
    remarks: Sequence[str] = (),
    more: Sequence[str] = (),
) -> str:
    """The text of ``NAME.hpp``; ``remarks`` go into its first comment, ``more`` names files with further support."""
    lines = [
        *_banner(calls, names, runtime, remarks),
        f"#ifndef {names.guard}",
        f"#define {names.guard}",
        "",
        *runtime.include,
        "",
        *(f"#include <{name}>" for name in INCLUDES),
        "",
        f"namespace dagsched::{names.namespace} {{",
        "",
        *_support(runtime, more),
        *_rule(cpp_comment(f"The pipeline of {calls.name}")),
        "",
        *_hooks(calls, names, runtime),
        "",
        *_try_macro(runtime.words),
        "",
        *write_pipeline(calls, names, runtime, extras),
        "",
        "#undef DAGSCHED_TRY",
        "",
        f"}}  // namespace dagsched::{names.namespace}",
        "",
        f"#endif  // {names.guard}",
    ]
    return "\n".join(lines) + "\n"


def _banner(calls: CallList, names: Names, runtime: Runtime, remarks: Sequence[str]) -> list[str]:
    title = cpp_comment(f"{names.stem}.hpp: the plan {calls.name} as {runtime.name} program.")
    stamp = cpp_comment(f"Written by dagsched {calls.version}; the plan's digest is {calls.digest or 'unknown'}.")
    rule = "Change the plan and compile it again rather than this file."
    said = [line for remark in remarks for line in comment(cpp_comment(remark), 0)]
    return [f"// {title}", f"// {stamp}", f"// {rule}", *(["//"] if said else []), *said, ""]


def _rule(title: str) -> list[str]:
    line = "// " + "-" * 117
    return [line, f"// {title}", line]


def _support(runtime: Runtime, more: Sequence[str]) -> list[str]:
    folder = resources.files("dagsched.emit")
    parts = folder.joinpath(runtime.parts).read_text(encoding="utf-8").rstrip("\n")
    text = folder.joinpath("cpp_support.hpp").read_text(encoding="utf-8").replace("@PARTS@", parts).rstrip("\n")
    for name in more:
        text += "\n\n" + folder.joinpath(name).read_text(encoding="utf-8").rstrip("\n")
    return [*runtime.fill_in(text).rstrip("\n").split("\n"), ""]


def _hooks(calls: CallList, names: Names, runtime: Runtime) -> list[str]:
    about = (
        f"What you fill in: one method for each function of the plan. Anything but {runtime.words.success}, or an "
        "exception, ends the run. Compute functions enqueue their work on `stream` and return without waiting for it. "
        f"Host functions run on a thread of the runtime, in the order of their stream; {runtime.hook_rule}."
    )
    lines = [
        *(line.replace("// ", "/// ", 1) for line in comment(about, 0, WIDTH - 1)),
        "class Hooks {",
        " public:",
        "  virtual ~Hooks() = default;",
    ]
    callers = callers_of(calls)
    for function in calls.functions:
        head, parameters = hook_signature(names, function, runtime.words)
        kind = "Compute" if function.kind is OpKind.COMPUTE else "Host"
        text = f"{kind} function {function.name}, called by {callers.get(id(function), 'nothing')}."
        lines += ["", *comment(cpp_comment(text), 2)]
        lines += lay_out_call(Invocation(head, tuple(parameters)), 2, " = 0;", "virtual ")
    for buffer in calls.buffers:
        if buffer.name in names.sizes:
            index = "version" if (buffer.ring.depth or 1) > 1 else "iteration"
            what = f"The size in bytes of {buffer.name} in a given {index}, at most {buffer.size:,}."
            lines += [
                "",
                *comment(cpp_comment(f"{what} Asked when the op that writes it is issued, before it runs."), 2),
                f"  virtual size_t {names.sizes[buffer.name]}(int64_t /*{index}*/) {{ return {buffer.size}; }}",
            ]
    return [*lines, "};"]


def _try_macro(words: Words) -> list[str]:
    note = [
        "// Told of every op before its calls are made: define it for a profiler's ranges, or leave it alone.",
        "#ifndef DAGSCHED_NOTE",
        "#define DAGSCHED_NOTE(op, iteration) static_cast<void>(0)",
        "#endif",
        "",
    ]
    text = [
        "// Notes the place, makes the call, and leaves the function with what failed.",
        "#define DAGSCHED_TRY(op, iteration, ...)",
        "  do {",
        "    at_ = Place{op, iteration, #__VA_ARGS__, __FILE__, __LINE__};",
        "    DAGSCHED_NOTE(op, iteration);",
        f"    if (const {words.error} code = (__VA_ARGS__); code != {words.success}) return fail(code);",
        "  } while (false)",
    ]
    width = max(len(line) for line in text[1:]) + 1
    return [*note, text[0], *(f"{line:<{width}}\\" for line in text[1:-1]), text[-1]]
