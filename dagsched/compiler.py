"""From a plan to a proved schedule: the passes in order, each a call.

Nothing leaves here unproved: a schedule that its verifier does not accept raises :class:`ProofError`.
"""

from __future__ import annotations

from dataclasses import replace

from dagsched.compiled import Compiled
from dagsched.cost.devices import load_device
from dagsched.cost.model import Device
from dagsched.cost.predict import predict_schedule
from dagsched.diagnostics import Diagnostic, LimitError, ProofError
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan
from dagsched.plan.resolve import find_warnings, resolve_plan
from dagsched.plan.writer import plan_digest
from dagsched.proof.model import Proof
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.assemble import assemble_schedule
from dagsched.schedule.events import allocate_events
from dagsched.schedule.rules import fold_waits
from dagsched.schedule.streams import assign_streams, stream_names
from dagsched.schedule.waits import find_needs


def compile_plan(plan: Plan, *, device: Device | None = None) -> Compiled:
    """Compile a plan as written.

    ``device`` overrides the one that the plan names, whose relative path starts at the plan's file.

    Raises :class:`PlanError` with all that is wrong with the plan, :class:`LimitError` where the device cannot hold
    the schedule, and :class:`ProofError` where dagsched has made a wrong one.
    """
    device = device or load_device(plan.device, source=plan.source)
    resolved = resolve_plan(plan)
    hazards = find_hazards(resolved)
    sweep = Sweep(resolved)
    assignment = assign_streams(sweep, hazards, device)
    stream_of = list(assignment.stream_of)
    needs = find_needs(sweep, stream_of)
    rules = fold_waits(sweep, needs, stream_of)
    recordings = allocate_events(sweep, rules)
    schedule = assemble_schedule(sweep, assignment.streams, stream_of, recordings, plan_digest(plan))
    schedule = replace(schedule, predicted=predict_schedule(schedule, resolved, device, hazards))
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
        waits_found=needs.found,
        waits_kept=len(rules),
        handles=handles,
        warnings=(*find_warnings(resolved), *_warn_of_bounds(plan, proof)),
    )


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
