"""What becomes of ops on given streams: rings, shifts, waits, events, steps, and what that takes.

A trial is everything between the choice of streams and the proof. Plans with loops are tried several times, since only
the rings and shifts that an assignment leads to tell how quick it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from dagsched.choice.choose import LOOP_BUDGETS, Choice, Effort, propose_around_loops, propose_schedules
from dagsched.choice.ends import ITERATIONS
from dagsched.choice.reorder import reorder_ops
from dagsched.cost.bounds import Bound
from dagsched.cost.depths import RingChoice
from dagsched.cost.durations import op_costs
from dagsched.cost.loop_graph import LoopGraph, RingEdges, bound_loops, build_graphs, shift_graph
from dagsched.cost.model import Device
from dagsched.cost.predict import Measured, measure_schedule
from dagsched.cost.program import unroll_schedule
from dagsched.cost.simulator import run_program
from dagsched.diagnostics import LimitError, ScheduleError
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.expressions import Int, names_in
from dagsched.plan.model import Plan
from dagsched.plan.resolve import resolve_depths
from dagsched.plan.rings import find_ring_ranges, meet_ranges
from dagsched.plan.segments import split_segments
from dagsched.schedule.assemble import assemble_schedule
from dagsched.schedule.depths import choose_ring_depths, likely_depths, make_search, price_rings, with_depths
from dagsched.schedule.events import Recording, allocate_events
from dagsched.schedule.model import Schedule
from dagsched.schedule.pipeline import name_shifts, shift_loops
from dagsched.schedule.rules import WaitRule, fold_waits
from dagsched.schedule.streams import Assignment
from dagsched.schedule.waits import find_needs

_CLOSE = Fraction(1001, 1000)
"""What is nearer to its limit than this is not worth a search."""

GAIN = Fraction(999, 1000)
"""Ops are shifted, and a loop rearranged, where that brings it below this share of its time."""


@dataclass(frozen=True, slots=True)
class Start:
    """A plan in the order to issue: before its rings are fixed, with rings of any depth, and what rings add."""

    ordered: Plan
    resolved: Plan
    edges: RingEdges


@dataclass(frozen=True, slots=True)
class Built:
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
class Fixed:
    """A plan with rings and shifts chosen, what was built of it, and what that takes; ``builds`` were tried."""

    resolved: Plan
    rings: RingChoice
    shifts: dict[str, int]
    built: Built
    measured: Measured
    builds: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What becomes of an assignment; ``late``: with ops shifted, where the model says that this gains."""

    start: Start
    assignment: Assignment
    fixed: Fixed
    late: Fixed | None
    builds: int

    @property
    def best(self) -> Fixed:
        return self.late or self.fixed


def try_choice(
    digest: str, start: Start, choice: Choice, device: Device, effort: Effort, *, table: bool = False
) -> Trial:
    """The quickest of what was chosen; in plans with loops also of what a search proposes."""
    bounds = bound_loops(start.resolved, start.edges, op_costs(start.resolved, device), device)
    tried = [
        try_assignment(digest, start, bounds, assignment, device, table)
        for assignment in (choice.assignment, *choice.others)
    ]
    taken = _pick(tried, device)
    if not bounds:
        return taken
    found = _try_proposals(digest, start, bounds, taken, tried, choice, device, effort, table)
    return _try_around(digest, bounds, _pick([taken, *found], device), device, effort, table)


def count_handles(built: Built) -> int:
    """How many event handles a schedule takes."""
    return sum({recording.event: recording.ring for recording in built.recordings}.values())


def _pick(tried: Sequence[Trial], device: Device) -> Trial:
    """The quickest, the first of equals; of those whose events the device has, where there are any."""
    usable = [each for each in tried if _fits(each, device)]
    return min(usable or tried, key=lambda each: (each.best.measured.ticks, each.best.measured.together))


