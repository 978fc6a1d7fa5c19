"""Generates a C++ driver that runs emitted pipelines on the emulator, with hooks that mix bytes.

The driver reads commands from its input (``PLAN SEED FAULT NUMBER CODE COUNT...``) and answers each with lines of JSON,
so that one build and one process serve many cases.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dagsched.emit.acl_cpp import ASCENDCL
from dagsched.emit.calls import CallList
from dagsched.emit.cpp_names import Names, hook_signature
from dagsched.emit.cpp_runtime import Runtime
from dagsched.emit.functions import Function
from dagsched.emit.names import cpp_string
from dagsched.emulator.build import build_emulator
from dagsched.plan.model import Mode, OpKind

FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread"]

PRELUDE = r"""
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#define DAGSCHED_NOTE(op, iteration) dagsched_emulator_note(op, iteration)
#include "acl/acl.h"
#include "dagsched_emulator.h"

static uint64_t fnv(const unsigned char* data, size_t size, uint64_t value) {
  for (size_t n = 0; n < size; ++n) value = (value ^ data[n]) * 0x100000001B3u;
  return value;
}
static uint64_t fnv(const std::string& text) {
  return fnv(reinterpret_cast<const unsigned char*>(text.data()), text.size(), 0xCBF29CE484222325u);
}
static uint64_t splitmix(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}
[[maybe_unused]] static size_t size_of(const std::string& buffer, int64_t index, size_t capacity) {
  return 1 + static_cast<size_t>((fnv(buffer) + 37 * static_cast<uint64_t>(index)) % capacity);
}

struct Mix {
  uint64_t value;
  explicit Mix(const std::string& function) : value(fnv(function)) {}
  void index(int64_t i) { value = value * 31 + static_cast<uint64_t>(i); }
  template <class Bytes>
  void read(const std::string& name, const Bytes& runs) {
    uint64_t hash = fnv(name);
    for (const auto& [data, size] : runs) hash = fnv(data, size, hash);
    value += hash;
  }
  template <class Bytes>
  void write(const std::string& name, const Bytes& runs, bool add) const {
    static std::mutex adding;
    std::unique_lock<std::mutex> lock(adding, std::defer_lock);
    if (add) lock.lock();
    uint64_t n = value + fnv(name);
    for (const auto& [data, size] : runs) {
      for (size_t k = 0; k < size; ++k, ++n) {
        auto* byte = const_cast<unsigned char*>(data) + k;
        *byte = static_cast<unsigned char>((add ? *byte : 0) + (splitmix(n) & 0xFF));
      }
    }
  }
};

using Runs = std::vector<std::pair<const unsigned char*, size_t>>;

// Where a task can touch what a view means.
template <class T>
const unsigned char* touchable(T* data) {
  return static_cast<const unsigned char*>(dagsched_emulator_device(data));
}

// Contiguous views have `bytes` as a member; strided ones have it as a function.
template <class View>
auto runs_of(const View& view) -> decltype(static_cast<size_t>(view.capacity), Runs()) {
  return {{touchable(view.data), view.bytes}};
}
template <class View>
auto runs_of(const View& view) -> decltype(view.stride, Runs()) {
  Runs runs{{touchable(view.data), view.run}};
  for (size_t axis = 0; axis < view.count.size(); ++axis) {
    Runs next;
    for (const auto& [data, size] : runs) {
      for (size_t n = 0; n < view.count[axis]; ++n) next.push_back({data + n * view.stride[axis], size});
    }
    runs = next;
  }
  return runs;
}

struct Log {
  std::mutex mutex;
  std::vector<std::string> lines;
  void add(const char* function, const std::vector<int64_t>& indices, uint64_t mix) {
    std::ostringstream line;
    line << "{\"call\": " << function << ", \"indices\": [";
    for (size_t n = 0; n < indices.size(); ++n) line << (n ? ", " : "") << indices[n];
    line << "], \"mix\": " << mix << "}";
    const std::lock_guard<std::mutex> lock(mutex);
    lines.push_back(line.str());
  }
};

