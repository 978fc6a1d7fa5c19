"""Change a text in places: edits as (span, replacement), applied all at once to the text that they were made for.

Everything outside the spans stays as it was, to the byte: comments, layout, quotes, line ends.
Invariant: edits do not overlap; several insertions at one place keep the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class EditError(Exception):
    """A change cannot be made in the text; ``reason`` says why, as the end of a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Edit:
    """``text[start:end]`` becomes ``replacement``; offsets count characters, as those of nodes do."""

    start: int
    end: int
    replacement: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"an edit cannot span {self.start} to {self.end}")


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with every edit made; raises :class:`EditError` where two of them overlap or reach outside."""
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < position:
            raise EditError("two changes touch the same characters")
        if edit.end > len(text):
            raise EditError("a change reaches beyond the end")
        parts += [text[position : edit.start], edit.replacement]
        position = edit.end
    return "".join([*parts, text[position:]])


def newline_of(text: str) -> str:
    """The line end that a text uses first, ``\\n`` where it has none."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def line_start(text: str, at: int) -> int:
    """The offset at which the line around ``text[at]`` starts."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """The offset behind the line around ``text[at]``, its line end included."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
