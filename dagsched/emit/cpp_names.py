"""The C++ identifiers of one program: every name of the plan in every scope in which it is used.

Streams, events and buffers are members of structs of their own, so that they cannot meet each other or the class's
members; functions are methods of the hooks; loop indices and parameters are local variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dagsched.emit.calls import CallList, Launch, Repeat
from dagsched.emit.cpp_runtime import Words
from dagsched.emit.functions import Function
from dagsched.emit.names import CPP, Language, file_stem, identifiers
from dagsched.plan.model import Buffer, Mode, OpKind, Place

TYPES = frozenset(
    """
    Buffer Buffers CurrentContext CurrentDevice DeviceMemory DynamicBuffer Event EventRing Events Failure Handle Hooks
    HostCalls PageableMemory PinnedMemory Pipeline Place Resources Stream Streams Strided View
    """.split()  # noqa: SIM905
)
"""Types of emitted programs; members and locals keep clear of them."""

HELPERS = frozenset(
    """
    allocate argc argv at_ body buffers bytes check_copy check_count check_region code copy_bytes copy_rows count
    create_event create_stream current drain_stream error_name events fail fill_bytes floor_div floor_mod
    free_pageable from from_step hooks issue kMaxCount kNoIteration keep_exception on_host own own_ parse_count
    pipeline recent_message resources_ run_pipeline start step0 step1 step2 step3 step4 step5 step6 step7 streams to
    to_step took
    """.split()  # noqa: SIM905
)
"""Functions and variables of emitted programs."""

METHODS = frozenset({"failure", "failure_", "fail", "init", "issue", "on_host", "release", "run", "at_", "own_"})

CPP_TYPES: dict[str, str] = {
    "bool": "uint8_t", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t",
    "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t", "float16": "uint16_t",
    "bfloat16": "uint16_t", "float32": "float", "float64": "double", "complex64": "std::complex<float>",
    "complex128": "std::complex<double>",
}  # fmt: skip
"""Element types; the 16-bit floats are given as their bits, since C++17 has no type for them."""


@dataclass(frozen=True, slots=True)
class Names:
    """Identifiers by the plan's names. ``sizes`` holds the hooks that tell a dynamic buffer's size."""

    stem: str
    namespace: str
    guard: str
    streams: dict[str, str]
    events: dict[str, str]
    buffers: dict[str, str]
    functions: dict[str, str]
    sizes: dict[str, str]
    accessors: dict[str, str]
    locals: dict[str, str]
    reserved: frozenset[str] = TYPES | HELPERS | {"stream"}
    language: Language = CPP

    def parameters(self, function: Function) -> tuple[list[str], list[str]]:
        """Identifiers of a function's views and of its indices."""
        texts = [f"view {parameter.name}" for parameter in function.parameters]
        plain = {text: text.removeprefix("view ") for text in texts}
        indices = identifiers(function.indices, self.reserved, self.language)
        taken = self.reserved | set(indices.values()) | set(self.locals.values())
        views = identifiers(plain.values(), taken, self.language)
        return [views[plain[text]] for text in texts], [indices[index] for index in function.indices]


def name_everything(
    calls: CallList, suffix: str = "", locals_: Iterable[str] = (), taken: frozenset[str] = frozenset()
) -> Names:
    """Identifiers for a whole program; ``suffix`` (``_cuda``) ends the names of its files and its namespace.

    ``locals_`` are variables besides parameters and indices, ``taken`` names that no variable may have.
    """
    stem = f"{file_stem(calls.name)}{suffix}"
    namespace = f"{identifiers([calls.name], TYPES | HELPERS)[calls.name].rstrip('_' if suffix else '')}{suffix}"
    functions = identifiers((function.name for function in calls.functions), TYPES | {"stream"})
    sized = {f"size_of_{buffer}": buffer for buffer in sized_buffers(calls)}
    sizes = identifiers(sized, TYPES | set(functions.values()))
    ends = [buffer.name for buffer in calls.buffers if buffer.input or buffer.output]
    loops = [call.index for call in calls.walk() if isinstance(call, Repeat)]
    return Names(
        stem=stem,
        namespace=namespace,
        guard=f"DAGSCHED_{namespace.upper()}_HPP",
        streams=identifiers((queue.name for queue in calls.queues), TYPES),
        events=identifiers((group.name for group in calls.handles), TYPES),
        buffers=identifiers((buffer.name for buffer in calls.buffers), TYPES),
        functions=functions,
        sizes={buffer: sizes[text] for text, buffer in sized.items()},
        accessors=identifiers(ends, TYPES | METHODS),
        locals=identifiers([*calls.params, *loops, *locals_], TYPES | HELPERS | taken),
        reserved=TYPES | HELPERS | taken | {"stream"},
    )


def sized_buffers(calls: CallList) -> list[str]:
    """Dynamic buffers whose size the user tells: those that functions write, and inputs."""
    dynamic = {buffer.name: buffer for buffer in calls.buffers if buffer.dynamic}
    told = {name for name, buffer in dynamic.items() if buffer.input}
    for call in calls.walk():
        if isinstance(call, Launch):
            for parameter, block in zip(call.function.parameters, call.arguments, strict=True):
                if parameter.mode is Mode.WRITE:
                    told.add(block.buffer)
    return [name for name in dynamic if name in told]


def ordered_params(calls: CallList) -> list[str]:
    """Parameters in the order of ``run``: C++ wants those with defaults last."""
    return sorted(calls.params, key=lambda name: calls.params[name] is not None)


def element_type(dtype: str | None) -> str:
    """The C++ type of a buffer's elements, ``void`` where none is stated."""
    return CPP_TYPES[dtype] if dtype is not None else "void"


def view_type(dtype: str | None, axes: int, *, const: bool) -> str:
    """``View<const float>``, ``Strided<void, 2>``."""
    element = f"{'const ' if const else ''}{element_type(dtype)}"
    return f"Strided<{element}, {axes}>" if axes else f"View<{element}>"


def memory_type(buffer: Buffer) -> str:
    """The template that holds a buffer's slots."""
    host = "PageableMemory" if buffer.pageable else "PinnedMemory"
    memory = host if buffer.place is Place.HOST else "DeviceMemory"
    template = "DynamicBuffer" if buffer.dynamic else "Buffer"
    return f"{template}<{memory}, {element_type(buffer.dtype)}, {buffer.ring.depth or 1}, {buffer.size}>"


def hook_signature(names: Names, function: Function, words: Words, *, named: bool = True) -> tuple[str, list[str]]:
    """``aclError detector`` and its parameters; ``named`` false puts the names into comments."""
    views, indices = names.parameters(function)
    rows = [
        (view_type(parameter.dtype, parameter.axes, const=parameter.mode is Mode.READ), view)
        for parameter, view in zip(function.parameters, views, strict=True)
    ]
    rows += [("int64_t", index) for index in indices]
    if function.kind is OpKind.COMPUTE:
        rows.append((words.stream, "stream"))
    head = f"{words.error} {names.functions[function.name]}"
    return head, [f"{type_} {name}" if named else f"{type_} /*{name}*/" for type_, name in rows]
