"""Read what the user named: a file or stdin (``-``), a plan or a schedule, told apart by the key in its head."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dagsched.cli.console import Console
from dagsched.diagnostics import Diagnostic, Source, UsageError, closest

if TYPE_CHECKING:
    from dagsched.compiled import Compiled
    from dagsched.nodes import Node
    from dagsched.plan.model import Plan
    from dagsched.schedule.model import Schedule

STDIN = "<stdin>"


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A plan with what its reader warned of."""

    plan: Plan
    warnings: tuple[Diagnostic, ...]


def read_text(name: str, console: Console) -> Source:
    """The source of a file, or of stdin for ``-``; raises :class:`UsageError` where it cannot be read."""
    from dagsched.files import decode_source

    try:
        data = console.read_bytes() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError([Diagnostic("U001", f"`{name}` cannot be read: {reason}", help=_help_for(name))]) from None
    return decode_source(data, STDIN if name == "-" else name)


def _help_for(name: str) -> str | None:
    """The file in the same directory whose name is closest."""
    path = Path(name)
    try:
        near = closest(path.name, [entry.name for entry in path.parent.iterdir()]) if not path.exists() else None
    except (OSError, ValueError):
        return None
    return f"did you mean `{path.parent / near}`?" if near else None


def read_either(source: Source) -> ReadPlan | Schedule:
    """The plan or the schedule that a source holds; raises :class:`PlanError` or :class:`ScheduleError`."""
    from dagsched.files import load_node

    node = load_node(source)
    if node.kind == "mapping" and _is_schedule(node):
        from dagsched.schedule.reader import read_schedule

        return read_schedule(source)
    return _plan_of(node, source)


def read_plan_file(name: str, console: Console) -> ReadPlan:
    """A plan, where nothing else will do."""
    from dagsched.files import load_node

    source = read_text(name, console)
    return _plan_of(load_node(source), source)


def _plan_of(node: Node, source: Source) -> ReadPlan:
    from dagsched.plan.reader import plan_from_node

    return ReadPlan(*plan_from_node(node, source))


def _is_schedule(node: Node) -> bool:
    """The header key decides; without one, ``steps`` means a schedule that lacks its header."""
    if node.get("dagsched") is not None:
        return False
    return node.get("dagsched-schedule") is not None or (node.get("steps") is not None and node.get("ops") is None)


def compile_read(read: ReadPlan) -> tuple[Compiled, tuple[Diagnostic, ...]]:
    """Compile a plan; with all warnings in the order of the file.

    A relative path in ``device:`` starts at the plan's file.
    """
    from dagsched.compiler import compile_plan
    from dagsched.cost.devices import load_device

    compiled = compile_plan(read.plan, device=load_device(read.plan.device, source=read.plan.source))
    warnings = dict.fromkeys((*read.warnings, *compiled.warnings))
    return compiled, tuple(sorted(warnings, key=lambda found: (found.where.line if found.where else 0, found.code)))


def schedule_of(name: str, console: Console) -> tuple[Schedule, Compiled | None]:
    """The schedule that a file holds or that its plan compiles to (then with all that led to it)."""
    read = read_either(read_text(name, console))
    if isinstance(read, ReadPlan):
        compiled, _ = compile_read(read)
        return compiled.schedule, compiled
    return read, None
