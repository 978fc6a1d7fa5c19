"""Random plans: loops of constant and parametric count, rings, versions, regions, all four kinds of op, ``after:``.

Every plan that comes out reads what was written before (or an input) and compiles; what does not is drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from dagsched.diagnostics import PlanError
from dagsched.hazards.find import find_hazards
from dagsched.library import Plan
from dagsched.plan.expressions import Binary, Expr, Int, Name, add
from dagsched.plan.model import Access, After, Buffer, Loop, Mode, Op, OpKind, Place, Ring, Slice
from dagsched.plan.model import Plan as PlanModel
from dagsched.plan.resolve import resolve_plan

SIZE = 12
"""Bytes of every buffer."""


def plans(
    *,
    ops: int = 4,
    loops: int = 2,
    params: bool = True,
    regions: bool = True,
    device: str = "ascend-910b",
) -> st.SearchStrategy[Plan]:
    """Plans of at most ``loops`` loops, with up to ``ops`` ops in and between them; they shrink to few and simple ops.

    ``params``: counts may be parameters; ``regions``: accesses may touch parts of a buffer. Each yields a
    :class:`dagsched.Plan` that compiles for ``device``.
    """
    if ops < 1 or loops < 0:
        raise ValueError("plans need at least one op, and no fewer than 0 loops")
    return _models(ops, loops, params, regions, device).filter(_compiles).map(Plan.from_model)


def _compiles(plan: PlanModel) -> bool:
    try:
        find_hazards(resolve_plan(plan))
    except PlanError:
        return False
    return True


@st.composite
def _models(draw: st.DrawFn, ops: int, loops: int, params: bool, regions: bool, device: str) -> PlanModel:
    buffers = {f"b{number}": draw(_buffers(f"b{number}")) for number in range(draw(st.integers(1, 4)))}
    known: dict[str, int | None] = {}
    items: list[Op | Loop] = []
    names = iter(f"op{number}" for number in range(1_000))
    kinds = draw(st.lists(st.sampled_from(["ops", "loop"]), min_size=1, max_size=2 * loops + 1))
    for kind in kinds:
        if kind == "loop" and sum(isinstance(item, Loop) for item in items) < loops:
            count: Expr = Int(draw(st.integers(0, 5)))
            if params and draw(st.booleans()):
                name = draw(st.sampled_from("nm"))
                known[name] = None
                count = Name(name)
            body: tuple[Op | Loop, ...] = draw(_bodies(buffers, "i", names, ops, regions))
            if draw(st.integers(0, 5)) == 5:
                inner = draw(_bodies(buffers, "j", names, 1, False))
                body = (*body, Loop("j", Int(draw(st.integers(1, 2))), inner))
            items.append(Loop("i", count, body))
        else:
            items += draw(_bodies(buffers, None, names, ops, regions))
    used = {access.buffer for op in PlanModel("", {}, tuple(items)).ops() for access in op.accesses}
    return PlanModel(
        "random", {name: buffer for name, buffer in buffers.items() if name in used}, tuple(items), device, known
    )


@st.composite
def _buffers(draw: st.DrawFn, name: str) -> Buffer:
    place = draw(st.sampled_from([Place.DEVICE, Place.DEVICE, Place.HOST]))
    depth = draw(st.sampled_from([1, 1, 2, 3, None]))
    ring = Ring(None, 1, None) if depth is None else Ring(depth, depth, depth)
    return Buffer(name, place, SIZE, ring=ring, input=True, output=draw(st.booleans()))


@st.composite
def _bodies(
    draw: st.DrawFn,
    buffers: dict[str, Buffer],
    index: str | None,
    names: Iterator[str],
    most: int,
    regions: bool,
) -> tuple[Op, ...]:
    found: list[Op] = []
    for _ in range(draw(st.integers(1, most))):
        found.append(draw(_ops(buffers, index, next(names), tuple(found), regions)))
    return tuple(found)


@st.composite
def _ops(
    draw: st.DrawFn, buffers: dict[str, Buffer], index: str | None, name: str, before: Sequence[Op], regions: bool
) -> Op:
    after: tuple[After, ...] = ()
    if before and draw(st.integers(0, 9)) == 9:
        after = (After(draw(st.sampled_from(before)).name, draw(st.integers(0, 2)) if index == "i" else 0),)
    kind = draw(st.sampled_from([OpKind.COMPUTE, OpKind.COMPUTE, OpKind.COPY, OpKind.HOST, OpKind.FILL]))
    places = {Place.HOST} if kind is OpKind.HOST else {Place.DEVICE} if kind is OpKind.COMPUTE else set(Place)
    chosen = [buffer for buffer in buffers.values() if buffer.place in places]
    if kind is OpKind.COPY and len(chosen) > 1:
        source, target = draw(st.permutations(chosen).map(lambda rows: rows[:2]))
        return Op(name, kind, (_access(source, Mode.READ), _access(target, Mode.WRITE)), after=after)
    if kind is OpKind.FILL and chosen:
        return Op(name, kind, (_access(draw(st.sampled_from(chosen)), Mode.WRITE),), value=7, after=after)
    if kind in (OpKind.COPY, OpKind.FILL) or not chosen:
        kind = OpKind.COMPUTE if any(b.place is Place.DEVICE for b in buffers.values()) else OpKind.HOST
        wanted = Place.DEVICE if kind is OpKind.COMPUTE else Place.HOST
        chosen = [buffer for buffer in buffers.values() if buffer.place is wanted]
    touched = draw(st.lists(st.sampled_from(chosen), min_size=1, max_size=2, unique_by=lambda buffer: buffer.name))
    modes = [Mode.READ, Mode.WRITE, Mode.UPDATE, Mode.ACCUMULATE]
    accesses = tuple(
        Access(
            buffer.name, draw(st.sampled_from(modes)), draw(_versions(buffer, index)), draw(_regions(index, regions))
        )
        for buffer in touched
    )
    return Op(name, kind, accesses, function="f", after=after, time=1e-4)


def _access(buffer: Buffer, mode: Mode) -> Access:
    return Access(buffer.name, mode)


def _versions(buffer: Buffer, index: str | None) -> st.SearchStrategy[Expr | None]:
    """Mostly the bare name; in the loop of a ring also another iteration's version."""
    if index != "i" or buffer.ring.depth == 1:
        return st.none()
    return st.sampled_from([None, None, None, add(Name("i"), -1), add(Name("i"), -2), Name("i")])


def _regions(index: str | None, regions: bool) -> st.SearchStrategy[tuple[Slice, ...]]:
    """Mostly the whole; else a part, in a loop also one that moves."""
    whole: list[tuple[Slice, ...]] = [(), (), ()]
    if not regions:
        return st.just(())
    parts = [(Slice(Int(0), Int(6)),), (Slice(Int(4), Int(12)),), (Slice(Int(6), Int(12)),)]
    moving = [(Slice(Binary("*", Name("i"), Int(2)), add(Binary("*", Name("i"), Int(2)), 2)),)]
    return st.sampled_from([*whole, *parts, *(moving if index == "i" else [])])
