"""Random plans with loops, and the best of all streams and orders of their bodies, by compiling every one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st

from dagsched.plan.expressions import Binary, Expr, Int, Name
from dagsched.plan.model import Access, After, Buffer, Loop, Mode, Op, OpKind, Place, Plan, Ring, StreamOptions

US = 1e-6
RINGS = (Ring(1), Ring(2), Ring(None), Ring(None), Ring(None, 1, 2))


@st.composite
def loop_plans(draw: st.DrawFn, most: int = 6, pins: bool = False, straight: bool = True) -> Plan:
    """A loop of two to ``most`` ops, perhaps with ops before and behind it, on engines as ``devices`` has them."""
    buffers = {f"b{n}": Buffer(f"b{n}", Place.DEVICE, 64, ring=draw(st.sampled_from(RINGS)), input=True, output=True) for n in range(5)}  # fmt: skip
    buffers["h0"] = Buffer("h0", Place.HOST, 64, input=True, output=True, pageable=draw(st.integers(0, 9)) == 0)
    number = 0

    def make(looped: bool, earlier: list[Op]) -> Op:
        nonlocal number
        kind = draw(st.sampled_from(["core", "core", "aux", "up", "cpu"]))
        names = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True))
        modes = st.sampled_from([Mode.READ, Mode.READ, Mode.WRITE, Mode.WRITE, Mode.UPDATE, Mode.ACCUMULATE])
        accesses = []
        for n in names:
            mode, version = draw(modes), None
            ring = buffers[f"b{n}"].ring
            if looped and mode is Mode.READ and ring.depth != 1 and draw(st.integers(0, 3)) == 0:
                version = Binary("-", Name("i"), Int(1))
            accesses.append(Access(f"b{n}", mode, version))
        if kind == "up":
            accesses = [Access("h0", Mode.READ), Access(f"b{names[0]}", Mode.WRITE)]
        after = (After(draw(st.sampled_from(earlier)).name),) if earlier and draw(st.integers(0, 6)) == 0 else ()
        number += 1
        return Op(
            f"o{number}",
            {"cpu": OpKind.HOST, "up": OpKind.COPY}.get(kind, OpKind.COMPUTE),
            tuple(accesses),
            function=None if kind == "up" else f"f{draw(st.integers(0, 1))}",
            time=draw(st.sampled_from([1, 2, 3, 5, 8, 13])) * US,
            engine="aux" if kind == "aux" else None,
            cores=draw(st.sampled_from([None, 1, 2, 3])) if kind == "core" else None,
            after=after,
            stream=draw(st.sampled_from([None, None, None, "mine", "yours"])) if pins else None,
        )

    def run(count: int, looped: bool) -> tuple[Op, ...]:
        ops: list[Op] = []
        for _ in range(count):
            ops.append(make(looped, ops))
        return tuple(ops)

    before = run(draw(st.integers(0, 2)) if straight else 0, False)
    body = run(draw(st.integers(2, most)), True)
    behind = run(draw(st.integers(0, 1)) if straight else 0, False)
    limit = draw(st.sampled_from([None, None, 2, 3]))
    items = (*before, Loop("i", Name("n"), body), *behind)
    return Plan("random", buffers, items, device="host", params={"n": None}, streams=StreamOptions(limit))
