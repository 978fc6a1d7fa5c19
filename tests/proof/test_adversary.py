"""The adversary against the verifier and itself: what it shows is real and short, what it says of waits holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, configuration, event, given, settings
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.library import Plan
from dagsched.plan.model import Access, Mode
from dagsched.plan.reader import read_plan
from dagsched.proof.adversary import Options, attack_schedule
from dagsched.proof.adversary_device import wire
from dagsched.proof.adversary_program import unfold
from dagsched.proof.adversary_report import describe
from dagsched.proof.adversary_run import Outcome, Reference, Subject, replay
from dagsched.proof.adversary_sample import Attack, run_attack, sample
from dagsched.proof.adversary_search import explore, run_as_issued
from dagsched.proof.adversary_shrink import shrink
from dagsched.proof.adversary_values import Layout
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.model import EventStep, Indexed, OpStep, Schedule
from dagsched.schedule.reader import read_schedule
from dagsched.testing import plans, schedules
from tests.proof.mutations import mutated, waits_of, without

QUICK = Options(examples=0, waits=False, time_limit=600)
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

PIPELINE = """
dagsched: 1
name: pipeline
params: {n: null}
buffers:
  frame: {place: host, size: 64, ring: 2}
  image: {place: device, size: 64, ring: 2}
  sums: {place: device, size: 8, output: true}
ops:
  - {name: clear, fill: {to: sums}}
  - loop: i
    count: n
    ops:
      - {name: decode, host: decode, writes: [frame], time: 1 ms, stream: reader}
      - {name: upload, copy: {from: frame, to: image}, stream: up}
      - {name: infer, compute: infer, reads: [image], updates: [sums], time: 1 ms, stream: core}
"""

RACING = """
dagsched-schedule: 1
steps:
  - {stream: copy, op: first, writes: [a]}
  - {stream: copy, op: second, writes: [b]}
  - {stream: copy, op: third, writes: [x]}
  - {stream: other, op: idle, writes: [c]}
  - {stream: run, op: before, writes: [d]}
  - {stream: run, op: use, reads: [x]}
