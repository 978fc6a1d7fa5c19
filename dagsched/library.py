"""The library's front: load or build a plan, compile it, and use the schedule.

>>> plan = dagsched.load("detector.yaml")        # doctest: +SKIP
>>> schedule = dagsched.compile(plan)            # doctest: +SKIP
>>> schedule.write("build/", targets=["acl-cpp"])  # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagsched.choice.choose import EFFORTS, Effort
from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.devices import load_device
from dagsched.diagnostics import Diagnostic, Source, UsageError, closest
from dagsched.output import write_files
from dagsched.plan import model
from dagsched.plan.builder import Plan
from dagsched.plan.reader import read_plan_with_warnings
from dagsched.schedule import model as schedule_model
from dagsched.sources import read_file

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    from dagsched.run.backend import Runs
    from dagsched.run.functions import Functions

__all__ = ["Plan", "Schedule", "compile", "load", "loads", "schedule_files"]


class Schedule:
    """A compiled, proved schedule. ``compiled`` has everything that led to it, as data."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled

    @property
    def name(self) -> str:
        """The plan's name."""
        return self.compiled.schedule.name

    @property
    def model(self) -> schedule_model.Schedule:
        """Streams, events and steps, as data."""
        return self.compiled.schedule

    @property
    def streams(self) -> dict[str, str]:
        """The stream of each op."""
        return dict(self.compiled.streams)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the plan's author should look at."""
        return self.compiled.warnings

    @property
    def graph(self) -> MultiDiGraph[str]:
        """Ops and hazards as a networkx graph (see :func:`dagsched.hazards.graph.build_graph`)."""
        from dagsched.hazards.graph import build_graph

        return build_graph(self.compiled.resolved, self.compiled.hazards, self.compiled.streams)

    def to_text(self) -> str:
        """The schedule for people: one step a line."""
        from dagsched.schedule.writer import schedule_text

        return schedule_text(self.compiled.schedule)

    def to_json(self) -> str:
        """The schedule as ``NAME.schedule.json`` holds it."""
        from dagsched.schedule.writer import schedule_json

        return schedule_json(self.compiled.schedule)

    def to_yaml(self) -> str:
        """The schedule as YAML."""
        from dagsched.schedule.writer import schedule_yaml

        return schedule_yaml(self.compiled.schedule)

    def summary(self) -> str:
        """What ``dagsched compile`` prints."""
        from dagsched.view.summary import summary_text

        return summary_text(self.compiled)

    def write(self, directory: str | os.PathLike[str], targets: str | Sequence[str] = ("acl-cpp",)) -> list[Path]:
        """Write the schedule, its proof and the targets' files into a directory, whole or not at all.

        ``targets`` names one target or several (see ``docs/targets.md``).
        """
        return write_files(Path(directory), schedule_files(self.compiled, targets))

    def executor(
        self,
        functions: Functions | None = None,
        backend: str = "cpu",
        *,
        trace: int = 100_000,
        grace: float = 10.0,
        **extra: Any,
    ) -> Runs:
        """An executor: ``with schedule.executor(functions=...) as executor: executor.run(frames=100)``.

        ``functions`` are the plan's functions by name (a mapping or a module); without them the run is dry: ops sleep
        for as long as they are said to take. ``trace`` is how many op instances a run remembers at most (0: none),
        ``grace`` how many seconds running ops get to end in when a run is stopped; ``extra`` goes to the backend.

        Raises :class:`UsageError` for an unknown backend and for functions that do not fit the plan.
        """
        from dagsched.run.backend import Options, make_executor

        return make_executor(self.compiled, functions, backend, Options(trace, grace, extra or None))

    def __repr__(self) -> str:
        return f"<Schedule {self.name!r}: {len(self.compiled.streams)} ops, {self.compiled.waits_kept} waits>"


def schedule_files(compiled: Compiled, targets: str | Sequence[str]) -> dict[str, str]:
    """The files of a compiled plan by name: the schedule, what the targets emit, the proof, and the report."""
    from dagsched.emit.targets import emit_targets
    from dagsched.view.report_page import report_html

    wanted = [targets] if isinstance(targets, str) else targets
    texts = emit_targets(compiled, ["schedule", *wanted])
    return {**texts, "proof.json": proof_text(compiled), "report.html": report_html(compiled)}


def proof_text(compiled: Compiled) -> str:
    """The witness as ``proof.json`` holds it: one hazard a line."""
    document = dict(compiled.proof.document)
    hazards = ",\n  ".join(json.dumps(hazard, ensure_ascii=False) for hazard in document.pop("hazards"))
    head = ",\n".join(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.items())
    return f'{{\n{head},\n "hazards": [\n  {hazards}\n ]\n}}\n'


def load(path: str | os.PathLike[str]) -> Plan:
    """Read a plan file.

    Raises :class:`PlanError` with all that is wrong, :class:`UsageError` for an unreadable file.
    """
    return Plan.from_model(*read_plan_with_warnings(read_file(path)))


def loads(text: str, name: str = "<text>") -> Plan:
    """Read a plan from text; ``name`` is what messages call it."""
    return Plan.from_model(*read_plan_with_warnings(Source(name, text)))


def compile(
    plan: Plan | model.Plan | str | os.PathLike[str],
    *,
    device: str | Mapping[str, Any] | None = None,
    effort: Effort = "normal",
) -> Schedule:
    """Compile a plan, built, loaded, or named by its file.

    ``device`` (a profile's name, path or data) overrides the plan's own; ``effort`` (``fast``, ``normal`` or ``max``)
    is how hard to look for a quick schedule.

    Raises :class:`UsageError` for an effort that there is not,
    :class:`PlanError`, :class:`LimitError` (the device cannot hold it), or :class:`ProofError` (a bug).
    """
    if effort not in EFFORTS:
        help_ = f'write `effort="{closest(str(effort), EFFORTS) or "normal"}"`'
        raise UsageError([Diagnostic("U002", f"there is no effort `{effort}`", help=help_)])
    if isinstance(plan, (str, os.PathLike)):
        plan = load(plan)
    if not isinstance(plan, (Plan, model.Plan)):
        raise TypeError(f"compile takes a plan or the path of a plan file, not {type(plan).__name__}")
    frozen = plan if isinstance(plan, model.Plan) else plan.model
    spec = dict(device) if isinstance(device, Mapping) else device
    return Schedule(compile_plan(frozen, device=None if spec is None else load_device(spec), effort=effort))
