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
from dagsched.edits import Edit, apply_edits, newline_of
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
    edits = []
    replaced = {id(item.get("time")) for item in _op_nodes(ops) if _name(item) in times and not _alias(item)}
    for item in _op_nodes(ops):
        name, stated = _name(item), item.get("time")
        if name in times:
            edits.append(_edit(source.text, item, time_text(times[name])))
        elif stated is not None and _alias(item) and id(stated) in replaced:
            edits.append(_in_place(source.text, item, stated.raw))
    text = apply_edits(source.text, edits)
    changed = Source(source.name, text)
    again, _ = plan_from_node(load_node(changed), changed)
    if again != _with_times(plan, times):
        headline = "the times cannot be written into this plan's text without changing something else"
        raise PlanError(
            [Diagnostic("K106", headline, None, source, help="write the ops in the usual style, one an item")]
        )
    return text


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
        return _in_place(text, item, written)
    pair = f'"time": {written}' if quoted else f"time: {written}"
    work = item.by_key.get("work")
    if work is not None:
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


def _alias(item: Node) -> bool:
    """Whether an op's ``time`` is an alias: the value stands before its key then."""
    stated, key = item.get("time"), item.key("time")
    return stated is not None and key is not None and stated.start < key.start


def _in_place(text: str, item: Node, written: str) -> Edit:
    """Another value for an op's ``time``; an anchor stays, an alias goes."""
    stated, key = item.get("time"), item.key("time")
    assert stated is not None and key is not None
    if _alias(item):
        alias = re.compile(r"\s*:\s*(\*[^\s,\[\]{}]+)").match(text, key.end)
        if alias is not None:
            return Edit(alias.start(1), alias.end(1), written)
    anchor = re.compile(r"(&[^\s,\[\]{}]+\s+)?").match(text, stated.start)
    return Edit(anchor.end() if anchor else stated.start, stated.end, written)


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
