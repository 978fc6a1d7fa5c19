"""What is done otherwise on many streams and in long chains gives what it gives on few: same waits, same proof."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dagsched.hazards.clocks
import dagsched.proof.clocks
import dagsched.proof.relative
import dagsched.proof.witness
import dagsched.schedule.waits
from dagsched.compiler import compile_plan
from dagsched.cost.estimate import Instance, find_waits
from dagsched.diagnostics import Source
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan
from dagsched.plan.reader import read_plan
from dagsched.proof.model import Proof
from dagsched.proof.recheck import recheck_proof
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.waits import Needs, find_needs
from tests.passes.build import build_schedule
from tests.passes.strategies import assignments, plans
from tests.proof.mutations import waits_of, without


def as_on_many(patch: pytest.MonkeyPatch) -> None:
    """Arrays for clocks, however few streams there are, and jumps from the first wait on."""
    for module in (dagsched.hazards.clocks, dagsched.schedule.waits, dagsched.proof.clocks, dagsched.proof.relative):
        patch.setattr(module, "MANY_STREAMS", 1)
    patch.setattr(dagsched.proof.witness, "NEAR", 0)


def told(proof: Proof) -> object:
    return proof.problems, proof.counts, proof.hazards, proof.complete


@given(st.data())
def test_arrays_and_jumps_prove_what_lists_prove(data: st.DataObject) -> None:
    plan: Plan = data.draw(plans())
    streams = data.draw(assignments(plan))
    schedule = build_schedule(plan, streams)
    if data.draw(st.booleans()) and (waits := waits_of(schedule)):
        schedule = without(schedule, data.draw(st.sampled_from(waits)))
    proof = verify_schedule(plan, schedule)
    with pytest.MonkeyPatch.context() as patch:
        as_on_many(patch)
        other = verify_schedule(plan, schedule)
    assert told(other) == told(proof)
    if other.holds:
        assert recheck_proof(other.document, plan, schedule) == []


def needs_of(plan: Plan, streams: dict[str, str]) -> Needs:
    sweep = Sweep(plan)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(streams.values()))}
    return find_needs(sweep, [numbers[streams[op.name]] for op in sweep.ops])


@given(st.data())
def test_arrays_find_the_waits_that_lists_find(data: st.DataObject) -> None:
    plan: Plan = data.draw(plans())
    streams = data.draw(assignments(plan))
    needs = needs_of(plan, streams)
    with pytest.MonkeyPatch.context() as patch:
        as_on_many(patch)
        assert needs_of(plan, streams) == needs


@given(st.lists(st.tuples(st.integers(0, 4), st.sets(st.integers(0, 20))), max_size=12))
def test_arrays_estimate_the_waits_that_lists_estimate(rows: list[tuple[int, set[int]]]) -> None:
    instances = [
        Instance("op", stream, 0, 1.0, tuple(p for p in before if p < number))
        for number, (stream, before) in enumerate(rows)
    ]
    waits = find_waits(instances)
    with pytest.MonkeyPatch.context() as patch:
        as_on_many(patch)
        assert find_waits(instances) == waits


def test_a_chain_that_starts_hundreds_of_waits_back() -> None:
    """Every op reads what was loaded at first, and waits for another stream that knows nothing of that."""
    lines = ["dagsched: 1", "device: cuda-generic", "streams: {policy: engine}", "buffers:"]
    lines.append("  f: {place: host, size: 64, input: true}")
    lines += [f"  {name}: {{place: device, size: 64}}" for name in ("w", "y", *(f"x{n}" for n in range(300)))]
    lines += ["  out: {place: host, size: 64, output: true}", "ops:"]
    lines.append("  - {name: load, copy: {from: f, to: w}}")
    for n in range(300):
        lines.append(f"  - {{name: make{n}, compute: g, writes: [x{n}], stream: other, time: 1 us}}")
        reads = f"reads: [w, x{n}]"
        lines.append(f"  - {{name: use{n}, compute: h, {reads}, writes: [y], time: 1 us}}")
    lines.append("  - {name: fetch, copy: {from: y, to: out}}")
    compiled = compile_plan(read_plan(Source("p.yaml", "\n".join(lines) + "\n")))
    assert compiled.waits_kept > 300
    assert recheck_proof(compiled.proof.document, compiled.plan, compiled.schedule) == []
    far = [hazard for hazard in compiled.proof.document["hazards"] if hazard["buffer"] == "w"]
    assert {hazard["after"] for hazard in far} == {f"use{n}" for n in range(300)}
    assert all(len(hazard["chain"]) <= 3 for hazard in far)