def _fits(trial: Trial, device: Device) -> bool:
    """Whether the device has the events."""
    most = device.limits.events
    return most is None or count_handles(trial.best.built) <= most


def _gains(new: Measured, old: Measured) -> bool:
    """Whether the slowest loop gains, or another one and the slowest loses nothing."""
    return new.ticks < old.ticks * GAIN or (new.ticks <= old.ticks and new.together < old.together * GAIN)


def _try_proposals(
    digest: str,
    start: Start,
    bounds: Mapping[int, Bound],
    taken: Trial,
    tried: Sequence[Trial],
    choice: Choice,
    device: Device,
    effort: Effort,
    table: bool,
) -> list[Trial]:
    """What becomes of proposals that is quicker than what was taken; ends where a limit is met."""
    best = taken.best.measured
    open_ = [s.loop is not None and not isinstance(s.count, Int) for s in choice.sweep.segments]
    limit = sum((bound.ticks for segment, bound in bounds.items() if open_[segment]), Fraction(0))
    found: list[Trial] = []
    if best.together <= limit * _CLOSE:
        return found
    search = make_search(start.edges, start.resolved, (), device)
    roomy = with_depths(start.ordered, start.resolved, likely_depths(search))
    least = {segment: ceil(bound.ticks) for segment, bound in bounds.items()}
    known = [each.assignment for each in tried]
    builds = LOOP_BUDGETS[effort].builds
    for way in propose_schedules(choice.sweep, choice.hazards, roomy, device, effort, known, least):
        try:
            moved = reorder_start(start, way.order)
            each = try_assignment(digest, moved, bounds, way.assignment, device, table, way.shifts, best)
        except LimitError:
            continue  # rings need more slots in this order than there is room for
        if _gains(each.best.measured, best) and _fits(each, device) >= _fits(taken, device):
            best = each.best.measured
            found.append(each)
        builds -= each.builds * len(way.order)
        if best.together <= limit or builds <= 0:
            break
    return found


def _try_around(
    digest: str, bounds: Mapping[int, Bound], taken: Trial, device: Device, effort: Effort, table: bool
) -> Trial:
    """The same with ops around open loops moved, where that shortens short runs and makes no loop slower."""
    best = taken.best
    if best.measured.loop is None:
        return taken
    sweep = Sweep(best.resolved)
    way = propose_around_loops(sweep, find_hazards(best.resolved, sweep), device, effort, taken.assignment, best.shifts)
    if way is None:
        return taken
    try:
        moved = reorder_start(taken.start, way.order)
        each = try_assignment(digest, moved, bounds, way.assignment, device, table, way.shifts)
    except LimitError:
        return taken
    measured = each.best.measured
    try:
        runs = [_run_shortly(fixed, device) for fixed in (best, each.best)]
    except ScheduleError:
        return taken  # its expressions mean nothing for so few iterations
    better = measured.ticks <= best.measured.ticks and measured.together <= best.measured.together
    return each if better and runs[1] < runs[0] * GAIN and _pick([each, taken], device) is each else taken


def _run_shortly(fixed: Fixed, device: Device) -> int:
    """Ticks that a run of few iterations takes."""
    schedule = fixed.built.schedule
    counted = {name for segment in split_segments(fixed.resolved) for name in names_in(segment.count)}
    counts = {name: ITERATIONS for name, value in schedule.params.items() if value is None or name in counted}
    program = unroll_schedule(schedule, op_costs(fixed.resolved, device), device, counts)
    return run_program(program, device, schedule).makespan


