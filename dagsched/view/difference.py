"""What changed between two schedules: ops and their streams, waits, buffers' rings, event handles, predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dagsched.schedule.model import OpStep, Schedule
from dagsched.view.edges import Edge, edges_of
from dagsched.view.terminal import PLAIN, Paint, escape


def difference_data(old: Schedule, new: Schedule) -> dict[str, Any]:
    """All changes as plain data; ``same`` is true where there are none of these kinds."""
    streams = _streams(old), _streams(new)
    waits = _waits(old), _waits(new)
    changes: dict[str, Any] = {
        "ops": _keys(*streams),
        "moved": [
            {"op": op, "from": stream, "to": streams[1][op]}
            for op, stream in streams[0].items()
            if streams[1].get(op, stream) != stream
        ],
        "waits": {
            "added": [_wait_data(edge) for key, edge in waits[1].items() if key not in waits[0]],
            "removed": [_wait_data(edge) for key, edge in waits[0].items() if key not in waits[1]],
        },
        "order": _order(old, new),
        "rings": _changed(_rings(old), _rings(new)),
        "events": _changed(_handles(old), _handles(new)),
        "predicted": _changed(old.predicted or {}, new.predicted or {}),
    }
    return {"dagsched": "diff/1", "old": old.name, "new": new.name, "same": not _any(changes), **changes}


def difference_text(old: Schedule, new: Schedule, *, paint: Paint = PLAIN) -> str:
    """The changes for people, one a line, ``-`` for what went and ``+`` for what came."""
    data = difference_data(old, new)
    lines: list[str] = []

    def block(title: str, rows: Iterable[str]) -> None:
        shown = [paint(f"  {row}", {"+": "green", "-": "red"}.get(row[:1], "cyan")) for row in rows]
        if shown:
            lines.extend([title, *shown])

    streams = _streams(old), _streams(new)
    block("ops", [
        *(f"- {escape(op)} (on {escape(streams[0][op])})" for op in data["ops"]["removed"]),
        *(f"+ {escape(op)} (on {escape(streams[1][op])})" for op in data["ops"]["added"]),
    ])  # fmt: skip
    block("moved", [f"~ {escape(m['op'])}: {escape(m['from'])} -> {escape(m['to'])}" for m in data["moved"]])
    block("order", [f"~ {escape(stream)}: {_names(a)} -> {_names(b)}" for stream, (a, b) in data["order"].items()])
    block("waits", [
        *(f"- {_wait_text(wait)}" for wait in data["waits"]["removed"]),
        *(f"+ {_wait_text(wait)}" for wait in data["waits"]["added"]),
    ])  # fmt: skip
    for title, key in (("rings", "rings"), ("event handles", "events"), ("predicted", "predicted")):
        block(title, [_change_text(name, change) for name, change in data[key].items()])
    return "\n".join(lines or ["no difference in ops, streams, waits, rings and handles"]) + "\n"


def _streams(schedule: Schedule) -> dict[str, str]:
    return {step.op: step.stream.name for step in schedule.walk() if isinstance(step, OpStep)}


def _waits(schedule: Schedule) -> dict[tuple[str, str, int], Edge]:
    edges = (edge for edge in edges_of(schedule) if edge.kind == "wait")
    return {(edge.before, edge.after, edge.distance): edge for edge in edges}


def _order(old: Schedule, new: Schedule) -> dict[str, tuple[list[str], list[str]]]:
    """Streams on which the ops that both schedules put there come in another order."""
    before, after = _streams(old), _streams(new)
    changed = {}
    for stream in dict.fromkeys(before.values()):
        first = [op for op, on in before.items() if on == stream and after.get(op) == stream]
        second = [op for op, on in after.items() if on == stream and before.get(op) == stream]
        if first != second:
            changed[stream] = (first, second)
    return changed


def _rings(schedule: Schedule) -> dict[str, int]:
    return {buffer.name: buffer.ring for buffer in schedule.buffers.values()}


def _handles(schedule: Schedule) -> dict[str, int | str]:
    """Handles of each event; an event without a ring has one for every value."""
    return {event.name: event.ring if event.ring is not None else "unbounded" for event in schedule.events.values()}


def _keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, list[str]]:
    return {"added": [key for key in new if key not in old], "removed": [key for key in old if key not in new]}


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Entries that differ; None stands for absent."""
    keys = dict.fromkeys((*old, *new))
    return {key: {"old": old.get(key), "new": new.get(key)} for key in keys if old.get(key) != new.get(key)}


def _any(value: Any) -> bool:
    return any(map(_any, value.values())) if isinstance(value, dict) else bool(value) or value == 0


def _wait_data(edge: Edge) -> dict[str, Any]:
    return {"before": edge.before, "after": edge.after, "distance": edge.distance, "for": list(edge.texts)}


def _wait_text(wait: Mapping[str, Any]) -> str:
    distance = wait["distance"]
    later = f" {distance} iteration{'s' if distance > 1 else ''} later" if distance else ""
    why = f"  ({', '.join(map(escape, wait['for']))})" if wait["for"] else ""
    return f"{escape(wait['after'])}{later} waits for {escape(wait['before'])}{why}"


def _change_text(name: str, change: Mapping[str, Any]) -> str:
    if change["old"] is None:
        return f"+ {escape(name)}: {escape(str(change['new']))}"
    if change["new"] is None:
        return f"- {escape(name)}: {escape(str(change['old']))}"
    return f"~ {escape(name)}: {escape(str(change['old']))} -> {escape(str(change['new']))}"


def _names(ops: Iterable[str]) -> str:
    return ", ".join(map(escape, ops))
