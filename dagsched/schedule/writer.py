"""Write a schedule down: as JSON, as YAML, and as text for people.

``schedule_data`` gives the schedule as the plain data that ``schedule_file`` describes; the two file forms print it
with one step a line, in a fixed order of keys, so that the same schedule has the same bytes.
Invariant: reading the JSON or the YAML yields an equal schedule, save that a step's accesses stand in the order of
the keys (reads, writes, updates, accumulates).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from dagsched.plan.access import access_text, exact_text
from dagsched.plan.expressions import Condition, Expr, Int
from dagsched.plan.model import Access, Mode
from dagsched.plan.writer import flow_text, scalar_text
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Protected,
    Schedule,
    Storage,
    Stream,
    SyncStep,
    WaitStreamStep,
)

ACCESS_KEYS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.UPDATE: "updates", Mode.ACCUMULATE: "accumulates"}
"""The key of each kind of access, in the order in which files have them."""

_PLAN_KEYS = ("name", "digest")
_PREDICTED_KEYS = (
    "makespan", "initiation_interval", "serial", "bound", "binds", "held", "unknown", "estimated", "optimal"
)  # fmt: skip
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def op_instance(step: OpStep) -> Indexed:
    """An op's name, with the iteration where the step says one."""
    return Indexed(step.op, step.iteration)


def schedule_data(schedule: Schedule) -> dict[str, Any]:
    """The schedule as plain data in the shape of a schedule file; what is as by default is left out."""
    data: dict[str, Any] = {"dagsched-schedule": 1, "name": schedule.name}
    optional = {
        "plan": _ordered(schedule.plan, _PLAN_KEYS),
        "device": schedule.device,
        "predicted": _ordered(schedule.predicted, _PREDICTED_KEYS),
    }
    data.update({key: value for key, value in optional.items() if value is not None})
    data["event_model"] = schedule.event_model
    if schedule.default_stream != "none":
        data["default_stream"] = schedule.default_stream
    tables: dict[str, dict[str, Any]] = {
        "params": dict(schedule.params),
        "streams": {name: _stream_data(stream) for name, stream in schedule.streams.items()},
        "events": {n: {} if event.ring is None else {"ring": event.ring} for n, event in schedule.events.items()},
        "buffers": {name: _storage_data(storage) for name, storage in schedule.buffers.items()},
    }
    data.update({key: table for key, table in tables.items() if table})
    data["steps"] = [step_data(step) for step in schedule.steps]
    return data


