"""From a plan to a proved schedule: the passes in order, each a call.

Nothing leaves here unproved: a schedule that its verifier does not accept raises :class:`ProofError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Literal

from dagsched.choice.choose import LOOP_BUDGETS, Choice, Effort, choose_schedule, propose_schedules
from dagsched.choice.reorder import reorder_ops
from dagsched.compiled import Compiled, Spared
from dagsched.cost.bounds import Bound
from dagsched.cost.depths import RingChoice
from dagsched.cost.devices import load_device
from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import LoopGraph, RingEdges, bound_loops, build_graphs, ring_edges
from dagsched.cost.model import Device
from dagsched.cost.predict import Measured, measure_closely, measure_schedule, predict_schedule
from dagsched.cost.queues import TICKS
from dagsched.diagnostics import Diagnostic, LimitError, ProofError
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.expressions import Int
from dagsched.plan.model import Plan
from dagsched.plan.resolve import find_warnings, order_plan, resolve_depths, resolve_rings
from dagsched.plan.rings import find_ring_ranges, meet_ranges
from dagsched.plan.segments import split_segments
from dagsched.plan.writer import plan_digest
from dagsched.proof.model import Proof
from dagsched.proof.verify import verify_schedule
from dagsched.schedule.assemble import assemble_schedule
from dagsched.schedule.depths import choose_ring_depths, likely_depths, make_search, with_depths
from dagsched.schedule.events import Recording, allocate_events
from dagsched.schedule.fewest import Attempt, Method, spare_waits
from dagsched.schedule.model import Schedule
from dagsched.schedule.pipeline import name_shifts, shift_loops
from dagsched.schedule.rules import WaitRule, fold_waits
from dagsched.schedule.streams import Assignment, stream_names
from dagsched.schedule.waits import find_needs

GAIN = Fraction(999, 1000)
"""Ops are shifted, and a loop rearranged, where that brings it below this share of its time."""

_CLOSE = Fraction(1001, 1000)
"""What is nearer to its limit than this is not worth a search."""


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
    start = _Start(ordered, choice.sweep.plan, edges)
    bounds = bound_loops(start.resolved, edges, op_costs(start.resolved, device), device)
    tried = [
        _try(digest, start, bounds, assignment, device, ring_table)
        for assignment in (choice.assignment, *choice.others)
    ]
    taken = _best(tried, device)
    if bounds:
        found = _search(digest, start, bounds, tried, choice, device, effort, ring_table)
        taken = _best([taken, *found], device)
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
    handles = _count_handles(built)
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


@dataclass(frozen=True, slots=True)
class _Built:
    """A schedule with what led to it; ``found`` counts hazards between streams."""

    schedule: Schedule
    recordings: list[Recording]
    found: int
    rules: list[WaitRule]

    @property
    def kept(self) -> int:
        """How many waits the schedule has."""
        return len(self.rules)


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A plan with rings and shifts chosen, what was built of it, and what that takes; ``builds`` were tried."""

    resolved: Plan
    rings: RingChoice
    shifts: dict[str, int]
    built: _Built
    measured: Measured
    builds: int


@dataclass(frozen=True, slots=True)
class _Start:
    """A plan in the order to issue: before its rings are fixed, with rings of any depth, and what rings add."""

    ordered: Plan
    resolved: Plan
    edges: RingEdges


@dataclass(frozen=True, slots=True)
class _Tried:
    """What becomes of an assignment; ``late``: with ops shifted, where the model says that this gains."""

    start: _Start
    assignment: Assignment
    fixed: _Fixed
    late: _Fixed | None
    builds: int

    @property
    def best(self) -> _Fixed:
        return self.late or self.fixed


def _try(
    digest: str, start: _Start, bounds: Mapping[int, Bound], assignment: Assignment, device: Device, table: bool
) -> _Tried:
    """Choose rings and shifts for ops on given streams."""
    costs = op_costs(start.resolved, device)
    graphs = build_graphs(start.resolved, start.edges, assignment.stream_of, costs, device)
    fixed = _fix(digest, start, graphs, assignment, device, table)
    assert fixed is not None  # without shifts the shortest rings will do, and they fit
    moved = shift_loops(graphs, bounds)
    late = None if moved is None else _fix(digest, start, moved, assignment, device, table)
    gains = late is not None and late.measured.ticks < fixed.measured.ticks * GAIN
    builds = fixed.builds + (late.builds if late else 0)
    return _Tried(start, assignment, fixed, late if gains else None, builds)


def _best(tried: Sequence[_Tried], device: Device) -> _Tried:
    """The quickest, the first of equals; of those whose events the device has, where there are any."""
    most = device.limits.events
    usable = [each for each in tried if most is None or _count_handles(each.best.built) <= most]
    return min(usable or tried, key=lambda each: each.best.measured.ticks)


