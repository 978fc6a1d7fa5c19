"""Random plans as written: odd names, all kinds of ops, nested loops, versions, regions, orders, rings, devices."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hypothesis import strategies as st

from dagsched.plan.expressions import Expr, Int, Name, add, combine
from dagsched.plan.model import (
    DTYPES,
    Access,
    After,
    Buffer,
    Loop,
    Memory,
    Mode,
    Op,
    OpKind,
    Place,
    Plan,
    Ring,
    Slice,
    StreamOptions,
    Work,
)

ODD = ["class", "int", "a b", "x*/y", "名前", "<script>", "on",
       "null", "1", ".5", "0x1f", "~", "- a", "a: b", "#c", "it's",
       '"q"', "a, b", "{x}", "%", "&a", "*a", "!t", "|", ">", "\\", "2024-01-01",
       "1:30", "y", "=", "<<", "a #b", "é"]  # fmt: skip
NAMES = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(
    lambda text: text == text.strip() and not set(text) & set("@[]\u2028\u2029\ufeff\ufffe\uffff")
)
ORDER = [Mode.READ, Mode.WRITE, Mode.UPDATE, Mode.ACCUMULATE]
SIZES = st.integers(1, 2**62) | st.sampled_from([4096, 40_000, 48 * 2**20, 10**9])


@st.composite
def rings(draw: st.DrawFn) -> Ring:
    kind = draw(st.sampled_from(["one", "depth", "auto", "bounds"]))
    if kind == "one":
        return Ring()
    if kind == "depth":
        return Ring(draw(st.integers(1, 9)))
    low = draw(st.integers(1, 4))
    return Ring(None) if kind == "auto" else Ring(None, low, draw(st.none() | st.integers(low, 9)))


@st.composite
def buffers(draw: st.DrawFn) -> dict[str, Buffer]:
    found: dict[str, Buffer] = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)):
        place = draw(st.sampled_from(Place))
        shape = draw(st.none() | st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple))
        dtype = draw(st.sampled_from(sorted(DTYPES))) if shape else None
        size = draw(SIZES) if shape is None or dtype is None else prod(shape) * DTYPES[dtype]
        found[name] = Buffer(
            name,
            place,
            size,
            shape,
            dtype,
            draw(rings()),
            pageable=place is Place.HOST and draw(st.booleans()),
            input=draw(st.booleans()),
            output=draw(st.booleans()),
            dynamic=draw(st.booleans()),
        )
    return found


@st.composite
def accesses(draw: st.DrawFn, buffer: Buffer, mode: Mode, indices: tuple[str, ...]) -> Access:
    version: Expr | None = draw(st.none() | st.integers(-3, 3).map(Int))
    if len(indices) > 0 and draw(st.booleans()):
        version = add(Name(draw(st.sampled_from(indices))), draw(st.integers(-3, 3)))
    region = []
    for extent in buffer.extents[: draw(st.integers(0, len(buffer.extents)))]:
        lo = draw(st.integers(0, extent - 1))
        hi = draw(st.integers(lo + 1, extent))
        moved: Expr = Int(0)
        if len(indices) > 0 and draw(st.booleans()):
            moved = combine("*", Name(draw(st.sampled_from(indices))), Int(draw(st.integers(1, 64))))
        low: Expr | None = combine("+", moved, Int(lo))
        high: Expr | None = combine("+", moved, Int(hi))
        if moved == Int(0):
            low, high = draw(st.sampled_from([low, None])), draw(st.sampled_from([high, None]))
        region.append(Slice(low, high))
    return Access(buffer.name, mode, version, tuple(region))


@st.composite
def ops(draw: st.DrawFn, name: str, known: dict[str, Buffer], indices: tuple[str, ...], earlier: list[Op]) -> Op:
    kind = draw(st.sampled_from(OpKind))
    chosen = draw(st.lists(st.sampled_from(sorted(known)), max_size=3, unique=True))
    found: list[Access] = []
    if kind is OpKind.COPY:
        if len(known) < 2:
            kind = OpKind.COMPUTE
        else:
            source, target = draw(st.permutations(sorted(known)))[:2]
            found = [Access(source, Mode.READ), Access(target, Mode.WRITE)]
            sizes = known[source].size, known[target].size
            if sizes[0] != sizes[1] and not known[source].dynamic and not known[target].dynamic:
                kind, found = OpKind.FILL, found[1:]
    elif kind is OpKind.FILL:
        found = [draw(accesses(known[draw(st.sampled_from(sorted(known)))], Mode.WRITE, indices))]
    if kind in (OpKind.COMPUTE, OpKind.HOST):
        found = [draw(accesses(known[buffer], draw(st.sampled_from(ORDER)), indices)) for buffer in chosen]
        found.sort(key=lambda access: ORDER.index(access.mode))
    function = kind in (OpKind.COMPUTE, OpKind.HOST)
    args = draw(st.dictionaries(NAMES, st.sampled_from(chosen), max_size=2)) if function and chosen else {}
    after = draw(st.lists(st.sampled_from(earlier).map(lambda op: After(op.name)), max_size=2)) if earlier else []
    if len(indices) > 0 and draw(st.booleans()):
        after.append(After(name, draw(st.integers(1, 4))))
    work = None
    if kind is OpKind.COMPUTE and draw(st.integers(0, 3)) == 0:
        flop = draw(st.floats(0, 1e18) | st.integers(0, 10**18).map(float))
        work = Work(flop, draw(st.integers(0, 2**50)), draw(st.none() | st.sampled_from(["float16", "int8"])))
    return Op(
        name,
        kind,
        tuple(found),
        function=draw(NAMES) if function else None,
        args=tuple(args.items()),
        value=draw(st.integers(0, 255)) if kind is OpKind.FILL else 0,
        after=tuple(dict.fromkeys(after)),
        engine=draw(st.none() | NAMES),
        stream=draw(st.none() | NAMES),
        cores=draw(st.none() | st.integers(1, 64)) if function else None,
        time=None if work else draw(st.none() | st.floats(1e-9, 1e3) | st.just(0.0)),
        work=work,
        priority=draw(st.none() | st.integers(-5, 5)),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan that the reader accepts."""
    known = draw(buffers())
    params = draw(st.dictionaries(st.sampled_from(["n", "名", "frames_2"]), st.none() | st.integers(0, 9), max_size=2))
    names = iter(draw(st.lists(NAMES, min_size=12, max_size=12, unique=True)))
    earlier: list[Op] = []

    def body(indices: tuple[str, ...], most: int) -> tuple[Op | Loop, ...]:
        items: list[Op | Loop] = []
        for _ in range(draw(st.integers(1 if indices else 0, most))):
            if len(indices) < 2 and draw(st.integers(0, 2)) == 0:
                index = f"{'ij'[len(indices)]}{draw(st.sampled_from(['', '_']))}"
                count: Expr = Int(draw(st.integers(0, 5)))
                if not indices and params and draw(st.booleans()):
                    count = combine("*", Name(draw(st.sampled_from(sorted(params)))), Int(draw(st.integers(1, 3))))
                items.append(Loop(index, count, body((*indices, index), 2)))
                continue
            name = next(names, None)
            if name is None:
                continue
            op = draw(ops(name, known, indices, earlier))
            earlier.append(op)
            items.append(op)
        if indices and not items:
            items.append(Op(f"spare {'.'.join(indices)} {len(earlier)}", OpKind.COMPUTE, (), function="f"))
            earlier.append(replace(items[-1]) if isinstance(items[-1], Op) else earlier[-1])
        return tuple(items)

    device = draw(
        st.sampled_from(["ascend-910b", "./my device.yaml"]) | st.just({"name": "x", "engines": {"c": {"lanes": 4}}})
    )
    options = StreamOptions(draw(st.none() | st.integers(1, 9)), draw(st.sampled_from(["auto", "engine", "single"])))
    name = draw(NAMES.filter(lambda text: not set(text) & set("/\\") and not text.startswith(".")))
    memory = Memory(*(draw(st.none() | st.integers(1, 2**40)) for _ in range(2)))
    return Plan(name, known, body((), 4), device, params, options, memory)
