"""Targets ``acl-graph`` and ``cuda-graph``: loops whose iterations are captured once a run and replayed.

Of each loop that can be captured (see ``captures``) a window of iterations becomes a graph: a stream of its own forks
into the streams of the loop, which join it again. It is launched as often as whole windows fit into the steady state;
what is before and behind them is issued call by call. A function that is captured is told its phase, the iteration
modulo the window, since what it enqueues is replayed; host functions are told the true iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dagsched.compiled import Compiled
from dagsched.diagnostics import Diagnostic, LimitError, PlanError
from dagsched.emit.calls import AnyCall, CallList, Handles, Launch, Queue, Record, Repeat, Wait, walk_calls
from dagsched.emit.captures import FIRST, Capture, CaptureError, find_capture
from dagsched.emit.cpp_body import write_body, write_calls
from dagsched.emit.cpp_main import write_main
from dagsched.emit.cpp_names import Names, name_everything, ordered_params
from dagsched.emit.cpp_parts import Parts
from dagsched.emit.cpp_pipeline import Extras, uses
from dagsched.emit.cpp_program import write_header
from dagsched.emit.cpp_runtime import Runtime
from dagsched.emit.cpp_text import WIDTH, Invocation, comment, lay_out_call
from dagsched.emit.functions import Function
from dagsched.emit.lower import list_calls
from dagsched.emit.names import cpp_comment, cpp_string
from dagsched.emit.statements import has_host_calls
from dagsched.emit.windows import Window, choose_window
from dagsched.plan.expressions import Int, add, combine
from dagsched.plan.model import OpKind
from dagsched.schedule.model import LoopStep

_VARIABLES = frozenset({"begins", "capture", "ends", "from", "graph", "hi", "launch", "launches", "lo", "to"})
"""Variables and members of what is emitted here."""


@dataclass(frozen=True, slots=True)
class GraphLoop:
    """A loop that is captured: its number among those, how, and how much at once."""

    number: int
    capture: Capture
    window: Window

    @property
    def repeat(self) -> Repeat:
        """The loop as it is issued."""
        return self.capture.loop


@dataclass(frozen=True, slots=True)
class GraphProgram:
    """A program with loops that are captured, and why others are not (loop index, reason)."""

    calls: CallList
    names: Names
    loops: tuple[GraphLoop, ...]
    reasons: tuple[tuple[str, str], ...]


def emit_graphs(compiled: Compiled, runtime: Runtime, *, host_calls: bool) -> dict[str, str]:
    """File names and texts; ``host_calls``: whether the runtime's graphs may hold host functions.

    Raises :class:`PlanError` where no loop can be captured (E106), :class:`LimitError` for more streams or handles than
    the device has.
    """
    program = plan_graphs(compiled, runtime, host_calls=host_calls)
    calls, names = program.calls, program.names
    writer = _Writer(program, runtime)
    _require_limits(compiled, calls, writer)
    write_body(calls, names, runtime)  # reports the copies that no rows express, in captured loops too
    remarks = [f"Loop {loop.repeat.index}: {loop.window}." for loop in program.loops]
    remarks += [f"Loop {index} is issued call by call: {reason}." for index, reason in program.reasons]
    more = (runtime.graph_parts, "graph_support.hpp")
    return {
        f"{names.stem}.hpp": write_header(calls, names, runtime, writer.extras(), remarks, more),
        f"{names.stem}_main{runtime.main}": write_main(calls, names, runtime),
    }


def plan_graphs(compiled: Compiled, runtime: Runtime, *, host_calls: bool) -> GraphProgram:
    """The loops to capture, and the calls of a program that does so; raises :class:`PlanError` (E106) without any."""
    calls = list_calls(compiled)
    loops = [n for n, call in enumerate(calls.body) if isinstance(call, Repeat)]
    steps = [step for step in compiled.schedule.steps if isinstance(step, LoopStep)]
    windows: dict[int, Window] = {}
    reasons: list[tuple[str, str]] = []
    for n, step in zip(loops, steps, strict=True):
        try:
            windows[n] = choose_window(compiled, step, _find(calls, n, host_calls=host_calls))
        except CaptureError as error:
            reasons.append((step.index, str(error)))
    if not windows:
        raise PlanError([_refuse(compiled, runtime, reasons)])
    calls = _tell_phases(_with_stream(calls), windows)
    captured = tuple(
        GraphLoop(number, _find(calls, n, host_calls=host_calls), window)
        for number, (n, window) in enumerate(windows.items(), start=1)
    )
    names = name_everything(calls, runtime.suffix, [FIRST.name], _VARIABLES)
    return GraphProgram(calls, names, captured, tuple(reasons))


def _find(calls: CallList, number: int, *, host_calls: bool) -> Capture:
    loop = calls.body[number]
    assert isinstance(loop, Repeat)
    return find_capture(calls, loop, host_calls=host_calls)


def _refuse(compiled: Compiled, runtime: Runtime, reasons: list[tuple[str, str]]) -> Diagnostic:
    plain = runtime.suffix.removeprefix("_").replace("_graph", "-cpp")
    notes = tuple(f"loop `{index}`: {reason}" for index, reason in reasons)
    return Diagnostic(
        "E106",
        "no loop of this plan can be captured in a graph" if reasons else "this plan has no loop to capture in a graph",
        None,
        compiled.plan.source,
        notes=notes or ("a graph replays iterations of a loop",),
        help=f"emit `--target {plain}`, which issues every call",
    )


def _with_stream(calls: CallList) -> CallList:
    """A stream more, on which graphs are captured and launched."""
    name = "graphs"
    while any(queue.name == name for queue in calls.queues):
        name += "_"
    return replace(calls, queues=(*calls.queues, Queue(name, host=False, engine="captured loops", priority=None)))


def _tell_phases(calls: CallList, windows: dict[int, Window]) -> CallList:
    """Compute functions of captured loops are told the iteration modulo the window."""
    changed: dict[int, Function] = {}
    for n in windows:
        for call in walk_calls((calls.body[n],)):
            if isinstance(call, Launch) and call.function.kind is OpKind.COMPUTE and call.function.indices:
                inner = call.function.indices[1:]
                phase = "phase"
                while phase in inner:
                    phase += "_"
                changed[id(call.function)] = replace(call.function, indices=(phase, *inner))

    def told(call: AnyCall, size: int | None) -> AnyCall:
        if isinstance(call, Repeat):
            return replace(call, body=tuple(told(inner, size) for inner in call.body))
        if not isinstance(call, Launch) or id(call.function) not in changed:
            return call
        indices = call.indices
        if size is not None:
            indices = (combine("%", indices[0], Int(size)), *indices[1:])
        return replace(call, function=changed[id(call.function)], indices=indices)

    body = tuple(told(call, windows[n].size if n in windows else None) for n, call in enumerate(calls.body))
    functions = tuple(changed.get(id(function), function) for function in calls.functions)
    return replace(calls, body=body, functions=functions)


def _require_limits(compiled: Compiled, calls: CallList, writer: _Writer) -> None:
    """The further stream and handles count as well."""
    limits = compiled.device.limits
    handles = sum(group.ring for group in (*calls.handles, *writer.captured)) + 2 + 2 * len(writer.streams)
    rows = [("C101", "streams", len(calls.queues), limits.streams), ("C102", "event handles", handles, limits.events)]
    faults = [
        Diagnostic(
            code,
            f"with graphs the program takes {used:,} {what}, and `{compiled.device.name}` has {most:,}",
            None,
            compiled.plan.source,
            help="emit the target without graphs",
        )
        for code, what, used, most in rows
        if most is not None and used > most
    ]
    if faults:
        raise LimitError(faults)


class _Writer:
    """Writes what graphs add to the class."""

    def __init__(self, program: GraphProgram, runtime: Runtime) -> None:
        calls, names, loops = program.calls, program.names, program.loops
        self.calls, self.names, self.runtime, self.loops = calls, names, runtime, loops
        self.parts = Parts(calls, names, runtime)
        self.host = has_host_calls(calls)
        self.graphs = self.parts.stream(calls.queues[-1].name)
        self.streams = [self.parts.stream(queue.name) for queue in calls.queues[:-1]]
        self.windows = {loop.number: loop.capture.window(loop.window.size) for loop in loops}
        used = {
            call.event.name for window in self.windows.values() for call in window if isinstance(call, Record | Wait)
        }
        self.captured: list[Handles] = [group for group in calls.handles if group.name in used]
        self.counts = [names.locals[name] for name in ordered_params(calls)]

    def extras(self) -> Extras:
        """Everything."""
        events = [f"    EventRing<{group.ring}> {self.names.events[group.name]};" for group in self.captured]
        members = [f"    Graph graph_{loop.number};" for loop in self.loops]
        rings = f"EventRing<{len(self.streams) + 1}>"
        return Extras(
            instead={id(loop.repeat): self.use(loop) for loop in self.loops},
            methods=[line for loop in self.loops for line in self.methods(loop)],
            types=[
                "  // Handles that are recorded in graphs, and never outside.",
                "  struct CapturedEvents {",
                *events,
                "  };",
                "",
            ]
            if events
            else ["  struct CapturedEvents {};", ""],
            members=[
                "    CapturedEvents captured;",
                f"    {rings} forks;  // around launches: where every stream stands",
                f"    {rings} joins;  // in graphs: where every stream begins and ends",
                *(["    RepeatedCalls repeated;"] if self.repeats else []),
                *members,
            ],
            acquire=[
                *(
                    (f"event {group.name} in graphs", f"own->captured.{self.names.events[group.name]}.create_all()")
                    for group in self.captured
                ),
                ("events around graphs", "own->forks.create_all()"),
                ("events in graphs", "own->joins.create_all()"),
            ],
            release=[
                *(f"      graph_{loop.number}.release();" for loop in self.loops),
                "      captured = CapturedEvents();",
                f"      forks = {rings}();",
                f"      joins = {rings}();",
            ],
            begin=[
                *(f"    own_->graph_{loop.number}.release();" for loop in self.loops),
                *(["    own_->repeated.clear();"] if self.repeats else []),
                "",
            ],
            finish=[
                *lay_out_call(
                    self.tried(
                        "synchronise graphs", "kNoIteration", Invocation(self.runtime.sync_stream, (self.graphs,))
                    ),
                    4,
                )
            ],
        )

    @property
    def repeats(self) -> bool:
        """Whether a graph holds host functions."""
        return any("on_host_each(" in "\n".join(self.window(loop)) for loop in self.loops)

    def use(self, loop: GraphLoop) -> list[str]:
        """What stands for the loop."""
        return [
            *comment(cpp_comment(f"Loop {loop.repeat.index}: {loop.window.size} iterations at once, as a graph."), 4),
            *self.forward(Invocation(f"run_{loop.number}", ("hooks", *self.counts)), 4),
        ]

    def forward(self, call: Invocation, indent: int) -> list[str]:
        """Call a method and hand on what it returns where that is a failure."""
        pad, words = " " * indent, self.runtime.words
        short = f"{pad}if (const {words.error} code = {call}; code != {words.success}) return code;"
        if len(short) <= WIDTH:
            return [short]
        return [
            f"{pad}{{",
            *lay_out_call(call, indent + 2, lead=f"const {words.error} code = "),
            f"{pad}  if (code != {words.success}) return code;",
            f"{pad}}}",
        ]

    def methods(self, loop: GraphLoop) -> Iterator[str]:
        n, index = loop.number, self.names.locals[loop.repeat.index]
        yield from comment(cpp_comment(f"Loop {loop.repeat.index}, call by call."), 2)
        body = [
            f"    for (int64_t {index} = from; {index} < to; ++{index}) {{",
            *self.stops(6),
            *self.eager(loop),
            "    }",
        ]
        yield from self.method(f"loop_{n}", ["int64_t from", "int64_t to"], body, "events")
        text = f"Captures {loop.window.size} iterations of loop {loop.repeat.index}. What is recorded outside of them"
        yield from comment(cpp_comment(f"{text} needs no wait: a launch begins when all before it has ended."), 2)
        yield from self.method(
            f"capture_{n}", [f"int64_t {self.names.locals[FIRST.name]}"], self.window(loop), "captured"
        )
        text = (
            f"Loop {loop.repeat.index}: launches of {loop.window.size} iterations, and what is before and behind them."
        )
        yield from comment(cpp_comment(text), 2)
        yield from self.method(f"run_{n}", [], self.run(loop), "events")

    def method(self, name: str, arguments: list[str], body: list[str], events: str) -> Iterator[str]:
        """A private method with the short names that its body uses."""
        text = "\n".join(body)
        hooks = "Hooks& hooks" if uses(text, "hooks") else "Hooks& /*hooks*/"
        counts = [f"int64_t {count}" if uses(text, count) else f"int64_t /*{count}*/" for count in self.counts]
        head = Invocation(f"{self.runtime.words.error} {name}", (hooks, *arguments, *counts))
        yield from lay_out_call(head, 2, " {")
        for member, source in (("streams", "streams"), ("events", events), ("buffers", "buffers")):
            if f"{member}." in text:
                yield f"    const auto& {member} = own_->{source};"
        yield from body
        yield f"    return {self.runtime.words.success};"
        yield "  }"
        yield ""

    def stops(self, indent: int) -> list[str]:
        if not self.host:
            return []
        return [f"{' ' * indent}if (own_->calls.failed()) return {self.runtime.words.failure};", ""]

    def eager(self, loop: GraphLoop) -> list[str]:
        return write_calls(self.calls, self.names, self.runtime, loop.repeat.body, 6)

    def window(self, loop: GraphLoop) -> list[str]:
        """The statements that are captured."""
        index, first = self.names.locals[loop.repeat.index], self.names.locals[FIRST.name]
        window = self.windows[loop.number]
        step = (index, loop.window.size)
        lines = self.tries(loop, first, self.runtime.record("own_->joins[0]", self.graphs))
        busy = {self.parts.stream(call.stream) for call in window if not isinstance(call, Repeat) and call.stream}
        used = [stream for stream in self.streams if stream in busy]
        for stream in used:
            lines += self.tries(loop, first, self.runtime.wait(stream, "own_->joins[0]"))
        lines += [
            f"    for (int64_t {index} = {first}; {index} < {first} + {loop.window.size}; ++{index}) {{",
            *write_calls(self.calls, self.names, self.runtime, window, 6, step),
            "    }",
        ]
        for number, stream in enumerate(used, start=1):
            lines += self.tries(loop, first, self.runtime.record(f"own_->joins[{number}]", stream))
            lines += self.tries(loop, first, self.runtime.wait(self.graphs, f"own_->joins[{number}]"))
        return lines

    def run(self, loop: GraphLoop) -> list[str]:
        n, size = loop.number, loop.window.size
        first = self.names.locals[FIRST.name]
        graph = f"own_->graph_{n}"
        steady = self.parts.expr(add(loop.repeat.hi, -loop.capture.tail)) if loop.capture.tail else "hi"

        def one_by_one(lo: str, hi: str) -> Invocation:
            return Invocation(f"loop_{n}", ("hooks", lo, hi, *self.counts))

        lines = [
            f"    const int64_t lo = {self.parts.expr(loop.repeat.lo)};",
            f"    const int64_t hi = {self.parts.expr(loop.repeat.hi)};",
            f"    const int64_t {first} = {self.parts.expr(loop.capture.first)};",
            f"    const int64_t launches = ({steady} - {first}) / {size};",
            *lay_out_call(one_by_one("lo", "hi"), 4, lead="if (launches < 2) return "),
        ]
        if loop.capture.first != loop.repeat.lo:
            lines += self.forward(one_by_one("lo", first), 4)
        lines += [
            "    {",
            f"      Capture capture({graph}, {self.graphs});",
            *self.tries(loop, first, Invocation("capture.begin", ()), 6),
            *self.forward(Invocation(f"capture_{n}", ("hooks", first, *self.counts)), 6),
            *self.tries(loop, first, Invocation("capture.finish", ()), 6),
            "    }",
        ]
        for number, stream in enumerate(self.streams):
            lines += self.tries(loop, first, self.runtime.record(f"own_->forks[{number}]", stream))
            lines += self.tries(loop, first, self.runtime.wait(self.graphs, f"own_->forks[{number}]"))
        lines += [
            "    for (int64_t launch = 0; launch < launches; ++launch) {",
            *self.stops(6)[:1],
            *self.tries(loop, f"{first} + launch * {size}", Invocation(f"{graph}.launch", (self.graphs,)), 6),
            "    }",
        ]
        last = f"own_->forks[{len(self.streams)}]"
        lines += self.tries(loop, "hi", self.runtime.record(last, self.graphs))
        for stream in self.streams:
            lines += self.tries(loop, "hi", self.runtime.wait(stream, last))
        return [*lines, *self.forward(one_by_one(f"{first} + launches * {size}", "hi"), 4)]

    def tries(self, loop: GraphLoop, iteration: str, inner: Invocation, indent: int = 4) -> list[str]:
        return lay_out_call(self.tried(f"loop {loop.repeat.index}", iteration, inner), indent)

    def tried(self, what: str, iteration: str, inner: Invocation) -> Invocation:
        return Invocation("DAGSCHED_TRY", (cpp_string(what), iteration, inner))