def _search(
    digest: str,
    start: _Start,
    bounds: Mapping[int, Bound],
    tried: Sequence[_Tried],
    choice: Choice,
    device: Device,
    effort: Effort,
    table: bool,
) -> list[_Tried]:
    """What becomes of proposals that are quicker than what was tried; ends where a limit is met."""
    quickest = min(each.best.measured.ticks for each in tried)
    open_ = [s.loop is not None and not isinstance(s.count, Int) for s in choice.sweep.segments]
    limit = max((bound.ticks for segment, bound in bounds.items() if open_[segment]), default=Fraction(0))
    found: list[_Tried] = []
    if quickest <= limit * _CLOSE:
        return found
    search = make_search(start.edges, start.resolved, (), device)
    roomy = with_depths(start.ordered, start.resolved, likely_depths(search))
    known = [each.assignment for each in tried]
    builds = LOOP_BUDGETS[effort].builds
    least = {segment: ceil(bound.ticks) for segment, bound in bounds.items()}
    proposals = propose_schedules(choice.sweep, choice.hazards, roomy, device, effort, known, least)
    for order, assignment in proposals:
        if builds <= 0:
            break
        each = _try(digest, _reorder(start, order), bounds, assignment, device, table)
        builds -= each.builds * len(order)
        if each.best.measured.ticks < quickest * GAIN:
            quickest = each.best.measured.ticks
            found.append(each)
            if quickest <= limit:
                break
    return found


def _reorder(start: _Start, order: tuple[int, ...]) -> _Start:
    """The same in another order; rings get no depth that the order written does not allow, too."""
    if order == tuple(range(len(order))):
        return start
    ordered = reorder_ops(start.ordered, order)
    depths = {name: buffer.ring.depth or 1 for name, buffer in start.resolved.buffers.items()}
    ranges = meet_ranges(start.edges.ranges, find_ring_ranges(ordered, split_segments(ordered)))
    return _Start(ordered, resolve_depths(ordered, depths), RingEdges(ordered, ranges))


def _fix(
    digest: str,
    start: _Start,
    graphs: list[LoopGraph],
    assignment: Assignment,
    device: Device,
    table: bool,
) -> _Fixed | None:
    """Choose ring depths for loops with ops shifted as the graphs say; None where memory is too small for that."""
    shifts, costs = name_shifts(graphs), op_costs(start.resolved, device)

    made: dict[tuple[int, ...], tuple[Plan, _Built, Measured]] = {}

    def make(depths: dict[str, int]) -> tuple[Plan, _Built, Measured]:
        key = tuple(depths.values())
        if key not in made:
            deep = with_depths(start.ordered, start.resolved, depths)
            parts = _build(digest, deep, assignment, shifts)
            made[key] = deep, parts, measure_schedule(parts.schedule, costs, device)
        return made[key]

    def measure(depths: dict[str, int]) -> Measured:
        return make(depths)[2]

    rings = choose_ring_depths(make_search(start.edges, start.resolved, graphs, device), measure, table=table)
    if rings is None:
        return None
    resolved, built, measured = make(rings.chosen.depths)
    return _Fixed(resolved, rings, shifts, built, measured, len(made))


def _build(digest: str, resolved: Plan, assignment: Assignment, shifts: dict[str, int]) -> _Built:
    """Waits, events and steps for a resolved plan on given streams."""
    sweep = Sweep(resolved, shifts)
    stream_of = list(assignment.stream_of)
    needs = find_needs(sweep, stream_of)
    rules = fold_waits(sweep, needs, stream_of)
    recordings = allocate_events(sweep, rules)
    schedule = assemble_schedule(sweep, assignment.streams, stream_of, recordings, digest)
    return _Built(schedule, recordings, needs.found, rules)


def _spare(digest: str, fixed: _Fixed, assignment: Assignment, device: Device) -> tuple[_Fixed, Method]:
    """Add order where that saves waits and costs no time; the rest stays as it is."""
    costs = op_costs(fixed.resolved, device)

    def build(ordered: Plan) -> tuple[_Built, list[WaitRule], Callable[[], Sequence[Fraction]]]:
        built = _build(digest, ordered, assignment, fixed.shifts)
        return built, built.rules, lambda: measure_closely(built.schedule, costs, device)

    times = measure_closely(fixed.built.schedule, costs, device)
    start = Attempt(fixed.resolved, fixed.built, fixed.built.rules, times)
    best, method = spare_waits(start, assignment.stream_of, fixed.shifts, build)
    return replace(fixed, built=best.built, measured=measure_schedule(best.built.schedule, costs, device)), method


def _count_handles(built: _Built) -> int:
    return sum({recording.event: recording.ring for recording in built.recordings}.values())


def _verify(plan: Plan, fixed: _Fixed, device: Device) -> Proof:
    _require_limits(plan, device, len(fixed.built.schedule.streams), _count_handles(fixed.built))
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
