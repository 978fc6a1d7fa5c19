"""Read the buffers of a plan file: sizes, shapes, rings and marks, each with what is wrong with it."""

from __future__ import annotations

from math import prod

from dagsched.nodes import Node
from dagsched.plan.access import AccessError, check_name
from dagsched.plan.expressions import MAX_MAGNITUDE
from dagsched.plan.findings import Findings
from dagsched.plan.model import DTYPES, Buffer, Place, Ring
from dagsched.plan.plan_file import BufferEntry, RingBounds
from dagsched.plan.units import UnitError, parse_size

_OTHER_DTYPES = {
    "half": "float16", "fp16": "float16", "f16": "float16", "bf16": "bfloat16", "float": "float32", "fp32": "float32",
    "f32": "float32", "single": "float32", "double": "float64", "fp64": "float64", "f64": "float64", "int": "int32",
    "i32": "int32", "long": "int64", "i64": "int64", "i8": "int8", "u8": "uint8", "byte": "uint8", "short": "int16",
}  # fmt: skip


def read_buffers(entries: dict[str, BufferEntry], node: Node, findings: Findings) -> tuple[dict[str, Buffer], set[str]]:
    """All buffers by name, and the names of those whose size is not known since something is wrong with it."""
    buffers: dict[str, Buffer] = {}
    broken: set[str] = set()
    for name, entry in entries.items():
        key, body = node.by_key[name]
        try:
            check_name(name, "a buffer's name")
        except AccessError as error:
            findings.report("P105", error.message, key.within(error.offset), remedy=error.remedy)
        size = _read_size(name, entry, key, body, findings)
        if size is None:
            broken.add(name)
        _check_marks(name, entry, body, findings)
        buffers[name] = Buffer(
            name=name,
            place=Place(entry.place),
            size=size or 1,
            shape=tuple(entry.shape) if entry.shape is not None and size is not None else None,
            dtype=entry.dtype if size is not None else None,
            ring=_read_ring(name, entry, body, findings),
            pageable=entry.pageable,
            input=entry.input,
            output=entry.output,
            dynamic=entry.dynamic,
            where=key.where,
        )
    return buffers, broken


def _read_size(name: str, entry: BufferEntry, key: Node, body: Node, findings: Findings) -> int | None:
    """Bytes of one slot, or None where that cannot be known."""
    if entry.shape is not None:
        return _read_shape(name, entry, entry.shape, body, findings)
    if entry.dtype is not None:
        place = body.key("dtype")
        findings.report("P121", f"`{name}` has a `dtype` and no `shape`", place.where if place else key.where,
                        remedy="add `shape: [...]`, or drop `dtype`")  # fmt: skip
    if entry.size is None:
        findings.report("P120", f"`{name}` has no size", key.where, remedy="add `size: 48MiB`, or `shape` and `dtype`")
        return None
    value = body.get("size")
    try:
        return parse_size(entry.size)
    except UnitError as error:
        findings.report("P104", f"`{name}`: {error.message}", value.within(error.offset) if value else key.where,
                        remedy=error.remedy)  # fmt: skip
        return None


def _read_shape(name: str, entry: BufferEntry, shape: list[int], body: Node, findings: Findings) -> int | None:
    where = body.key("shape")
    place = where.where if where else body.where
    if entry.size is not None:
        other = body.key("size")
        findings.report("P121", f"`{name}` has both `size` and `shape`", other.where if other else place,
                        remedy="drop one of them; `shape` and `dtype` give the size")  # fmt: skip
    if entry.dtype is None:
        findings.report("P121", f"`{name}` has a `shape` and no `dtype`", place, remedy="add `dtype: float16`")
        return None
    if entry.dtype not in DTYPES:
        value = body.get("dtype")
        place = value.where if value else place
        other_name = _OTHER_DTYPES.get(entry.dtype.lower())
        if other_name:
            findings.report("P122", f"unknown dtype `{entry.dtype}`", place, remedy=f"write `{other_name}`")
        else:
            findings.unknown("P122", "dtype", entry.dtype, DTYPES, place)
        return None
    size = prod(shape) * DTYPES[entry.dtype]
    if size > MAX_MAGNITUDE:
        findings.report("P104", f"the size of `{name}` does not fit into 64 bits", place)
        return None
    return size


def _check_marks(name: str, entry: BufferEntry, body: Node, findings: Findings) -> None:
    if entry.pageable and entry.place == "device":
        place = body.key("pageable")
        headline = f"`{name}` is device memory, which is never pageable"
        where = place.where if place else body.where
        findings.report("P124", headline, where, remedy="drop `pageable`, or write `place: host`")


def _read_ring(name: str, entry: BufferEntry, body: Node, findings: Findings) -> Ring:
    ring = entry.ring
    if isinstance(ring, int):
        return Ring(ring)
    if not isinstance(ring, RingBounds):
        return Ring(None)
    if ring.max is not None and ring.max < ring.min:
        place = body.get("ring")
        findings.report("P123", f"the ring of `{name}` has min {ring.min} above max {ring.max}",
                        place.where if place else body.where,
                        remedy=f"write `ring: {{min: {ring.max}, max: {ring.min}}}`")  # fmt: skip
    return Ring(None, ring.min, ring.max)
