"""Compiled schedules are spoiled in six ways; brute force decides which of them race, and both judges must agree.

The verifier knows the plan: it must find an unordered hazard exactly where there is one. ``check`` knows the schedule
only: it must say ``race`` exactly where two conflicting accesses are ordered in neither direction. What does not race
is passed by both (the verifier may have other complaints, such as a handle that is recorded too early).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.plan.model import Plan
from dagsched.plan.reader import read_plan
from dagsched.proof.check import check_schedule
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.model import Schedule
from tests.passes.build import build_schedule
from tests.passes.oracle import Edge
from tests.passes.strategies import assignments, plans
from tests.passes.test_waits import counts_up_to
from tests.proof.mutations import MUTATIONS
from tests.proof.oracle import racing, unordered

Oracle = Callable[[Plan, Schedule, dict[str, int]], set[Edge]]
FORM = {"V100", "V101", "V102"}
"""Complaints about the form of a schedule, after which the verifier looks no further."""


def happens(oracle: Oracle, plan: Plan, schedule: Schedule, most: int) -> bool:
    """Whether the oracle finds anything for parameter values up to ``most``."""
    return any(oracle(plan, schedule, params) for params in counts_up_to(plan, most))


def far(plan: Plan) -> int:
    """The largest count gone through where a judge has found what small counts do not show."""
    return 30 if len(plan.params) < 2 else 9


def judge(plan: Plan, schedule: Schedule) -> tuple[bool, bool]:
    """Assert that both judges say what brute force says; whether hazards are unordered, and whether anything races."""
    near = 7 if len(plan.params) < 2 else 5
    loose, race = (happens(oracle, plan, schedule, near) for oracle in (unordered, racing))
    codes = {problem.code for problem in verify_schedule(plan, schedule).problems}
    if loose:
        assert "V110" in codes or codes & FORM, "the verifier misses an unordered hazard"
    elif "V110" in codes:
        assert happens(unordered, plan, schedule, far(plan)), "the verifier complains of a hazard that is ordered"
    verdict = check_schedule(schedule, max_count=64, budget=60_000)
    if race:
        assert verdict.verdict == "race", "check misses a race"
    elif verdict.verdict != "ok":
        assert verdict.verdict == "race"
        assert happens(racing, plan, schedule, far(plan)), "check sees a race where there is none"
    return loose, race


@pytest.mark.parametrize("name", MUTATIONS)
@settings(
    max_examples=settings.default.max_examples // 4,  # type: ignore[union-attr]
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(data=st.data())
def test_spoiled_schedules_are_judged_as_brute_force_judges_them(name: str, data: st.DataObject) -> None:
    plan = data.draw(plans(loops=1))
    schedule = build_schedule(plan, data.draw(assignments(plan)))
    choices = list(MUTATIONS[name](plan, schedule))
    assume(choices)
    loose, race = judge(*data.draw(st.sampled_from(choices)))
    event(f"unordered {loose}, races {race}")
    if name == "drop_wait":
        assert loose, "the compiler has emitted a wait that is not needed"


PLANS = {
    "rings and a parameter": """
dagsched: 1
name: rings
streams: {policy: engine}
params: {n: null}
buffers:
  file: {place: host, size: 64, input: true}
  x: {place: device, size: 64, ring: 2}
  y: {place: device, size: 64, ring: 3}
  out: {place: host, size: 64, ring: 2, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: upload, copy: {from: file, to: x}}
      - {name: work, compute: f, reads: [x], writes: [y], time: 1 us}
      - {name: download, copy: {from: y, to: out}}
""",
    "regions": """
dagsched: 1
name: regions
buffers:
  x: {place: device, size: 64, output: true}
ops:
  - {name: low, compute: f, writes: ["x[0:32]"], stream: a}
  - {name: high, compute: f, writes: ["x[32:64]"], stream: b}
  - {name: use, compute: g, updates: ["x[0:32]"], stream: c}
  - {name: all, compute: g, updates: [x], stream: d}
""",
    "several loops": """
dagsched: 1
name: loops
params: {n: null, m: null}
buffers:
  w: {place: device, size: 64}
  x: {place: device, size: 64, input: true}
  y: {place: device, size: 64, ring: 2, output: true}
ops:
  - {name: load, fill: {to: w}, stream: a}
  - loop: i
    count: n
    ops:
      - {name: one, compute: f, reads: [w], writes: [x], stream: b}
  - loop: j
    count: m
    ops:
      - {name: two, compute: f, reads: [x], writes: [y], stream: c}
  - {name: last, compute: g, updates: [w], stream: d}
""",
}


@pytest.mark.parametrize("name", PLANS)
def test_every_mutation_of_a_compiled_plan(name: str) -> None:
    """All of them, one after another; for each kind that a plan has, some race."""
    compiled = compile_plan(read_plan(Source("plan.yaml", PLANS[name])))
    seen: dict[str, list[bool]] = {}
    for kind, mutate in MUTATIONS.items():
        for plan, schedule in mutate(compiled.resolved, compiled.schedule):
            seen.setdefault(kind, []).append(judge(plan, schedule)[0])
    assert all(seen["drop_wait"])
    caught = {kind for kind, found in seen.items() if any(found)}
    assert {"drop_wait", "move_record_earlier", "swap_handles", "repin_op"} <= caught
    assert name != "rings and a parameter" or not any(seen["shrink_event_ring"])  # It waits for more, and is late.
    assert name != "regions" or "widen_region" in caught
