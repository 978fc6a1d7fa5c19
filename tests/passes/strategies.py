"""Random resolved plans: loops of constant and parametric count, rings, versions, regions, ``after:``, streams."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dagsched.plan.expressions import Binary, Call, Expr, Int, Name, add
from dagsched.plan.model import Access, After, Buffer, Loop, Mode, Op, OpKind, Place, Plan, Ring, Slice
from dagsched.plan.resolve import name_versions
from dagsched.plan.samples import find_limits
from dagsched.plan.segments import split_segments
from dagsched.plan.versions import find_newest

SIZE = 12


@st.composite
def buffers(draw: st.DrawFn) -> dict[str, Buffer]:
    count = draw(st.integers(1, 4))
    found = {}
    for n in range(count):
        depth = draw(st.sampled_from([1, 1, 1, 2, 2, 3]))
        found[f"b{n}"] = Buffer(f"b{n}", Place.DEVICE, SIZE, ring=Ring(depth, depth, depth), input=True)
    return found


@st.composite
def accesses(draw: st.DrawFn, known: dict[str, Buffer], index: str | None) -> tuple[Access, ...]:
    chosen = draw(st.lists(st.sampled_from(sorted(known)), min_size=0, max_size=2, unique=True))
    found = []
    for name in chosen:
        mode = draw(st.sampled_from([Mode.READ, Mode.READ, Mode.WRITE, Mode.WRITE, Mode.UPDATE, Mode.ACCUMULATE]))
        version: Expr | None = None
        if index and draw(st.integers(0, 3)) == 0:
            version = add(Name(index), draw(st.integers(-2, 2)))
        elif index and draw(st.integers(0, 14)) == 0:
            i = Name(index)
            odd: list[Expr] = [
                Binary("%", i, Int(2)),
                Binary("%", i, Int(3)),
                Binary("*", i, Int(2)),
                Binary("//", i, Int(2)),
            ]
            version = draw(st.sampled_from([*odd, Int(0)]))
        region: tuple[Slice, ...] = ()
        if index and draw(st.integers(0, 7)) == 0:
            step, width = draw(st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3), (4, 4), (-2, 2)]))
            moved = Binary("*", Name(index), Int(step))
            first = moved if step > 0 else add(moved, SIZE - 2)
            last = add(first, width)
            region = (Slice(first, Call("min", (last, Int(SIZE))) if draw(st.booleans()) else last),)
        elif draw(st.integers(0, 3)) == 0:
            lo = draw(st.integers(0, SIZE - 1))
            region = (Slice(Int(lo), Int(draw(st.integers(lo + 1, SIZE)))),)
        found.append(Access(name, mode, version, region))
    return tuple(found)


@st.composite
def bodies(draw: st.DrawFn, known: dict[str, Buffer], index: str | None, prefix: str, most: int) -> tuple[Op, ...]:
    ops: list[Op] = []
    for n in range(draw(st.integers(1, most))):
        after: tuple[After, ...] = ()
        if ops and draw(st.integers(0, 9)) == 0:
            after = (After(draw(st.sampled_from(ops)).name, draw(st.integers(0, 2)) if index else 0),)
        ops.append(Op(f"{prefix}{n}", OpKind.COMPUTE, draw(accesses(known, index)), function="f", after=after))
    return tuple(ops)


@st.composite
def plans(draw: st.DrawFn, parametric: bool = True, loops: int = 2) -> Plan:
    """A plan ready for the passes after ``resolve``."""
    known = draw(buffers())
    items: list[Op | Loop] = []
    params: dict[str, int | None] = {}
    kinds = draw(st.lists(st.sampled_from(["ops", "loop"]), min_size=1, max_size=4))
    seen = 0
    for n, kind in enumerate(kinds):
        if kind == "loop" and seen < loops:
            seen += 1
            count: Expr = Int(draw(st.integers(0, 7)))
            if parametric and draw(st.booleans()):
                name = draw(st.sampled_from(["n", "m"]))
                params[name] = None
                count = Name(name)
                if draw(st.integers(0, 5)) == 0:
                    count = add(count, 1)
            items.append(Loop("i", count, draw(bodies(known, "i", f"o{n}_", 4))))
        else:
            items.extend(draw(bodies(known, None, f"o{n}_", 3)))
    return _clip(name_versions(_say_versions(Plan("random", known, tuple(items), params=params))))


def _say_versions(plan: Plan) -> Plan:
    """Outside loops, let accesses say their version where no newest one can be written down."""
    unclear = {
        name
        for name, buffer in plan.buffers.items()
        if (buffer.ring.depth or 1) > 1 and None in find_newest(split_segments(plan), name)
    }

    def say(access: Access) -> Access:
        return replace(access, version=access.version or Int(0)) if access.buffer in unclear else access

    items = [
        replace(item, accesses=tuple(say(access) for access in item.accesses)) if isinstance(item, Op) else item
        for item in plan.items
    ]
    return replace(plan, items=tuple(items))


def _clip(plan: Plan) -> Plan:
    """Shorten constant loops to what their moving regions allow."""
    segments = split_segments(plan)
    limits = {s.loop: limit for s, limit in zip(segments, find_limits(plan, segments), strict=True) if s.loop}
    items = [
        replace(item, count=Int(min(item.count.value, limits[item])))
        if isinstance(item, Loop) and isinstance(item.count, Int)
        else item
        for item in plan.items
    ]
    return replace(plan, items=tuple(items))


@st.composite
def assignments(draw: st.DrawFn, plan: Plan) -> dict[str, str]:
    """A stream for every op."""
    most = draw(st.integers(1, 4))
    return {op.name: f"s{draw(st.integers(0, most - 1))}" for op in plan.ops()}
