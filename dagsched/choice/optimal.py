"""Ask OR-tools' CP-SAT for a schedule that nothing beats, or for a proof that there is none.

The model is a relaxation: ops with precedences on engines of limited capacity, at most so many at once as there may be
streams, and the host that issues them one after another; what waits and records cost is left out. Its bound therefore
holds for every schedule, and one that reaches it is optimal. The solver runs on one thread with a fixed seed and a
limit on its own deterministic measure of work, so that the same plan gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from dagsched.choice.evaluate import score_candidate
from dagsched.choice.list_schedule import Starts
from dagsched.choice.placing import place_ops
from dagsched.choice.problem import Problem, describe_run
from dagsched.choice.search import Found
from dagsched.diagnostics import Diagnostic, Source

if TYPE_CHECKING:
    from dagsched.cost.run_bounds import Run

WORK = 8.0
"""The solver's limit in its own unit, which is of the order of a second."""

_STEPS = 10**10
"""Times are counted in so many steps of the makespan at the most; durations are rounded down to them."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The better of what was known and what the solver found, and a limit in ticks that no schedule beats."""

    found: Found
    limit: int

    @property
    def proved(self) -> bool:
        """Whether nothing is quicker."""
        return self.found.score.ticks <= self.limit


def solve_optimal(
    problem: Problem, best: Found, limit: int, source: Source | None
) -> tuple[Solved | None, tuple[Diagnostic, ...]]:
    """Improve on ``best``, or prove that nothing does; only a warning (C120) without OR-tools, or with an old one."""
    if best.score.ticks <= limit:
        return Solved(best, limit), ()
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        return None, (_missing("is not installed", source),)
    if not hasattr(cp_model.CpModel, "new_fixed_size_interval_var"):
        return None, (_missing("is older than 9.8", source),)
    run = describe_run(problem)
    unit = max(run.unit, -(-best.score.ticks // _STEPS))
    exact = unit == run.unit
    model, starts = _build_model(cp_model, problem, run, unit, best.score.ticks // unit - exact)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = WORK
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Solved(best, best.score.ticks), ()
    least = ceil(solver.best_objective_bound - 1e-6) * unit
    limit = min(best.score.ticks, max(limit, -(-least // run.unit) * run.unit))
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = _read(problem, [solver.value(start) * unit for start in starts])
        best = min(best, found, key=lambda one: one.score)
    return Solved(best, limit), ()


def _build_model(cp_model: Any, problem: Problem, run: Run, unit: int, most: int) -> tuple[Any, list[Any]]:
    """The model with the start of each op, in units, for runs of at most ``most`` units."""
    model = cp_model.CpModel()
    ticks = [t // unit for t in problem.ticks]
    starts, intervals = [], []
    for op, (head, tail) in enumerate(zip(run.heads, run.tails, strict=True)):
        start = model.new_int_var(head // unit, max(head // unit, most - tail // unit - ticks[op]), "")
        starts.append(start)
        intervals.append(model.new_fixed_size_interval_var(start, ticks[op], ""))
    makespan = model.new_int_var(0, max(0, most), "")
    for op, row in enumerate(problem.before):
        for earlier in row:
            model.add(starts[op] >= starts[earlier] + ticks[earlier])
        if not problem.after[op]:
            model.add(makespan >= starts[op] + ticks[op])
    taking = [op for op, length in enumerate(ticks) if length]
    for unit_number, capacity in enumerate(problem.capacities):
        members = [op for op in taking if problem.engine[op] == unit_number]
        if sum(problem.share[op] for op in members) > capacity:
            shares = [problem.share[op] for op in members]
            model.add_cumulative([intervals[op] for op in members], shares, capacity)
    if len(taking) > problem.most:
        model.add_cumulative([intervals[op] for op in taking], [1] * len(taking), problem.most)
    issue = problem.issue // unit
    if issue:
        calls = []
        for op, row in enumerate(problem.before):
            call = model.new_int_var(0, max(0, most), "")
            model.add(call + issue <= starts[op])
            calls.append(call)
            for earlier in row:
                model.add(calls[earlier] + issue <= call)
        model.add_no_overlap([model.new_fixed_size_interval_var(call, issue, "") for call in calls])
    model.minimize(makespan)
    return model, starts


def _read(problem: Problem, starts: list[int]) -> Found:
    """The candidate that a solution becomes."""
    order = sorted(range(len(starts)), key=lambda op: (starts[op], op))
    candidates = [place_ops(problem, Starts(starts, order, 0), mixed=mixed) for mixed in (False, True)]
    return min((Found(score_candidate(problem, one), one) for one in candidates), key=lambda found: found.score)


def _missing(why: str, source: Source | None) -> Diagnostic:
    headline = f"OR-tools {why}: effort `max` searched for longer and proved nothing"
    return Diagnostic("C120", headline, None, source, help="pip install --upgrade ortools", severity="warning")