def _ordered(values: Mapping[str, Any] | None, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """A mapping with its keys in the order of files."""
    return None if values is None else {key: values[key] for key in dict.fromkeys((*keys, *values)) if key in values}


def _stream_data(stream: Stream) -> dict[str, Any]:
    marks = {mark: True for mark in ("nonblocking", "host") if getattr(stream, mark)}
    values = {"engine": stream.engine, "priority": stream.priority}
    return {**marks, **{key: value for key, value in values.items() if value is not None}}


def _storage_data(storage: Storage) -> dict[str, Any]:
    values: dict[str, Any] = {
        "place": None if storage.place is None else storage.place.value,
        "ring": None if storage.ring == 1 else storage.ring,
        "space": storage.space,
        "at": None if storage.at is None else list(storage.at),
        "alias": storage.alias,
        "size": storage.size,
        "shape": None if storage.shape is None else list(storage.shape),
        "dtype": storage.dtype,
    }
    return {key: value for key, value in values.items() if value is not None}


def step_data(step: AnyStep) -> dict[str, Any]:
    """One step as plain data, its keys in the order of files."""
    data: dict[str, Any] = {}
    if isinstance(step, LoopStep):
        data["loop"] = step.index
        if step.lo == Int(0):
            data["count"] = _value(step.hi)
        else:
            data["range"] = [_value(step.lo), _value(step.hi)]
    elif isinstance(step, OpStep):
        data.update(stream=_indexed(step.stream), op=_indexed(op_instance(step)), **_accesses(step.accesses))
    elif isinstance(step, HostStep):
        data.update(host=step.host, **_accesses(step.accesses))
    elif isinstance(step, FreeStep):
        data["free"] = access_text(step.access)
    elif isinstance(step, WaitStreamStep):
        data.update(stream=_indexed(step.stream), wait_stream=_indexed(step.target))
    elif isinstance(step, SyncStep):
        data["sync"] = "device" if step.target is None else {step.kind: _indexed(step.target)}
    else:
        if step.stream is not None:
            data["stream"] = _indexed(step.stream)
        data[step.action] = _indexed(step.event if isinstance(step, EventStep) else step.flag)
    if step.when:
        data["when"] = _condition(step.when)
    if step.label is not None:
        data["label"] = step.label
    if isinstance(step, EventStep) and step.protects:
        data["for"] = [_protected(hazard) for hazard in step.protects]
    if isinstance(step, LoopStep):
        data["steps"] = [step_data(inner) for inner in step.steps]
    return data


def _accesses(accesses: tuple[Access, ...]) -> dict[str, list[str]]:
    grouped: dict[Mode, list[str]] = {}
    for access in accesses:
        grouped.setdefault(access.mode, []).append(access_text(access))
    return {key: grouped[mode] for mode, key in ACCESS_KEYS.items() if mode in grouped}


def _protected(hazard: Protected) -> dict[str, str]:
    data = {"before": hazard.before, "after": hazard.after}
    if hazard.buffer is not None:
        data["buffer"] = hazard.buffer
    data["kind"] = hazard.kind
    return data


def _indexed(name: Indexed) -> str:
    return name.name if name.index is None else f"{name.name}@{exact_text(name.index)}"


def _value(expr: Expr) -> int | str:
    return expr.value if isinstance(expr, Int) else exact_text(expr)


def _condition(condition: Condition) -> str:
    return " and ".join(f"{exact_text(c.left)} {c.op} {exact_text(c.right)}" for c in condition)


# JSON


def schedule_json(schedule: Schedule) -> str:
    """The schedule as JSON: one step, buffer, stream or event a line."""
    lines = []
    for key, value in schedule_data(schedule).items():
        if key == "steps":
            lines.append(_json_steps(value, "  "))
        elif key in ("streams", "events", "buffers"):
            entries = ",\n".join(f"    {_json(name)}: {_json(entry)}" for name, entry in value.items())
            lines.append(f"  {_json(key)}: {{\n{entries}\n  }}")
        else:
            lines.append(f"  {_json(key)}: {_json(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json_steps(steps: list[dict[str, Any]], indent: str) -> str:
    if not steps:
        return f'{indent}"steps": []'
    inner = indent + "  "
    lines = []
    for step in steps:
        if "loop" not in step:
            lines.append(inner + _json(step))
            continue
        head = _json({key: value for key, value in step.items() if key != "steps"})
        lines.append(f"{inner}{head[:-1]},\n{_json_steps(step['steps'], inner + '  ')}\n{inner}}}")
    return f'{indent}"steps": [\n' + ",\n".join(lines) + f"\n{indent}]"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


# YAML


def schedule_yaml(schedule: Schedule, schema: str | None = None) -> str:
    """The schedule as YAML, one step a line; ``schema`` (a path or URL) adds the line by which editors find it."""
    lines = [f"# yaml-language-server: $schema={schema}"] if schema else []
    for key, value in schedule_data(schedule).items():
        if key == "steps":
            lines.append("steps:" if value else "steps: []")
            lines += _yaml_steps(value, "  ")
        elif key in ("streams", "events", "buffers"):
            lines.append(f"{key}:")
            # A flow mapping of one entry, without its braces, quotes odd and long names as YAML wants them.
            lines += [
                f"  {flow_text({name: entry})[1:-1]}"
                if len(name) <= 200
                else f"  ? {scalar_text(name)}\n  : {flow_text(entry)}"
                for name, entry in value.items()
            ]
        else:
            lines.append(f"{key}: {flow_text(value)}")
    return "\n".join(lines) + "\n"


def _yaml_steps(steps: list[dict[str, Any]], indent: str) -> Iterator[str]:
    for step in steps:
        if "loop" not in step:
            yield f"{indent}- {flow_text(step)}"
            continue
        mark = "- "
        for key, value in step.items():
            if key != "steps":
                yield f"{indent}{mark}{key}: {flow_text(value)}"
                mark = "  "
        yield f"{indent}  steps:" if step["steps"] else f"{indent}  steps: []"
        yield from _yaml_steps(step["steps"], indent + "    ")


# text for people

Row = tuple[str, str, str, str]
"""Who acts, what is done, on what, and what stands behind."""


def schedule_text(schedule: Schedule) -> str:
    """The schedule for people: who, what, on what, in columns; waits say in a comment what they are there for."""
    head = [f"schedule {schedule.name}, event model {schedule.event_model}"]
    if schedule.default_stream != "none":
        head[0] += f", {schedule.default_stream} default stream"
    data = schedule_data(schedule)
    head += [f"{key}: {_plain(data[key])}" for key in ("plan", "device", "predicted", "params") if key in data]
    lines = [_printable(line) for line in head]
    for key in ("streams", "events", "buffers"):
        if key in data:
            entries = [(f"  {_printable(name)}", _printable(_plain(entry))) for name, entry in data[key].items()]
            width = max(_width(name) for name, _ in entries)
            lines += [f"{key}:", *(f"{_pad(name, width)}  {entry}".rstrip() for name, entry in entries)]
    rows = list(_rows(schedule.steps, ""))
    if rows:
        lines += ["", *_aligned(rows)]
    return "\n".join(lines) + "\n"


def _aligned(rows: list[Row]) -> Iterator[str]:
    """Steps as lines; the comments of waits stand in a column of their own."""
    steps = [row for row in rows if row[1]]
    widths = [max((_width(row[column]) for row in steps), default=0) for column in (0, 1)]
    reasons = max((_width(target) for _, action, target, behind in steps if action == "wait" and behind), default=0)
    for who, action, target, behind in rows:
        if not action:  # the head of a loop
            yield f"{who}{behind}"
            continue
        shown = _pad(target, reasons) if action == "wait" and behind else target
        line = f"{_pad(who, widths[0])}  {_pad(action, widths[1])}  {shown}{behind}"
        yield line.rstrip()


def _rows(steps: tuple[AnyStep, ...], indent: str) -> Iterator[Row]:
    """The rows of steps; a loop's head has nothing done."""
    for step in steps:
        behind = f"  when {_condition(step.when)}" if step.when else ""
        comments = [] if step.label is None else [step.label]
        if isinstance(step, LoopStep):
            comment = "".join(f"  # {comment}" for comment in comments)
            yield (
                f"{indent}for {step.index} in {_value(step.lo)}..{_value(step.hi)}:",
                "",
                "",
                _printable(behind + comment),
            )
            yield from _rows(step.steps, indent + "  ")
            continue
        if isinstance(step, EventStep):
            comments += [_reason(hazard) for hazard in step.protects]
        who, action, target = (_printable(cell) for cell in _columns(step))
        behind += f"  # {', '.join(comments)}" if comments else ""
        yield indent + who, action, target, _printable(behind)


def _columns(
    step: OpStep | HostStep | FreeStep | EventStep | WaitStreamStep | SyncStep | FlagStep,
) -> tuple[str, str, str]:
    if isinstance(step, OpStep | HostStep):
        touched = "  ".join(f"{key} {', '.join(texts)}" for key, texts in _accesses(step.accesses).items())
        if isinstance(step, OpStep):
            return _indexed(step.stream), _indexed(op_instance(step)), touched
        return "host", step.host, touched
    if isinstance(step, FreeStep):
        return "host", "free", access_text(step.access)
    if isinstance(step, WaitStreamStep):
        return _indexed(step.stream), "wait_stream", _indexed(step.target)
    if isinstance(step, SyncStep):
        return "host", "sync", "device" if step.target is None else f"{step.kind} {_indexed(step.target)}"
    target = step.event if isinstance(step, EventStep) else step.flag
    return "host" if step.stream is None else _indexed(step.stream), step.action, _indexed(target)


def _reason(hazard: Protected) -> str:
    on = "" if hazard.buffer is None else f" on {hazard.buffer}"
    return f"{hazard.kind}{on}: {hazard.before} before {hazard.after}"


def _plain(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    return " ".join(key if item is True else f"{key}={_compact(item)}" for key, item in value.items())


def _compact(value: Any) -> str:
    return "?" if value is None else flow_text(value) if isinstance(value, dict | list) else str(value)


def _printable(line: str) -> str:
    """Names are data: what would move a terminal's cursor or its colours is shown as an escape."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _width(text: str) -> int:
    """Columns of a terminal; Chinese, Japanese and Korean characters take two."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
