"""Target ``acl-cpp``: a header with one class that owns a pipeline and runs it, and a program that uses it.

``NAME.hpp`` holds the hooks that the user fills in and the class ``Pipeline`` (``init``, ``run``, ``release``);
``NAME_main.cpp`` initialises AscendCL and runs it with hooks that do nothing yet. The text depends on the compiled
plan alone: same input, same bytes.
"""

from __future__ import annotations

import re
from importlib import resources

from dagsched.compiled import Compiled
from dagsched.emit.acl_body import BodyWriter
from dagsched.emit.acl_errors import ERROR_NAMES
from dagsched.emit.acl_main import write_main
from dagsched.emit.calls import CallList, Launch
from dagsched.emit.cpp_names import Names, element_type, hook_signature, memory_type, name_everything
from dagsched.emit.cpp_text import WIDTH, Invocation, align, comment, lay_out_call
from dagsched.emit.functions import Function
from dagsched.emit.lower import list_calls
from dagsched.emit.names import cpp_comment, cpp_string
from dagsched.plan.model import Buffer, OpKind

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
        *_pipeline(calls, names),
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
    stamp = cpp_comment(f"Written by dagsched {calls.version} from the plan's digest {calls.digest or '(none)'}.")
    return [f"// {title}", f"// {stamp}", "// Change the plan and compile it again rather than this file.", ""]


def _rule(title: str) -> list[str]:
    line = "// " + "-" * 117
    return [line, f"// {title}", line]


def _support() -> list[str]:
    cases = "\n".join(f'    case {code}: return "{name}";' for code, name in ERROR_NAMES.items())
    text = resources.files("dagsched.emit").joinpath("acl_support.hpp").read_text(encoding="utf-8")
    return text.replace("@ERROR_NAMES@", cases).rstrip("\n").split("\n") + [""]


def _hooks(calls: CallList, names: Names) -> list[str]:
    lines = [
        "/// What you fill in: one method for each function of the plan. Anything but ACL_SUCCESS, or an exception, ends the",
        "/// run. Compute functions enqueue their work on `stream` and return without waiting for it. Host functions run on a",
        "/// thread of the runtime, in the order of their stream; they must not call AscendCL.",
        "class Hooks {",
        " public:",
        "  virtual ~Hooks() = default;",
    ]
    for function in calls.functions:
        head, parameters = hook_signature(names, function)
        lines += ["", *_callers(calls, function)]
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


def _callers(calls: CallList, function: Function) -> list[str]:
    """Which ops call a hook."""
    ops = list(dict.fromkeys(c.op for c in calls.walk() if isinstance(c, Launch) and c.function is function))
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


def _pipeline(calls: CallList, names: Names) -> list[str]:
    writer = BodyWriter(calls, names)
    body = writer.write()
    return [
        "/// Owns the streams, events and memory of the pipeline and runs it, as often as you like. One run at a time; from any",
        "/// thread. It lives in the context that is current in `init`; release it before that context, the device or AscendCL.",
        "class Pipeline {",
        " public:",
        *_public(calls, names, writer.has_host_calls),
        "",
        " private:",
        *_resources(calls, names),
        "",
        *_private(calls, names, writer.has_host_calls),
        "",
        *_issue(calls, names, body),
        "",
        "  std::unique_ptr<Resources> own_;",
        "  Place at_;",
        "  Failure failure_;",
        "};",
    ]


