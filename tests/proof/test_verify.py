"""The verifier accepts what the passes make, and agrees with brute force on what is spoiled."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.cost.model import Limits
from dagsched.diagnostics import PlanError, Source
from dagsched.plan.expressions import names_in_condition, parse_condition, parse_expression
from dagsched.plan.model import Loop, Plan, Ring
from dagsched.plan.reader import read_plan
from dagsched.plan.resolve import name_versions, resolve_plan
from dagsched.proof.model import Proof
from dagsched.proof.recheck import recheck_proof
from dagsched.proof.rhythm import _looks_at
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.model import AnyStep, LoopStep, OpStep
from tests.passes.build import build_schedule
from tests.passes.strategies import assignments, plans
from tests.passes.test_waits import counts_up_to
from tests.proof.mutations import mutated, waits_of, without
from tests.proof.oracle import unordered

DETECTOR = """
dagsched: 1
name: detector
params: {frames: null}
buffers:
  frame: {place: host, size: 64, ring: auto}
  image: {place: device, size: 64, ring: auto}
  weights: {place: device, size: 64}
  boxes: {place: device, size: 64, ring: auto}
  result: {place: host, size: 64, ring: auto}
  weights_file: {place: host, size: 64, input: true}
ops:
  - {name: load, copy: {from: weights_file, to: weights}}
  - loop: i
    count: frames
    ops:
      - {name: decode, host: decode, writes: [frame], time: 1 ms}
      - {name: upload, copy: {from: frame, to: image}}
      - {name: infer, compute: detector, reads: [image, weights], writes: [boxes], time: 6 ms}
      - {name: download, copy: {from: boxes, to: result}}
      - {name: draw, host: draw, reads: [result], time: 1 ms}
