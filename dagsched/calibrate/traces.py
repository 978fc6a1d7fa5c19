"""Read what a profiler wrote: durations with the names that the profiler knows.

Chrome trace JSON (of our own runs, of the torch profiler, Ascend's ``trace_view.json`` and ``msprof_*.json``): complete
events (``X`` with ``dur``) and pairs of ``B`` and ``E``, times in microseconds, as numbers or as texts. CSV of Ascend's
profilers: ``op_summary_*.csv`` (``Op Name``, ``Task Duration(us)``), ``kernel_details.csv`` (``Name``,
``Duration(us)``), ``task_time_*.csv`` (``kernel_name``, ``task_time(us)``). Which it is shows in the text, since people
rename these files.

Format of events: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dagsched.diagnostics import Diagnostic, UsageError

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"})
"""What the torch profiler calls work on the device; ops with the same name on the host only launch it."""

DEVICE_PROCESSES = ("ascend hardware", "npu")
"""How the names of the processes begin under which Ascend's traces show work on the device."""

_COLUMNS = (("op name", "task duration(us)"), ("name", "duration(us)"), ("kernel_name", "task_time(us)"))


@dataclass(frozen=True, slots=True)
class Sample:
    """One event: the profiler's name for it, the plan's op where the trace says that, and seconds.

    ``device``: the event is work on the device (not the call that launched it, as far as the trace tells).
    """

    name: str
    op: str | None
    seconds: float
    device: bool


def read_trace(text: str, file: str) -> tuple[Sample, ...]:
    """All events with a duration; raises :class:`UsageError` for what is no trace (K101) or has no durations (K102)."""
    samples = tuple(_from_json(text, file) if text.lstrip()[:1] in ("{", "[") else _from_csv(text, file))
    if not samples:
        headline = f"`{file}` holds no event with a duration"
        raise UsageError([Diagnostic("K102", headline, help="profile a run in which the ops ran")])
    return samples


def _from_json(text: str, file: str) -> Iterator[Sample]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_trace(file, f"it is not JSON: {str(error)[:80]}") from None
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise _no_trace(file, "it has no list `traceEvents`")
    events = [event for event in events if isinstance(event, dict)]
    devices = {event.get("pid") for event in events if _names_device(event)}
    begun: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for event in events:
        thread = (str(event.get("pid")), str(event.get("tid")))
        phase = event.get("ph")
        if phase == "X":
            yield from _sample(event, _number(event.get("dur")), event.get("pid") in devices)
        elif phase == "B":
            begun.setdefault(thread, []).append(event)
        elif phase == "E" and begun.get(thread):
            start = begun[thread].pop()
            begin, end = _number(start.get("ts")), _number(event.get("ts"))
            if begin is not None and end is not None:
                yield from _sample(start, end - begin, start.get("pid") in devices)


def _names_device(event: dict[str, Any]) -> bool:
    args = event.get("args")
    if event.get("ph") != "M" or event.get("name") != "process_name" or not isinstance(args, dict):
        return False
    return str(args.get("name", "")).lower().startswith(DEVICE_PROCESSES)


def _sample(event: dict[str, Any], micros: float | None, on_device: bool) -> Iterator[Sample]:
    name, args = event.get("name"), event.get("args")
    if not isinstance(name, str) or micros is None or micros < 0:
        return
    op = args.get("op") if isinstance(args, dict) else None
    categories = {part.strip() for part in str(event.get("cat", "")).split(",")}
    device = on_device or bool(categories & DEVICE_CATEGORIES)
    yield Sample(name, op if isinstance(op, str) else None, micros / 1e6, device)


def _number(value: Any) -> float | None:
    """A finite number; Ascend's traces write some as texts."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _from_csv(text: str, file: str) -> Iterator[Sample]:
    rows = csv.reader(io.StringIO(text))
    try:
        head = [cell.strip().lower() for cell in next(rows, [])]
        found = next((pair for pair in _COLUMNS if set(pair) <= set(head)), None)
        if found is None:
            raise _no_trace(file, "it is neither trace JSON nor a CSV with a name and a duration of each op")
        name, duration = (head.index(column) for column in found)
        for row in rows:
            micros = _number(row[duration].strip()) if len(row) > max(name, duration) else None
            if micros is not None and micros >= 0:
                yield Sample(row[name].strip(), None, micros / 1e6, True)
    except csv.Error as error:
        raise _no_trace(file, f"it is no CSV: {error}") from None


def _no_trace(file: str, why: str) -> UsageError:
    known = "Chrome trace JSON, or a CSV with `Op Name` and `Task Duration(us)`, or `Name` and `Duration(us)`"
    return UsageError([Diagnostic("K101", f"`{file}` is no trace that is known: {why}", notes=(f"known: {known}",))])
