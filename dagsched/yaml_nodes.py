"""YAML text to nodes: YAML 1.2 core scalars, strict about everything that makes a file mean what nobody intended.

``on``, ``no`` and ``1:30`` stay text. Duplicate keys, tags, merge keys, several documents, aliases that contain
themselves or multiply, and bottomless nesting are refused. All such findings are reported together; a syntax error
ends the reading.
Invariant: what is returned was built by this module from parser events, never by a YAML constructor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from dagsched.diagnostics import Diagnostic, Label, Source
from dagsched.nodes import MAX_DEPTH, MAX_DIGITS, MAX_EXPANDED, Lines, Node

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_INFINITY = re.compile(r"([-+]?)\.(?:inf|Inf|INF)\Z")
_NAN = {".nan", ".NaN", ".NAN"}


def resolve_scalar(raw: str) -> Any:
    """The value of a plain scalar by YAML 1.2's core schema; raises OverflowError for a number of too many digits."""
    if raw in _NULL:
        return None
    if raw in _BOOL:
        return _BOOL[raw]
    if raw[0] not in "0123456789+-.":
        return raw
    if _INT.match(raw) or _FLOAT.match(raw) or _OCTAL.match(raw) or _HEX.match(raw):
        if len(raw) > MAX_DIGITS:
            raise OverflowError
        if _INT.match(raw):
            return int(raw)
        if _OCTAL.match(raw):
            return int(raw[2:], 8)
        return int(raw[2:], 16) if _HEX.match(raw) else float(raw)
    if raw in _NAN:
        return float("nan")
    infinity = _INFINITY.match(raw)
    return float(infinity.group(1) + "inf") if infinity else raw


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    event: CollectionStartEvent
    children: list[Node] = field(default_factory=list)
    size: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A node that an alias may name, with the number of its values and their depth, aliases expanded."""

    node: Node
    size: int
    height: int


class _StopError(Exception):
    """Reading cannot go on; what is wrong is among the findings."""


class _Composer:
    """Builds nodes from events; ``findings`` gathers what is wrong."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lines = Lines(source.text)
        self.findings: list[Diagnostic] = []
        self.open: list[_Open] = []
        self.anchors: dict[str, _Anchored] = {}
        self.expanded = 0
        self.root: Node | None = None
        self.documents = 0

    def report(self, code: str, headline: str, start: int, end: int, **more: Any) -> None:
        where = self.lines.where(start, end)
        self.findings.append(Diagnostic(code, headline, where, self.source, **more))

    def take(self, event: Event) -> None:
        if isinstance(event, ScalarEvent):
            self.check_tag(event)
            self.place(self.scalar(event), event.anchor, 1, 1)
        elif isinstance(event, CollectionStartEvent):
            self.check_tag(event)
            self.start(event)
        elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            self.finish(event)
        elif isinstance(event, AliasEvent):
            self.alias(event)
        elif isinstance(event, DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                start = self.span(event)[0]
                help_ = "keep one document in a file and drop the other `---`"
                self.report("P007", "the file holds more than one YAML document", start, start + 3, help=help_)
                raise _StopError

    def span(self, event: Event) -> tuple[int, int]:
        """Where an event's text starts and ends, in characters."""
        start, end = event.start_mark, event.end_mark
        assert start is not None and end is not None  # every event of a loader has both
        return start.index, end.index

    def check_tag(self, event: ScalarEvent | CollectionStartEvent) -> None:
        if event.tag is not None:
            start = self.source.text.find("!", self.span(event)[0])
            tag = re.match(r"[^\s,\[\]{}]*", self.source.text[start:])
            text = tag.group() if tag else "!"
            help_ = f"remove `{text}`; put quotes around a value that must stay text"
            self.report("P005", f"the tag `{text}` is not allowed", start, start + len(text), help=help_)

    def scalar(self, event: ScalarEvent) -> Node:
        start, end = self.span(event)
        raw: str = event.value
        if event.style:  # quoted or block
            return Node("scalar", start, end, self.lines, raw, raw, event.style in "'\"")
        try:
            value = resolve_scalar(raw)
        except OverflowError:
            self.report("P013", f"a number of {len(raw)} digits is too long", start, end, help="write a shorter number")
            value = 0
        return Node("scalar", start, end, self.lines, value, raw)

    def start(self, event: CollectionStartEvent) -> None:
        if len(self.open) >= MAX_DEPTH:
            self.too_deep(self.span(event)[0])
        self.open.append(_Open(event))

    def too_deep(self, start: int) -> None:
        self.report("P008", f"values nest deeper than {MAX_DEPTH} levels", start, start + 1)
        raise _StopError

    def finish(self, event: MappingEndEvent | SequenceEndEvent) -> None:
        opened = self.open.pop()
        start, end = self.span(opened.event)[0], self.span(event)[1]
        flow = bool(opened.event.flow_style)
        if isinstance(opened.event, MappingStartEvent):
            by_key = self.pairs(opened.children)
            node = Node("mapping", start, end, self.lines, flow=flow, by_key=by_key)
        else:
            node = Node("sequence", start, end, self.lines, flow=flow, items=tuple(opened.children))
        self.place(node, opened.event.anchor, opened.size, opened.height)

    def pairs(self, children: list[Node]) -> dict[str, tuple[Node, Node]]:
        by_key: dict[str, tuple[Node, Node]] = {}
        for key, value in zip(children[::2], children[1::2], strict=True):
            if key.kind != "scalar":
                help_ = "put quotes around a text that starts with `{` or `[`"
                self.report("P010", f"a key must be a text, not {key.describe()}", key.start, key.end, help=help_)
            elif key.raw == "<<" and not key.quoted:
                help_ = "write the keys out here"
                self.report("P010", "the merge key `<<` is not part of YAML 1.2", key.start, key.end, help=help_)
            elif key.raw in by_key:
                first = by_key[key.raw][0]
                label = Label(first.where, "the first one")
                self.report("P004", f"the key `{key.raw}` stands twice", key.start, key.end, labels=(label,))
            else:
                by_key[key.raw] = (key, value)
        return by_key

    def alias(self, event: AliasEvent) -> None:
        (start, end), name = self.span(event), str(event.anchor)
        anchored = self.anchors.get(name)
        if anchored is None:
            inside = any(opened.event.anchor == name for opened in self.open)
            what = "contains itself" if inside else "has no anchor"
            help_ = "write the value out" if inside else f"put quotes around `*{name}`, or define `&{name}` before it"
            self.report("P006", f"the alias `*{name}` {what}", start, end, help=help_)
            self.place(Node("scalar", start, end, self.lines), None, 1, 1)
            return
        self.expanded += anchored.size
        if self.expanded > MAX_EXPANDED:
            headline = f"aliases of this file stand for more than {MAX_EXPANDED:,} values"
            self.report("P006", headline, start, end, help="write the values out")
            raise _StopError
        if len(self.open) + anchored.height > MAX_DEPTH:
            self.too_deep(start)
        self.place(anchored.node, None, anchored.size, anchored.height)

    def place(self, node: Node, anchor: str | None, size: int, height: int) -> None:
        """Put a finished node where it belongs."""
        if anchor is not None:
            self.anchors[anchor] = _Anchored(node, size, height)
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        parent.children.append(node)
        parent.size += size
        parent.height = max(parent.height, height + 1)


def compose_yaml(source: Source) -> tuple[Node | None, list[Diagnostic]]:
    """The root of a YAML text (None where the text has no value or cannot be read), and all that is wrong with it."""
    composer = _Composer(source)
    try:
        loader = _Loader(source.text)
        try:
            while loader.check_event():
                composer.take(loader.get_event())
        finally:
            loader.dispose()
    except _StopError:
        return None, composer.findings
    except yaml.MarkedYAMLError as error:
        return None, [*composer.findings, _syntax_error(error, source, composer.lines)]
    except yaml.YAMLError as error:
        return None, [*composer.findings, Diagnostic("P003", f"this is not YAML: {error}", None, source)]
    return composer.root, composer.findings


_SAID_BETTER = {
    "mapping values are not allowed": (
        "`: ` stands where no key can be",
        "put quotes around a text that holds `: `, and check the indentation",
    ),
    "did not find expected '-' indicator": (
        "an item of a list does not line up with the others",
        "start it with `- ` in the column of the other items",
    ),
    "did not find expected node content": ("a value is missing", "write one, or drop the comma"),
    "invalid Unicode character escape": ("an escape is no character", "write the character itself"),
    "did not find expected key": ("a key of a mapping does not line up with the others", "check the indentation"),
    "could not find expected ':'": ("a key is not followed by `:`", "write `key: value`"),
    "found unexpected ':'": ("`:` is not followed by a value", "write a space and a value after it"),
    "unexpected end of stream": ("the file ends inside a quoted text", "close the quote"),
    "did not find expected ',' or ']'": ("a list is not closed, or lacks a comma", "close it with `]`"),
    "did not find expected ',' or '}'": ("a mapping is not closed, or lacks a comma", "close it with `}`"),
}


def _syntax_error(error: yaml.MarkedYAMLError, source: Source, lines: Lines) -> Diagnostic:
    """Say in the user's words what the YAML parser found."""
    mark = error.problem_mark or error.context_mark
    at = min(mark.index, len(source.text)) if mark is not None else 0
    where = lines.where(at, at + 1)
    trap = _unquoted_access(source.text, at)
    if trap is not None:
        start, text = trap
        where = lines.where(start, start + len(text))
        headline = f"`{text}` needs quotes inside `[ ]` or `{{ }}`"
        return Diagnostic("P011", headline, where, source, help=f'write "{text}"')
    problem = str(error.problem or "unreadable")
    labels: tuple[Label, ...] = ()
    if error.context_mark is not None and error.context and error.context_mark.index != at:
        begin = error.context_mark.index
        labels = (Label(lines.where(begin, begin + 1), "it starts here"),)
    if "maximum nesting depth" in problem:
        return Diagnostic("P008", f"values nest deeper than {MAX_DEPTH} levels", where, source)
    if source.text[at : at + 1] == "\t":
        return Diagnostic("P003", "a tab cannot indent YAML", where, source, labels, help="indent with spaces")
    if "cannot start any token" in problem:
        character = source.text[at : at + 1]
        headline = f"a plain text cannot start with `{character}`"
        return Diagnostic("P003", headline, where, source, labels, help="put quotes around the text")
    for known, (headline, help_) in _SAID_BETTER.items():
        if known in problem:
            return Diagnostic("P003", f"this is not YAML: {headline}", where, source, labels, help=help_)
    return Diagnostic("P003", f"this is not YAML: {problem}", where, source, labels)


_BEFORE_BRACKET = re.compile(r"""(?:^|[\[{,]|:\s|-\s)\s*([^\s\[\]{},"'#&*!|>%][^\[\]{},"'\n]*?)\s*\Z""")


def _unquoted_access(text: str, at: int) -> tuple[int, str] | None:
    """Offset and text of an access such as ``qkv[0:64]`` that stands unquoted in flow style at ``text[at]``."""
    if text[at : at + 1] != "[":
        return None
    line = text.rfind("\n", 0, at) + 1
    before = _BEFORE_BRACKET.search(text, line, at)
    close = re.compile(r"[^\[\]{}\"'\n]*\]").match(text, at + 1)
    if before is None or close is None:
        return None
    start = before.start(1)
    colon = text.rfind(": ", start, at)
    if colon >= 0:
        start = colon + 2
    return start, text[start : close.end()].strip()