"""

MEANING = {"V103", "V108"}
"""Faults of a random plan itself: its reads and regions were never checked."""


def resolved(plan: Plan) -> Plan:
    """A plan with fixed rings, its versions named (what its reads find there is left aside)."""
    return name_versions(plan)


def codes(proof: Proof) -> set[str]:
    return {problem.code for problem in proof.problems} - MEANING


@pytest.fixture(scope="module")
def detector() -> tuple[Plan, object]:
    compiled = compile_plan(read_plan(Source("detector.yaml", DETECTOR)))
    return compiled.plan, compiled


@given(st.data())
def test_what_the_passes_make_is_right(data: st.DataObject) -> None:
    plan = data.draw(plans())
    schedule = build_schedule(plan, data.draw(assignments(plan)))
    assert codes(verify_schedule(plan, schedule)) == set()


@given(st.data())
def test_a_dropped_wait_is_caught(data: st.DataObject) -> None:
    plan = data.draw(plans())
    schedule = build_schedule(plan, data.draw(assignments(plan)))
    waits = waits_of(schedule)
    assume(waits)
    spoiled = without(schedule, data.draw(st.sampled_from(waits)))
    assert "V110" in codes(verify_schedule(plan, spoiled))


@given(st.data())
def test_spoiled_schedules_are_judged_as_brute_force_judges_them(data: st.DataObject) -> None:
    plan = data.draw(plans(loops=1))
    spoiled = data.draw(mutated(build_schedule(plan, data.draw(assignments(plan)))))
    proof = verify_schedule(plan, spoiled)
    races = any(unordered(plan, spoiled, params) for params in counts_up_to(plan, 7))
    event("races" if races else "right")
    if races:
        assert codes(proof)
    elif "V110" in codes(proof):
        assert any(unordered(plan, spoiled, params) for params in counts_up_to(plan, 20))


def test_every_wait_of_the_detector_is_needed(detector: tuple[Plan, object]) -> None:
    plan, compiled = detector
    schedule = compiled.schedule  # type: ignore[attr-defined]
    assert verify_schedule(plan, schedule).counts == "every count `frames` from 0 up"
    for wait in waits_of(schedule):
        problems = verify_schedule(plan, without(schedule, wait)).problems
        text = " ".join(problem.text for problem in problems if problem.code == "V110")
        assert wait.protects
        for protected in wait.protects:
            before, after = protected.before.partition("@")[0], protected.after.partition("@")[0]
            assert f"`{before}` on stream" in text
            assert f"`{after}` on stream" in text


def test_a_shorter_buffer_ring_is_caught(detector: tuple[Plan, object]) -> None:
    plan, compiled = detector
    schedule = compiled.schedule  # type: ignore[attr-defined]
    for name, storage in schedule.buffers.items():
        if storage.ring > 1:
            spoiled = replace(schedule, buffers={**schedule.buffers, name: replace(storage, ring=1)})
            assert not verify_schedule(plan, spoiled).holds, name


def test_a_shorter_event_ring_is_caught(detector: tuple[Plan, object]) -> None:
    plan, compiled = detector
    schedule = compiled.schedule  # type: ignore[attr-defined]
    rings = [event for event in schedule.events.values() if (event.ring or 1) > 1]
    assert rings
    for ring in rings:
        spoiled = replace(schedule, events={**schedule.events, ring.name: replace(ring, ring=(ring.ring or 1) - 1)})
        assert not verify_schedule(plan, spoiled).holds, ring.name


def test_a_plan_with_a_deeper_lookback_is_not_served_by_the_same_ring() -> None:
    text = DETECTOR.replace("reads: [image, weights]", "reads: [image, image@i-1, weights]").replace(
        "ops:\n  - {name: load", "ops:\n  - {name: first, fill: {to: image@-1}}\n  - {name: load"
    )
    text = text.replace(
        "image: {place: device, size: 64, ring: auto}", "image: {place: device, size: 64, ring: {max: 2}}"
    )
    compiled = compile_plan(read_plan(Source("t.yaml", text)))
    assert compiled.schedule.buffers["image"].ring == 2
    second = "image@-1}}\n  - {name: f2, fill: {to: image@-2}}"
    other = text.replace("image@i-1", "image@i-2").replace("image@-1}}", second)
    plan = read_plan(Source("t.yaml", other))
    assert not verify_schedule(plan, compiled.schedule).holds


def test_an_op_too_few_or_too_many(detector: tuple[Plan, object]) -> None:
    plan, compiled = detector
    schedule = compiled.schedule  # type: ignore[attr-defined]
    items = [replace(item, body=item.body[:-1]) if isinstance(item, Loop) else item for item in plan.items]
    fewer = replace(plan, items=tuple(items))
    assert "V102" in codes(verify_schedule(fewer, schedule))
    assert "V102" in codes(verify_schedule(plan, compile_plan(fewer).schedule))


def test_limits(detector: tuple[Plan, object]) -> None:
    plan, compiled = detector
    schedule = compiled.schedule  # type: ignore[attr-defined]
    assert codes(verify_schedule(plan, schedule, Limits(streams=2, events=3))) == {"V111"}


def test_a_million_iterations_are_not_gone_through() -> None:
    text = DETECTOR.replace("count: frames", "count: 1000003").replace("params: {frames: null}\n", "")
    compiled = compile_plan(read_plan(Source("t.yaml", text)))
    assert compiled.proof.holds
    waits = waits_of(compiled.schedule)
    assert "V110" in codes(verify_schedule(compiled.plan, without(compiled.schedule, waits[-1])))


def test_the_document_is_rechecked(detector: tuple[Plan, object]) -> None:
    plan, compiled = detector
    schedule = compiled.schedule  # type: ignore[attr-defined]
    document = json.loads(json.dumps(compiled.proof.document))  # type: ignore[attr-defined]
    assert recheck_proof(document, plan, schedule) == []
    for wait in waits_of(schedule):
        assert recheck_proof(document, plan, without(schedule, wait))
    chain = next(hazard["chain"] for hazard in document["hazards"] if len(hazard["chain"]) > 1)
    del chain[0]
    assert len(recheck_proof(document, plan, schedule)) == 1


@given(st.data())
def test_documents_of_random_plans_hold(data: st.DataObject) -> None:
    plan = data.draw(plans(loops=1))
    buffers = {name: replace(buffer, ring=Ring(1)) for name, buffer in plan.buffers.items()}
    plan = replace(plan, buffers=buffers)
    schedule = build_schedule(plan, data.draw(assignments(plan)))
    proof = verify_schedule(plan, schedule)
    assume(proof.holds)
    assert recheck_proof(proof.document, plan, schedule) == []


LONG_AFTER = """
dagsched: 1
name: t
params: {n: null}
buffers: {x: {place: device, size: 8, output: true}, y: {place: device, size: 8, output: true}}
ops:
  - loop: i
    count: n
    ops:
      - {name: a, compute: f, writes: [x], stream: s}
      - {name: b, compute: f, writes: [y], stream: t, after: [a@i-70]}
