"""A candidate's score is what the simulator says of the schedule that it becomes, to the tick."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dagsched.choice.evaluate import find_waits, score_candidate
from dagsched.choice.problem import Candidate, Problem, make_problem
from dagsched.choice.reorder import reorder_ops
from dagsched.cost.durations import op_costs
from dagsched.cost.model import Device
from dagsched.cost.simulator import simulate_schedule
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan
from dagsched.plan.resolve import resolve_plan
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.assemble import assemble_schedule
from dagsched.schedule.events import allocate_events
from dagsched.schedule.model import EventStep, Schedule
from dagsched.schedule.rules import fold_waits
from dagsched.schedule.streams import make_assignment
from dagsched.schedule.waits import find_needs
from tests.choice.plans import candidates, devices, plans


def problem_of(plan: Plan, device: Device) -> Problem:
    sweep = Sweep(resolve_plan(plan))
    return make_problem(sweep, find_hazards(sweep.plan), op_costs(sweep.plan, device), device, len(sweep.ops))


def schedule_of(plan: Plan, device: Device, candidate: Candidate) -> Schedule:
    """By the passes, with nothing of ``dagsched.choice`` but the order."""
    sweep = Sweep(reorder_ops(resolve_plan(plan), candidate.order))
    lanes = [f"s{candidate.stream_of[op]}" for op in candidate.order]
    assignment = make_assignment(sweep, op_costs(sweep.plan, device), lanes, "test")
    stream_of = list(assignment.stream_of)
    rules = fold_waits(sweep, find_needs(sweep, stream_of), stream_of)
    return assemble_schedule(sweep, assignment.streams, stream_of, allocate_events(sweep, rules), "0" * 64)


@given(st.data())
def test_a_score_is_the_simulators(data: st.DataObject) -> None:
    plan, device = data.draw(plans()), data.draw(devices())
    problem = problem_of(plan, device)
    candidate = data.draw(candidates(problem))
    schedule = schedule_of(plan, device, candidate)
    score = score_candidate(problem, candidate)
    assert score.ticks == simulate_schedule(schedule, resolve_plan(plan), device).makespan_ticks
    waits = [step for step in schedule.walk() if isinstance(step, EventStep) and step.action == "wait"]
    assert score.waits == len(waits) == sum(map(len, find_waits(problem, candidate)))


@given(st.data())
def test_the_verifier_accepts_every_order_that_the_problem_allows(data: st.DataObject) -> None:
    plan, device = data.draw(plans()), data.draw(devices())
    schedule = schedule_of(plan, device, data.draw(candidates(problem_of(plan, device))))
    proof = verify_schedule(plan, schedule)
    # Only the digest, which the passes write and these do not, may be missed.
    assert proof.holds, proof.problems
