"""From a plan to a proved schedule: the passes in order, each a call.

Nothing leaves here unproved: a schedule that its verifier does not accept raises :class:`ProofError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from dagsched.choice.choose import Effort, choose_schedule
from dagsched.compiled import Compiled, Spared
from dagsched.cost.devices import load_device
from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import ring_edges
from dagsched.cost.model import Device
from dagsched.cost.predict import Measured, measure_closely, measure_schedule, predict_schedule
from dagsched.cost.queues import TICKS
from dagsched.diagnostics import Diagnostic, LimitError, ProofError
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan
from dagsched.plan.resolve import find_warnings, order_plan, resolve_rings
from dagsched.plan.writer import plan_digest
from dagsched.proof.model import Proof
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.fewest import Attempt, Method, spare_waits
from dagsched.schedule.rules import WaitRule
from dagsched.schedule.streams import Assignment, stream_names
from dagsched.trials import Built, Fixed, Start, build_schedule, count_handles, try_choice


def compile_plan(
    plan: Plan,
    *,
    device: Device | None = None,
    effort: Effort = "normal",
    ring_table: bool = False,
    sync: Literal["order", "fewest"] = "order",
) -> Compiled:
    """Compile a plan as written.

    ``device`` overrides the one that the plan names, whose relative path starts at the plan's file. ``effort`` is how
    hard to look for a quick schedule. ``ring_table`` asks for all worthwhile depths of the rings in ``Compiled.rings``,
    not only for those that are chosen. ``sync`` ``fewest`` saves waits by adding order where the model shows no loss.

    Raises :class:`PlanError` with all that is wrong with the plan, :class:`LimitError` where the device cannot hold
    the schedule, and :class:`ProofError` where dagsched has made a wrong one.
    """
    device = device or load_device(plan.device, source=plan.source)
    ordered, faults = order_plan(plan)
    resolved = resolve_rings(ordered, faults)
    edges = ring_edges(ordered)
    digest = plan_digest(plan)
    sweep = Sweep(resolved)
    choice = choose_schedule(sweep, find_hazards(resolved, sweep), device, effort)
    taken = try_choice(digest, Start(ordered, choice.sweep.plan, edges), choice, device, effort, table=ring_table)
    assignment, fixed, late, edges = taken.assignment, taken.fixed, taken.late, taken.start.edges
    findings: list[Diagnostic] = []
    unshifted: Measured | None = None
    proof = _verify(plan, late or fixed, device)
    if late is not None and proof.holds:
        fixed, unshifted = late, fixed.measured
    elif late is not None:
        findings.append(_warn_of_bug(plan, "with ops issued late", proof))
        proof = _verify(plan, fixed, device)
    if not proof.holds:
        raise ProofError(_describe(plan, proof))
    spared: Spared | None = None
    if sync == "fewest":
        fewer, method = _spare(digest, fixed, assignment, device)
        fewer_proof = _verify(plan, fewer, device)
        if fewer_proof.holds:
            spared = Spared(fixed.built.kept, method)
            fixed, proof = fewer, fewer_proof
        else:
            findings.append(_warn_of_bug(plan, "with fewer waits", fewer_proof))
    resolved, built = fixed.resolved, fixed.built
    hazards = choice.hazards if resolved is choice.sweep.plan else find_hazards(resolved)
    predicted = predict_schedule(built.schedule, resolved, device, hazards, edges, choice.limit, fixed.measured)
    schedule = replace(built.schedule, predicted=predicted)
    handles = count_handles(built)
    return Compiled(
        plan=plan,
        resolved=resolved,
        device=device,
        hazards=hazards,
        streams=stream_names(resolved, assignment),
        schedule=schedule,
        proof=proof,
        policy=assignment.policy,
        waits_found=built.found,
        waits_kept=built.kept,
        handles=handles,
        rings=fixed.rings if edges.ranges else None,
        shifts=fixed.shifts,
        spared=spared,
        unshifted=None if unshifted is None else float(unshifted.ticks / TICKS),
        warnings=(*find_warnings(resolved), *choice.findings, *findings, *_warn_of_bounds(plan, proof)),
    )


def _spare(digest: str, fixed: Fixed, assignment: Assignment, device: Device) -> tuple[Fixed, Method]:
    """Add order where that saves waits and costs no time; the rest stays as it is."""
    costs = op_costs(fixed.resolved, device)

    def build(ordered: Plan) -> tuple[Built, list[WaitRule], Callable[[], Sequence[Fraction]]]:
        built = build_schedule(digest, ordered, assignment, fixed.shifts)
        return built, built.rules, lambda: measure_closely(built.schedule, costs, device)

    times = measure_closely(fixed.built.schedule, costs, device)
    start = Attempt(fixed.resolved, fixed.built, fixed.built.rules, times)
    best, method = spare_waits(start, assignment.stream_of, fixed.shifts, build)
    return replace(fixed, built=best.built, measured=measure_schedule(best.built.schedule, costs, device)), method


def _verify(plan: Plan, fixed: Fixed, device: Device) -> Proof:
    _require_limits(plan, device, len(fixed.built.schedule.streams), count_handles(fixed.built))
    return verify_schedule(plan, fixed.built.schedule, device.limits)


def _warn_of_bug(plan: Plan, how: str, proof: Proof) -> Diagnostic:
    """What gains and is not accepted must not go unseen."""
    reason = proof.problems[0]
    headline = f"the schedule {how} could not be proved, and is not used"
    notes = (f"{reason.code}: {reason.text}", "this is a bug in dagsched")
    return Diagnostic("C111", headline, None, plan.source, notes=notes, help="report it", severity="warning")


def _warn_of_bounds(plan: Plan, proof: Proof) -> list[Diagnostic]:
    """A proof by going through counts ends somewhere; where regions do not end there too, the user must know."""
    if proof.complete:
        return []
    headline = f"the schedule is proved for {proof.counts}, and not beyond"
    several = len(plan.params) > 1
    help_ = "run no larger counts" + (", or let one parameter stand for them all" if several else "")
    return [Diagnostic("C110", headline, None, plan.source, help=help_, severity="warning")]


def _require_limits(plan: Plan, device: Device, streams: int, handles: int) -> None:
    """Refuse what the device cannot hold, before anything is written."""
    rows = [
        ("C101", "streams", streams, device.limits.streams, "set `streams: {max: N}` in the plan"),
        ("C102", "event handles", handles, device.limits.events, "use fewer streams or shorter rings"),
    ]
    faults = [
        Diagnostic(
            code, f"the schedule takes {used:,} {what}, and `{device.name}` has {most:,}", None, plan.source, help=help_
        )
        for code, what, used, most, help_ in rows
        if most is not None and used > most
    ]
    if faults:
        raise LimitError(faults)


def _describe(plan: Plan, proof: Proof) -> list[Diagnostic]:
    return [
        Diagnostic(
            problem.code, problem.text, None, plan.source, help="this is a bug in dagsched: report it with the plan"
        )
        for problem in proof.problems
    ]
