"""Write times into a plan's own text: one value an op, and nothing else changes.

A ``time`` that is there is replaced, and so is ``work``, which says the same in another way; elsewhere the key is
added: behind the op's last one in ``{ }``, on a line of its own in block style. A value that others share
(``&time 1 ms`` and ``*time``) keeps its anchor, and ops that are not measured get the old value in place of the alias.
Invariant: the text reads back as the same plan with those times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from dagsched.diagnostics import Diagnostic, PlanError, Source
from dagsched.edits import Edit, EditError, apply_edits, newline_of
from dagsched.files import load_node
from dagsched.nodes import Node
from dagsched.plan.model import Loop, Op, Plan
from dagsched.plan.reader import plan_from_node
from dagsched.plan.units import time_text


def write_times(source: Source, times: Mapping[str, float]) -> str:
    """The plan's text with the times (in seconds) of some ops; raises :class:`PlanError` (K106) where that fails."""
    root = load_node(source)
    plan, _ = plan_from_node(root, source)
    ops = root.get("ops")
    assert ops is not None
    try:
        text = apply_edits(source.text, _find_edits(source.text, ops, times))
        changed = Source(source.name, text)
        again: Plan | None = plan_from_node(load_node(changed), changed)[0]
    except (EditError, PlanError):
        again = None
    if again != _with_times(plan, times):
        headline = "the times cannot be written into this plan's text without changing something else"
        raise PlanError(
            [Diagnostic("K106", headline, None, source, help="write the ops in the usual style, one an item")]
        )
    return text


def _find_edits(text: str, ops: Node, times: Mapping[str, float]) -> list[Edit]:
    """A new time for each op that has one; the old value in full where an alias loses the anchor that it is for."""
    edits = []
    items = list(_op_nodes(ops))
    gone = {
        id(item.get(key))
        for item in items
        for key in ("time", "work")
        if _name(item) in times and not _alias(item, key)
    }
    for item in items:
        if _name(item) in times:
            edits.append(_edit(text, item, time_text(times[_name(item)])))
            continue
        for key in ("time", "work"):
            stated = item.get(key)
            if stated is not None and _alias(item, key) and id(stated) in gone:
                old = stated.raw or re.sub(r"\A&\S+\s+", "", text[stated.start : _end_of(stated)])
                edits.append(_in_place(text, item, key, old))
    return edits


def _op_nodes(ops: Node) -> Iterator[Node]:
    """Every op's mapping, those in loops included."""
    for item in ops.items:
        inner = item.get("ops") if item.key("loop") is not None else None
        if inner is None:
            yield item
        else:
            yield from _op_nodes(inner)


def _name(item: Node) -> str:
    found = next(node for key in ("name", "compute", "host") if (node := item.get(key)) is not None)
    return str(found.value)


def _edit(text: str, item: Node, time: str) -> Edit:
    quoted = text[item.entries[0][0].start] == '"'
    written = f'"{time}"' if quoted else time
    stated = item.get("time")
    if stated is not None:
        return _in_place(text, item, "time", written)
    pair = f'"time": {written}' if quoted else f"time: {written}"
    work = item.by_key.get("work")
    if work is not None:
        if _alias(item, "work"):
            return Edit(work[0].start, _in_place(text, item, "work", "").end, pair)
        return Edit(work[0].start, _end_of(work[1]), pair)
    if item.flow:
        end = _end_of(item.entries[-1][1])
        return Edit(end, end, f", {pair}")
    key, value = next((k, v) for k, v in item.entries if v.kind == "scalar")
    end = text.find("\n", _end_of(value))
    end = len(text) if end < 0 else end
    end -= end > 0 and text[end - 1] == "\r"
    indent = " " * (key.where.column - 1)
    return Edit(end, end, f"{newline_of(text)}{indent}{pair}")


def _alias(item: Node, key: str) -> bool:
    """Whether the value of an op's key is an alias: it stands before its key then."""
    stated, named = item.get(key), item.key(key)
    return stated is not None and named is not None and stated.start < named.start


def _in_place(text: str, item: Node, key: str, written: str) -> Edit:
    """Another value for an op's key; an anchor stays, an alias goes."""
    stated, named = item.get(key), item.key(key)
    assert stated is not None and named is not None
    if _alias(item, key):
        alias = re.compile(r"\s*:\s*(\*[^\s,\[\]{}]+)").match(text, named.end)
        if alias is not None:
            return Edit(alias.start(1), alias.end(1), written)
        raise EditError("an alias is not found where it should stand")
    anchor = re.compile(r"(&[^\s,\[\]{}]+\s+)?").match(text, stated.start)
    start = anchor.end() if anchor else stated.start
    return Edit(start, start + len(text[start : stated.end].rstrip()), written)


def _end_of(node: Node) -> int:
    """Where a value's own text ends; a block collection's is that of its last value."""
    if node.kind == "scalar" or node.flow:
        return node.end
    children = [value for _, value in node.entries] if node.kind == "mapping" else list(node.items)
    return _end_of(children[-1]) if children else node.end


def _with_times(plan: Plan, times: Mapping[str, float]) -> Plan:
    def timed(item: Op | Loop) -> Op | Loop:
        if isinstance(item, Loop):
            return replace(item, body=tuple(timed(inner) for inner in item.body))
        return replace(item, time=times[item.name], work=None) if item.name in times else item

    return replace(plan, items=tuple(timed(item) for item in plan.items))
