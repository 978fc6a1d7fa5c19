"""How many iterations a launch of a graph should have, and what that costs.

Launches follow each other, so each begins with empty engines and ends with idle ones. The model says how long a window
takes by itself; windows are doubled until an iteration takes at most a tenth more than where iterations overlap freely.
"""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.compiled import Compiled
from dagsched.cost.durations import op_costs
from dagsched.cost.queues import TICKS
from dagsched.cost.steady import find_steady_state, run_loop
from dagsched.diagnostics import DagschedError
from dagsched.emit.captures import MAX_PERIOD, Capture
from dagsched.schedule.model import LoopStep

LOSS = 1.1
"""How much longer an iteration may take in a launch than where iterations overlap freely."""

MAX_NODES = 4096
"""Calls in a window at the most."""


@dataclass(frozen=True, slots=True)
class Window:
    """``size`` iterations a launch; predicted seconds an iteration in one, and with free overlap (None: not known)."""

    size: int
    launched: float | None = None
    overlapped: float | None = None

    def __str__(self) -> str:
        if self.launched is None or self.overlapped is None:
            return f"{self.size} iterations a launch"
        return (
            f"{self.size} iterations a launch, predicted to take {_time(self.launched)} each; issued call by call, "
            f"where iterations overlap freely, they take {_time(self.overlapped)}"
        )


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def choose_window(compiled: Compiled, step: LoopStep, capture: Capture) -> Window:
    """The size for a loop, which is ``step`` in the schedule."""
    largest = max(capture.period, min(MAX_PERIOD, MAX_NODES // max(1, len(capture.steady))))
    costs = op_costs(compiled.resolved, compiled.device)
    try:
        steady = find_steady_state(compiled.schedule, step, costs, compiled.device)
        overlapped = steady.seconds
        size = capture.period
        while True:
            program, times, _ = run_loop(compiled.schedule, step, costs, compiled.device, size)
            launched = float(times.makespan / TICKS) / size
            if launched <= LOSS * overlapped or 2 * size > largest or not steady.exact:
                return Window(size, launched, overlapped) if program.tasks and steady.exact else Window(size)
            size *= 2
    except DagschedError:  # what cannot be simulated is captured all the same
        return Window(capture.period)
