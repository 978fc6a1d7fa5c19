"""What can be said of one op's accesses while reading: bounds, sizes of copies, and modes that contradict each other.

Only what holds for every run is refused here: bounds and lengths that are constant. What depends on a loop index or
a parameter is followed by ``dagsched.plan.resolve``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from dagsched.diagnostics import Label
from dagsched.nodes import Node
from dagsched.plan.access import access_text, unit_offset
from dagsched.plan.expressions import Expr, Int, combine, linear_in, names_in
from dagsched.plan.findings import Findings
from dagsched.plan.model import Access, Buffer, Mode, Slice
from dagsched.plan.regions import intersect


def check_region(access: Access, buffer: Buffer, node: Node, findings: Findings) -> Access | None:
    """The access if its constant bounds lie within its buffer, else None with what is wrong reported."""
    text = str(node.value)
    at = text.find("[")
    where = node.within(at, len(text.rstrip()) - at) if at >= 0 else node.where
    unit = unit_offset(text) if buffer.shape is not None else None
    if unit is not None:
        headline = f"bounds of `{buffer.name}` count elements, since it has a `shape`"
        findings.report("P133", headline, node.within(unit), remedy="write plain numbers of elements")
        return None
    if len(access.region) > len(buffer.extents):
        axes = len(buffer.extents)
        named = "1 axis" if axes == 1 else f"{axes} axes"
        headline = f"the region has {len(access.region)} axes and `{buffer.name}` has {named}"
        bytes_only = "give the buffer a `shape` and a `dtype`, or write one pair of bounds"
        remedy = bytes_only if buffer.shape is None else None
        findings.report("P131", headline, where, remedy=remedy)
        return None
    good = True
    for axis, (part, extent) in enumerate(zip(access.region, buffer.extents, strict=False)):
        fault = _bounds_fault(part, extent)
        if fault is None:
            continue
        good = False
        code, message = fault
        named = f" on axis {axis}" if len(buffer.extents) > 1 else ""
        unit_name = "elements" if buffer.shape is not None else "bytes"
        notes = [f"`{buffer.name}` has {extent:,} {unit_name}{named}"]
        label = [Label(buffer.where, f"`{buffer.name}` is declared here")] if buffer.where else []
        findings.report(code, f"the region {message}{named}", where, labels=label, notes=notes,
                        remedy=f"write bounds from 0 to {extent}")  # fmt: skip
    return access if good else None


def _bounds_fault(part: Slice, extent: int) -> tuple[str, str] | None:
    """Code and message where constant bounds are empty, reversed or outside ``[0, extent)``."""
    lo = 0 if part.lo is None else part.lo.value if isinstance(part.lo, Int) else None
    hi = extent if part.hi is None else part.hi.value if isinstance(part.hi, Int) else None
    if lo is not None and lo < 0:
        return "P130", f"starts at {lo}, before its buffer"
    if hi is not None and hi > extent:
        return "P130", f"ends at {hi}, beyond its buffer, which ends at {extent}"
    if lo is not None and lo >= extent:
        return "P130", f"starts at {lo}, beyond its buffer, which ends at {extent}"
    if lo is not None and hi is not None and lo >= hi:
        return "P132", f"from {lo} to {hi} is empty"
    length = _length(part, extent)
    if length is not None and length <= 0:
        return "P132", "is empty in every iteration"
    return None


def _length(part: Slice, extent: int) -> int | None:
    """How many bytes or elements bounds span, where that is the same in every iteration."""
    lo: Expr = Int(0) if part.lo is None else part.lo
    hi: Expr = Int(extent) if part.hi is None else part.hi
    return _difference(hi, lo)


def _difference(a: Expr, b: Expr) -> int | None:
    """``a - b`` where it is a constant that is plain to see."""
    if a == b:
        return 0
    for name in sorted(names_in(a) | names_in(b)):
        left, right = linear_in(a, name), linear_in(b, name)
        if left is None or right is None or left[0] != right[0]:
            return None
        a, b = left[1], right[1]
    difference = combine("-", a, b)
    return difference.value if isinstance(difference, Int) else None


def size_of(access: Access, buffer: Buffer) -> int | None:
    """Bytes that an access touches, where that is the same in every iteration."""
    lengths = [_length(part, extent) for part, extent in zip(access.region, buffer.extents, strict=False)]
    known = [length for length in lengths if length is not None]
    if len(known) < len(lengths):
        return None
    return prod(known) * prod(buffer.extents[len(lengths) :]) * buffer.itemsize


def check_copy(
    name: str, source: Access, target: Access, buffers: dict[str, Buffer], broken: set[str], findings: Findings
) -> None:
    """Refuse a copy between different sizes, and one onto what it reads."""
    if source.buffer in broken or target.buffer in broken:
        return
    from_buffer, to_buffer = buffers[source.buffer], buffers[target.buffer]
    if source.buffer == target.buffer and source.version == target.version and _may_share(source, target, from_buffer):
        headline = f"`{name}` copies `{source.buffer}` onto itself"
        findings.report("P141", headline, target.where, remedy="copy between regions that do not overlap")
        return
    if from_buffer.dynamic or to_buffer.dynamic:
        return
    sizes = size_of(source, from_buffer), size_of(target, to_buffer)
    if None not in sizes and sizes[0] != sizes[1]:
        headline = f"`{name}` copies {sizes[0]:,} bytes to a place of {sizes[1]:,}"
        label = [Label(source.where, f"{sizes[0]:,} bytes")] if source.where else []
        remedy = _fitting(source, target, from_buffer, to_buffer)
        findings.report("P140", headline, target.where, labels=label, remedy=remedy)


def _fitting(source: Access, target: Access, from_buffer: Buffer, to_buffer: Buffer) -> str:
    """The copy of the smaller size, where one end is a whole buffer of bytes."""
    have, want = size_of(source, from_buffer) or 0, size_of(target, to_buffer) or 0
    larger, buffer = (source, from_buffer) if have > want else (target, to_buffer)
    if not larger.region and buffer.shape is None:
        return f'write "{access_text(replace(larger, region=(Slice(Int(0), Int(min(have, want))),)))}"'
    return "make both the same size, or mark a buffer `dynamic: true` if its size differs by iteration"


def _constant_box(access: Access, buffer: Buffer) -> tuple[tuple[int, int], ...] | None:
    box = []
    for axis, extent in enumerate(buffer.extents):
        part = access.region[axis] if axis < len(access.region) else Slice()
        lo = Int(0) if part.lo is None else part.lo
        hi = Int(extent) if part.hi is None else part.hi
        if not isinstance(lo, Int) or not isinstance(hi, Int):
            return None
        box.append((lo.value, hi.value))
    return tuple(box)


def _may_share(a: Access, b: Access, buffer: Buffer) -> bool:
    """Whether two accesses of one version surely touch a common byte."""
    if a.region == b.region:
        return True
    first, second = _constant_box(a, buffer), _constant_box(b, buffer)
    if first is None or second is None:
        return False
    return intersect(first, second) is not None


def check_modes(
    name: str, accesses: Sequence[Access], buffers: dict[str, Buffer], broken: set[str], findings: Findings
) -> tuple[Access, ...]:
    """The accesses of a function by mode, with a read and a write of the same bytes made one update.

    Refuses the same bytes named twice, and accumulates of bytes that the op also touches otherwise.
    """
    kept: list[Access] = []
    by_buffer: dict[str, list[int]] = {}
    for access in accesses:
        merged = False
        for position in by_buffer.get(access.buffer, ()):
            earlier = kept[position]
            if earlier.version != access.version:
                continue
            same = earlier.region == access.region
            if same and (earlier.mode, access.mode) == (Mode.READ, Mode.WRITE):
                kept[position] = replace(earlier, mode=Mode.UPDATE)
                merged = True
            elif same or _contradict(earlier, access, buffers, broken):
                _report_twice(name, earlier, access, same, findings)
                merged = True
            if merged:
                break
        if not merged:
            by_buffer.setdefault(access.buffer, []).append(len(kept))
            kept.append(access)
    return tuple(sorted(kept, key=lambda access: list(_KEYS).index(access.mode)))


def _contradict(a: Access, b: Access, buffers: dict[str, Buffer], broken: set[str]) -> bool:
    accumulated = (a.mode is Mode.ACCUMULATE) != (b.mode is Mode.ACCUMULATE)
    return accumulated and a.buffer not in broken and _may_share(a, b, buffers[a.buffer])


_KEYS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.UPDATE: "updates", Mode.ACCUMULATE: "accumulates"}


def _report_twice(name: str, earlier: Access, access: Access, same: bool, findings: Findings) -> None:
    text = access_text(access)
    label = [Label(earlier.where, f"in `{_KEYS[earlier.mode]}`")] if earlier.where else []
    if earlier.mode is access.mode:
        headline = f"`{name}` names `{text}` twice in `{_KEYS[access.mode]}`"
        remedy = "drop one of them"
    elif same and Mode.ACCUMULATE not in (earlier.mode, access.mode):
        headline = f"`{name}` names `{text}` in `{_KEYS[earlier.mode]}` and in `{_KEYS[access.mode]}`"
        remedy = "keep it in `updates` only"
    else:
        headline = f"`{name}` accumulates into bytes of `{access.buffer}` that it also touches otherwise"
        remedy = "use `updates` if the order matters, else `accumulates` only"
    findings.report("P142", headline, access.where, labels=label, remedy=remedy)
