"""Random plans without loops, on devices whose calls, engines and limits matter."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dagsched.choice.problem import Candidate, Problem
from dagsched.cost.model import CallCosts, Device, Engine, Limits
from dagsched.plan.expressions import Int
from dagsched.plan.model import Access, After, Buffer, Mode, Op, OpKind, Place, Plan, Ring, StreamOptions

US = 1e-6


def make_plan(
    ops: list[Op], device: str = "host", streams: StreamOptions | None = None, pageable: bool = False
) -> Plan:
    """A plan of ops that touch ``b0`` to ``b5`` on the device, the last a ring of two, and ``h0`` on the host."""
    buffers = {f"b{n}": Buffer(f"b{n}", Place.DEVICE, 64, input=True, output=True) for n in range(6)}
    buffers["b5"] = replace(buffers["b5"], ring=Ring(2, 2, 2))
    buffers["h0"] = Buffer("h0", Place.HOST, 64, input=True, output=True, pageable=pageable)
    return Plan("random", buffers, tuple(ops), device=device, streams=streams or StreamOptions())


@st.composite
def devices(draw: st.DrawFn, free_calls: bool | None = None) -> Device:
    """One or two compute engines with lanes or cores, copies, host threads; calls from free to dear."""
    cores = draw(st.sampled_from([None, None, 4]))
    lanes = draw(st.sampled_from([1, 2, 3])) if cores is None else draw(st.sampled_from([1, 2]))
    engines = {
        "core": Engine("core", "compute", lanes=lanes, cores=cores),
        "up": Engine("up", "h2d"),
        "aux": Engine("aux", "compute"),
        "cpu": Engine("cpu", "host", lanes=draw(st.integers(1, 2))),
    }
    free = draw(st.booleans()) if free_calls is None else free_calls
    calls = CallCosts() if free else CallCosts(*(draw(st.sampled_from([0.5, 1, 2, 5])) * US for _ in range(3)))
    depth = draw(st.sampled_from([None, None, None, 2, 3, 5]))
    return Device("random", engines, calls, Limits(queue_depth=depth))


@st.composite
def plans(draw: st.DrawFn, most: int = 8, pins: bool = True, priorities: bool = True, policy: str = "auto") -> Plan:
    """Up to ``most`` ops."""
    ops: list[Op] = []
    for number in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["core", "core", "aux", "up", "cpu"]))
        names = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True))
        modes = st.sampled_from([Mode.READ, Mode.READ, Mode.WRITE, Mode.UPDATE, Mode.ACCUMULATE])
        slots = st.integers(0, 1).map(Int)
        accesses = tuple(Access(f"b{n}", draw(modes), draw(slots) if n == 5 else None) for n in names)
        if kind == "up":
            accesses = (Access("h0", Mode.READ), Access(f"b{min(names[0], 4)}", Mode.WRITE))
        after = (After(draw(st.sampled_from(ops)).name),) if ops and draw(st.integers(0, 5)) == 0 else ()
        ops.append(
            Op(
                f"o{number}",
                {"cpu": OpKind.HOST, "up": OpKind.COPY}.get(kind, OpKind.COMPUTE),
                accesses,
                function=None if kind == "up" else f"f{draw(st.integers(0, 1))}",
                time=draw(st.sampled_from([0, 1, 2, 3, 5, 8, 13])) * US,
                engine="aux" if kind == "aux" else None,
                cores=draw(st.sampled_from([None, 1, 2, 3])) if kind == "core" else None,
                priority=draw(st.sampled_from([None, None, None, 0, 1])) if priorities else None,
                after=after,
                stream=draw(st.sampled_from([None, None, None, None, "mine", "yours"])) if pins else None,
            )
        )
    limit = draw(st.sampled_from([None, None, 2, 3]))
    return make_plan(ops, streams=StreamOptions(limit, policy), pageable=draw(st.booleans()))


@st.composite
def candidates(draw: st.DrawFn, problem: Problem) -> Candidate:
    """Any order that the problem allows, on any streams."""
    order: list[int] = []
    while len(order) < len(problem):
        ready = [
            op
            for op in range(len(problem))
            if op not in order and all(earlier in order for earlier in problem.before[op])
        ]
        order.append(draw(st.sampled_from(ready)))
    first = len(problem.pinned)
    free = st.integers(first, first + 2)
    return Candidate(tuple(order), tuple(draw(free) if pin < 0 else pin for pin in problem.pin))
