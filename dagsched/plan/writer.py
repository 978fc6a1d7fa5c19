"""Write a plan as canonical YAML: one plan, one text, whatever the file that it was read from looked like.

``plan_data`` gives the plan as the plain data that ``plan_file`` describes, ``plan_text`` its YAML, ``plan_digest``
what identifies it. Invariant: reading the text yields an equal plan.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from dagsched.plan.access import access_text, exact_text
from dagsched.plan.expressions import Int
from dagsched.plan.model import Access, After, Buffer, Loop, Mode, Op, OpKind, Plan, Ring, Work
from dagsched.plan.units import size_text, time_text
from dagsched.yaml_nodes import resolve_scalar

_KEYS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.UPDATE: "updates", Mode.ACCUMULATE: "accumulates"}
_PLAIN = re.compile(r"\w(?:[\w.@+*/()-]| (?=[^\s#]))*\Z")
_NUMBER_LIKE = re.compile(r"[0-9][0-9_.,eExXoO+-]*\Z")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_OLD_WORDS = {"y", "n", "yes", "no", "on", "off"}
Path = tuple[tuple[int, str], ...]
"""The loops around an item, outermost first: the position of each among its siblings, and its index."""

_MAX_KEY = 800
"""YAML's ``key: value`` allows 1,024 characters; longer keys are written with ``?``."""


def plan_text(plan: Plan, schema: str | None = None) -> str:
    """The canonical YAML; ``schema`` (a path or URL) adds the line by which editors find the schema."""
    head = [f"# yaml-language-server: $schema={schema}"] if schema else []
    return "\n".join([*head, "dagsched: 1", f"name: {scalar_text(plan.name)}", *_body(plan_data(plan))]) + "\n"


def plan_digest(plan: Plan) -> str:
    """SHA-256 (hex) of what the plan says: its canonical text without its name."""
    return hashlib.sha256("\n".join(_body(plan_data(plan))).encode()).hexdigest()


def plan_data(plan: Plan) -> dict[str, Any]:
    """The plan as plain data in the shape of a plan file; what is as by default is left out."""
    data: dict[str, Any] = {"dagsched": 1, "name": plan.name, "device": plan.device}
    if plan.params:
        data["params"] = dict(plan.params)
    streams: dict[str, Any] = {}
    if plan.streams.max is not None:
        streams["max"] = plan.streams.max
    if plan.streams.policy != "auto":
        streams["policy"] = plan.streams.policy
    if streams:
        data["streams"] = streams
    memory = {"host": plan.memory.host, "device": plan.memory.device}
    limits = {place: _size_data(size) for place, size in memory.items() if size is not None}
    if limits:
        data["memory"] = limits
    data["buffers"] = {name: _buffer_data(buffer) for name, buffer in plan.buffers.items()}
    data["ops"] = _items_data(plan.items, (), dict(_homes(plan.items)))
    return data


def _buffer_data(buffer: Buffer) -> dict[str, Any]:
    """One buffer's entry."""
    data: dict[str, Any] = {"place": buffer.place.value}
    if buffer.shape is not None:
        data["shape"] = list(buffer.shape)
        data["dtype"] = buffer.dtype
    else:
        data["size"] = _size_data(buffer.size)
    ring = _ring_data(buffer.ring)
    if ring != 1:
        data["ring"] = ring
    for mark in ("pageable", "input", "output", "dynamic"):
        if getattr(buffer, mark):
            data[mark] = True
    return data


def _size_data(size: int) -> int | str:
    text = size_text(size)
    return size if text.isdecimal() else text


def _ring_data(ring: Ring) -> int | str | dict[str, int]:
    if ring.depth is not None:
        return ring.depth
    bounds = {} if ring.min == 1 else {"min": ring.min}
    if ring.max is not None:
        bounds["max"] = ring.max
    return bounds or "auto"


def _items_data(items: tuple[Op | Loop, ...], path: Path, homes: dict[str, Path]) -> list[dict[str, Any]]:
    """The entries of a loop's body or of the whole plan; ``path`` holds the loops around it."""
    entries: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        if isinstance(item, Loop):
            count = item.count.value if isinstance(item.count, Int) else exact_text(item.count)
            body = _items_data(item.body, (*path, (number, item.index)), homes)
            entries.append({"loop": item.index, "count": count, "ops": body})
        else:
            entries.append(_op_data(item, path, homes))
    return entries