def _public(calls: CallList, names: Names, has_host_calls: bool) -> list[str]:
    arguments = _counts(calls, names, defaults=True)
    passed = ", ".join(["hooks", *(names.locals[name] for name in _ordered(calls))])
    lines = [
        "  /// The largest loop count: up to it, no index and no offset overflows.",
        f"  static constexpr int64_t kMaxCount = int64_t{{1}} << {calls.max_count.bit_length() - 1};",
        "",
        "  /// Creates everything. On failure nothing is left behind.",
        "  [[nodiscard]] aclError init() {",
        "    failure_ = Failure();",
        "    own_.reset();",
        "    std::unique_ptr<Resources> own(new (std::nothrow) Resources);",
        '    DAGSCHED_TRY("init", kNoIteration, own ? ACL_SUCCESS : ACL_ERROR_BAD_ALLOC);',
        '    DAGSCHED_TRY("init", kNoIteration, aclrtGetCurrentContext(&own->context));',
        *_acquire(calls, names),
        "    own_ = std::move(own);",
        "    return ACL_SUCCESS;",
        "  }",
        "",
        "  /// Runs the plan from its beginning to its end and returns when the device has finished. After a failure nothing",
        "  /// more is issued, what was issued has finished, and `failure` says what went wrong; it may be run again.",
        *lay_out_call(Invocation("aclError run", ("Hooks& hooks", *arguments)), 2, " {", "[[nodiscard]] "),
        "    failure_ = Failure();",
        '    DAGSCHED_TRY("run", kNoIteration, own_ ? ACL_SUCCESS : ACL_ERROR_UNINITIALIZE);',
        "    const CurrentContext context(own_->context);",
        '    DAGSCHED_TRY("run", kNoIteration, context.code());',
        *(
            f'    DAGSCHED_TRY("run", kNoIteration, check_count({names.locals[name]}, kMaxCount));'
            for name in _ordered(calls)
        ),
        "    aclError code = ACL_SUCCESS;",
        "    try {",
        *_reset_sizes(calls, names),
        f"      code = issue({passed});",
        "    } catch (...) {",
        "      code = fail(ACL_ERROR_FAILURE);",
        "      keep_exception(failure_);",
        "    }",
        "    if (code != ACL_SUCCESS) own_->drain();",
    ]
    if has_host_calls:
        lines += [
            "    Failure on_host = own_->calls.take_failure();",
            "    if (on_host.code != ACL_SUCCESS && failure_.code == ACL_SUCCESS) {",
            "      failure_ = std::move(on_host);",
            "      code = failure_.code;",
            "    }",
        ]
    return [
        *lines,
        "    return code;",
        "  }",
        "",
        "  /// What went wrong in the last `init` or `run`.",
        "  const Failure& failure() const { return failure_; }",
        "",
        "  /// Waits for the device and releases everything; so does the destructor.",
        "  void release() { own_.reset(); }",
        *_accessors(calls, names),
    ]


def _ordered(calls: CallList) -> list[str]:
    """Parameters in the order of ``run``: C++ wants those with defaults last."""
    return sorted(calls.params, key=lambda name: calls.params[name] is not None)


def _counts(calls: CallList, names: Names, *, defaults: bool) -> list[str]:
    found = []
    for name in _ordered(calls):
        default = calls.params[name]
        found.append(f"int64_t {names.locals[name]}" + (f" = {default}" if defaults and default is not None else ""))
    return found


def _acquire(calls: CallList, names: Names) -> list[str]:
    lines: list[str] = []
    rows: list[tuple[str, str]] = []
    for queue in calls.queues:
        handle = f"own->streams.{names.streams[queue.name]}.receive()"
        call = f"aclrtCreateStream({handle})"
        if queue.priority is not None:
            flags = "ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC"
            call = f"aclrtCreateStreamWithConfig({handle}, {queue.priority}, {flags})"
        rows.append((f"stream {queue.name}", call))
    rows += [(f"event {g.name}", f"own->events.{names.events[g.name]}.create_all()") for g in calls.handles]
    rows += [(f"buffer {b.name}", f"own->buffers.{names.buffers[b.name]}.allocate_all()") for b in calls.buffers]
    for what, call in rows:
        lines += lay_out_call(Invocation("DAGSCHED_TRY", (cpp_string(what), "kNoIteration", call)), 4)
    return lines


def _reset_sizes(calls: CallList, names: Names) -> list[str]:
    """Every run starts from full buffers, and from the sizes of the inputs that the user has filled."""
    lines = []
    for buffer in calls.buffers:
        if not buffer.dynamic:
            continue
        member = f"own_->buffers.{names.buffers[buffer.name]}"
        size = f"hooks.{names.sizes[buffer.name]}(slot)" if buffer.input else f"{member}.size"
        lines.append(f"      for (int64_t slot = 0; slot < {buffer.ring.depth or 1}; ++slot) {{")
        inner = Invocation(f"{member}.resize", ("slot", size))
        call = Invocation("DAGSCHED_TRY", (cpp_string(f"size of {buffer.name}"), "kNoIteration", inner))
        lines += [*lay_out_call(call, 8), "      }"]
    return lines


def _accessors(calls: CallList, names: Names) -> list[str]:
    lines = []
    for buffer in calls.buffers:
        if buffer.name not in names.accessors:
            continue
        const = "" if buffer.input else "const "
        where = "host" if buffer.place.value == "host" else "device"
        use = "Input, to be filled before a run" if buffer.input else "Output, to be read after a run"
        if buffer.input and buffer.output:
            use = "Input and output"
        many = f", {buffer.ring.depth} slots" if (buffer.ring.depth or 1) > 1 else ""
        text = f"{use}: {where} buffer {buffer.name}, {buffer.size:,} bytes{many}. Empty before `init`."
        view = f"View<{const}{element_type(buffer.dtype)}>"
        member = f"own_->buffers.{names.buffers[buffer.name]}"
        access = "read" if const else "write"
        lines += ["", *(line.replace("// ", "/// ", 1) for line in comment(cpp_comment(text), 2))]
        head = f"{view} {names.accessors[buffer.name]}(int64_t version = 0) const"
        lines += _method(head, [f"return own_ ? {member}.{access}(version) : {view}();"], 2)
    return lines