struct Case {
  unsigned seed = 0;
  std::string fault;
  int number = 0;
  aclError code = ACL_SUCCESS;
  std::vector<int64_t> counts;
};

static void move(void* to, const void* from, size_t size) {
  if (aclrtMemcpy(to, size, from, size, ACL_MEMCPY_DEFAULT) != ACL_SUCCESS) std::abort();
}
template <class View>
void fill(const View& view, const std::string& name) {
  std::vector<unsigned char> data(view.capacity);
  for (size_t n = 0; n < view.capacity; ++n) data[n] = static_cast<unsigned char>(splitmix(fnv(name) + n));
  move(view.data, data.data(), data.size());
}
template <class View>
void show(const View& view, const char* name, int64_t version) {
  std::vector<unsigned char> data(view.bytes);
  move(data.data(), view.data, data.size());
  std::printf("{\"output\": %s, \"version\": %" PRId64 ", \"bytes\": \"", name, version);
  for (size_t n = 0; n < view.bytes; ++n) std::printf("%02x", data[n]);
  std::printf("\"}\n");
}
static std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << '"';
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out << '\\';
    out << letter;
  }
  out << '"';
  return out.str();
}

// The number-th call of a function from now on, or the number-th task that is executed, fails.
static void fail_in(const std::string& function, int number, aclError code) {
  dagsched_emulator_inject((function + "#" + std::to_string(number) + ":" + std::to_string(code)).c_str());
}

