"""The waits are the cross-stream edges of the transitive reduction, in every iteration, for every count."""

from __future__ import annotations

from itertools import product

from hypothesis import event, given
from hypothesis import strategies as st

from dagsched.plan.expressions import Int, Name, names_in, parse_expression
from dagsched.plan.model import Access, Buffer, Loop, Mode, Op, OpKind, Place, Plan, Ring
from dagsched.plan.resolve import name_versions
from dagsched.plan.samples import find_limits
from dagsched.plan.segments import counts_for, split_segments
from tests.passes.build import build_schedule
from tests.passes.oracle import issued_waits, minimal_waits
from tests.passes.strategies import assignments, plans


def counts_up_to(plan: Plan, most: int) -> list[dict[str, int]]:
    """Parameter values up to ``most``, save those for which a moving region would leave its buffer."""
    segments = split_segments(plan)
    limits = find_limits(plan, segments)
    names = sorted({name for item in plan.items if isinstance(item, Loop) for name in names_in(item.count)})
    found = [dict(zip(names, values, strict=True)) for values in product(range(most + 1), repeat=len(names))]
    return [
        params
        for params in found
        if all(
            n <= limit or not s.loop for n, limit, s in zip(counts_for(segments, params), limits, segments, strict=True)
        )
    ]


@given(st.data())
def test_waits_are_the_reduction(data: st.DataObject) -> None:
    plan = data.draw(plans())
    streams = data.draw(assignments(plan))
    schedule = build_schedule(plan, streams)
    single = len(plan.params) <= 1
    for params in counts_up_to(plan, 13 if single else 7):
        issued = issued_waits(schedule, params)
        event("waits" if issued else "no waits")
        assert issued == minimal_waits(plan, params, streams), params


def test_waits_between_loops_follow_the_residue_of_the_count() -> None:
    """Loop ``n`` writes a ring of 3, loop ``2*n`` reads it: which record a read needs depends on ``n % 3``."""
    buffer = Buffer("b", Place.DEVICE, 12, ring=Ring(3, 3, 3), input=True)
    write = Op("w", OpKind.COMPUTE, (Access("b", Mode.WRITE),), function="f")
    read = Op("r", OpKind.COMPUTE, (Access("b", Mode.READ),), function="f")
    loops = (Loop("i", Name("n"), (write,)), Loop("i", parse_expression("2*n"), (read,)))
    plan = name_versions(Plan("t", {"b": buffer}, loops, params={"n": None}))
    streams = {"w": "s1", "r": "s0"}
    schedule = build_schedule(plan, streams)
    for n in range(20):
        assert issued_waits(schedule, {"n": n}) == minimal_waits(plan, {"n": n}, streams), n


def test_a_wait_for_the_same_iteration_of_an_earlier_loop_does_not_reach_in_front_of_it() -> None:
    """Loop ``i`` of 3 updates version i-3 of a ring of 4, loop ``n`` writes version i: i waits for i-1, from 1 on."""
    buffer = Buffer("b", Place.DEVICE, 12, ring=Ring(4, 4, 4), input=True)
    update = Op("u", OpKind.COMPUTE, (Access("b", Mode.UPDATE, parse_expression("i-3")),), function="f")
    write = Op("w", OpKind.COMPUTE, (Access("b", Mode.WRITE),), function="f")
    loops = (Loop("i", Int(3), (update,)), Loop("i", Name("n"), (write,)))
    plan = name_versions(Plan("t", {"b": buffer}, loops, params={"n": None}))
    streams = {"u": "s1", "w": "s0"}
    schedule = build_schedule(plan, streams)
    for n in range(10):
        assert issued_waits(schedule, {"n": n}) == minimal_waits(plan, {"n": n}, streams), n
