"""The classes of an emitted Python module: ``Hooks``, what the pipeline owns, and ``Pipeline``.

Invariants of the emitted class: a failed constructor leaves nothing behind; ``run`` returns only when every stream has
come to its end, on success and on failure; nothing is released before that.
"""

from __future__ import annotations

from dagsched.emit.calls import CallList
from dagsched.emit.cpp_names import Names, ordered_params
from dagsched.emit.cpp_text import Invocation
from dagsched.emit.functions import Function, Parameter
from dagsched.emit.py_body import write_py_body
from dagsched.emit.py_text import py_call, py_comment, py_doc, py_string
from dagsched.emit.statements import callers_of, is_host_call, purpose_of
from dagsched.plan.model import Buffer, Mode, OpKind, Place


def write_py_hooks(calls: CallList, names: Names) -> list[str]:
    """The lines of the class that the user fills in."""
    lines = [
        "class Hooks:",
        '    """What you fill in: one method for each function of the plan.',
        "",
        "    Anything but None or 0, or an exception, ends the run. Compute functions enqueue their work on `stream`",
        "    and return without waiting for it. Host functions run on a thread of the pipeline, in the order of their",
        "    stream; they must not call AscendCL.",
        '    """',
    ]
    callers = callers_of(calls)
    for function in calls.functions:
        kind = "Compute" if function.kind is OpKind.COMPUTE else "Host"
        doc = f"{kind} function {function.name}, called by {callers.get(id(function), 'nothing')}."
        if function.parameters:
            views, _ = names.parameters(function)
            doc += " " + "; ".join(_say(view, p) for view, p in zip(views, function.parameters, strict=True)) + "."
        lines += ["", *py_method(names, function), *py_doc(doc, 8), "        raise NotImplementedError"]
    for buffer in calls.buffers:
        if buffer.name in names.sizes:
            index = "version" if (buffer.ring.depth or 1) > 1 else "iteration"
            doc = f"The size in bytes of {buffer.name} in a given {index}, at most {buffer.size:,}."
            doc += " Asked when the op that writes it is issued, before it runs."
            head = f"    def {names.sizes[buffer.name]}(self, {index}: int) -> int:"
            lines += ["", head, *py_doc(doc, 8), f"        return {buffer.size}"]
    return lines


def py_method(names: Names, function: Function, module: str = "") -> list[str]:
    """``def detector(self, tensor: View, ..., i: int, stream: int) -> int | None:``."""
    views, indices = names.parameters(function)
    rows = ["self"]
    for view, parameter in zip(views, function.parameters, strict=True):
        rows.append(f"{view}: {module}{'Strided' if parameter.axes else 'View'}")
    rows += [f"{index}: int" for index in indices]
    if function.kind is OpKind.COMPUTE:
        rows.append("stream: int")
    head = Invocation(f"def {names.functions[function.name]}", tuple(rows))
    return py_call(head, 4, tail=" -> int | None:")


def _say(view: str, parameter: Parameter) -> str:
    use = {Mode.READ: "read", Mode.WRITE: "written", Mode.UPDATE: "updated", Mode.ACCUMULATE: "accumulated"}
    return f"{view} is {use[parameter.mode]}" + (f", {parameter.dtype}" if parameter.dtype else "")


def write_py_pipeline(calls: CallList, names: Names) -> list[str]:
    """The lines of the classes ``Buffers``, ``Events``, ``Streams`` and ``Pipeline``."""
    body = write_py_body(calls, names)
    counts = [names.locals[name] for name in ordered_params(calls)]
    typed = [
        f"{names.locals[name]}: int" + (f" = {default}" if (default := calls.params[name]) is not None else "")
        for name in ordered_params(calls)
    ]
    return [
        *_members("Buffers", "The memory of the pipeline.", _buffers(calls, names)),
        *_members("Events", "The event handles of the pipeline.", _events(calls, names)),
        *_members("Streams", "The streams of the pipeline.", _streams(calls, names)),
        "class Pipeline:",
        '    """Owns the streams, events and memory of the pipeline; runs it as often as you like, one run at a time.',
        "",
        "    It lives in the context that is current when it is made: close it before that context, the device or",
        "    AscendCL, by `with Pipeline() as pipeline` or `close`.",
        '    """',
        "",
        *_limits(calls),
        "    def __init__(self) -> None:",
        '        """Create everything. On failure nothing is left behind."""',
        "        self._own = Resources()",
        "        try:",
        "            self._buffers = Buffers(self._own)",
        "            self._events = Events(self._own)",
        "            self._streams = Streams(self._own)",
        "        except BaseException:",
        "            self._own.close()",
        "            raise",
        "",
        "    def __enter__(self) -> Pipeline:",
        "        return self",
        "",
        "    def __exit__(self, *_: object) -> None:",
        "        self.close()",
        "",
        "    def close(self) -> None:",
        '        """Wait for the device and release everything."""',
        "        self._own.close()",
        "",
        *py_call(Invocation("def run", ("self", "hooks: Hooks", *typed)), 4, tail=" -> None:"),
        '        """Run the plan from its beginning to its end and return when the device has finished.',
        "",
        "        Raises PipelineError with what failed first; then nothing more is issued, what was issued has",
        "        finished, and it may be run again.",
        '        """',
        *_check_counts(calls, names),
        "        with self._own.running():",
        *_reset_sizes(calls, names),
        f"            self._issue({', '.join(['hooks', *counts])})",
        *_accessors(calls, names),
        "",
        *py_call(
            Invocation("def _issue", ("self", "hooks: Hooks", *(f"{count}: int" for count in counts))),
            4,
            tail=" -> None:",
        ),
        '        """Issue everything in the order of the schedule."""',
        *_locals(body),
        *body,
    ]