def _resources(calls: CallList, names: Names) -> list[str]:
    streams = [
        (f"    Stream {names.streams[queue.name]};", f"// {cpp_comment(_purpose(calls, queue.name, queue.engine))}")
        for queue in calls.queues
    ]
    events = [f"    EventRing<{group.ring}> {names.events[group.name]};" for group in calls.handles]
    buffers = [f"    {memory_type(buffer)} {names.buffers[buffer.name]};" for buffer in calls.buffers]
    drains = [f"drain_stream(streams.{names.streams[queue.name]});" for queue in calls.queues]
    return [
        *_struct("Streams", align(streams)),
        *_struct("Events", events),
        *_struct("Buffers", buffers),
        "  // What the device may work on: nothing of it is released before every stream has come to its end.",
        "  struct Resources {",
        "    aclrtContext context = nullptr;",
        "    HostCalls calls;",
        "    Buffers buffers;",
        "    Events events;",
        "    Streams streams;",
        "",
        "    Resources() = default;",
        "    Resources(const Resources&) = delete;",
        "    Resources& operator=(const Resources&) = delete;",
        "    ~Resources() {",
        "      if (context == nullptr) return;",
        "      const CurrentContext current(context);",
        "      drain();",
        "      streams = Streams();",
        "      events = Events();",
        "      buffers = Buffers();",
        "    }",
        "",
        *_method("void drain()", drains, 4),
        "  };",
    ]


def _struct(name: str, members: list[str]) -> list[str]:
    return [f"  struct {name} {{", *members, "  };", ""] if members else [f"  struct {name} {{}};", ""]


def _method(head: str, statements: list[str], indent: int) -> list[str]:
    """A function on one line where it is short."""
    pad = " " * indent
    short = f"{pad}{head} {{ {' '.join(statements)} }}"
    if len(statements) == 1 and len(short) <= WIDTH:
        return [short]
    if not statements:
        return [f"{pad}{head} {{}}"]
    return [f"{pad}{head} {{", *(f"{pad}  {statement}" for statement in statements), f"{pad}}}"]


def _purpose(calls: CallList, stream: str, engine: str | None) -> str:
    """What a stream is for: its engine and the first of its ops."""
    ops = list(dict.fromkeys(getattr(c, "op", "") for c in calls.walk() if not _bookkeeping(c) and _on(c, stream)))
    shown = ", ".join(ops[:6]) + (f" and {len(ops) - 6} more" if len(ops) > 6 else "")
    return f"{engine}: {shown}" if engine else shown


def _bookkeeping(call: object) -> bool:
    return type(call).__name__ in ("Record", "Wait", "Sync", "Repeat")


def _on(call: object, stream: str) -> bool:
    return getattr(call, "stream", None) == stream


def _private(calls: CallList, names: Names, has_host_calls: bool) -> list[str]:
    lines = [
        "  aclError fail(aclError code) {",
        "    failure_ = Failure();",
        "    failure_.code = code;",
        "    failure_.place = at_;",
        "    if (const char* recent = aclGetRecentErrMsg()) failure_.detail = recent;",
        "    return code;",
        "  }",
    ]
    if has_host_calls:
        lines += [
            "",
            "  // Queues a host function; it must own, by value, whatever it uses.",
            "  template <class Body>",
            "  aclError on_host(aclrtStream stream, Body body) {",
            "    return own_->calls.launch(stream, at_, std::move(body));",
            "  }",
        ]
    return lines


def _issue(calls: CallList, names: Names, body: list[str]) -> list[str]:
    text = "\n".join(body)
    hooks = "Hooks& hooks" if "hooks." in text else "Hooks& /*hooks*/"
    counts = [
        f"int64_t {names.locals[name]}" if _uses(text, names.locals[name]) else f"int64_t /*{names.locals[name]}*/"
        for name in _ordered(calls)
    ]
    lines = [
        "  // Issues everything in the order of the schedule.",
        *lay_out_call(Invocation("aclError issue", (hooks, *counts)), 2, " {"),
    ]
    for member in ("streams", "events", "buffers"):
        if f"{member}." in text:
            constant = "const " if member != "buffers" or ".resize(" not in text else ""
            lines.append(f"    {constant}auto& {member} = own_->{member};")
    return [*lines, *([""] if body else []), *body, "    return ACL_SUCCESS;", "  }"]


def _uses(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None
