"""Counts at which a region leaves its buffer, against going through every iteration."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dagsched.diagnostics import Source
from dagsched.plan.expressions import evaluate, holds
from dagsched.proof.check import check_schedule
from dagsched.proof.check_roofs import find_roofs
from dagsched.schedule.model import LoopStep, OpStep, Schedule
from dagsched.schedule.reader import read_schedule

EXTENT = 12
FAR = 40


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """A loop with a parametric end, and ops under guards whose regions move with it."""
    hi = draw(st.sampled_from(["n", "n + 2", "2 * n", "n - 1", "n // 2", "7", "m"]))
    start = draw(st.integers(0, 2))
    rows = []
    for number in range(draw(st.integers(1, 3))):
        factor, low = draw(st.integers(0, 3)), draw(st.integers(0, 4))
        high = low + draw(st.integers(1, 3))
        region = draw(
            st.sampled_from([f"{factor}*i+{low}:{factor}*i+{high}", f"0:{factor}*i+{high}", f"{low}:{EXTENT}"])
        )
        guard = draw(
            st.sampled_from(["", "i < n", "i <= n - 2", "i >= 2", "i > 1 and i < n", "i == 3", "n > 5", "i % 2 == 0"])
        )
        when = f', when: "{guard}"' if guard else ""
        rows.append(f'      - {{stream: s{number}, op: o{number}, writes: ["b[{region}]"]{when}}}\n')
    shape = draw(st.sampled_from([f"size: {EXTENT}", f"shape: [{EXTENT}, 2], dtype: int8"]))
    return read_schedule(
        Source(
            "t.yaml",
            "dagsched-schedule: 1\nname: t\nparams: {n: null, m: null}\nstreams: {s0: {}, s1: {}, s2: {}}\n"
            f"buffers:\n  b: {{place: device, {shape}}}\nsteps:\n  - loop: i\n    range: [{start}, {hi}]\n    steps:\n"
            + "".join(rows),
        )
    )


def stays_inside(schedule: Schedule, env: dict[str, int]) -> bool:
    (loop,) = schedule.steps
    assert isinstance(loop, LoopStep)
    for i in range(evaluate(loop.lo, env), evaluate(loop.hi, env)):
        here = {**env, "i": i}
        for step in loop.steps:
            assert isinstance(step, OpStep)
            (part,) = step.accesses[0].region
            if holds(step.when, here) and part.hi is not None and evaluate(part.hi, here) > EXTENT:
                return False
    return True


@given(schedules())
def test_no_count_beyond_a_roof_can_run(schedule: Schedule) -> None:
    for name, roof in find_roofs(schedule, ("n", "m")).items():
        for value in range(roof + 1, FAR):
            for other in (0, 3, FAR):
                env = {"n": other, "m": other, name: value}
                assert not stays_inside(schedule, env), env


def test_the_roof_of_a_loop_is_exact() -> None:
    text = (
        "dagsched-schedule: 1\nname: t\nparams: {n: null}\nstreams: {a: {}, b: {}}\n"
        "buffers:\n  x: {place: device, size: 12}\nsteps:\n  - loop: i\n    count: n + 1\n    steps:\n"
        '      - {stream: a, op: read, reads: ["x[2*i:2*i+3]"], when: i < n}\n'
        '      - {stream: b, op: write, writes: ["x[i:i+1]"]}\n'
    )
    schedule = read_schedule(Source("t.yaml", text))
    assert find_roofs(schedule, ("n",)) == {"n": 5}
    assert [n for n in range(FAR) if stays_inside(schedule, {"n": n})] == list(range(6))
    verdict = check_schedule(schedule)
    assert verdict.verdict == "race"
    assert verdict.counts_text == "every count `n` from 0 to 5, the largest that regions allow"
