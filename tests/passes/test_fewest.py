"""``--sync fewest``: never more waits, never slower (at no count, in no loop), always proved; and it does save some."""

from __future__ import annotations

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.simulator import simulate_schedule
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
      - {name: begin, compute: e, writes: [y], time: 3 us}
      - {name: use_a, compute: f, reads: [a], updates: [y], time: 3 us}
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
    assert time_of(after) == time_of(before) == 9e-6
    assert after.proof.holds
    assert check_schedule(after.schedule).verdict == "ok"


def test_no_wait_is_saved_where_that_costs_time() -> None:
    """Where no other compute comes first, the one that is to wait for both uploads starts an upload later."""
    text = TWO_INPUTS.replace("      - {name: begin, compute: e, writes: [y], time: 3 us}\n", "").replace(
        "reads: [a], updates", "reads: [a], writes"
    )
    for count, kept in (("1", (2, 2)), ("n", (4, 3))):  # of the open loop the first iteration only
        plan = plan_of(text.replace("count: n", f"count: {count}"))
        before, after = compile_plan(plan), compile_plan(plan, sync="fewest")
        assert (before.waits_kept, after.waits_kept) == kept
        assert after.spared is not None and after.spared.method == "greedy"


@settings(max_examples=12)
@given(loop_texts(most=2))
def test_fewer_waits_and_no_slower(text: str) -> None:
    before, after = compile_plan(plan_of(text)), compile_plan(plan_of(text), sync="fewest")
    assert after.proof.holds
    assert after.waits_kept <= before.waits_kept
    assert time_of(after) <= time_of(before)
    assert after.spared is not None and after.spared.before == before.waits_kept


@st.composite
def uploads_and_uses(draw: st.DrawFn) -> str:
    """One loop or two, of open or constant count: uploads on one engine, computes that read some of them on another."""
    buffers, items, number = ["  h: {place: host, size: 1kB, input: true}"], [], 0
    for loop in range(draw(st.integers(1, 2))):
        items.append(f"  - loop: i\n    count: {draw(st.sampled_from(['n', 'n', '40']))}\n    ops:")
        names = [f"a{loop}{at}" for at in range(draw(st.integers(2, 3)))]
        for name in names:
            ring = draw(st.sampled_from(["1", "2", "auto"]))
            buffers.append(f"  {name}: {{place: device, size: 1kB, ring: {ring}}}")
            copy = f"copy: {{from: h, to: {name}}}, time: {draw(st.integers(0, 6))} us"
            items.append(f"      - {{name: o{(number := number + 1)}, {copy}}}")
        buffers.append(f"  y{loop}: {{place: device, size: 1kB, output: true}}")
        for mode in ["writes", *["updates"] * (len(names) - 1)]:
            reads = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
            accesses = f"reads: [{', '.join(reads)}], {mode}: [y{loop}], time: {draw(st.integers(0, 6))} us"
            items.append(f"      - {{name: o{(number := number + 1)}, compute: f, {accesses}}}")
    call = draw(st.sampled_from(["0", "1"]))
    calls = f"calls: {{issue: {call} us, record: {call} us, wait: {call} us}}"
    device = f"device: {{name: d, engines: {{up: {{kind: h2d}}, core: {{kind: compute}}}}, {calls}}}"
    head = ["dagsched: 1", device, "params: {n: null}", "streams: {policy: engine}"]
    return "\n".join([*head, "buffers:", *buffers, "ops:", *items]) + "\n"


def test_no_count_gets_slower() -> None:
    """Saved waits cost nothing in any run: not in the first iterations, not in a second loop, not in a constant one."""
    saved = 0

    @seed(5)
    @settings(max_examples=20, database=None, phases=(Phase.generate,))
    @given(uploads_and_uses())
    def compare(text: str) -> None:
        nonlocal saved
        plan = plan_of(text)
        before, after = compile_plan(plan), compile_plan(plan, sync="fewest")
        saved += after.waits_kept < before.waits_kept
        assert after.proof.holds and check_schedule(after.schedule).verdict == "ok"
        for count in (0, 1, 2, 3, 7) if plan.params else ():
            runs = [
                simulate_schedule(each.schedule, each.resolved, each.device, {"n": count}).makespan_ticks
                for each in (before, after)
            ]
            assert runs[1] <= runs[0]

    compare()
    assert saved >= 3


def test_a_constant_loop_beside_an_open_one_is_no_slower() -> None:
    """The second loop's first compute would wait for both uploads, in each of its two rounds."""
    second = TWO_INPUTS.partition("ops:\n")[2]
    for name in ("up_a", "up_b", "begin", "use_a", "use_b"):
        second = second.replace(f"name: {name}", f"name: {name}2")
    text = TWO_INPUTS + second.replace("count: n", "count: 2")
    before, after = compile_plan(plan_of(text)), compile_plan(plan_of(text), sync="fewest")
    times = [simulate_schedule(c.schedule, c.resolved, c.device, {"n": 0}).makespan for c in (before, after)]
    assert times[1] <= times[0]
