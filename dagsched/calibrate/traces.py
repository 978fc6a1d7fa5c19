"""Read what a profiler wrote: durations with the names that the profiler knows.

Chrome trace JSON (of our own runs, of the torch profiler, Ascend's ``trace_view.json`` and ``msprof_*.json``): complete
events (``X`` with ``dur``) and pairs of ``B`` and ``E``, times in microseconds, as numbers or as texts. CSV of Ascend's
profilers: ``op_summary_*.csv`` (``Op Name``, ``Task Duration(us)``), ``kernel_details.csv`` (``Name``,
``Duration(us)``), ``task_time_*.csv`` (``kernel_name``, ``task_time(us)``). Which it is shows in the text, since people
rename these files. Times count microseconds whatever ``displayTimeUnit`` says, which is for viewers.

Invariant: what has the place of a duration and is none is told of (``Trace.unread``), never passed over.

Format of events: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dagsched.diagnostics import Diagnostic, UsageError

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"})
"""What the torch profiler calls work on the device; ops with the same name on the host only launch it."""

DEVICE_PROCESSES = ("ascend hardware", "npu")
"""How the names of the processes begin under which Ascend's traces show work on the device."""

_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?\Z")
_PLAIN = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?\Z")

_TOO_LONG = 10**21
"""Microseconds that no clock shows."""

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


@dataclass(frozen=True, slots=True)
class Trace:
    """All events with a duration, and what could not be read as one, in words with its place."""

    samples: tuple[Sample, ...]
    unread: tuple[str, ...] = ()


def read_trace(text: str, file: str) -> Trace:
    """What a file holds; raises :class:`UsageError` for what is no trace (K101) or has no durations (K102)."""
    unread: list[str] = []
    read = _from_json if text.lstrip()[:1] in ("{", "[") else _from_csv
    samples = tuple(read(text, file, unread))
    if not samples:
        headline = f"`{file}` holds no event with a duration"
        help_ = "profile a run in which the ops ran"
        raise UsageError([Diagnostic("K102", headline, notes=tuple(unread[:3]), help=help_)])
    return Trace(samples, tuple(unread))


def _from_json(text: str, file: str, unread: list[str]) -> Iterator[Sample]:
    data = _parse(text, file)
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise _no_trace(file, "it has no list `traceEvents`")
    known = [(number, event) for number, event in enumerate(events, 1) if isinstance(event, dict)]
    devices = {_thread_of(event)[0] for _, event in known if _names_device(event)}
    for number, event in known:
        if event.get("ph") == "X":
            yield from _sample(event, _number(event.get("dur")), devices, f"event {number}", unread)
    for number, begin, end in _pairs(known, unread):
        start = _number(begin.get("ts"))
        taken = None if start is None or end is None else end - start
        yield from _sample(begin, taken, devices, f"event {number}", unread)


def _parse(text: str, file: str) -> Any:
    """The JSON, numbers with a point as texts (a float rounds times since 1970 to quarters of a microsecond)."""
    try:
        return json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        whole = text.strip()
        if whole.startswith("[") and not whole.endswith("]"):  # a list of events may lack its end, says the format
            try:
                return json.loads(whole.rstrip(",") + "]", parse_float=str)
            except (ValueError, RecursionError):
                pass
        raise _no_trace(file, f"it is not JSON: {str(error)[:80]}") from None


def _pairs(
    events: list[tuple[int, dict[str, Any]]], unread: list[str]
) -> Iterator[tuple[int, dict[str, Any], Decimal | None]]:
    """Beginnings with their places, each with the time of its end: the next one in its thread (of its name, if given).

    Events need not stand in order; those without a time cannot be put into one.
    """
    begun: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
    ends = [(_number(e.get("ts")), number, e) for number, e in events if e.get("ph") in ("B", "E")]
    for at, number, event in sorted(ends, key=lambda row: (row[0] is None, row[0] or 0, row[1])):
        open_ = begun.setdefault(_thread_of(event), [])
        if event["ph"] == "B":
            open_.append((number, event))
            continue
        name = event.get("name")
        place = next((n for n in reversed(range(len(open_))) if name in (None, "", open_[n][1].get("name"))), None)
        if place is not None:
            yield (*open_.pop(place), at)
    for row in begun.values():
        unread += [f"event {number}: {_shown(event.get('name'))} begins and does not end" for number, event in row]


def _thread_of(event: dict[str, Any]) -> tuple[str, str]:
    return str(event.get("pid")), str(event.get("tid"))


def _names_device(event: dict[str, Any]) -> bool:
    args = event.get("args")
    if event.get("ph") != "M" or event.get("name") != "process_name" or not isinstance(args, dict):
        return False
    return str(args.get("name", "")).lower().startswith(DEVICE_PROCESSES)


def _sample(
    event: dict[str, Any], micros: Decimal | None, devices: Set[str], place: str, unread: list[str]
) -> Iterator[Sample]:
    name, args = event.get("name"), event.get("args")
    if not isinstance(name, str):
        return
    if micros is None or micros < 0:
        unread.append(f"{place}: {_shown(name)} has the duration {_shown(event.get('dur', micros))}")
        return
    op = args.get("op") if isinstance(args, dict) else None
    categories = {part.strip() for part in str(event.get("cat", "")).split(",")}
    device = _thread_of(event)[0] in devices or bool(categories & DEVICE_CATEGORIES)
    yield Sample(name, op if isinstance(op, str) else None, _seconds(micros), device)


def _shown(value: Any) -> str:
    return "nothing" if value in (None, "") else f"`{str(value)[:40]}`"


def _seconds(micros: Decimal) -> float:
    return float(micros / 1_000_000)


def _number(value: Any) -> Decimal | None:
    """A finite number; Ascend's traces write some as texts, and spreadsheets write ``1,185.5``."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value).strip()
    if _GROUPED.match(text):
        text = text.replace(",", "")
    if not _PLAIN.match(text):
        return None
    number = Decimal(text)
    return number if abs(number) < _TOO_LONG else None


def _from_csv(text: str, file: str, unread: list[str]) -> Iterator[Sample]:
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # spreadsheets write other ones in some countries
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        head = [cell.strip().lower() for cell in next((row for row in rows if row), [])]
        found = next((pair for pair in _COLUMNS if set(pair) <= set(head)), None)
        if found is None:
            raise _no_trace(file, "it is neither trace JSON nor a CSV with a name and a duration of each op")
        name, duration = (head.index(column) for column in found)
        for row in rows:
            if not row:
                continue
            written = row[duration].strip() if len(row) > max(name, duration) else None
            micros = _number(written)
            if micros is None or micros < 0:
                shown = _shown(row[name].strip()) if len(row) > name else "a row"
                unread.append(f"line {rows.line_num}: {shown} has the duration {_shown(written)}")
            else:
                yield Sample(row[name].strip(), None, _seconds(micros), True)
    except csv.Error as error:
        raise _no_trace(file, f"it is no CSV: {error}") from None


def _no_trace(file: str, why: str) -> UsageError:
    known = "Chrome trace JSON, or a CSV with `Op Name` and `Task Duration(us)`, or `Name` and `Duration(us)`"
    return UsageError([Diagnostic("K101", f"`{file}` is no trace that is known: {why}", notes=(f"known: {known}",))])
