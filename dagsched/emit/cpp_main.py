"""``NAME_main.cpp`` and its like: a program around the pipeline, with hooks to be filled in."""

from __future__ import annotations

from dagsched.emit.calls import CallList
from dagsched.emit.cpp_names import Names, hook_signature, ordered_params
from dagsched.emit.cpp_runtime import Runtime, Words
from dagsched.emit.cpp_text import Invocation, lay_out_call
from dagsched.emit.names import cpp_comment, cpp_string
from dagsched.plan.model import OpKind


def write_main(calls: CallList, names: Names, runtime: Runtime) -> str:
    """The text of the program."""
    ordered = ordered_params(calls)
    usage = "".join(f" {name}" if calls.params[name] is None else f" [{name}]" for name in ordered)
    lines = [
        f"// A program that runs {names.stem}.hpp, with hooks to be filled in.",
        "//",
        f"// {runtime.compile_hint}",
        "#include <cerrno>",
        "#include <chrono>",
        "#include <cstdio>",
        "#include <cstdlib>",
        "",
        f'#include "{names.stem}.hpp"',
        "",
        "namespace {",
        "",
        f"namespace plan = dagsched::{names.namespace};",
        "",
        *_hooks(calls, names, runtime.words),
        "",
        *(_PARSE if ordered else []),
        *_run(calls, names, runtime.words, ordered),
        "",
        "}  // namespace",
        "",
        *_main(calls, names, runtime, ordered, usage),
    ]
    return "\n".join(lines) + "\n"


def _hooks(calls: CallList, names: Names, words: Words) -> list[str]:
    lines = ["class MyHooks final : public plan::Hooks {", " public:"]
    for number, function in enumerate(calls.functions):
        head, parameters = hook_signature(names, function, words, named=False)
        qualified = [text.replace("View<", "plan::View<").replace("Strided<", "plan::Strided<") for text in parameters]
        todo = "enqueue on the stream the work" if function.kind is OpKind.COMPUTE else "do the work"
        lines += [
            *([""] if number else []),
            *lay_out_call(Invocation(head, tuple(qualified)), 2, " override {"),
            f"    // TODO: {todo} of {cpp_comment(function.name)}",
            f"    return {words.success};",
            "  }",
        ]
    return [*lines, "};"]


_PARSE = [
    "// A whole number that is not negative, or -1.",
    "int64_t parse_count(const char* text) {",
    "  char* end = nullptr;",
    "  errno = 0;",
    "  const long long value = std::strtoll(text, &end, 10);",
    "  return errno == 0 && end != text && *end == '\\0' && value >= 0 ? value : -1;",
    "}",
    "",
]


def _run(calls: CallList, names: Names, words: Words, ordered: list[str]) -> list[str]:
    counts = [names.locals[name] for name in ordered]
    inputs = [names.accessors[buffer.name] for buffer in calls.buffers if buffer.input]
    outputs = [names.accessors[buffer.name] for buffer in calls.buffers if buffer.output and not buffer.input]
    lines = [
        *lay_out_call(
            Invocation(f"{words.error} run_pipeline", tuple(f"int64_t {count}" for count in counts)), 0, " {"
        ),
        "  plan::Pipeline pipeline;",
        "  MyHooks hooks;",
        f"  {words.error} code = pipeline.init();",
        f"  if (code == {words.success}) {{",
    ]
    if inputs:
        calls_text = ", ".join(f"pipeline.{name}()" for name in inputs)
        lines.append(f"    // TODO: fill the inputs: {calls_text}.")
    lines += [
        "    const auto start = std::chrono::steady_clock::now();",
        f"    code = pipeline.run({', '.join(['hooks', *counts])});",
        "    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;",
        f'    if (code == {words.success}) std::printf("%s: %.6f s\\n", {cpp_string(calls.name)}, took.count());',
    ]
    if outputs:
        calls_text = ", ".join(f"pipeline.{name}()" for name in outputs)
        lines.append(f"    // TODO: use the outputs: {calls_text}.")
    return [
        *lines,
        "  }",
        f'  if (code != {words.success}) std::fprintf(stderr, "%s\\n", pipeline.failure().message().c_str());',
        "  return code;",
        "}",
    ]


def _main(calls: CallList, names: Names, runtime: Runtime, ordered: list[str], usage: str) -> list[str]:
    lines = ["int main(int argc, char** argv) {"]
    for number, name in enumerate(ordered):
        default = calls.params[name]
        given = f"argc > {number + 1} ? parse_count(argv[{number + 1}]) : {-1 if default is None else default}"
        lines.append(f"  const int64_t {names.locals[name]} = {given};")
    wrong = " || ".join([f"argc > {len(ordered) + 1}", *(f"{names.locals[name]} < 0" for name in ordered)])
    return [
        *lines,
        f"  if ({wrong}) {{",
        f'    std::fprintf(stderr, "usage: %s%s\\n", argc > 0 ? argv[0] : "", {cpp_string(usage)});',
        "    return 2;",
        "  }",
        "",
        *runtime.start,
        f"{runtime.indent}code = run_pipeline({', '.join(names.locals[name] for name in ordered)});",
        *runtime.finish,
        f"  return code == {runtime.words.success} ? 0 : 1;",
        "}",
    ]
