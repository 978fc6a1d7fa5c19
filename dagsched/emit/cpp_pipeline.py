"""The class ``Pipeline``: what it owns, how it starts, runs, fails and ends.

Invariants of the emitted class: a failed ``init`` leaves nothing behind; ``run`` returns only when every stream has
come to its end, on success and on failure; nothing is released before that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dagsched.emit.calls import CallList
from dagsched.emit.cpp_body import write_body
from dagsched.emit.cpp_names import Names, element_type, memory_type, ordered_params
from dagsched.emit.cpp_runtime import Runtime, Words
from dagsched.emit.cpp_text import WIDTH, Invocation, align, comment, lay_out_call
from dagsched.emit.names import cpp_comment, cpp_string
from dagsched.emit.statements import has_host_calls, purpose_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a target adds to the class: lines that stand for loops (by their identity), private methods, types and
    members that are owned, how those are created (what, and the call on ``own``), and lines around the whole program.
    """

    instead: dict[int, list[str]] = field(default_factory=dict)
    methods: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    acquire: list[tuple[str, str]] = field(default_factory=list)
    release: list[str] = field(default_factory=list)
    begin: list[str] = field(default_factory=list)
    finish: list[str] = field(default_factory=list)


def write_pipeline(calls: CallList, names: Names, runtime: Runtime, extras: Extras | None = None) -> list[str]:
    """The lines of the class."""
    extras = extras or Extras()
    body = [*extras.begin, *write_body(calls, names, runtime, extras.instead), *extras.finish]
    host = has_host_calls(calls)
    about = (
        "Owns the streams, events and memory of the pipeline and runs it, as often as you like; one run at a time, "
        f"from any thread. {runtime.home.text}"
    )
    return [
        *(line.replace("// ", "/// ", 1) for line in comment(about, 0, WIDTH - 1)),
        "class Pipeline {",
        " public:",
        *_public(calls, names, runtime, extras, host),
        "",
        " private:",
        *_resources(calls, names, runtime, extras),
        "",
        *_private(runtime.words, host),
        *(["", *_on_host_each(runtime.words)] if any("on_host_each(" in line for line in extras.methods) else []),
        "",
        *extras.methods,
        *_issue(calls, names, runtime.words, body),
        "",
        "  std::unique_ptr<Resources> own_;",
        "  Place at_;",
        "  Failure failure_;",
        "};",
    ]


