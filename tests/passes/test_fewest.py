"""``--sync fewest``: never more waits, never slower, always proved; and it does save some."""

from __future__ import annotations

from hypothesis import given, settings

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.proof.check import check_schedule
from tests.cost.loops import loop_texts, plan_of

TWO_INPUTS = """\
dagsched: 1
device: {name: d, engines: {up: {kind: h2d, bandwidth: 1 GB/s}, core: {kind: compute}}}
params: {n: null}
streams: {policy: engine}
buffers:
  h: {place: host, size: 1kB, input: true}
  a: {place: device, size: 1kB, ring: 2}
  b: {place: device, size: 1kB, ring: 2}
  y: {place: device, size: 1kB, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: up_a, copy: {from: h, to: a}}
      - {name: up_b, copy: {from: h, to: b}}
      - {name: use_a, compute: f, reads: [a], writes: [y], time: 3 us}
      - {name: use_b, compute: g, reads: [b], updates: [y], time: 3 us}
"""


def time_of(compiled: Compiled) -> float:
    predicted = compiled.schedule.predicted
    assert predicted is not None
    value = predicted.get("initiation_interval", predicted.get("makespan"))
    assert isinstance(value, float)
    return value


def test_one_wait_for_both_uploads() -> None:
    """Each compute waits for its upload and each upload for its slot: one wait each way does, and costs nothing."""
    before, after = compile_plan(plan_of(TWO_INPUTS)), compile_plan(plan_of(TWO_INPUTS), sync="fewest")
    assert (before.waits_kept, before.spared) == (4, None)
    assert after.spared is not None
    assert (after.waits_kept, after.spared.before, after.spared.method) == (2, 4, "exact")
    assert time_of(after) == time_of(before) == 6e-6
    assert after.proof.holds
    assert check_schedule(after.schedule).verdict == "ok"


def test_no_wait_is_saved_where_that_costs_time() -> None:
    """In a single run the first compute would start an upload later."""
    text = TWO_INPUTS.replace("count: n", "count: 1")
    before, after = compile_plan(plan_of(text)), compile_plan(plan_of(text), sync="fewest")
    assert after.waits_kept == before.waits_kept == 2
    assert after.spared is not None and after.spared.method == "greedy"


@settings(max_examples=12)
@given(loop_texts(most=2))
def test_fewer_waits_and_no_slower(text: str) -> None:
    before, after = compile_plan(plan_of(text)), compile_plan(plan_of(text), sync="fewest")
    assert after.proof.holds
    assert after.waits_kept <= before.waits_kept
    assert time_of(after) <= time_of(before)
    assert after.spared is not None and after.spared.before == before.waits_kept
