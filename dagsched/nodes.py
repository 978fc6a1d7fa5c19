"""A file's values with their places: what the YAML and the JSON reader yield, and what both languages are read from.

A :class:`Node` knows where it stands, so that every later message can point at it. Places are computed only when
somebody asks, from character offsets, since most files are right.
Invariant: a tree of nodes is finite, at most ``MAX_DEPTH`` deep, and every mapping's keys are distinct texts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dagsched.diagnostics import Where

MAX_DEPTH = 100
"""Values nested deeper than this are refused; a plan with four nested loops needs 14 levels."""

MAX_EXPANDED = 200_000
"""Aliases may stand for this many values in all, so that a small file cannot become a huge one."""

MAX_DIGITS = 400
"""Longer numbers are refused."""


class Lines:
    """Line and column of a character offset, by YAML 1.2's line breaks (LF, CR LF, CR)."""

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] | None = None

    def where(self, start: int, end: int) -> Where:
        """The place of ``text[start:end]``; a text over several lines has the width of what stands on its first."""
        starts = self._starts
        if starts is None:
            starts = self._starts = _line_starts(self.text)
        line = bisect_right(starts, start)
        first = starts[line - 1]
        stop = starts[line] if line < len(starts) else len(self.text)
        width = len(self.text[start : min(end, stop)].rstrip())
        return Where(line, start - first + 1, max(1, width))


def _line_starts(text: str) -> list[int]:
    starts = [0]
    if "\r" in text:
        position, length = 0, len(text)
        while position < length:
            character = text[position]
            position += 2 if text.startswith("\r\n", position) else 1
            if character in "\r\n":
                starts.append(position)
        return starts
    position = text.find("\n")
    while position >= 0:
        starts.append(position + 1)
        position = text.find("\n", position + 1)
    return starts


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a file.

    A scalar has ``value`` (None, bool, int, float or str), ``raw`` (its text without quotes) and ``quoted``. A mapping
    has ``by_key``: key text to (key node, value node), in the file's order. A sequence has ``items``. ``flow`` marks
    ``{...}`` and ``[...]``. ``start`` and ``end`` are character offsets.
    """

    kind: Literal["scalar", "mapping", "sequence"]
    start: int
    end: int
    lines: Lines = field(repr=False, compare=False)
    value: Any = None
    raw: str = ""
    quoted: bool = False
    flow: bool = False
    by_key: dict[str, tuple[Node, Node]] = field(default_factory=dict)
    items: tuple[Node, ...] = ()

    @property
    def where(self) -> Where:
        """Line, column and width; a block mapping stands where its first key does."""
        if self.kind == "mapping" and not self.flow and self.by_key:
            return next(iter(self.by_key.values()))[0].where
        if self.kind == "sequence" and not self.flow:
            return self.lines.where(self.start, self.start + 1)
        return self.lines.where(self.start, self.end)

    @property
    def entries(self) -> list[tuple[Node, Node]]:
        """The (key, value) pairs of a mapping in the file's order."""
        return list(self.by_key.values())

    def get(self, key: str) -> Node | None:
        """The value of a mapping's key, or None (also where this is no mapping)."""
        entry = self.by_key.get(key)
        return entry[1] if entry else None

    def key(self, key: str) -> Node | None:
        """The node of the key itself, or None."""
        entry = self.by_key.get(key)
        return entry[0] if entry else None

    def within(self, offset: int, width: int = 1) -> Where:
        """The place of ``raw[offset:offset+width]``; of the whole scalar where escapes or line folds hide it."""
        start = self.start + (1 if self.quoted else 0)
        if not self.raw or self.lines.text[start : start + len(self.raw)] != self.raw:
            return self.where
        return self.lines.where(min(start + offset, self.end), min(start + offset + width, self.end))

    def describe(self) -> str:
        """What this is, for a message: ``a mapping``, ``the text `abc```, ``nothing``."""
        if self.kind != "scalar":
            return "a mapping" if self.kind == "mapping" else "a list"
        if self.value is None:
            return "nothing" if self.raw == "" else f"`{self.raw}`"
        if isinstance(self.value, str):
            return f"the text `{_short(self.value)}`" if self.value else "an empty text"
        return f"`{_short(self.raw)}`"


def _short(text: str) -> str:
    line = text.splitlines()[0] if text.strip() else text
    return line if len(line) <= 40 and line == text else line[:40] + "..."


def to_data(node: Node) -> Any:
    """The node as plain data: dicts with text keys, lists, and scalars."""
    if node.kind == "scalar":
        return node.value
    if node.kind == "sequence":
        return [to_data(item) for item in node.items]
    return {key: to_data(value) for key, (_, value) in node.by_key.items()}


def node_at(node: Node, path: Sequence[str | int]) -> tuple[Node, Node | None]:
    """The deepest node on a path of keys and indices, and the key that leads to it where a mapping holds it.

    Steps that lead nowhere are skipped: pydantic's ``loc`` also names members of unions.
    """
    key: Node | None = None
    for step in path:
        if isinstance(step, int):
            if node.kind == "sequence" and 0 <= step < len(node.items):
                node, key = node.items[step], None
        elif step in node.by_key:
            key, node = node.by_key[step]
    return node, key


def place_of(node: Node, path: Sequence[str | int]) -> Where:
    """Line and column of what a pydantic ``loc`` names: the value, or the key where the last step is ``[key]``."""
    found, key = node_at(node, path)
    if key is not None and (path[-1] == "[key]" or (found.kind == "scalar" and found.raw == "" and not found.quoted)):
        return key.where
    return found.where