def try_assignment(
    digest: str,
    start: Start,
    bounds: Mapping[int, Bound],
    assignment: Assignment,
    device: Device,
    table: bool,
    shifts: Mapping[str, int] | None = None,
    known: Measured | None = None,
) -> Trial:
    """Choose rings and shifts for ops on given streams.

    ``shifts`` are tried beside those that the graphs suggest. Rings of what does not gain over ``known`` may be longer
    than they need to be.
    """
    costs = op_costs(start.resolved, device)
    graphs = build_graphs(start.resolved, start.edges, assignment.stream_of, costs, device)
    fixed = _fix(digest, start, graphs, assignment, device, table, known)
    assert fixed is not None  # without shifts the shortest rings will do, and they fit
    late: Fixed | None = None
    builds = fixed.builds
    for moved in _shift_graphs(start, graphs, bounds, shifts or {}):
        quickest = (late or fixed).measured
        found = _fix(digest, start, moved, assignment, device, table, quickest)
        builds += found.builds if found else 0
        if found is not None and _gains(found.measured, quickest):
            late = found
    return Trial(start, assignment, fixed, late, builds)


def _shift_graphs(
    start: Start, graphs: list[LoopGraph], bounds: Mapping[int, Bound], shifts: Mapping[str, int]
) -> list[list[LoopGraph]]:
    """The ways to issue ops late that are worth a trial: what the graphs suggest, and what is given."""
    found: list[list[LoopGraph]] = []
    suggested = shift_loops(graphs, bounds, lambda graph: price_rings(start.edges, start.resolved, graph))
    if suggested is not None:
        found.append(suggested)
    if any(shifts.values()):
        given = [shift_graph(graph, [shifts.get(op, 0) for op in graph.ops]) for graph in graphs]
        moved = [graph for graph in given if graph is not None]
        if len(moved) == len(graphs) and moved != suggested:
            found.append(moved)
    return found


def reorder_start(start: Start, order: tuple[int, ...]) -> Start:
    """The same in another order; rings get no depth that the order written does not allow, too."""
    if order == tuple(range(len(order))):
        return start
    ordered = reorder_ops(start.ordered, order)
    depths = {name: buffer.ring.depth or 1 for name, buffer in start.resolved.buffers.items()}
    ranges = meet_ranges(start.edges.ranges, find_ring_ranges(ordered, split_segments(ordered)))
    return Start(ordered, resolve_depths(ordered, depths), RingEdges(ordered, ranges))


def _fix(
    digest: str,
    start: Start,
    graphs: list[LoopGraph],
    assignment: Assignment,
    device: Device,
    table: bool,
    known: Measured | None = None,
) -> Fixed | None:
    """Choose ring depths for loops with ops shifted as the graphs say; None where memory is too small for that."""
    shifts, costs = name_shifts(graphs), op_costs(start.resolved, device)

    made: dict[tuple[int, ...], tuple[Plan, Built, Measured]] = {}

    def make(depths: dict[str, int]) -> tuple[Plan, Built, Measured]:
        key = tuple(depths.values())
        if key not in made:
            deep = with_depths(start.ordered, start.resolved, depths)
            parts = build_schedule(digest, deep, assignment, shifts)
            made[key] = deep, parts, measure_schedule(parts.schedule, costs, device)
        return made[key]

    def measure(depths: dict[str, int]) -> Measured:
        return make(depths)[2]

    def wanted(found: Measured) -> bool:
        return known is None or _gains(found, known)

    search = make_search(start.edges, start.resolved, graphs, device)
    rings = choose_ring_depths(search, measure, table=table, wanted=wanted)
    if rings is None:
        return None
    resolved, built, measured = make(rings.chosen.depths)
    return Fixed(resolved, rings, shifts, built, measured, len(made))


def build_schedule(digest: str, resolved: Plan, assignment: Assignment, shifts: dict[str, int]) -> Built:
    """Waits, events and steps for a resolved plan on given streams."""
    sweep = Sweep(resolved, shifts)
    stream_of = list(assignment.stream_of)
    needs = find_needs(sweep, stream_of)
    rules = fold_waits(sweep, needs, stream_of)
    recordings = allocate_events(sweep, rules)
    schedule = assemble_schedule(sweep, assignment.streams, stream_of, recordings, digest)
    return Built(schedule, recordings, needs.found, rules)
