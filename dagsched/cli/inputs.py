"""Read what the user named: a file or stdin (``-``), a plan or a schedule, told apart by the key in its head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dagsched.cli.console import Console
from dagsched.diagnostics import Diagnostic, Source, UsageError

if TYPE_CHECKING:
    from dagsched.choice.choose import Effort
    from dagsched.compiled import Compiled
    from dagsched.cost.model import Device
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
    from dagsched.sources import read_file

    if name != "-":
        return read_file(name)
    try:
        data = console.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError([Diagnostic("U001", f"`-` cannot be read: {reason}")]) from None
    return decode_source(data, STDIN)


def read_either(source: Source) -> ReadPlan | Schedule:
    """The plan or the schedule that a source holds; raises :class:`PlanError` or :class:`ScheduleError`."""
    from dagsched.files import load_node

    node = load_node(source)
    if node.kind == "mapping" and _is_schedule(node):
        from dagsched.schedule.reader import schedule_from_node

        return schedule_from_node(node, source)
    return _plan_of(node, source)


def read_plan_file(name: str, console: Console) -> ReadPlan:
    """A plan, where nothing else will do."""
    from dagsched.files import load_node

    source = read_text(name, console)
    return _plan_of(load_node(source), source)


def read_costs(name: str, console: Console) -> tuple[Plan, Device]:
    """A plan, resolved, and the device that it is for: what the ops of a schedule cost."""
    from dagsched.cost.devices import load_device
    from dagsched.plan.resolve import resolve_plan

    plan = read_plan_file(name, console).plan
    return resolve_plan(plan), load_device(plan.device, source=plan.source)


def _plan_of(node: Node, source: Source) -> ReadPlan:
    from dagsched.plan.reader import plan_from_node

    return ReadPlan(*plan_from_node(node, source))


def _is_schedule(node: Node) -> bool:
    """The header key decides; without one, ``steps`` means a schedule that lacks its header."""
    if node.get("dagsched") is not None:
        return False
    return node.get("dagsched-schedule") is not None or (node.get("steps") is not None and node.get("ops") is None)


def compile_read(
    read: ReadPlan,
    effort: Effort = "normal",
    *,
    ring_table: bool = False,
    sync: Literal["order", "fewest"] = "order",
) -> tuple[Compiled, tuple[Diagnostic, ...]]:
    """Compile a plan; with all warnings in the order of the file."""
    from dagsched.compiler import compile_plan

    compiled = compile_plan(read.plan, effort=effort, ring_table=ring_table, sync=sync)
    warnings = dict.fromkeys((*read.warnings, *compiled.warnings))
    return compiled, tuple(sorted(warnings, key=lambda found: (found.where.line if found.where else 0, found.code)))


def schedule_of(name: str, console: Console, effort: Effort = "normal") -> tuple[Schedule, Compiled | None]:
    """The schedule that a file holds or that its plan compiles to (then with all that led to it)."""
    from dagsched.cli.report import print_diagnostics

    read = read_either(read_text(name, console))
    if isinstance(read, ReadPlan):
        compiled, warnings = compile_read(read, effort)
        print_diagnostics(console, [found for found in warnings if found.code == "C120"], "text")
        return compiled.schedule, compiled
    return read, None
