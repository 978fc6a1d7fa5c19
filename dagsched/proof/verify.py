"""Verify that a schedule is right for its plan, for every loop count.

Right means: each op instance occurs exactly once with the plan's accesses; every pair of conflicting accesses is
ordered by happens-before in the plan's direction; every read sees the bytes that the plan means, also in rings; no
wait binds to another record than the one that it names; and nothing but latch events is used, under which no wait can
block for ever, since it binds to a record that was issued before it. Happens-before comes from the schedule alone,
conflicts from the plan alone, and no code is shared with the passes that made the schedule. The argument for all
counts stands in ``dagsched.proof.counts``, the state that it compares in ``dagsched.proof.relative``.
"""

from __future__ import annotations

from typing import Any

from dagsched.cost.model import Limits
from dagsched.plan.expressions import ExpressionError
from dagsched.plan.model import Plan
from dagsched.proof.counts import Coverage, run_counts
from dagsched.proof.instances import counts_by_version, largest_constant, list_segments
from dagsched.proof.model import Problem, Proof
from dagsched.proof.rhythm import find_drain, find_rhythm
from dagsched.proof.run import Found, Outcome, Subject
from dagsched.proof.witness import NoChainError, write_witness
from dagsched.schedule.model import EventStep, LoopStep, OpStep, Schedule, SyncStep


def verify_schedule(plan: Plan, schedule: Schedule, limits: Limits | None = None) -> Proof:
    """The verdict on a compiled schedule, for the plan as written."""
    outcome = Outcome()
    coverage = Coverage("no count", {})
    _check_form(schedule, outcome)
    subject = make_subject(plan, schedule)
    if not outcome.problems:
        try:
            coverage = run_counts(subject, outcome)
        except (ExpressionError, KeyError) as error:
            outcome.complain("V100", "expression", f"an expression of the schedule cannot be computed: {error}")
    if not outcome.problems and coverage.complete:  # beyond the counts that were run, any wait may bind
        _check_bound(schedule, outcome)
    _check_limits(schedule, limits or Limits(), outcome)
    races = [found for found in outcome.hazards.values() if not found.ordered]
    problems = [Problem(code, text) for (code, _), text in sorted(outcome.problems.items())]
    problems += [Problem("V110", describe_race(subject, found)) for found in races]
    document: dict[str, Any] = {}
    if not problems:
        try:
            document = write_witness(subject, outcome, coverage)
        except NoChainError as error:
            text = f"the order by `{error}` cannot be written down: a compiled schedule records right behind an op"
            problems.append(Problem("V100", text))
    return Proof(tuple(problems), coverage.text, len(outcome.hazards), document, coverage.complete)


def make_subject(plan: Plan, schedule: Schedule) -> Subject:
    """What all runs of a plan with a schedule share."""
    segments = list_segments(plan)
    used = [step.stream.name for step in schedule.walk() if isinstance(step, OpStep)]
    used += [step.stream.name for step in schedule.walk() if isinstance(step, EventStep) and step.stream]
    loops = iter([step for step in schedule.steps if isinstance(step, LoopStep)])
    matched = [next(loops, None) if segment.index is not None else None for segment in segments]
    rhythms = tuple(
        find_rhythm(plan, schedule, segment, loop, (other for other in segments if other is not segment))
        for segment, loop in zip(segments, matched, strict=True)
    )
    look_back = {name: storage.ring + 1 for name, storage in schedule.buffers.items()}
    for access in (access for op in plan.ops() for access in op.accesses):
        reach = min(64, largest_constant(access.version)) + 2
        look_back[access.buffer] = max(look_back.get(access.buffer, 0), reach)
    by_version = counts_by_version(plan)
    kept = 1 + max([0, *(d for segment in segments for planned in segment.ops for _, d in planned.after)])
    return Subject(plan, schedule, segments, by_version, tuple(dict.fromkeys(used)), rhythms, look_back, kept)


def _check_form(schedule: Schedule, outcome: Outcome) -> None:
    """Only what a compiled schedule is made of: the argument against deadlock rests on it."""
    if schedule.event_model != "latch" or schedule.default_stream != "none":
        outcome.complain("V100", "model", "a compiled schedule uses latch events and no legacy default stream")
    placed: set[str] = set()
    if any(isinstance(step, OpStep) and step.iteration is not None for step in schedule.steps):
        outcome.complain("V100", "shift", "only ops in loops are iterations of something")
    for step in schedule.walk():
        if isinstance(step, EventStep):
            if step.stream is None or step.action == "reset" or step.stream.index is not None:
                outcome.complain("V100", "event", "a compiled schedule has no resets, and no events of the host")
        elif isinstance(step, OpStep):
            if step.stream.index is not None:
                outcome.complain("V100", "stream", "a compiled schedule has no indexed streams")
            if step.op in placed:  # that an op keeps its stream is what lets its newest instance stand for older ones
                outcome.complain("V102", step.op, f"`{step.op}` stands in the schedule twice")
            placed.add(step.op)
        elif isinstance(step, LoopStep):
            if any(isinstance(inner, LoopStep) for inner in step.steps):
                outcome.complain("V100", "loop", "a compiled schedule has no loops inside loops")
            if find_drain(step) is None:
                outcome.complain("V100", "shift", "an op of a compiled schedule is a constant number of rounds late")
        elif not isinstance(step, SyncStep):
            outcome.complain(
                "V100", type(step).__name__, "a compiled schedule has ops, records, waits, syncs and loops"
            )


def _check_bound(schedule: Schedule, outcome: Outcome) -> None:
    """A wait that binds in no run is no use."""
    for step in schedule.walk():
        if isinstance(step, EventStep) and step.action == "wait" and id(step) not in outcome.bound:
            outcome.complain("V105", step.event.name, f"a wait for `{step.event.name}` never binds to a record")


def _check_limits(schedule: Schedule, limits: Limits, outcome: Outcome) -> None:
    streams = {step.stream.name for step in schedule.walk() if isinstance(step, OpStep)}
    handles = sum(event.ring or 1 for event in schedule.events.values())
    if limits.streams is not None and len(streams) > limits.streams:
        outcome.complain("V111", "streams", f"{len(streams)} streams, and the device has {limits.streams}")
    if limits.events is not None and handles > limits.events:
        outcome.complain("V111", "events", f"{handles} event handles, and the device has {limits.events}")


def describe_race(subject: Subject, found: Found) -> str:
    """A race in words, with the wait that would mend it."""
    first, second = found.first, found.second
    streams = subject.streams
    near = first.segment == second.segment and subject.segments[first.segment].index is not None
    distance = second.iteration - first.iteration
    at = (
        f"{distance} iterations later"
        if distance > 1
        else "one iteration later"
        if distance
        else "in the same iteration"
    )
    where = f" ({at})" if near else ""
    what = f"{', '.join(found.kinds)} on `{found.buffer}`" if found.buffer else "`after:`"
    index = subject.segments[second.segment].index
    here, there = first.name, second.name
    if near and index:
        here, there = f"{here}@{index}", f"{there}@{index}+{distance}" if distance else f"{there}@{index}"
    return (
        f"`{first.name}` on stream `{streams[first.stream]}` and `{second.name}` on stream `{streams[second.stream]}` "
        f"race{where}: {what}; record on `{streams[first.stream]}` after `{here}`, "
        f"wait on `{streams[second.stream]}` before `{there}`"
    )
