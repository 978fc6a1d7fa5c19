"""Read the buffers of a schedule file: places, rings, aliases and sizes, each with what contradicts another.

Little is asked of a buffer, since schedules written by hand seldom say more than its place; what is said must fit.
"""

from __future__ import annotations

from math import prod

from dagsched.diagnostics import Label, Where
from dagsched.nodes import Node
from dagsched.plan.access import AccessError, check_name, unit_offset
from dagsched.plan.expressions import MAX_MAGNITUDE, Expr, Int
from dagsched.plan.findings import Findings
from dagsched.plan.model import DTYPES, Access, Place, Slice
from dagsched.plan.units import UnitError, parse_size
from dagsched.schedule.model import Storage
from dagsched.schedule.schedule_file import StorageEntry


def read_storage(entries: dict[str, StorageEntry], node: Node | None, findings: Findings) -> dict[str, Storage]:
    """All declared buffers by name."""
    buffers: dict[str, Storage] = {}
    if node is None:
        return buffers
    for name, entry in entries.items():
        key, body = node.by_key[name]
        try:
            check_name(name, "a buffer's name")
        except AccessError as error:
            findings.report("S105", error.message, key.within(error.offset), remedy=error.remedy)
        buffers[name] = Storage(
            name=name,
            place=None if entry.place is None else Place(entry.place),
            ring=entry.ring,
            space=entry.space,
            at=None if entry.at is None else (entry.at[0], entry.at[1]),
            alias=entry.alias,
            size=_read_size(name, entry, body, findings),
            shape=None if entry.shape is None else tuple(entry.shape),
            dtype=entry.dtype,
            where=key.where,
        )
        _check_dtype(buffers[name], body, findings)
        _check_at(buffers[name], body, findings)
    for name, storage in buffers.items():
        if storage.alias is not None:
            _check_alias(storage, storage.alias, buffers, node.by_key[name][1], findings)
    return buffers


def _read_size(name: str, entry: StorageEntry, body: Node, findings: Findings) -> int | None:
    if entry.size is None:
        return None
    node = body.by_key["size"][1]
    try:
        size = parse_size(entry.size)
    except UnitError as error:
        findings.report("S104", f"`{name}`: {error.message}", node.within(error.offset), remedy=error.remedy)
        return None
    if entry.shape is not None and entry.dtype in DTYPES:
        expected = prod(entry.shape) * DTYPES[entry.dtype]
        if size != expected:
            headline = f"`{name}` has a size of {size:,} bytes, and its shape and dtype give {expected:,}"
            findings.report("S123", headline, node.where, remedy=f"write `size: {expected}`, or remove it")
    return size


def _check_dtype(storage: Storage, body: Node, findings: Findings) -> None:
    if storage.dtype is None:
        return
    if storage.dtype not in DTYPES:
        findings.unknown("S123", "dtype", storage.dtype, DTYPES, body.by_key["dtype"][1].where)
    elif storage.shape is None:
        where = body.by_key["dtype"][0].where
        findings.report("S123", f"`{storage.name}` has a `dtype` and no `shape`", where, remedy="add `shape: [...]`")
    elif prod(storage.shape) * DTYPES[storage.dtype] > MAX_MAGNITUDE:
        where = body.by_key["shape"][1].where
        findings.report("S104", f"the size of `{storage.name}` does not fit into 64 bits", where)