"""


def test_an_order_may_reach_back_seventy_iterations() -> None:
    compiled = compile_plan(read_plan(Source("t.yaml", LONG_AFTER)))
    (wait,) = waits_of(compiled.schedule)
    assert compiled.proof.counts == "every count `n` from 0 up"
    assert "V110" in codes(verify_schedule(compiled.plan, without(compiled.schedule, wait)))


TWO_LOOPS = """
dagsched: 1
name: t
params: {n: null}
buffers: {x: {place: device, size: 8, ring: 3, input: true}, y: {place: device, size: 8, output: true}}
ops:
  - {name: z, fill: {to: y}}
  - loop: i
    count: FIRST
    ops:
      - {name: a, compute: f, writes: [x], stream: s}
  - loop: i
    count: SECOND
    ops:
      - {name: b, compute: f, reads: [x@0], accumulates: [y], stream: t}
"""


@pytest.mark.parametrize("first", ["n", "2*n", "n//2", "n+1"])
def test_counts_of_every_shape_are_proved_for_all_values(first: str) -> None:
    plan = read_plan(Source("t.yaml", TWO_LOOPS.replace("FIRST", first).replace("SECOND", "n")))
    streams = {"z": "t", "a": "s", "b": "t"}
    schedule = build_schedule(resolved(plan), streams)
    assert codes(verify_schedule(plan, schedule)) == set()
    waits = waits_of(schedule)
    assert waits
    for wait in waits:
        spoiled = without(schedule, wait)
        assert any(unordered(resolved(plan), spoiled, {"n": n}) for n in range(12))
        assert "V110" in codes(verify_schedule(plan, spoiled))


def test_a_clamped_count_is_not_taken_to_go_on() -> None:
    plan = read_plan(Source("t.yaml", TWO_LOOPS.replace("FIRST", "min(n, 5)").replace("SECOND", "3")))
    proof = verify_schedule(plan, build_schedule(resolved(plan), {"z": "t", "a": "s", "b": "t"}))
    assert codes(proof) == set()
    assert not proof.complete
    assert proof.counts == "every count `n` from 0 to 32"


def test_an_op_stands_once(detector: tuple[Plan, object]) -> None:
    plan, compiled = detector
    schedule = compiled.schedule  # type: ignore[attr-defined]
    first = schedule.steps[0]
    assert "V102" in codes(verify_schedule(plan, replace(schedule, steps=(first, *schedule.steps))))


def test_a_wait_may_bind_beyond_the_counts_that_are_gone_through() -> None:
    """The versions `i*i` of a long ring meet again only after more iterations than any count that is tried."""
    text = """
dagsched: 1
name: squares
params: {n: null}
buffers:
  s: {place: device, size: 64, ring: 101, input: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: w, compute: f, writes: ["s@i*i"], stream: a}
      - {name: r, compute: g, reads: ["s@i*i"], stream: b}
"""
    proof = compile_plan(read_plan(Source("squares.yaml", text))).proof
    assert proof.holds and not proof.complete


@pytest.mark.parametrize(("first", "second"), [("n", "n"), ("n", "m"), ("n", "2*n+1"), ("n//2", "n")])
def test_two_loops_over_one_ring_are_proved_for_every_count(first: str, second: str) -> None:
    """The versions that the first loop leaves behind are forgotten as soon as the second has taken their slots."""
    body = """
    ops:
      - {{name: up{n}, copy: {{from: h, to: d}}}}
      - {{name: f{n}, compute: f, reads: [d], updates: [o]}}
"""
    text = """
dagsched: 1
name: two
params: {n: null, m: null}
buffers:
  h: {place: host, size: 4kB, input: true}
  d: {place: device, size: 4kB, ring: 2}
  o: {place: device, size: 4kB, input: true, output: true}
