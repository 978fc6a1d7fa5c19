"""Write a program that runs one emitted pipeline with hooks that mix bytes, and leaves its results in a folder.

``driver FOLDER COUNT...`` fills the inputs, runs, and writes ``BUFFER.SLOT`` (numbers) for every block into the folder;
one line of JSON on stdout says how it went. The emitted header is used as it is.
"""

from __future__ import annotations

from dagsched.emit.calls import CallList
from dagsched.emit.cpp_names import Names, hook_signature, ordered_params
from dagsched.emit.cpp_runtime import Runtime
from dagsched.emit.functions import Function
from dagsched.emit.names import cpp_string
from dagsched.plan.model import Mode, OpKind

_MODES = {
    Mode.READ: "DAGSCHED_READ",
    Mode.WRITE: "DAGSCHED_WRITE",
    Mode.UPDATE: "DAGSCHED_UPDATE",
    Mode.ACCUMULATE: "DAGSCHED_ACCUMULATE",
}
_START = {"ascendcl": "  aclInit(nullptr);\n  aclrtSetDevice(0);", "cudart": "  cudaSetDevice(0);"}
_FINISH = {"ascendcl": "  aclrtResetDevice(0);\n  aclFinalize();", "cudart": "  cudaDeviceReset();"}


def write_driver(calls: CallList, names: Names, runtime: Runtime, header: str, library: str) -> str:
    """The text of the program; ``header`` is the emitted file's name, ``library`` the runtime's."""
    ordered = ordered_params(calls)
    counts = "".join(f", std::strtoll(argv[{n + 2}], nullptr, 10)" for n in range(len(ordered)))
    lines = [
        "#include <dagsched/hooks.hpp>",
        "",
        f'#include "{header}"',
        "",
        f"namespace plan = dagsched::{names.namespace};",
        "",
        *_hooks(calls, names, runtime),
        "",
        "int main(int argc, char** argv) {",
        f"  if (argc != {len(ordered) + 2}) return 2;",
        "  const std::string folder = argv[1];",
        _START[library],
        f"  {runtime.words.error} code = {runtime.words.success};",
        "  std::string failure;",
        "  {",
        "    plan::Pipeline pipeline;",
        "    MixingHooks hooks;",
        "    code = pipeline.init();",
        "    dagsched_emulator_note(nullptr, -1);",
        f"    if (code == {runtime.words.success}) {{",
        *_fill(calls, names),
        f"      code = pipeline.run(hooks{counts});",
        "      dagsched_emulator_note(nullptr, -1);",
        "    }",
        f"    if (code == {runtime.words.success}) {{",
        *_save(calls, names),
        "    } else {",
        "      failure = pipeline.failure().message();",
        "    }",
        "  }",
        "  const int alive = dagsched_emulator_alive();",
        _FINISH[library],
        '  std::printf("{\\"code\\": %d, \\"failure\\": %s, \\"alive\\": %d, \\"complaints\\": %d}\\n",',
        "              static_cast<int>(code), hooks::quoted(failure).c_str(), alive, dagsched_emulator_complaints());",
        "  return 0;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _hooks(calls: CallList, names: Names, runtime: Runtime) -> list[str]:
    lines = ["class MixingHooks final : public plan::Hooks {", " public:"]
    for function in calls.functions:
        lines += _hook(names, function, runtime)
    for buffer in calls.buffers:
        if buffer.name in names.sizes:
            size = f"hooks::size_of({cpp_string(buffer.name)}, index, {buffer.size})"
            lines.append(f"  size_t {names.sizes[buffer.name]}(int64_t index) override {{ return {size}; }}")
    return [*lines, "};"]


def _hook(names: Names, function: Function, runtime: Runtime) -> list[str]:
    head, parameters = hook_signature(names, function, runtime.words)
    qualified = [text.replace("View<", "plan::View<").replace("Strided<", "plan::Strided<") for text in parameters]
    views, indices = names.parameters(function)
    body = [f"      hooks::Mix mix({cpp_string(function.name)});", *(f"      mix.index({index});" for index in indices)]
    pairs = list(zip(function.parameters, views, strict=True))
    for parameter, view in pairs:
        if parameter.mode in (Mode.READ, Mode.UPDATE):
            body.append(_touch("read", parameter.name, view, parameter.mode))
    body.append("      dagsched_emulator_breathe();")
    if function.kind is OpKind.HOST:
        body.append(f"      hooks::log_call({cpp_string(function.name)}, {{{', '.join(indices)}}}, mix.value());")
    for parameter, view in pairs:
        if parameter.mode.writes:
            body.append(_touch("write", parameter.name, view, parameter.mode))
    opening = f"  {head}({', '.join(qualified)}) override {{"
    if function.kind is OpKind.HOST:
        return [opening, *(line[2:] for line in body), f"    return {runtime.words.success};", "  }"]
    launch = f"dagsched_emulator::launch(stream, {cpp_string(function.name)}, work)"
    return [
        opening,
        "    const auto work = [=] {",
        *body,
        "      return 0;",
        "    };",
        f"    return static_cast<{runtime.words.error}>({launch});",
        "  }",
    ]


def _touch(what: str, name: str, view: str, mode: Mode) -> str:
    return f"      mix.{what}({cpp_string(name)}, hooks::runs_of({view}), {_MODES[mode]});"


def _fill(calls: CallList, names: Names) -> list[str]:
    return [
        f"      hooks::fill_input(pipeline.{names.accessors[buffer.name]}({slot}), {cpp_string(buffer.name)});"
        for buffer in calls.buffers
        if buffer.input
        for slot in range(buffer.ring.depth or 1)
    ]


def _save(calls: CallList, names: Names) -> list[str]:
    """Outputs as the host reads them; other blocks as they are, save pageable ones, which only the program knows."""
    lines = []
    for number, buffer in enumerate(calls.buffers):
        for slot in range(buffer.ring.depth or 1):
            if buffer.output:
                view = f"pipeline.{names.accessors[buffer.name]}({slot})"
                arguments = f"folder, {number}, {slot}, {view}, {cpp_string(buffer.name)}"
                lines.append(f"      hooks::save_output({arguments});")
            elif not buffer.pageable:
                arguments = f"folder, {number}, {slot}, {cpp_string(buffer.name)}, {buffer.size}"
                lines.append(f"      hooks::save_block({arguments});")
    return lines