"""


def subject_of(schedule: Schedule, **env: int) -> Subject:
    program = unfold(schedule, env, 10_000)
    return Subject(program, wire(program), Layout(program.commands), Reference())


@settings(deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_spoiled_plans_are_judged_as_the_verifier_judges_them(data: st.DataObject) -> None:
    """A mutation of a compiled schedule that leaves a hazard without order is one that some interleaving breaks."""
    plan = data.draw(plans(ops=3, loops=1)).model
    compiled = compile_plan(plan)
    spoiled = data.draw(mutated(compiled.schedule))
    proof = verify_schedule(plan, spoiled)
    codes = {problem.code for problem in proof.problems}
    attempt = attack_schedule(spoiled, plan, QUICK)
    event(f"{attempt.verdict} {sorted(codes)}")
    if "V110" in codes:
        assert attempt.verdict != "ok"
    if attempt.verdict == "race":
        assert "V110" in codes
        assert attempt.failure is not None and attempt.failure.first is not None and attempt.failure.second is not None
        pair = f"`{attempt.failure.first.op}` on stream", f"`{attempt.failure.second.op}` on stream"
        texts = [problem.text for problem in proof.problems if problem.code == "V110"]
        assert any(all(name in text for name in pair) for text in texts)


@settings(max_examples=20, deadline=None, suppress_health_check=SLOW)
@given(plans(ops=3, loops=1))
def test_compiled_plans_withstand_it(plan: Plan) -> None:
    compiled = compile_plan(plan.model)
    attempt = attack_schedule(compiled.schedule, compiled.plan, replace(QUICK, examples=10))
    assert attempt.failure is None, attempt.failure
    assert attempt.explored.whole


def test_each_wait_that_is_dropped_breaks_for_what_it_protects() -> None:
    compiled = compile_plan(read_plan(Source("pipeline.yaml", PIPELINE)))
    attempt = attack_schedule(compiled.schedule, compiled.plan, Options(examples=20, time_limit=600))
    waits = waits_of(compiled.schedule)
    assert len(attempt.waits) == len(waits) > 2
    for trial, wait in zip(attempt.waits, waits, strict=True):
        assert trial.result == "needed"
        assert trial.failure is not None and trial.failure.first is not None and trial.failure.second is not None
        shown = trial.failure.first.op, trial.failure.second.op, trial.failure.buffer
        protected = {(p.before.partition("@")[0], p.after.partition("@")[0], p.buffer) for p in wait.protects}
        assert shown in protected
        failed = attack_schedule(without(compiled.schedule, wait), compiled.plan, QUICK)
        assert failed.verdict == "race"


def test_the_meaning_is_the_plans_and_not_the_schedules() -> None:
    """A schedule that is consistent with itself but not with the plan is caught: its rings, its accesses, its ops."""
    plan = read_plan(Source("pipeline.yaml", PIPELINE))
    schedule = compile_plan(plan).schedule
    shorter = {**schedule.buffers, "image": replace(schedule.buffers["image"], ring=1)}
    assert attack_schedule(replace(schedule, buffers=shorter), plan, QUICK).verdict != "ok"
    steps = [step for step in schedule.steps if not (isinstance(step, OpStep) and step.op == "clear")]
    missing = attack_schedule(replace(schedule, steps=tuple(steps)), plan, QUICK)
    assert missing.verdict == "invalid" and missing.failure is not None
    assert any("`clear@0` is never issued" in text for text in missing.failure.texts)
    other = read_plan(
        Source("pipeline.yaml", PIPELINE.replace("reads: [image], updates", "reads: [image@i-1], updates"))
    )
    assert attack_schedule(schedule, other, QUICK).verdict == "invalid"


def test_a_failure_is_cut_to_what_it_takes() -> None:
    schedule = read_schedule(Source("racing.yaml", RACING))
    attempt = attack_schedule(schedule, options=QUICK)
    assert attempt.failure is not None
    assert [step.text for step in attempt.failure.steps] == ["before", "use"]
    assert (attempt.failure.buffer, attempt.failure.kinds, attempt.failure.distance) == ("x", ("RAW",), None)
    assert "first contents of x" in attempt.failure.steps[-1].wrong


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(schedules(), st.integers(0, 1 << 16), st.lists(st.integers(0, 60), max_size=3), st.booleans())
def test_what_is_shrunk_still_fails_and_is_no_longer(
    schedule: Schedule, favour: int, delays: list[int], parts: bool
) -> None:
    """A failed run is shrunk to one that fails when it is run again, of no more moves, each of which can run then."""
    subject = subject_of(schedule)
    assume(not run_as_issued(subject).failed)
    outcome = run_attack(subject, Attack(0, favour, tuple(delays), tuple(delays) if parts else ()))
    assume(outcome.failed)
    short = shrink(subject, outcome, lambda: False)
    again = replay(subject, short.trail, complete=bool(outcome.stuck))
    assert again.failed and bool(again.stuck) == bool(outcome.stuck)
    assert again.trail == short.trail
    if outcome.miss is not None:
        assert len(short.trail) <= len(outcome.trail)
        for place in range(len(short.trail)):
            fewer = replay(subject, short.trail[:place] + short.trail[place + 1 :])
            assert fewer.miss is None
    failure = describe(subject, short)
    assert failure.headline and failure.steps


@pytest.mark.parametrize(
    ("steps", "trail", "wanted"),
    [
        pytest.param(
            [
                "{stream: a, op: early, writes: [x]}",
                "{stream: b, set: count}",
                "{stream: c, op: apart}",
                "{stream: b, op: use, reads: [x]}",
                "{stream: c, op: late, updates: [x]}",
            ],
            [(3, 0)],
            [(3, 0)],
            id="the run of what is needed is longer",
        ),
        pytest.param(
            ["{stream: a, op: use, reads: [x]}", "{stream: b, op: next, writes: [x]}", "{stream: a, reset: F}"],
            [(0, 1), (1, 0), (0, 2)],
            [(1, 0), (0, 0)],
            id="in parts, and in one piece as well",
        ),
    ],
)
def test_what_is_shrunk(steps: list[str], trail: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    text = "dagsched-schedule: 1\nevent_model: flag\nsteps:\n" + "".join(f"  - {step}\n" for step in steps)
    subject = subject_of(read_schedule(Source("short.yaml", text)))
    run_as_issued(subject)
    outcome = replay(subject, trail)
    assert outcome.failed and outcome.trail == trail
    assert shrink(subject, outcome, lambda: False).trail == wanted


def test_work_can_take_effect_in_parts() -> None:
    """Half of a frame is new: the copy has begun, the reader has run, the copy ends."""
    schedule = read_schedule(Source("racing.yaml", RACING))
    subject = subject_of(schedule)
    run_as_issued(subject)
    third = next(command.number for command in subject.program.commands if command.name == "third")
    use = next(command.number for command in subject.program.commands if command.name == "use")
    trail = [(0, 0), (1, 0), (third, 1), (use - 1, 0), (use, 0)]
    outcome = replay(subject, trail)
    assert outcome.miss == use and outcome.trail == trail
    failure = describe(subject, outcome)
    assert [step.text for step in failure.steps[2:]] == ["third begins", "before", "use"]


def test_the_same_seed_makes_the_same_attacks() -> None:
    schedule = read_schedule(Source("racing.yaml", RACING.replace("reads: [x]", "reads: [d]")))
    subject = subject_of(schedule)
    run_as_issued(subject)
    one, two, other = (sample([subject], 40, seed, lambda: False) for seed in (1, 1, 2))
    assert one.outcome is None and one.runs >= 40
    assert (one.runs, one.steps, one.trails) == (two.runs, two.steps, two.trails)
    assert one.trails != other.trails


def test_hypothesis_finds_a_race_by_itself() -> None:
    schedule = read_schedule(Source("racing.yaml", RACING))
    subject = subject_of(schedule)
    run_as_issued(subject)
    found = sample([subject], 100, 0, lambda: False)
    assert found.outcome is not None and found.outcome.failed


def test_nothing_is_left_in_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "__hypothesis_home_directory_default", tmp_path / "hypothesis", raising=False)
    monkeypatch.setattr(configuration, "__hypothesis_home_directory", None, raising=False)
    attack_schedule(read_schedule(Source("racing.yaml", RACING.replace("reads: [x]", "reads: [d]"))))
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(schedules(models=("latch",), kinds=("op", "host", "record", "wait", "wait_stream", "sync")))
def test_holding_back_is_as_good_as_all_states(schedule: Schedule) -> None:
    """Where nothing depends on who comes first, one run for each piece of work finds what all states would show."""
    subject = subject_of(schedule)
    assert subject.program.monotone
    whole = explore(subject, 100_000, lambda: False)
    assert whole.complete
    attempt = attack_schedule(schedule, options=QUICK)
    assert (attempt.failure is None) == (whole.outcome is None and whole.deadlock is None)


def test_a_limit_is_told() -> None:
    steps = []
    for number in range(400):
        for stream in "ab":
            name = f"{stream}{number}"
            steps.append(OpStep(stream=Indexed(stream), op=name, accesses=(Access(name, Mode.WRITE),)))
            steps.append(OpStep(stream=Indexed(stream), op=f"r{name}", accesses=(Access(name, Mode.READ),)))
    schedule = Schedule("long", tuple(steps))
    attempt = attack_schedule(schedule, options=Options(examples=10_000, time_limit=0.2))
    assert attempt.verdict == "ok" and not attempt.explored.whole
    assert any("time limit" in gap for gap in attempt.explored.gaps)


def test_attacks_that_were_not_drawn_are_told() -> None:
    """Where the runs before decide it nothing is left open; that fewer attacks were drawn is said all the same."""
    schedule = compile_plan(read_plan(Source("pipeline.yaml", PIPELINE))).schedule
    few, cut = (
        attack_schedule(schedule, options=Options(examples=number, time_limit=limit, waits=False)).explored
        for number, limit in ((5, 600), (10_000_000, 1))
    )
    assert few.whole and few.notes == ()
    assert cut.whole and any("of 10,000,000 attacks were drawn" in note for note in cut.notes)


def test_two_thousand_ops_take_a_run_each() -> None:
    """A layered program of 2,000 ops: every op is held back once, and nothing is left open."""
    steps: list[OpStep | EventStep] = []
    for layer in range(250):
        for number in range(8):
            stream = Indexed(f"s{number}")
            accesses = [Access(f"b{layer}_{number}", Mode.WRITE)]
            for other in {number, (number + layer) % 8} if layer else ():
                accesses.append(Access(f"b{layer - 1}_{other}", Mode.READ))
                if other != number:
                    steps.append(EventStep(action="wait", event=Indexed(f"e{layer - 1}_{other}"), stream=stream))
            steps.append(OpStep(stream=stream, op=f"o{layer}_{number}", accesses=tuple(accesses)))
            steps.append(EventStep(action="record", event=Indexed(f"e{layer}_{number}"), stream=stream))
    attempt = attack_schedule(Schedule("big", tuple(steps)), options=replace(QUICK, examples=1))
    assert attempt.verdict == "ok" and attempt.explored.whole
    assert attempt.explored.interleavings >= 2_000


def test_outcomes_compare_by_what_happened() -> None:
    assert not Outcome([]).failed
    assert Outcome([], miss=0).failed
