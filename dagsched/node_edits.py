"""Insert into, drop from and change the lists and mappings of a YAML or JSON text, in the style that stands there.

Nodes say where values are; this module says which characters to replace. Block and flow style, JSON and YAML are
covered. What shares its text with another place (an alias), or stands in a form whose lines are not its own, is
refused with :class:`~dagsched.edits.EditError`, and the caller writes the whole file anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dagsched.edits import Edit, EditError, line_end, line_start, newline_of
from dagsched.nodes import Node

Side = Literal["before", "after"]
_ITEM = re.compile(r"-[ \t]+")


@dataclass(frozen=True, slots=True)
class Insertion:
    """New text for a list or mapping, before or after its entry number ``at``; the text comes without indentation.

    ``text`` is given the indentation of what stands inside the entry (for items in block style that span lines).
    """

    at: int
    side: Side
    text: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Span:
    """The text of one entry: from its dash, key or first character to the end of its last value."""

    start: int
    end: int


def edit_sequence(text: str, node: Node, drops: frozenset[int], insertions: Sequence[Insertion]) -> list[Edit]:
    """The edits that drop items of a list and insert others."""
    if not drops and not insertions:
        return []
    if node.flow:
        return _edit_flow(text, [_Span(item.start, item.end) for item in _own(node.items, node)], drops, insertions)
    column = node.start - line_start(text, node.start)
    if text[line_start(text, node.start) : node.start].strip() or text[node.start : node.start + 1] != "-":
        raise EditError("a list does not start on a line of its own")
    spans = [_Span(_dash(text, item, node, column), end_of(text, item)) for item in _own(node.items, node)]
    return _edit_block(text, spans, drops, insertions, "- ")


def edit_mapping(text: str, node: Node, drops: frozenset[int], insertions: Sequence[Insertion]) -> list[Edit]:
    """The edits that drop keys (by number, in the file's order) of a mapping and insert others."""
    if not drops and not insertions:
        return []
    values = _own([value for _, value in node.entries], node)
    spans = [
        _Span(key.start, max(key.end, end_of(text, value)))
        for (key, _), value in zip(node.entries, values, strict=True)
    ]
    if node.flow:
        return _edit_flow(text, spans, drops, insertions)
    if any(text[line_start(text, span.start) : span.start].strip() for span in spans):
        raise EditError("a key does not stand on a line of its own")
    return _edit_block(text, spans, drops, insertions, "")


def replace_node(node: Node, new: str) -> Edit:
    """The edit that replaces a scalar or a value in flow style."""
    if node.kind != "scalar" and not node.flow:
        raise EditError("a value in block style cannot be replaced in its place")
    if node.start == node.end:
        raise EditError("there is no value to replace")
    return Edit(node.start, node.end, new)


def is_json(text: str, node: Node) -> bool:
    """Whether a mapping or what holds it is written as JSON: in flow style with quoted keys."""
    first = next(iter(node.by_key.values()), None)
    return node.flow and first is not None and text[first[0].start : first[0].start + 1] == '"'


def json_text(value: Any) -> str:
    """Plain data as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def fixed_text(text: str) -> Callable[[str], str]:
    """One line, for :class:`Insertion`."""
    return lambda _: text


def block_text(data: Mapping[str, Any], flow: Callable[[Any], str]) -> Callable[[str], str]:
    """A mapping in block style, for :class:`Insertion`; ``flow`` writes its values."""

    def write(indent: str) -> str:
        return f"\n{indent}".join(f"{key}: {flow(value)}" for key, value in data.items())

    return write


def end_of(text: str, node: Node) -> int:
    """The offset behind the last character of a value; the parser's own end of a block includes what follows it."""
    while node.kind != "scalar" and not node.flow:
        last = node.items[-1] if node.kind == "sequence" else node.entries[-1][1]
        if not node.start <= last.start <= node.end:
            raise EditError("an alias stands there")
        if last.kind == "scalar" and last.start == last.end and node.kind == "mapping":
            return max(node.entries[-1][0].end, last.end)
        node = last
    end = node.end
    while end > node.start and text[end - 1] in " \t\r\n":
        end -= 1
    return end


def _own(values: Sequence[Node], node: Node) -> Sequence[Node]:
    """The values, all of which must stand inside the node in the order given, which an alias does not."""
    position = node.start
    for value in values:
        if value.start < position or value.start > node.end:
            raise EditError("an alias stands there")
        position = value.start
    return values


def _dash(text: str, item: Node, node: Node, column: int) -> int:
    """The offset of the dash in front of an item."""
    start = line_start(text, item.start)
    while start >= line_start(text, node.start):
        if text[start + column : start + column + 1] == "-" and not text[start : start + column].strip():
            return start + column
        start = line_start(text, start - 1) if start else -1
    raise EditError("the dash of an item is not where it should be")


def _edit_block(
    text: str, spans: list[_Span], drops: frozenset[int], insertions: Sequence[Insertion], mark: str
) -> list[Edit]:
    if len(drops) == len(spans) and not insertions:
        raise EditError("nothing would be left")
    newline = newline_of(text)
    edits = [Edit(line_start(text, spans[at].start), line_end(text, spans[at].end), "") for at in sorted(drops)]
    for insertion in sorted(insertions, key=_place):
        span = spans[insertion.at]
        indent = text[line_start(text, span.start) : span.start]
        dash = _ITEM.match(text, span.start) if mark else None
        lead = dash.group() if dash else mark
        body = insertion.text(indent + " " * len(lead)).replace("\n", newline)
        if insertion.side == "before":
            at = line_start(text, span.start)
            edits.append(Edit(at, at, f"{indent}{lead}{body}{newline}"))
        else:
            at = line_end(text, span.end)
            open_ended = at == len(text) and not text.endswith("\n")
            line = f"{indent}{lead}{body}"
            edits.append(Edit(at, at, f"{newline}{line}" if open_ended else f"{line}{newline}"))
    return _in_order(edits)


def _place(insertion: Insertion) -> tuple[int, bool]:
    return insertion.at, insertion.side == "after"


def _in_order(edits: list[Edit]) -> list[Edit]:
    """Insertions stand before a deletion that starts at the same place."""
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


def _edit_flow(text: str, spans: list[_Span], drops: frozenset[int], insertions: Sequence[Insertion]) -> list[Edit]:
    kept = [at for at in range(len(spans)) if at not in drops]
    if not kept and insertions:
        body = ", ".join(insertion.text("") for insertion in sorted(insertions, key=_place))
        return [Edit(spans[0].start, spans[-1].end, body)]
    if not kept:
        raise EditError("nothing would be left")
    edits: list[Edit] = []
    for at in sorted(drops):
        if at < kept[-1]:
            edits.append(Edit(spans[at].start, _up_to_next(text, spans, at), ""))
    if kept[-1] < len(spans) - 1:
        edits.append(Edit(spans[kept[-1]].end, spans[-1].end, ""))
    tail: list[str] = []
    for insertion in sorted(insertions, key=_place):
        following = [at for at in kept if at > insertion.at or (at == insertion.at and insertion.side == "before")]
        anchor = spans[following[0]] if following else spans[kept[-1]]
        indent = text[line_start(text, anchor.start) : anchor.start]
        alone = not indent.strip() and anchor.start > 0
        gap = f"{newline_of(text)}{indent}" if alone else " "
        body = insertion.text(indent)
        if following:
            edits.append(Edit(anchor.start, anchor.start, f"{body},{gap}"))
        else:
            tail.append(f",{gap}{body}")
    if tail:
        end = spans[kept[-1]].end
        edits.append(Edit(end, end, "".join(tail)))
    return _in_order(edits)


def _up_to_next(text: str, spans: list[_Span], at: int) -> int:
    """Where the text of an entry of a flow collection ends that is not the last: behind its comma and its comment."""
    between = text[spans[at].end : spans[at + 1].start]
    comma = between.find(",")
    if comma < 0 or "#" in between[:comma]:
        raise EditError("a comma is not where it should be")
    if "#" not in between:
        return spans[at + 1].start
    end = line_end(text, spans[at].end + comma)
    while text[end : end + 1] in (" ", "\t"):
        end += 1
    return min(end, spans[at + 1].start)
