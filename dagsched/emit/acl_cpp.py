"""Target ``acl-cpp``: a header with one class that owns a pipeline and runs it, and a program that uses it.

``NAME.hpp`` holds the hooks that the user fills in and the class ``Pipeline`` (``init``, ``run``, ``release``);
``NAME_main.cpp`` initialises AscendCL and runs it with hooks that do nothing yet. The text depends on the compiled
plan alone: same input, same bytes.
"""

from __future__ import annotations

from importlib import resources

from dagsched.compiled import Compiled
from dagsched.emit.acl_errors import ERROR_NAMES
from dagsched.emit.acl_main import write_main
from dagsched.emit.acl_pipeline import write_pipeline
from dagsched.emit.calls import CallList, Launch
from dagsched.emit.cpp_names import Names, hook_signature, name_everything
from dagsched.emit.cpp_text import Invocation, comment, lay_out_call
from dagsched.emit.functions import Function
from dagsched.emit.lower import list_calls
from dagsched.emit.names import cpp_comment
from dagsched.plan.model import OpKind

INCLUDES = (
    "algorithm", "array", "atomic", "complex", "cstddef", "cstdint", "cstdlib", "cstring", "deque", "exception",
    "functional", "memory", "mutex", "new", "string", "type_traits", "utility", "vector",
)  # fmt: skip


def emit_acl_cpp(compiled: Compiled) -> dict[str, str]:
    """File names and texts; raises :class:`PlanError` for what AscendCL cannot express."""
    calls = list_calls(compiled)
    names = name_everything(calls)
    return {
        f"{names.stem}.hpp": write_header(calls, names),
        f"{names.stem}_main.cpp": write_main(calls, names),
    }


def write_header(calls: CallList, names: Names) -> str:
    """The text of ``NAME.hpp``."""
    lines = [
        *_banner(calls, names),
        f"#ifndef {names.guard}",
        f"#define {names.guard}",
        "",
        "#include <acl/acl.h>",
        "",
        *(f"#include <{name}>" for name in INCLUDES),
        "",
        f"namespace dagsched::{names.namespace} {{",
        "",
        *_support(),
        *_rule(cpp_comment(f"The pipeline of {calls.name}")),
        "",
        *_hooks(calls, names),
        "",
        *_try_macro(),
        "",
        *write_pipeline(calls, names),
        "",
        "#undef DAGSCHED_TRY",
        "",
        f"}}  // namespace dagsched::{names.namespace}",
        "",
        f"#endif  // {names.guard}",
    ]
    return "\n".join(lines) + "\n"


def _banner(calls: CallList, names: Names) -> list[str]:
    title = cpp_comment(f"{names.stem}.hpp: the plan {calls.name} as an AscendCL program.")
    stamp = cpp_comment(f"Written by dagsched {calls.version}; the plan's digest is {calls.digest or 'unknown'}.")
    return [f"// {title}", f"// {stamp}", "// Change the plan and compile it again rather than this file.", ""]


def _rule(title: str) -> list[str]:
    line = "// " + "-" * 117
    return [line, f"// {title}", line]


def _support() -> list[str]:
    cases = "\n".join(f'    case {code}: return "{name}";' for code, name in ERROR_NAMES.items())
    text = resources.files("dagsched.emit").joinpath("acl_support.hpp").read_text(encoding="utf-8")
    return [*text.replace("@ERROR_NAMES@", cases).rstrip("\n").split("\n"), ""]


def _hooks(calls: CallList, names: Names) -> list[str]:
    lines = [
        "/// What you fill in: one method for each function of the plan. Anything but ACL_SUCCESS, or an exception,",
        "/// ends the run. Compute functions enqueue their work on `stream` and return without waiting for it. Host",
        "/// functions run on a thread of the runtime, in the order of their stream; they must not call AscendCL.",
        "class Hooks {",
        " public:",
        "  virtual ~Hooks() = default;",
    ]
    callers: dict[int, dict[str, None]] = {}
    for call in calls.walk():
        if isinstance(call, Launch):
            callers.setdefault(id(call.function), {})[call.op] = None
    for function in calls.functions:
        head, parameters = hook_signature(names, function)
        lines += ["", *_callers(function, list(callers.get(id(function), ())))]
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


def _callers(function: Function, ops: list[str]) -> list[str]:
    """Which ops call a hook."""
    shown = ", ".join(ops[:8]) + (f" and {len(ops) - 8} more" if len(ops) > 8 else "")
    kind = "Compute" if function.kind is OpKind.COMPUTE else "Host"
    return comment(cpp_comment(f"{kind} function {function.name}, called by {shown}."), 2)


def _try_macro() -> list[str]:
    text = [
        "// Notes the place, makes the call, and leaves the function with what failed.",
        "#define DAGSCHED_TRY(op, iteration, ...)",
        "  do {",
        "    at_ = Place{op, iteration, #__VA_ARGS__, __FILE__, __LINE__};",
        "    if (const aclError code = (__VA_ARGS__); code != ACL_SUCCESS) return fail(code);",
        "  } while (false)",
    ]
    width = max(len(line) for line in text[1:]) + 1
    return [text[0], *(f"{line:<{width}}\\" for line in text[1:-1]), text[-1]]
