"""JSON text to nodes, with places; strict JSON, save that every finding has its line and column.

JSON is nearly a subset of YAML, but YAML parsers stumble over surrogate escapes and long keys, and are slower.
Invariant: the same depth limit and the same rule of distinct keys as for YAML.
"""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder
from typing import Any, cast

from dagsched.diagnostics import Diagnostic, Label, Source
from dagsched.nodes import MAX_DEPTH, MAX_DIGITS, Lines, Node

_SPACE = re.compile(r"[ \t\n\r]*")
_SPACES = frozenset(" \t\n\r")
_WORD = re.compile(r"[-+.\w]+")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_scan_string = JSONDecoder().parse_string  # type: ignore[attr-defined]  # in C where CPython has it
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS: dict[str, Any] = {"null": None, "true": True, "false": False}


class _JsonError(Exception):
    """The text is not JSON from ``offset`` on."""

    def __init__(self, message: str, offset: int, code: str = "P012") -> None:
        super().__init__(message)
        self.message, self.offset, self.code = message, offset, code


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.lines = Lines(source.text)
        self.findings: list[Diagnostic] = []

    def skip(self, at: int) -> int:
        if self.text[at : at + 1] not in _SPACES:
            return at
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> Node:
        """The value that starts at ``at``, where no space stands."""
        character = self.text[at : at + 1]
        if character == '"':
            text, end = self.string(at)
            return Node("scalar", at, end, self.lines, text, text, True)
        if character in ("{", "["):
            if depth >= MAX_DEPTH:
                raise _JsonError(f"values nest deeper than {MAX_DEPTH} levels", at, "P008")
            return self.mapping(at, depth + 1) if character == "{" else self.sequence(at, depth + 1)
        return self.word(at)

    def string(self, at: int) -> tuple[str, int]:
        try:
            text, end = cast("tuple[str, int]", _scan_string(self.text, at + 1, True))
        except JSONDecodeError as error:
            raise _JsonError(error.msg[:1].lower() + error.msg[1:], min(error.pos, len(self.text) - 1)) from None
        if _SURROGATE.search(text):
            raise _JsonError("half of a surrogate pair is no character", at)
        return text, end

    def word(self, at: int) -> Node:
        match = _WORD.match(self.text, at)
        if match is None:
            found = f"`{self.text[at]}`" if at < len(self.text) else "the end of the file"
            raise _JsonError(f"expected a value and found {found}", at)
        raw = match.group()
        if raw in _WORDS:
            return Node("scalar", at, match.end(), self.lines, _WORDS[raw], raw)
        number = _NUMBER.match(raw)
        if number is None:
            raise _JsonError(f"`{raw[:40]}` is not a JSON value", at)
        if len(raw) > MAX_DIGITS:
            raise _JsonError(f"a number of {len(raw)} digits is too long", at, "P013")
        whole = number.group(2) is None and number.group(3) is None
        return Node("scalar", at, match.end(), self.lines, int(raw) if whole else float(raw), raw)

    def sequence(self, at: int, depth: int) -> Node:
        items: list[Node] = []
        position = self.skip(at + 1)
        if self.text[position : position + 1] != "]":
            while True:
                item = self.value(position, depth)
                items.append(item)
                position, more = self.separator(item.end, "]")
                if not more:
                    break
        return Node("sequence", at, position + 1, self.lines, flow=True, items=tuple(items))

    def mapping(self, at: int, depth: int) -> Node:
        by_key: dict[str, tuple[Node, Node]] = {}
        position = self.skip(at + 1)
        if self.text[position : position + 1] != "}":
            while True:
                key = self.key(position)
                position = self.skip(key.end)
                if self.text[position : position + 1] != ":":
                    raise _JsonError("expected `:` after a key", position)
                value = self.value(self.skip(position + 1), depth)
                self.enter(by_key, key, value)
                position, more = self.separator(value.end, "}")
                if not more:
                    break
        return Node("mapping", at, position + 1, self.lines, flow=True, by_key=by_key)

    def key(self, at: int) -> Node:
        if self.text[at : at + 1] != '"':
            raise _JsonError("expected a key in double quotes", at)
        text, end = self.string(at)
        return Node("scalar", at, end, self.lines, text, text, True)

    def enter(self, by_key: dict[str, tuple[Node, Node]], key: Node, value: Node) -> None:
        if key.raw in by_key:
            label = Label(by_key[key.raw][0].where, "the first one")
            headline = f"the key `{key.raw}` stands twice"
            self.findings.append(Diagnostic("P004", headline, key.where, self.source, (label,)))
        else:
            by_key[key.raw] = (key, value)

    def separator(self, at: int, close: str) -> tuple[int, bool]:
        """Where the next item starts and True, or where the closing bracket stands and False."""
        at = self.skip(at)
        character = self.text[at : at + 1]
        if character == close:
            return at, False
        if character != ",":
            found = f"`{character}`" if character else "the end of the file"
            raise _JsonError(f"expected `,` or `{close}` and found {found}", at)
        following = self.skip(at + 1)
        if self.text[following : following + 1] == close:
            raise _JsonError(f"a comma stands before `{close}`", at)
        return following, True


def compose_json(source: Source) -> tuple[Node | None, list[Diagnostic]]:
    """The root of a JSON text (None where the text is empty or no JSON), and all that is wrong with it."""
    reader = _Reader(source)
    start = reader.skip(0)
    if start == len(source.text):
        return None, []
    try:
        root = reader.value(start, 0)
        end = reader.skip(root.end)
        if end < len(source.text):
            raise _JsonError("something follows the end of the value", end)
    except _JsonError as fault:
        where = reader.lines.where(fault.offset, fault.offset + 1)
        headline = f"this is not JSON: {fault.message}" if fault.code == "P012" else fault.message
        return None, [*reader.findings, Diagnostic(fault.code, headline, where, source)]
    return root, reader.findings