def _check_at(storage: Storage, body: Node, findings: Findings) -> None:
    """The addresses must hold the slots."""
    if storage.at is None:
        return
    (lo, hi), where, name = storage.at, body.by_key["at"][1].where, storage.name
    if lo >= hi:
        remedy = f"write `at: [{hi}, {lo}]`" if lo > hi else f"write `at: [{lo}, {lo + (storage.size or 4096)}]`"
        findings.report("S120", f"`{name}` is placed at an empty range", where, remedy=remedy)
        return
    if (hi - lo) % storage.ring:
        headline = f"{hi - lo:,} addresses cannot be split evenly into the {storage.ring} slots of `{name}`"
        near = lo + -(-(hi - lo) // storage.ring) * storage.ring
        findings.report("S120", headline, where, remedy=f"write `at: [{lo}, {near}]`")
        return
    size = storage.size
    if size is None and storage.shape is not None and storage.dtype in DTYPES:
        size = prod(storage.shape) * DTYPES[storage.dtype]
    if size is not None and size * storage.ring > hi - lo:
        slots = f"{storage.ring} slots of {size:,} bytes" if storage.ring > 1 else f"{size:,} bytes"
        headline = f"{slots} do not fit into the {hi - lo:,} addresses of `{name}`"
        findings.report("S120", headline, where, remedy=f"write `at: [{lo}, {lo + size * storage.ring}]`")


def _check_alias(storage: Storage, alias: str, buffers: dict[str, Storage], body: Node, findings: Findings) -> None:
    """The other buffer must be there, and be able to hold this one."""
    name, where = storage.name, body.by_key["alias"][1].where
    if alias not in buffers:
        others = [other for other in buffers if other != name]
        remedy = f"declare it under `buffers`: `{alias}: {{}}`"
        findings.unknown("S121", "buffer", alias, others, where, remedy)
        return
    chain, at = [name], buffers[alias]
    while at.alias in buffers and at.name not in chain:
        chain.append(at.name)
        at = buffers[at.alias]
    if at.name in chain:
        if at.name == name == next(first for first in buffers if first in chain):  # once for each circle
            circle = " -> ".join(f"`{step}`" for step in [*chain, name])
            findings.report("S122", f"aliases go round in a circle: {circle}", where, remedy="remove one `alias`")
        return
    label = [Label(at.where, f"`{at.name}` is declared here")] if at.where else []
    if storage.at is not None:
        key = body.by_key["at"][0].where
        findings.report("S121", f"`{name}` has both an `alias` and a place of its own", key, remedy="remove `at`")
    for what in ("place", "space"):
        own, other = getattr(storage, what), getattr(at, what)
        if own is not None and other is not None and own != other:
            headline = f"`{name}` has the {what} `{own}`, and its storage is that of `{at.name}`, in `{other}`"
            findings.report("S121", headline, body.by_key[what][1].where, labels=label, remedy=f"remove `{what}`")


def check_region(access: Access, storage: Storage | None, node: Node, findings: Findings) -> None:
    """Report constant bounds that no buffer, or not this one, can have."""
    text = str(node.value)
    at = text.find("[")
    where = node.within(at, len(text.rstrip()) - at)
    extents: tuple[int, ...] | None = None
    if storage is not None and storage.shape is not None:
        extents = storage.shape
        unit = unit_offset(text)
        if unit is not None:
            headline = f"bounds of `{storage.name}` count elements, since it has a `shape`"
            findings.report("S133", headline, node.within(unit), remedy="write plain numbers of elements")
            return
    elif storage is not None and storage.size is not None:
        extents = (storage.size,)
    if extents is not None and len(access.region) > len(extents):
        axes = "1 axis" if len(extents) == 1 else f"{len(extents)} axes"
        headline = f"the region has {len(access.region)} axes and `{access.buffer}` has {axes}"
        findings.report("S131", headline, where, remedy=f"write bounds for {axes}")
        return
    for axis, part in enumerate(access.region):
        _check_bounds(access.buffer, part, extents[axis] if extents is not None else None, where, findings)


def _check_bounds(name: str, part: Slice, extent: int | None, where: Where, findings: Findings) -> None:
    lo, hi = 0 if part.lo is None else _constant(part.lo), extent if part.hi is None else _constant(part.hi)
    notes = [] if extent is None else [f"the bounds of `{name}` go from 0 to {extent:,}"]
    remedy = f"write bounds from 0 to {extent}" if extent is not None else "write bounds from 0 up"
    if lo is not None and hi is not None and lo >= hi:
        remedy = f"write `{hi}:{lo}`" if lo > hi >= 0 else f"write `{lo}:{lo + 1}`"
        findings.report("S132", f"the region from {lo} to {hi} is empty", where, remedy=remedy)
    elif lo is not None and lo < 0:
        findings.report("S130", f"the region starts at {lo}, before its buffer", where, notes=notes, remedy=remedy)
    elif hi is not None and extent is not None and hi > extent:
        findings.report("S130", f"the region ends at {hi}, behind its buffer", where, notes=notes, remedy=remedy)


def _constant(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, Int) else None
