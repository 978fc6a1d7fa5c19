"""From a plan to a proved schedule: the passes in order, each a call.

Nothing leaves here unproved: a schedule that its verifier does not accept raises :class:`ProofError`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dagsched.choice.choose import Effort, choose_schedule
from dagsched.compiled import Compiled
from dagsched.cost.devices import load_device
from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import ring_edges
from dagsched.cost.model import Device
from dagsched.cost.predict import Measured, measure_schedule, predict_schedule
from dagsched.diagnostics import Diagnostic, LimitError, ProofError
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan
from dagsched.plan.resolve import find_warnings, order_plan, resolve_rings
from dagsched.plan.writer import plan_digest
from dagsched.proof.model import Proof
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.assemble import assemble_schedule
from dagsched.schedule.depths import choose_ring_depths, with_depths
from dagsched.schedule.events import Recording, allocate_events
from dagsched.schedule.model import Schedule
from dagsched.schedule.rules import fold_waits
from dagsched.schedule.streams import Assignment, stream_names
from dagsched.schedule.waits import find_needs


def compile_plan(
    plan: Plan, *, device: Device | None = None, effort: Effort = "normal", ring_table: bool = False
) -> Compiled:
    """Compile a plan as written.

    ``device`` overrides the one that the plan names, whose relative path starts at the plan's file. ``effort`` is how
    hard to look for a quick schedule. ``ring_table`` asks for all worthwhile depths of the rings in ``Compiled.rings``,
    not only for those that are chosen.

    Raises :class:`PlanError` with all that is wrong with the plan, :class:`LimitError` where the device cannot hold
    the schedule, and :class:`ProofError` where dagsched has made a wrong one.
    """
    device = device or load_device(plan.device, source=plan.source)
    ordered, faults = order_plan(plan)
    resolved = resolve_rings(ordered, faults)
    edges = ring_edges(ordered)
    choice = choose_schedule(Sweep(resolved), find_hazards(resolved), device, effort, rearrange=not edges.ranges)
    resolved, assignment = choice.sweep.plan, choice.assignment

    def measure(depths: dict[str, int]) -> Measured:
        parts = _build(plan, with_depths(ordered, resolved, depths), assignment)
        return measure_schedule(parts.schedule, op_costs(resolved, device), device)

    rings = choose_ring_depths(edges, resolved, assignment, device, measure, table=ring_table)
    resolved = with_depths(ordered, resolved, rings.chosen.depths if rings else {})
    hazards = find_hazards(resolved)
    built = _build(plan, resolved, assignment)
    predicted = predict_schedule(built.schedule, resolved, device, hazards, edges, choice.limit)
    schedule, recordings = replace(built.schedule, predicted=predicted), built.recordings
    handles = sum({recording.event: recording.ring for recording in recordings}.values())
    _require_limits(plan, device, len(schedule.streams), handles)
    proof = verify_schedule(plan, schedule, device.limits)
    if not proof.holds:
        raise ProofError(_describe(plan, proof))
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
        rings=rings,
        warnings=(*find_warnings(resolved), *choice.findings, *_warn_of_bounds(plan, proof)),
    )


@dataclass(frozen=True, slots=True)
class _Built:
    """A schedule with what led to it; ``found`` and ``kept`` count waits."""

    schedule: Schedule
    recordings: list[Recording]
    found: int
    kept: int


def _build(plan: Plan, resolved: Plan, assignment: Assignment) -> _Built:
    """Waits, events and steps for a resolved plan on given streams."""
    sweep = Sweep(resolved)
    stream_of = list(assignment.stream_of)
    needs = find_needs(sweep, stream_of)
    rules = fold_waits(sweep, needs, stream_of)
    recordings = allocate_events(sweep, rules)
    schedule = assemble_schedule(sweep, assignment.streams, stream_of, recordings, plan_digest(plan))
    return _Built(schedule, recordings, needs.found, len(rules))


def _warn_of_bounds(plan: Plan, proof: Proof) -> list[Diagnostic]:
    """A proof by going through counts ends somewhere; where regions do not end there too, the user must know."""
    if proof.complete:
        return []
    headline = f"the schedule is proved for {proof.counts}, and not beyond"
    help_ = "run no larger counts, or let the loops share one parameter"
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
        Diagnostic(problem.code, problem.text, None, plan.source, notes=("this is a bug in dagsched",))
        for problem in proof.problems
    ]
