"""Regions that grow with the loop: told in few pieces, and yet what going through all of them one by one tells."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.cost.devices import load_device
from dagsched.diagnostics import PlanError, Source
from dagsched.hazards.find import find_hazards
from dagsched.plan.model import Plan
from dagsched.plan.reader import read_plan
from dagsched.plan.resolve import resolve_plan
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, Schedule

ROWS = 12
MODES = ("reads", "writes", "updates", "accumulates")


@st.composite
def bounds(draw: st.DrawFn) -> str:
    """A region of an axis of ``ROWS``: growing, moving, constant or whole."""
    a, b = sorted(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2, unique=True)))
    step = draw(st.sampled_from(("t", "t", "t", "2*t")))
    return draw(
        st.sampled_from(
            (f"0:{step}+{b}", f"{a}:{step}+{b}", f"{step}+{a}:{step}+{b}", f"{step}+{a}:{ROWS}", f"{a}:{b}", ":")
        )
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Up to four ops of a loop, and perhaps one before and one behind, that share a buffer; streams are pinned."""
    axis = draw(st.sampled_from((0, 1)))

    def line(name: str, region: str, mode: str) -> str:
        text = f"k[{region}]" if axis == 0 else f"k[:, {region}]"
        stream = draw(st.sampled_from("abc"))
        return f'{{name: {name}, compute: f, {mode}: ["{text}"], stream: {stream}, time: 1 us}}'

    constant = st.sampled_from(("0:3", "2:5", "4:12", ":"))
    body = [line(f"o{n}", draw(bounds()), draw(st.sampled_from(MODES))) for n in range(draw(st.integers(1, 4)))]
    before = [line("first", draw(constant), draw(st.sampled_from(MODES)))] if draw(st.booleans()) else []
    behind = [line("last", draw(constant), draw(st.sampled_from(MODES)))] if draw(st.booleans()) else []
    shape = f"[{ROWS}, 2]" if axis == 0 else f"[2, {ROWS}]"
    count = draw(st.sampled_from(("n", "n", "4")))
    rows = "".join(f"  - {text}\n" for text in before) + f"  - loop: t\n    count: {count}\n    ops:\n"
    rows += "".join(f"      - {text}\n" for text in body) + "".join(f"  - {text}\n" for text in behind)
    params = "params: {n: null}\n" if count == "n" else ""
    buffers = f"  k: {{place: device, shape: {shape}, dtype: int8, input: true, output: true}}\n"
    return read_plan(Source("grow.yaml", f"dagsched: 1\n{params}buffers:\n{buffers}ops:\n{rows}"))


def without(schedule: Schedule, dropped: int) -> Schedule:
    """The schedule without one of its waits."""
    waits = [step for step in schedule.walk() if isinstance(step, EventStep) and step.action == "wait"]
    gone = waits[dropped % len(waits)]

    def keep(steps: tuple[AnyStep, ...]) -> tuple[AnyStep, ...]:
        kept = (step for step in steps if step is not gone)
        return tuple(replace(step, steps=keep(step.steps)) if isinstance(step, LoopStep) else step for step in kept)

    return replace(schedule, steps=keep(schedule.steps))


@given(plans(), st.integers(0, 99))
def test_pieces_that_nothing_parts_change_no_hazard_no_wait_and_no_verdict(plan: Plan, dropped: int) -> None:
    """Against the same passes with every piece kept, whose buffers are small enough to go through them all."""
    try:
        resolved = resolve_plan(plan)
    except PlanError:
        assume(False)
    device = load_device(plan.device)
    made = compile_plan(plan, device=device)
    with patch("dagsched.hazards.sweep.find_growths", return_value={}):
        assert find_hazards(resolved).entries == made.hazards.entries
        plain = compile_plan(plan, device=device)
    assert (plain.waits_kept, plain.handles) == (made.waits_kept, made.handles)
    if not made.waits_kept:
        return
    broken = without(made.schedule, dropped)
    told = verify_schedule(plan, broken, device.limits)
    with patch("dagsched.proof.rhythm.find_growing", return_value={}):
        piecewise = verify_schedule(plan, broken, device.limits)
    assert told.holds == piecewise.holds
    assert not told.holds  # every wait is needed


CACHE = """\
dagsched: 1
params: {tokens: null}
buffers:
  kv: {place: device, shape: [2, 40000, 128], dtype: float16}
  token: {place: device, size: 4, input: true}
  out: {place: host, size: 4, ring: auto}
ops:
  - {name: prefill, compute: prefill, writes: ["kv[:, 0:17]"], time: 1 ms}
  - loop: t
    count: tokens
    ops:
      - {name: append, compute: append, reads: [token], writes: ["kv[:, t+17:t+18]"], time: 10 us, stream: side}
      - {name: attend, compute: attend, reads: ["kv[:, 0:t+18]"], updates: [token], time: 100 us}
      - {name: down, copy: {from: token, to: out}}
      - {name: emit, host: emit, reads: [out], time: 20 us}
"""


@pytest.mark.parametrize("count", ["tokens", "30000"])
def test_a_cache_of_many_rows_compiles_like_one_of_few(count: str) -> None:
    """Every iteration reads all that was ever written: forty thousand rows, and no more work than a dozen."""
    text = CACHE.replace("count: tokens", f"count: {count}")
    text = text if count == "tokens" else text.replace("params: {tokens: null}\n", "")
    made = compile_plan(read_plan(Source("cache.yaml", text)))
    few = compile_plan(read_plan(Source("cache.yaml", text.replace("40000", "64").replace("30000", "40"))))
    assert (made.waits_kept, made.hazards.entries) == (few.waits_kept, few.hazards.entries)
    assert ("append", "attend", 0) in {(h.before, h.after, h.distance) for h in made.hazards.entries}
    assert made.proof.complete