ops:
""" + "".join(f"  - loop: i\n    count: {count}{body.format(n=n)}" for n, count in enumerate((first, second)))
    proof = compile_plan(read_plan(Source("two.yaml", text))).proof
    assert proof.holds and proof.complete


@pytest.mark.parametrize(
    ("guard", "count", "looks"),
    [
        ("i == n-1", "n", "end"), ("i == 2*n-3", "2*n", "end"), ("i >= n//2", "n//2+1", "end"),
        ("i == n-1", "2*n", "middle"), ("i == m-1", "n", "middle"), ("i < m", "n", "middle"),
        ("i == m%2", "n", "start"), ("i == 1+n%3", "n", "start"),
        ("i == max(n-2, 3)", "n", "end"), ("i*2 == n", "n", "middle"), ("i == n*n-1", "n", "middle"),
    ],
)  # fmt: skip
def test_a_guard_looks_at_the_start_the_end_or_the_middle(guard: str, count: str, looks: str) -> None:
    (comparison,) = parse_condition(guard)
    names = names_in_condition((comparison,)) - {"i"}
    assert _looks_at(comparison, "i", names, parse_expression(count)) == looks


UNEVEN = """\
dagsched: 1
params: {n: null}
buffers:
  b: {place: device, size: 400, input: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: step, compute: f, writes: ["b[%s]"], stream: s}
      - {name: all, compute: f, writes: ["b[%s]"], stream: s}
      - {name: look, compute: f, reads: ["b[9:10]"], stream: t}
"""


@pytest.mark.parametrize(
    "region",
    ["i:min(i+1, 400)", "i:i+1", "i:min(i+1, 30)+1", "i//2:i//2+1", "i*i:i*i+1", "2*i:3*i+1", "0:i+1", "i:400"],
)
@pytest.mark.parametrize("wiped", ["0:400", "0:200"])
def test_what_a_region_touches_later_is_not_taken_from_what_it_touched(region: str, wiped: str) -> None:
    """Whoever writes all of a buffer wipes out what the loop's state tells of it, and not where regions are next."""
    plan = resolve_plan(read_plan(Source("uneven.yaml", UNEVEN % (region, wiped))))
    schedule = build_schedule(plan, {"step": "s", "all": "s", "look": "t"})
    assert verify_schedule(plan, schedule).holds
    late = [wait for wait in waits_of(schedule) if any(p.after.startswith("step@") for p in wait.protects)]
    assert late
    for wait in late:
        spoiled = without(schedule, wait)
        assert any(unordered(plan, spoiled, {"n": n}) for n in range(25))
        assert "V110" in codes(verify_schedule(plan, spoiled))
    # Without guards that speak of iteration 9, too: that schedule is made for a plan whose region never gets there.
    away = resolve_plan(read_plan(Source("away.yaml", UNEVEN % ("300:301", wiped))))
    known = {op.name: op.accesses for op in plan.ops()}

    def take(steps: tuple[AnyStep, ...]) -> tuple[AnyStep, ...]:
        return tuple(
            replace(step, steps=take(step.steps))
            if isinstance(step, LoopStep)
            else replace(step, accesses=known[step.op])
            if isinstance(step, OpStep)
            else step
            for step in steps
        )

    blind = build_schedule(away, {"step": "s", "all": "s", "look": "t"})
    blind = replace(blind, steps=take(blind.steps))
    assert any(unordered(plan, blind, {"n": n}) for n in range(25))
    assert "V110" in codes(verify_schedule(plan, blind))


@pytest.mark.parametrize("region", ["min(i, 9):min(i, 9)+1", "max(20-i, 9):max(20-i, 9)+2"])
def test_a_loop_without_end_whose_regions_are_uneven_is_refused(region: str) -> None:
    with pytest.raises(PlanError) as caught:
        build_schedule(
            resolve_plan(read_plan(Source("uneven.yaml", UNEVEN % (region, "0:400")))),
            {"step": "s", "all": "s", "look": "t"},
        )
    assert caught.value.diagnostics[0].code == "P240"


def test_a_region_that_a_count_moves_is_gone_through_one_by_one() -> None:
    """Only where the count is 60 does the last op touch what the first has written."""
    text = (
        "dagsched: 1\nparams: {n: null}\nbuffers:\n  b: {place: device, size: 9000, input: true}\n"
        "  c: {place: device, size: 8, input: true}\nops:\n"
        '  - {name: first, compute: f, writes: ["b[60:61]"], stream: s}\n'
        "  - loop: i\n    count: n\n    ops:\n      - {name: work, compute: f, updates: [c], stream: s}\n"
        '  - {name: last, compute: f, updates: ["b[n:n+1]"], stream: t}\n'
    )
    plan = resolve_plan(read_plan(Source("moved.yaml", text)))
    proof = verify_schedule(plan, build_schedule(plan, {"first": "s", "work": "s", "last": "t"}))
    assert proof.counts != "every count `n` from 0 up"