// Throws, or fails, in the number-th call of any hook where that is asked for.
struct Fault {
  std::string kind;
  std::atomic<int> in{0};
  aclError hit() {
    if (in.load(std::memory_order_relaxed) == 0) return ACL_SUCCESS;
    if (in.fetch_sub(1, std::memory_order_relaxed) != 1) return ACL_SUCCESS;
    if (kind == "throw") throw std::runtime_error("a hook threw");
    return static_cast<aclError>(4242);
  }
};
"""


CUDA_WORDS = {
    "acl/acl.h": "cuda_runtime.h",
    "aclrtMemcpy(to, size, from, size, ACL_MEMCPY_DEFAULT)": "cudaMemcpy(to, from, size, cudaMemcpyDefault)",
    "aclError": "cudaError_t",
    "ACL_SUCCESS": "cudaSuccess",
    "ACL_ERROR_UNINITIALIZE": "cudaErrorInitializationError",
    "aclInit(nullptr);": "",
    "aclrtSetDevice(0);": "cudaSetDevice(0);",
    "aclrtResetDevice(0);": "",
    "aclFinalize();": "cudaDeviceReset();",
}
"""The driver is written for AscendCL; these words make it one for CUDA."""


@dataclass(frozen=True)
class Emitted:
    """One pipeline: its calls, names and files."""

    calls: CallList
    names: Names
    files: dict[str, str]
    runtime: Runtime = ASCENDCL


def _json_string(text: str) -> str:
    """A C++ literal that holds the text as a JSON string."""
    return cpp_string(json.dumps(text))


def _hook(names: Names, function: Function, runtime: Runtime) -> list[str]:
    head, parameters = hook_signature(names, function, runtime.words)
    qualified = [
        text.replace("View<", "plan::View<", 1).replace("Strided<", "plan::Strided<", 1) for text in parameters
    ]
    views, indices = names.parameters(function)
    host = function.kind is OpKind.HOST
    lines = [f"  {head}({', '.join(qualified)}) override {{", "    if (const aclError code = fault.hit()) return code;"]
    capture = ", ".join(["=", *(["this"] if host else [])])
    lines.append(f"    const auto work = [{capture}] {{")
    lines.append(f"      Mix mix({cpp_string(function.name)});")
    lines += [f"      mix.index({index});" for index in indices]
    for parameter, view in zip(function.parameters, views, strict=True):
        if parameter.mode in (Mode.READ, Mode.UPDATE):
            lines.append(f"      mix.read({cpp_string(parameter.name)}, runs_of({view}));")
    if host:
        lines.append(f"      log.add({_json_string(function.name)}, {{{', '.join(indices)}}}, mix.value);")
    for parameter, view in zip(function.parameters, views, strict=True):
        if parameter.mode.writes:
            add = "true" if parameter.mode is Mode.ACCUMULATE else "false"
            lines.append(f"      mix.write({cpp_string(parameter.name)}, runs_of({view}), {add});")
    lines.append("    };")
    if host:
        return [*lines, "    work();", "    return ACL_SUCCESS;", "  }"]
    lines += ["    const auto kernel = [work] { return work(), 0; };"]
    launch = f"dagsched_emulator::launch(stream, {cpp_string(function.name)}, kernel)"
    return [*lines, f"    return static_cast<{runtime.words.error}>({launch});", "  }"]


def _plan(number: int, emitted: Emitted) -> list[str]:
    calls, names = emitted.calls, emitted.names
    lines = [
        f"namespace driver{number} {{",
        f"namespace plan = dagsched::{names.namespace};",
        "struct MyHooks final : plan::Hooks {",
        "  Log log;",
        "  Fault fault;",
    ]
    for function in calls.functions:
        lines += _hook(names, function, emitted.runtime)
    for buffer in calls.buffers:
        if buffer.name in names.sizes:
            size = f"size_of({cpp_string(buffer.name)}, index, {buffer.size})"
            lines.append(f"  size_t {names.sizes[buffer.name]}(int64_t index) override {{ return {size}; }}")
    ordered = sorted(calls.params, key=lambda name: calls.params[name] is not None)
    counts = "".join(f", wanted.counts.at({list(calls.params).index(name)})" for name in ordered)
    lines += [
        "};",
        "",
        "aclError once(plan::Pipeline& pipeline, const Case& wanted, bool faulty) {",
        "  MyHooks hooks;",
        '  if (faulty && (wanted.fault == "throw" || wanted.fault == "hook")) {',
        "    hooks.fault.kind = wanted.fault;",
        "    hooks.fault.in = wanted.number;",
        '  } else if (faulty && wanted.fault == "wait") {',
        "    dagsched_emulator_leave_out(wanted.number, wanted.code);",
        "  } else if (faulty && !wanted.fault.empty()) {",
        "    fail_in(wanted.fault, wanted.number, wanted.code);",
        "  }",
        f"  const aclError code = pipeline.run(hooks{counts});",
        '  dagsched_emulator_inject("");',
        "  dagsched_emulator_leave_out(-1, 1);",
        "  if (code != ACL_SUCCESS) {",
        "    const auto& failure = pipeline.failure();",
        '    std::printf("{\\"code\\": %d, \\"threw\\": %s, \\"failure\\": %s}\\n", code,',
        '                failure.exception ? "true" : "false", quoted(failure.message()).c_str());',
        "    return code;",
        "  }",
        '  for (const std::string& line : hooks.log.lines) std::printf("%s\\n", line.c_str());',
    ]
    for buffer in calls.buffers:
        if buffer.output:
            accessor = names.accessors[buffer.name]
            for slot in range(buffer.ring.depth or 1):
                lines.append(f"  show(pipeline.{accessor}({slot}), {_json_string(buffer.name)}, {slot});")
    lines += [
        "  return code;",
        "}",
        "",
        "void run(const Case& wanted) {",
        "  dagsched_emulator_start_over();",
        "  dagsched_emulator_seed(wanted.seed);",
        '  const bool in_init = wanted.fault.rfind("init:", 0) == 0;',
        "  if (in_init) fail_in(wanted.fault.substr(5), wanted.number, wanted.code);",
        "  {",
        "    plan::Pipeline first;",
        "    if (const aclError code = first.init(); code != ACL_SUCCESS) {",
        '      std::printf("{\\"code\\": %d, \\"failure\\": %s, \\"alive\\": %d}\\n", code,',
        "                  quoted(first.failure().message()).c_str(), dagsched_emulator_alive());",
        '      dagsched_emulator_inject("");',
        "      MyHooks hooks;",
        f'      if (first.run(hooks{counts}) != ACL_ERROR_UNINITIALIZE) std::printf("{{\\"wrong\\": \\"ran\\"}}\\n");',
        "      return;",
        "    }",
        "    plan::Pipeline pipeline;",
        "    pipeline = std::move(first);",
    ]
    for buffer in calls.buffers:
        if buffer.input:
            accessor = names.accessors[buffer.name]
            for slot in range(buffer.ring.depth or 1):
                lines.append(f"    fill(pipeline.{accessor}({slot}), {cpp_string(buffer.name)});")
    lines += [
        "    once(pipeline, wanted, true);",
        '    std::printf("{\\"again\\": true}\\n");',
        "    once(pipeline, wanted, false);  // a pipeline runs as often as one likes, after failures too",
        "  }",
        '  std::printf("{\\"alive\\": %d}\\n", dagsched_emulator_alive());',
        "}",
        f"}}  // namespace driver{number}",
        "",
    ]
    return lines


def write_driver(pipelines: list[Emitted]) -> str:
    """The text of the driver for several pipelines, numbered in order."""
    lines = PRELUDE.split("\n")
    lines += [f'#include "{emitted.names.stem}.hpp"' for emitted in pipelines]
    for number, emitted in enumerate(pipelines):
        lines += _plan(number, emitted)
    cases = "\n".join(f"    if (plan == {number}) driver{number}::run(wanted);" for number in range(len(pipelines)))
    lines.append(
        f"""int main() {{
  aclInit(nullptr);
  aclrtSetDevice(0);
  for (std::string line; std::getline(std::cin, line);) {{
    std::istringstream words(line);
    int plan = 0;
    Case wanted;
    int code = 0;
    words >> plan >> wanted.seed >> wanted.fault >> wanted.number >> code;
    wanted.code = static_cast<aclError>(code);
    if (wanted.fault == "-") wanted.fault.clear();
    for (int64_t count = 0; words >> count;) wanted.counts.push_back(count);
{cases}
    std::printf("{{\\"end\\": true}}\\n");
    std::fflush(stdout);
  }}
  aclrtResetDevice(0);
  aclFinalize();
}}"""
    )
    text = "\n".join(lines) + "\n"
    if pipelines[0].runtime.words is ASCENDCL.words:
        return text
    for word, other in CUDA_WORDS.items():
        text = text.replace(word, other)
    return text


def build(folder: Path, pipelines: list[Emitted], *flags: str) -> Path:
    """Compile the driver and the pipelines, against the emulator; returns the program."""
    for emitted in pipelines:
        for name, text in emitted.files.items():
            (folder / name).write_text(text, encoding="utf-8")
    (folder / "driver.cpp").write_text(write_driver(pipelines), encoding="utf-8")
    program = folder / "driver"
    emulator = build_emulator("ascendcl" if pipelines[0].runtime.words is ASCENDCL.words else "cudart")
    command = [*emulator.compiler, *FLAGS, *flags, str(folder / "driver.cpp"), *emulator.flags(), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return program


def run_cases(program: Path, cases: list[str], timeout: float = 60) -> list[list[dict[str, object]]]:
    """The answers to commands, in order; fails on a crash, a hang, a leak, or a race that a sanitizer reports."""
    done = subprocess.run(
        [str(program)], input="\n".join(cases) + "\n", capture_output=True, text=True, check=False, timeout=timeout
    )
    assert done.returncode == 0, f"{done.stderr[:4000]}\n{done.stdout[-2000:]}"
    assert not done.stderr, done.stderr[:4000]
    answers: list[list[dict[str, object]]] = [[]]
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        if answer == {"end": True}:
            answers.append([])
        else:
            answers[-1].append(answer)
    return answers[:-1]