def _homes(items: tuple[Op | Loop, ...], path: Path = ()) -> Iterator[tuple[str, Path]]:
    """Every op's name with the loops around it."""
    for number, item in enumerate(items):
        if isinstance(item, Loop):
            yield from _homes(item.body, (*path, (number, item.index)))
        else:
            yield item.name, path


def _op_data(item: Op, path: Path, homes: dict[str, Path]) -> dict[str, Any]:
    data: dict[str, Any] = {"name": item.name}
    if item.kind is OpKind.COPY:
        source, target = item.accesses
        data["copy"] = {"from": access_text(source), "to": access_text(target)}
    elif item.kind is OpKind.FILL:
        data["fill"] = {"to": access_text(item.accesses[0]), "value": item.value}
    else:
        data[item.kind.value] = item.function
        data.update(_accesses(item.accesses))
        if item.args:
            data["args"] = dict(item.args)
    if item.after:
        data["after"] = [_after_text(edge, path, homes) for edge in item.after]
    options = {
        "engine": item.engine,
        "stream": item.stream,
        "cores": item.cores,
        "time": None if item.time is None else time_text(item.time),
        "work": None if item.work is None else _work_data(item.work),
        "priority": item.priority,
    }
    data.update({key: value for key, value in options.items() if value is not None})
    return data


def _work_data(work: Work) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if work.flop or not work.bytes:
        data["flop"] = int(work.flop) if work.flop.is_integer() else work.flop
    if work.bytes:
        data["bytes"] = _size_data(work.bytes)
    if work.dtype is not None:
        data["dtype"] = work.dtype
    return data


def _accesses(accesses: tuple[Access, ...]) -> Iterator[tuple[str, list[str]]]:
    for mode, key in _KEYS.items():
        texts = [access_text(access) for access in accesses if access.mode is mode]
        if texts:
            yield key, texts


def _after_text(edge: After, path: Path, homes: dict[str, Path]) -> str:
    """``op``, or ``op@i-1`` by the index of the innermost loop around both."""
    if edge.distance == 0:
        return edge.op
    common = [mine for mine, theirs in zip(path, homes[edge.op], strict=False) if mine == theirs]
    return f"{edge.op}@{common[-1][1]}-{edge.distance}"


def _body(data: dict[str, Any]) -> Iterator[str]:
    """The lines after the plan's name."""
    for key in ("device", "params", "streams", "memory"):
        if key in data:
            yield f"{key}: {flow_text(data[key])}"
    yield "buffers:" if data["buffers"] else "buffers: {}"
    for name, entry in data["buffers"].items():
        yield f"  {_key_text(name)} {flow_text(entry)}"
    yield "ops:" if data["ops"] else "ops: []"
    yield from _item_lines(data["ops"], "  ")


def _item_lines(items: list[dict[str, Any]], indent: str) -> Iterator[str]:
    for item in items:
        if "loop" not in item:
            yield f"{indent}- {flow_text(item)}"
            continue
        yield f"{indent}- loop: {scalar_text(item['loop'])}"
        yield f"{indent}  count: {scalar_text(item['count'])}"
        yield f"{indent}  ops:" if item["ops"] else f"{indent}  ops: []"
        yield from _item_lines(item["ops"], indent + "    ")


def flow_text(value: Any) -> str:
    """Plain data in YAML's flow style, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key_text(str(key))} {flow_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow_text(item) for item in value) + "]"
    return scalar_text(value)


def _key_text(key: str) -> str:
    text = scalar_text(key)
    return f"{text}:" if len(text) <= _MAX_KEY else f"? {text} :"


def scalar_text(value: Any) -> str:
    """A scalar of YAML 1.2 that reads back equal, quoted where any version of YAML might take it for something else."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, int):
        return str(value)
    text = str(value)
    plain = _PLAIN.match(text) and not _NUMBER_LIKE.match(text) and text.lower() not in _OLD_WORDS
    if plain and resolve_scalar(text) == text:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    digits, exponent, power = repr(value).partition("e")
    if exponent and "." not in digits:
        digits += ".0"  # YAML 1.1 takes `1e-06` for a string
    return digits + exponent + power
