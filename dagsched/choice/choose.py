"""Choose a plan's streams and issue order, as well as the effort allows.

``auto`` on a plan without loops: every policy of ``dagsched.schedule.streams`` in the order written, list schedules,
local search from the best of both, and with effort ``max`` a solver. A candidate is taken only where it is quicker
than the best policy in the order written, so that no effort makes a plan slower and no plan is rearranged for nothing.
Plans with loops, and those that name a policy, keep their order; the policies alone are compared, by an estimate of a
few iterations first. Which of them has the shortest interval is for the caller to find out (``Choice.others``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dagsched.choice.assigning import to_assignment, to_candidate
from dagsched.choice.attempts import try_lists
from dagsched.choice.ends import ITERATIONS, propose_ends
from dagsched.choice.evaluate import score_candidate
from dagsched.choice.loops import propose_candidates
from dagsched.choice.optimal import Solved, solve_optimal
from dagsched.choice.problem import Candidate, Problem, describe_run, make_problem
from dagsched.choice.reorder import reorder_ops
from dagsched.choice.rounds import Rounds, make_rounds
from dagsched.choice.search import Found, search_nearby, simplify
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.model import Device
from dagsched.cost.run_bounds import bound_run
from dagsched.diagnostics import Diagnostic
from dagsched.hazards.find import find_hazards
from dagsched.hazards.model import Hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan
from dagsched.schedule.streams import (
    Assignment,
    assign_by_policy,
    assign_streams,
    candidate_policies,
    most_streams,
)

Effort = Literal["fast", "normal", "max"]
EFFORTS: tuple[Effort, ...] = ("fast", "normal", "max")


@dataclass(frozen=True, slots=True)
class Budget:
    """Work that an effort may spend: op visits of list scheduling and of local search, and the fewest and most runs."""

    list_visits: int
    list_runs: tuple[int, int]
    search_visits: int
    search_runs: tuple[int, int]
    solve: bool = False

    def runs(self, ops: int) -> tuple[int, int]:
        """How often to run list scheduling and the simulator on so many ops."""
        return (
            min(max(self.list_visits // ops, self.list_runs[0]), self.list_runs[1]),
            min(max(self.search_visits // ops, self.search_runs[0]), self.search_runs[1]),
        )


BUDGETS: dict[Effort, Budget] = {
    "fast": Budget(0, (25, 25), 0, (0, 0)),
    "normal": Budget(250_000, (3, 2_500), 100_000, (0, 2_000)),
    "max": Budget(1_000_000, (3, 10_000), 500_000, (0, 10_000), solve=True),
}


@dataclass(frozen=True, slots=True)
class LoopBudget:
    """Work on a plan with loops: instances in a run of the model, instances in all runs (and so many more for each op),
    candidates to compile at the most, and the builds that they may take, counted by ops."""

    instances: int
    visits: int
    visits_op: int
    most: int
    builds: int

    def steps(self, rounds: Rounds) -> int:
        """How often the model may be run."""
        size = sum(len(stretch.op_of) for stretch in rounds.stretches)
        return min((self.visits + self.visits_op * len(rounds.problem)) // max(1, size), 2_000)


LOOP_BUDGETS: dict[Effort, LoopBudget] = {
    "fast": LoopBudget(0, 0, 0, 0, 0),
    "normal": LoopBudget(400, 100_000, 600, 12, 800),
    "max": LoopBudget(1_500, 600_000, 5_000, 60, 20_000),
}

MOST_COMPARED: dict[Effort, int] = {"fast": 0, "normal": 300, "max": 5_000}
"""Plans with loops of so many ops at most are compiled with each policy; of others the policies are estimated only."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to compile: the plan's sweep and hazards in the order to issue, and the streams.

    ``limit`` is a makespan in ticks that the solver proved nothing to beat, where it ran (0 elsewhere); ``findings``
    are warnings (a solver that is missing). ``others`` are the other policies' assignments, for a plan with loops:
    which is the quickest is told by what becomes of them, rings and shifts included.
    """

    sweep: Sweep
    hazards: Hazards
    assignment: Assignment
    limit: int = 0
    findings: tuple[Diagnostic, ...] = ()
    others: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """A proposal for a plan with loops: its ops by number in the order to issue, streams, and rounds to issue late."""

    order: tuple[int, ...]
    assignment: Assignment
    shifts: dict[str, int]


def choose_schedule(sweep: Sweep, hazards: Hazards, device: Device, effort: Effort = "normal") -> Choice:
    """The best streams and issue order that the effort finds; the same for the same input.
    Raises :class:`PlanError` as :func:`assign_streams` does.
    """
    plan = sweep.plan
    fixed = plan.streams.policy != "auto" or any(segment.loop for segment in sweep.segments)
    if fixed or len(sweep.ops) < 2:
        chosen = assign_streams(sweep, hazards, device)
        return Choice(sweep, hazards, chosen, others=_other_policies(sweep, hazards, device, chosen, effort))
    costs = op_costs(plan, device)
    most = most_streams(sweep, device)
    problem = make_problem(sweep, hazards, costs, device, most)
    by_policy = [assign_by_policy(sweep, hazards, costs, policy, most) for policy in candidate_policies(sweep)]
    tried = [_found(problem, to_candidate(problem, assignment)) for assignment in by_policy]
    first = min(range(len(tried)), key=lambda number: (tried[number].score.ticks, number))
    limit = _limit(problem)
    best = _search(problem, tried[first], limit, BUDGETS[effort])
    solved: Solved | None = None
    findings: tuple[Diagnostic, ...] = ()
    if BUDGETS[effort].solve:
        solved, findings = solve_optimal(problem, best, limit, plan.source)
        best = solved.found if solved else best
    choice = Choice(sweep, hazards, by_policy[first])
    if best.score.ticks < tried[first].score.ticks:
        best = simplify(problem, best, BUDGETS[effort].runs(len(problem))[1] // 2)
        choice = _apply(sweep, hazards, costs, problem, best.candidate)
    return replace(choice, limit=solved.limit if solved else 0, findings=findings)


def propose_schedules(
    sweep: Sweep,
    hazards: Hazards,
    roomy: Plan,
    device: Device,
    effort: Effort,
    known: Sequence[Assignment],
    bounds: Mapping[int, int],
) -> Iterator[Way]:
    """Orders and streams for a plan with loops that may be quicker than those that are ``known``, worth compiling.

    ``roomy`` is the plan with rings as deep as they may become, ``bounds`` an interval in ticks by segment that nothing
    beats. Nothing is proposed where the plan names a policy, where it is too large, and at effort ``fast``.
    """
    if sweep.plan.streams.policy != "auto" or not 2 <= len(sweep.ops) <= MOST_COMPARED[effort]:
        return
    costs = op_costs(sweep.plan, device)
    problem = make_problem(sweep, hazards, costs, device, most_streams(sweep, device))
    budget = LOOP_BUDGETS[effort]
    rounds = make_rounds(problem, Sweep(roomy), budget.instances, bounds)
    starts = [to_candidate(problem, assignment) for assignment in known]
    for candidate in propose_candidates(rounds, starts, budget.steps(rounds), budget.most):
        yield _make_way(sweep, costs, problem, candidate)


def propose_around_loops(
    sweep: Sweep, hazards: Hazards, device: Device, effort: Effort, known: Assignment, shifts: Mapping[str, int]
) -> Way | None:
    """Order and streams of a plan with open loops in which ops outside them are quicker, where the model says so.

    ``sweep`` is that of the plan as it is issued, its rings fixed, with ``known`` streams and ops issued late.
    """
    if sweep.plan.streams.policy != "auto" or effort == "fast" or len(sweep.ops) > MOST_COMPARED[effort]:
        return None
    costs = op_costs(sweep.plan, device)
    problem = make_problem(sweep, hazards, costs, device, most_streams(sweep, device))
    rounds = make_rounds(problem, sweep, LOOP_BUDGETS[effort].instances, {}, ITERATIONS)
    late = tuple(shifts.get(op.name, 0) for op in sweep.ops)
    start = replace(to_candidate(problem, known), late=late if any(late) else ())
    found = propose_ends(rounds, start, LOOP_BUDGETS[effort].steps(rounds))
    if found is None:
        return None
    return _make_way(sweep, costs, problem, found)


def _make_way(sweep: Sweep, costs: dict[str, OpCost], problem: Problem, candidate: Candidate) -> Way:
    reordered = Sweep(reorder_ops(sweep.plan, candidate.order))
    shifts = {sweep.ops[op].name: late for op, late in enumerate(candidate.late) if late}
    return Way(candidate.order, to_assignment(reordered, costs, problem, candidate), shifts)


def _other_policies(
    sweep: Sweep, hazards: Hazards, device: Device, chosen: Assignment, effort: Effort
) -> tuple[Assignment, ...]:
    """What ``auto`` might choose instead in a plan with a loop, where it is small enough."""
    looped = any(segment.loop for segment in sweep.segments)
    if sweep.plan.streams.policy != "auto" or not looped or len(sweep.ops) > MOST_COMPARED[effort]:
        return ()
    costs, most = op_costs(sweep.plan, device), most_streams(sweep, device)
    found: dict[tuple[int, ...], Assignment] = {}
    for policy in candidate_policies(sweep):
        assignment = assign_by_policy(sweep, hazards, costs, policy, most)
        if assignment.stream_of != chosen.stream_of:
            found.setdefault(assignment.stream_of, assignment)
    return tuple(found.values())


def _found(problem: Problem, candidate: Candidate) -> Found:
    return Found(score_candidate(problem, candidate), candidate)


def _limit(problem: Problem) -> int:
    """A makespan that nothing beats; whoever reaches it may stop."""
    return int(bound_run(describe_run(problem), problem.capacities, problem.engines).ticks)


def _search(problem: Problem, start: Found, limit: int, budget: Budget) -> Found:
    """List schedules, then local search from the best of them and from ``start``; ends where ``limit`` is met."""
    runs, steps = budget.runs(len(problem))
    if start.score.ticks <= limit:
        return start
    listed = try_lists(problem, runs, limit)
    seeds = sorted([start, *([listed] if listed else [])], key=lambda found: found.score)
    best = seeds[0]
    for seed in seeds if best.score.ticks > limit else ():
        best = min(best, search_nearby(problem, seed, steps // len(seeds), limit), key=lambda found: found.score)
    return best


def _apply(
    sweep: Sweep,
    hazards: Hazards,
    costs: dict[str, OpCost],
    problem: Problem,
    candidate: Candidate,
) -> Choice:
    """The plan in the candidate's order, on streams that have names."""
    if candidate.order != tuple(range(len(problem))):
        sweep = Sweep(reorder_ops(sweep.plan, candidate.order))
        hazards = find_hazards(sweep.plan, sweep)
    return Choice(sweep, hazards, to_assignment(sweep, costs, problem, candidate))
