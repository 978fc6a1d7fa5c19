"""The passes from a resolved plan to a schedule, for given streams."""

from __future__ import annotations

from dagsched.hazards.sweep import Sweep
from dagsched.plan.model import Plan
from dagsched.schedule.assemble import assemble_schedule
from dagsched.schedule.events import allocate_events
from dagsched.schedule.model import Schedule, Stream
from dagsched.schedule.rules import fold_waits
from dagsched.schedule.waits import find_needs


def build_schedule(plan: Plan, streams: dict[str, str], shifts: dict[str, int] | None = None) -> Schedule:
    """Waits, events and steps for a given assignment, with ops of loops issued some rounds late."""
    sweep = Sweep(plan, shifts)
    names = sorted(set(streams.values()))
    stream_of = [names.index(streams[op.name]) for op in sweep.ops]
    rules = fold_waits(sweep, find_needs(sweep, stream_of), stream_of)
    recordings = allocate_events(sweep, rules)
    return assemble_schedule(sweep, [Stream(name) for name in names], stream_of, recordings, "0" * 64)