def _limits(calls: CallList) -> list[str]:
    return [f"    MAX_COUNT = 2**{calls.max_count.bit_length() - 1}", ""]


def _check_counts(calls: CallList, names: Names) -> list[str]:
    """No count may be too large, nor go beyond what the schedule is proved for."""
    lines = []
    for name in ordered_params(calls):
        count = names.locals[name]
        lines.append(f'        check_count("{count}", {count}, self.MAX_COUNT)')
        if name in calls.proved:
            lines.append(f'        check_proved("{count}", {count}, {calls.proved[name]})')
    return lines


def _members(name: str, doc: str, members: list[str]) -> list[str]:
    lines = [f"class {name}:", f'    """{doc}"""', ""]
    if not members:
        return [*lines, "    def __init__(self, _: Resources) -> None:", "        pass", "", ""]
    return [*lines, "    def __init__(self, own: Resources) -> None:", *members, "", ""]


def _buffers(calls: CallList, names: Names) -> list[str]:
    lines: list[str] = []
    for buffer in calls.buffers:
        host = "pageable_buffer" if buffer.pageable else "host_buffer"
        method = host if buffer.place is Place.HOST else "device_buffer"
        arguments = [py_string(buffer.name), str(buffer.size)]
        slots = buffer.ring.depth or 1
        arguments += [f"slots={slots}"] if slots > 1 else []
        arguments += [f'dtype="{buffer.dtype}"'] if buffer.dtype else []
        arguments += [f"shape={_shape(buffer)}"] if buffer.shape else []
        head = f"        self.{names.buffers[buffer.name]} = own.{method}"
        lines += py_call(Invocation(head.strip(), tuple(arguments)), 8)
    return lines


def _shape(buffer: Buffer) -> str:
    extents = [str(extent) for extent in buffer.shape or ()]
    return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def _events(calls: CallList, names: Names) -> list[str]:
    return [
        line
        for group in calls.handles
        for line in py_call(
            Invocation(f"self.{names.events[group.name]} = own.events", (py_string(group.name), str(group.ring))), 8
        )
    ]


def _streams(calls: CallList, names: Names) -> list[str]:
    lines: list[str] = []
    on_host = {getattr(call, "stream", None) for call in calls.walk() if is_host_call(call)}
    for queue in calls.queues:
        arguments = [py_string(queue.name)]
        arguments += ["host_calls=True"] if queue.name in on_host else []
        arguments += [f"priority={queue.priority}"] if queue.priority is not None else []
        lines += py_comment(purpose_of(calls, queue.name, queue.engine), 8)
        lines += py_call(Invocation(f"self.{names.streams[queue.name]} = own.stream", tuple(arguments)), 8)
    return lines


def _reset_sizes(calls: CallList, names: Names) -> list[str]:
    """Every run starts from full buffers, and from the sizes of the inputs that the user has filled."""
    lines = []
    for buffer in calls.buffers:
        if not buffer.dynamic:
            continue
        member = f"self._buffers.{names.buffers[buffer.name]}"
        lines.append(f"            for slot in range({buffer.ring.depth or 1}):")
        method, size = ("resize", f"{member}.size")
        arguments = [py_string(f"size of {buffer.name}"), "None", f"{member}.{method}", "slot", size]
        if buffer.input:
            hook = f"hooks.{names.sizes[buffer.name]}"
            arguments[2:] = [f"{member}.resize_by", "slot", hook, "slot"]
        lines += py_call(Invocation("call", tuple(arguments)), 16)
    return lines


def _accessors(calls: CallList, names: Names) -> list[str]:
    lines: list[str] = []
    for buffer in calls.buffers:
        if buffer.name not in names.accessors:
            continue
        where = "host" if buffer.place is Place.HOST else "device"
        use = "Input, to be filled before a run" if buffer.input else "Output, to be read after a run"
        if buffer.input and buffer.output:
            use = "Input and output"
        many = f", {buffer.ring.depth} slots" if (buffer.ring.depth or 1) > 1 else ""
        access = "write" if buffer.input else "read"
        lines += [
            "",
            f"    def {names.accessors[buffer.name]}(self, version: int = 0) -> View:",
            *py_doc(f"{use}: {where} buffer {buffer.name}, {buffer.size:,} bytes{many}.", 8),
            f"        return self._buffers.{names.buffers[buffer.name]}.{access}(version)",
        ]
    return lines


def _locals(body: list[str]) -> list[str]:
    """Short names for what the statements use."""
    text = "\n".join(body)
    lines = [
        f"        {member} = self._{member}" for member in ("buffers", "events", "streams") if f"{member}." in text
    ]
    if "on_host(" in text:
        lines.append("        on_host = self._own.host_calls.launch")
    return [*lines, *([""] if body and lines else [])] if body else ["        return"]
