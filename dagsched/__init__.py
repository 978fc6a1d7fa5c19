"""dagsched: from a plan of copies, kernels and host work to a proved, minimal schedule of streams and events.

``load`` or build a :class:`Plan`, ``compile`` it, and write, draw or run the :class:`Schedule`. Names are imported when
they are first used, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagsched.diagnostics import (
        DagschedError,
        Diagnostic,
        LimitError,
        PlanError,
        ProofError,
        ScheduleError,
        UsageError,
    )
    from dagsched.library import Plan, Schedule, compile, load, loads
    from dagsched.run.errors import ExecutionError, RunStopped, RunTimeout

__version__ = "0.1.0"

_HOMES = {
    "DagschedError": "dagsched.diagnostics",
    "Diagnostic": "dagsched.diagnostics",
    "ExecutionError": "dagsched.run.errors",
    "LimitError": "dagsched.diagnostics",
    "Plan": "dagsched.library",
    "PlanError": "dagsched.diagnostics",
    "ProofError": "dagsched.diagnostics",
    "RunStopped": "dagsched.run.errors",
    "RunTimeout": "dagsched.run.errors",
    "Schedule": "dagsched.library",
    "ScheduleError": "dagsched.diagnostics",
    "UsageError": "dagsched.diagnostics",
    "compile": "dagsched.library",
    "load": "dagsched.library",
    "loads": "dagsched.library",
}

__all__ = [
    "DagschedError",
    "Diagnostic",
    "ExecutionError",
    "LimitError",
    "Plan",
    "PlanError",
    "ProofError",
    "RunStopped",
    "RunTimeout",
    "Schedule",
    "ScheduleError",
    "UsageError",
    "__version__",
    "compile",
    "load",
    "loads",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dagsched' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
