"""What AscendCL and the CUDA runtime call things: all that two C++ targets differ in, as data.

The body, the class and the program around it are written once, in terms of a :class:`Runtime`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dagsched.emit.calls import Direction
from dagsched.emit.cpp_text import Invocation
from dagsched.emit.nests import Level
from dagsched.plan.expressions import Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Types and error codes; ``calling`` is the calling convention of host functions, ``host`` launches one."""

    error: str
    success: str
    invalid: str
    uninitialised: str
    bad_alloc: str
    failure: str
    stream: str
    event: str
    calling: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What a pipeline lives in, a context or a device: its type, its name, what it is before ``init``, how to get it.

    ``current`` is the class that makes it current for a scope; ``text`` is for people.
    """

    type: str
    name: str
    none: str
    find: str
    current: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One runtime's words and calls.

    ``suffix`` ends names of files and namespaces, ``main`` is the ending of the program's file, ``include`` brings in
    the header, and ``parts`` names the file beside this module with what only this runtime needs; ``fills`` are
    placeholders of that file, and ``graph_parts`` names the file with what it takes to capture graphs. Calls are
    written from texts: ``copy`` takes target, room, source, bytes, kind and stream; ``copy_rows`` target, its pitch,
    source, its pitch, width, height, kind and stream; ``fill`` address, bytes, value and stream; ``fill_rows``
    address, pitch, value, width, height and stream. ``as_rows`` says whether runs of the first length, one for each
    step of the level, can be one such call. ``start`` and ``finish`` stand around a run in the program's ``main``,
    where ``code`` is the error so far and the run is indented by ``indent``.
    """

    name: str
    suffix: str
    main: str
    include: tuple[str, ...]
    parts: str
    compile_hint: str
    words: Words
    home: Home
    kinds: dict[Direction, str]
    record: Callable[[str, str], Invocation]
    wait: Callable[[str, str], Invocation]
    copy: Callable[[str, str, str, str, str, str], Invocation]
    copy_rows: Callable[[str, str, str, str, str, str, str, str], Invocation]
    as_rows: Callable[[Direction, Expr, Level], bool]
    fill: Callable[[str, str, str, str], Invocation]
    fill_rows: Callable[[str, str, str, str, str, str], Invocation] | None
    sync_stream: str
    sync_event: str
    sync_device: str
    hook_rule: str
    start: tuple[str, ...]
    finish: tuple[str, ...]
    indent: str
    fills: dict[str, str] = field(default_factory=dict)
    graph_parts: str = ""

    def fill_in(self, text: str) -> str:
        """A template with the runtime's words in place of ``@Error@`` and the like."""
        words = self.words
        filled = {
            **self.fills,
            "Error": words.error,
            "Success": words.success,
            "Invalid": words.invalid,
            "BadAlloc": words.bad_alloc,
            "Failure": words.failure,
            "Stream": words.stream,
            "Event": words.event,
            "Calling": words.calling,
            "LaunchHostFunc": words.host,
        }
        for word, value in filled.items():
            text = text.replace(f"@{word}@", value)
        return text
