"""Random plans with loops, and the quickest of all streams and orders of a body, by trying every one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hypothesis import strategies as st

from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import bound_loops, ring_edges
from dagsched.cost.model import Device
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.expressions import Binary, Int, Name
from dagsched.plan.model import Access, After, Buffer, Loop, Mode, Op, OpKind, Place, Plan, Ring, StreamOptions
from dagsched.plan.resolve import order_plan, resolve_rings
from dagsched.schedule.streams import make_assignment
from dagsched.trials import Start, reorder_start, try_assignment
from tests.choice.exhaustive import partitions

US = 1e-6
RINGS = (Ring(1), Ring(2), Ring(None), Ring(None), Ring(None, 1, 2))


def start_of(plan: Plan) -> Start:
    """A plan as the passes take it, in the order written."""
    ordered, faults = order_plan(plan)
    return Start(ordered, resolve_rings(ordered, faults), ring_edges(ordered))


def body_orders(start: Start) -> Iterator[tuple[int, ...]]:
    """Every order of a plan that is one loop in which an iteration keeps its hazards."""
    names = [op.name for op in start.resolved.ops()]
    before: dict[int, set[int]] = {n: set() for n in range(len(names))}
    for hazard in find_hazards(start.resolved).entries:
        if hazard.distance == 0:
            before[names.index(hazard.after)].add(names.index(hazard.before))

    def extend(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == len(names):
            yield done
        for op, row in before.items():
            if op not in done and row <= set(done):
                yield from extend((*done, op))

    return extend(())


def measure(
    start: Start, device: Device, order: tuple[int, ...], groups: tuple[int, ...], *, late: bool = True
) -> Fraction:
    """Ticks an iteration with the body in this order and its ops (by place in the plan) on these streams.

    ``late``: ops are issued late where that gains.
    """
    costs = op_costs(start.resolved, device)
    bounds = bound_loops(start.resolved, start.edges, costs, device)
    moved = reorder_start(start, order)
    sweep = Sweep(moved.resolved)
    assignment = make_assignment(sweep, costs, [f"s{groups[op]}" for op in order], "test")
    trial = try_assignment("", moved, bounds, assignment, device, False)
    return (trial.best if late else trial.fixed).measured.ticks


def count_candidates(start: Start, streams: int) -> int:
    """How many orders and assignments there are."""
    ops = sum(1 for _ in start.resolved.ops())
    return sum(1 for _ in body_orders(start)) * sum(1 for _ in partitions(ops, streams))


def find_best(start: Start, device: Device, streams: int, below: Fraction) -> Fraction:
    """The least interval of all orders and assignments to so many streams; ends early where one is below ``below``."""
    best: Fraction | None = None
    groups = list(partitions(sum(1 for _ in start.resolved.ops()), streams))
    for order in body_orders(start):
        for group in groups:
            ticks = measure(start, device, order, group)
            best = ticks if best is None else min(best, ticks)
            if best < below:
                return best
    assert best is not None
    return best


@st.composite
def loop_plans(draw: st.DrawFn, most: int = 6, pins: bool = False, straight: bool = True) -> Plan:
    """A loop of two to ``most`` ops, perhaps with ops before and behind it, on engines as ``devices`` has them."""
    buffers: dict[str, Buffer] = {}
    for name in ("b0", "b1", "b2", "b3", "b4"):
        buffers[name] = Buffer(name, Place.DEVICE, 64, ring=draw(st.sampled_from(RINGS)), input=True, output=True)
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
    items: tuple[Op | Loop, ...] = (*before, Loop("i", Name("n"), body), *behind)
    return Plan("random", buffers, items, device="host", params={"n": None}, streams=StreamOptions(limit))
