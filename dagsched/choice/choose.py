"""Choose a plan's streams and issue order, as well as the effort allows.

``auto`` on a plan without loops: every policy of ``dagsched.schedule.streams`` in the order written, list schedules,
local search from the best of both, and with effort ``max`` a solver. A candidate is taken only where it is quicker
than the best policy in the order written, so that no effort makes a plan slower and no plan is rearranged for nothing.
Plans with loops, and those that name a policy, keep their order; the policies alone are compared, by an estimate of a
few iterations first. Which of them has the shortest interval is for the caller to find out (``Choice.others``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from dagsched.choice.attempts import try_lists
from dagsched.choice.evaluate import score_candidate
from dagsched.choice.optimal import Solved, solve_optimal
from dagsched.choice.problem import Candidate, Problem, describe_run, make_problem
from dagsched.choice.reorder import reorder_ops
from dagsched.choice.search import Found, search_nearby, simplify
from dagsched.cost.durations import OpCost, op_costs
from dagsched.cost.model import Device
from dagsched.cost.run_bounds import bound_run
from dagsched.diagnostics import Diagnostic
from dagsched.hazards.find import find_hazards
from dagsched.hazards.model import Hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.expressions import Int
from dagsched.schedule.streams import (
    Assignment,
    assign_by_policy,
    assign_streams,
    candidate_policies,
    make_assignment,
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
    tried = [_found(problem, _candidate(problem, assignment)) for assignment in by_policy]
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


def _other_policies(
    sweep: Sweep, hazards: Hazards, device: Device, chosen: Assignment, effort: Effort
) -> tuple[Assignment, ...]:
    """What ``auto`` might choose instead in a plan with a loop whose count is open, where it is small enough."""
    open_ = any(segment.loop and not isinstance(segment.count, Int) for segment in sweep.segments)
    if sweep.plan.streams.policy != "auto" or not open_ or len(sweep.ops) > MOST_COMPARED[effort]:
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


def _candidate(problem: Problem, assignment: Assignment) -> Candidate:
    """An assignment in the order written, its streams numbered as the problem has them."""
    names = [stream.name for stream in assignment.streams]
    number = {name: n for n, name in enumerate(problem.pinned)}
    for name in names:
        number.setdefault(name, len(number))
    return Candidate(tuple(range(len(problem))), tuple(number[names[stream]] for stream in assignment.stream_of))


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
    lanes = _name_streams(sweep, problem, candidate)
    if candidate.order != tuple(range(len(problem))):
        sweep = Sweep(reorder_ops(sweep.plan, candidate.order))
        hazards = find_hazards(sweep.plan, sweep)
    lane_of = [lanes[candidate.stream_of[op]] for op in candidate.order]
    return Choice(sweep, hazards, make_assignment(sweep, costs, lane_of, "search"))


def _name_streams(sweep: Sweep, problem: Problem, candidate: Candidate) -> dict[int, str]:
    """A name for each stream: what it was pinned as, else its engine or host function, numbered if they share one."""
    bases: dict[int, str] = {}
    for op in candidate.order:
        stream = candidate.stream_of[op]
        own = problem.engines[problem.engine[op]]
        if problem.host[op]:
            own = sweep.ops[op].function or own
        known = bases.setdefault(stream, own)
        bases[stream] = own if own == known else "host" if problem.host[op] and known != "mixed" else "mixed"
    names = {n: name for n, name in enumerate(problem.pinned) if n in bases}
    taken = set(names.values())
    for stream, base in bases.items():
        if stream in names:
            continue
        alone = list(bases.values()).count(base) == 1
        name, number = base, 0
        while name in taken or (not alone and not number):
            number += 1
            name = f"{base}-{number}"
        names[stream] = name
        taken.add(name)
    return names