def _public(calls: CallList, names: Names, runtime: Runtime, extras: Extras, host: bool) -> list[str]:
    words, home = runtime.words, runtime.home
    arguments = _counts(calls, names, defaults=True)
    passed = ", ".join(["hooks", *(names.locals[name] for name in ordered_params(calls))])
    lines = [
        "  /// The largest loop count: up to it, no index and no offset overflows.",
        f"  static constexpr int64_t kMaxCount = int64_t{{1}} << {calls.max_count.bit_length() - 1};",
        "",
        "  /// Creates everything. On failure nothing is left behind.",
        f"  [[nodiscard]] {words.error} init() {{",
        "    failure_ = Failure();",
        "    own_.reset();",
        "    std::unique_ptr<Resources> own(new (std::nothrow) Resources);",
        f'    DAGSCHED_TRY("init", kNoIteration, own ? {words.success} : {words.bad_alloc});',
        f'    DAGSCHED_TRY("init", kNoIteration, {home.find}(&own->{home.name}));',
        *_acquire(calls, names, extras),
        "    own_ = std::move(own);",
        f"    return {words.success};",
        "  }",
        "",
        "  /// Runs the plan from its beginning to its end and returns when the device has finished. After a failure",
        "  /// nothing more is issued, what was issued has finished, and `failure` says what went wrong; it may be run",
        "  /// again.",
        *lay_out_call(Invocation(f"{words.error} run", ("Hooks& hooks", *arguments)), 2, " {", "[[nodiscard]] "),
        "    failure_ = Failure();",
        *lay_out_call(
            Invocation("DAGSCHED_TRY", ('"run"', "kNoIteration", f"own_ ? {words.success} : {words.uninitialised}")), 4
        ),
        f"    const {home.current} current(own_->{home.name});",
        '    DAGSCHED_TRY("run", kNoIteration, current.code());',
        *_check_counts(calls, names),
        f"    {words.error} code = {words.success};",
        "    try {",
        *_reset_sizes(calls, names),
        f"      code = issue({passed});",
        "    } catch (...) {",
        f"      code = fail({words.failure});",
        "      keep_exception(failure_);",
        "    }",
        f"    if (code != {words.success}) own_->drain();",
    ]
    if host:
        lines += [
            "    Failure on_host = own_->calls.take_failure();",
            f"    if (on_host.code != {words.success} && failure_.code == {words.success}) {{",
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


def _counts(calls: CallList, names: Names, *, defaults: bool) -> list[str]:
    found = []
    for name in ordered_params(calls):
        default = calls.params[name]
        found.append(f"int64_t {names.locals[name]}" + (f" = {default}" if defaults and default is not None else ""))
    return found


def _check_counts(calls: CallList, names: Names) -> list[str]:
    """No count may overflow, nor go beyond what the schedule is proved for."""
    lines = []
    for name in ordered_params(calls):
        count = names.locals[name]
        lines.append(f'    DAGSCHED_TRY("run", kNoIteration, check_count({count}, kMaxCount));')
        if name in calls.proved:
            what = cpp_string(f"the schedule is proved for {name} up to {calls.proved[name]}, and not beyond")
            check = Invocation("check_count", (count, str(calls.proved[name])))
            lines += lay_out_call(Invocation("DAGSCHED_TRY", (what, "kNoIteration", check)), 4)
    return lines


def _acquire(calls: CallList, names: Names, extras: Extras) -> list[str]:
    lines: list[str] = []
    rows: list[tuple[str, str]] = []
    for queue in calls.queues:
        priority = f", {queue.priority}" if queue.priority is not None else ""
        rows.append((f"stream {queue.name}", f"create_stream(own->streams.{names.streams[queue.name]}{priority})"))
    rows += [(f"event {g.name}", f"own->events.{names.events[g.name]}.create_all()") for g in calls.handles]
    rows += [(f"buffer {b.name}", f"own->buffers.{names.buffers[b.name]}.allocate_all()") for b in calls.buffers]
    for what, call in [*rows, *extras.acquire]:
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


def _resources(calls: CallList, names: Names, runtime: Runtime, extras: Extras) -> list[str]:
    home = runtime.home
    streams = [
        (f"    Stream {names.streams[queue.name]};", f"// {cpp_comment(purpose_of(calls, queue.name, queue.engine))}")
        for queue in calls.queues
    ]
    events = [f"    EventRing<{group.ring}> {names.events[group.name]};" for group in calls.handles]
    buffers = [f"    {memory_type(buffer)} {names.buffers[buffer.name]};" for buffer in calls.buffers]
    drains = [f"drain_stream(streams.{names.streams[queue.name]});" for queue in calls.queues]
    return [
        *_struct("Streams", align(streams)),
        *_struct("Events", events),
        *_struct("Buffers", buffers),
        *extras.types,
        "  // What the device may work on: nothing of it is released before every stream has come to its end.",
        "  struct Resources {",
        f"    {home.type} {home.name} = {home.none};",
        "    HostCalls calls;",
        "    Buffers buffers;",
        "    Events events;",
        "    Streams streams;",
        *extras.members,
        "",
        "    Resources() = default;",
        "    Resources(const Resources&) = delete;",
        "    Resources& operator=(const Resources&) = delete;",
        "    ~Resources() {",
        f"      if ({home.name} == {home.none}) return;",
        f"      const {home.current} current({home.name});",
        "      drain();",
        *extras.release,
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


def _private(words: Words, host: bool) -> list[str]:
    lines = [
        f"  {words.error} fail({words.error} code) {{",
        "    failure_ = Failure();",
        "    failure_.code = code;",
        "    failure_.place = at_;",
        "    failure_.detail = recent_message(code);",
        "    return code;",
        "  }",
    ]
    if host:
        lines += [
            "",
            "  // Queues a host function; it must own, by value, whatever it uses.",
            "  template <class Body>",
            f"  {words.error} on_host({words.stream} stream, Body body) {{",
            "    return own_->calls.launch(stream, at_, std::move(body));",
            "  }",
        ]
    return lines


def _on_host_each(words: Words) -> list[str]:
    return [
        "  // Captures a host function for an index, which grows by a step with each launch.",
        "  template <class Body>",
        f"  {words.error} on_host_each({words.stream} stream, Body body, int64_t index, int64_t step) {{",
        "    return own_->repeated.launch(own_->calls, stream, at_, std::move(body), index, step);",
        "  }",
    ]


def _issue(calls: CallList, names: Names, words: Words, body: list[str]) -> list[str]:
    text = "\n".join(body)
    hooks = "Hooks& hooks" if uses(text, "hooks") else "Hooks& /*hooks*/"
    counts = [
        f"int64_t {names.locals[name]}" if uses(text, names.locals[name]) else f"int64_t /*{names.locals[name]}*/"
        for name in ordered_params(calls)
    ]
    lines = [
        "  // Issues everything in the order of the schedule.",
        *lay_out_call(Invocation(f"{words.error} issue", (hooks, *counts)), 2, " {"),
    ]
    for member in ("streams", "events", "buffers"):
        if f"{member}." in text:
            constant = "const " if member != "buffers" or ".resize(" not in text else ""
            lines.append(f"    {constant}auto& {member} = own_->{member};")
    return [*lines, *([""] if body else []), *body, f"    return {words.success};", "  }"]


def uses(text: str, name: str) -> bool:
    """Whether code uses a variable: what comments, literals and members are called does not count."""
    code = re.sub(r'//[^\n]*|"(?:\\.|[^"\\\n])*"', "", text)
    return re.search(rf"(?<![\w.])(?<!->){re.escape(name)}\b", code) is not None
