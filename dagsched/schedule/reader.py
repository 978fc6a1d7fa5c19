"""Read a schedule: from a source to the schedule, or to everything that is wrong with it, with places.

Three stages, each reporting all that it finds: the file's form (``dagsched.files``), its shape (the models of
``schedule_file``), and what its values mean (here, ``read_storage`` and ``read_steps``).
Invariant: a schedule that this returns satisfies the comments of ``dagsched.schedule.model``.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from dagsched.diagnostics import Diagnostic, ScheduleError, Source
from dagsched.file_models import FormCodes, diagnostics_from
from dagsched.files import load_node
from dagsched.nodes import Node, to_data
from dagsched.plan.access import AccessError, check_name
from dagsched.plan.findings import Findings
from dagsched.plan.read_items import IDENTIFIER, RESERVED
from dagsched.plan.reader import default_name
from dagsched.schedule.model import Event, Schedule, Stream
from dagsched.schedule.read_names import NameReader
from dagsched.schedule.read_steps import StepReader, loop_indices
from dagsched.schedule.read_storage import read_storage
from dagsched.schedule.schedule_file import ScheduleFile

FORM = FormCodes(unknown_key="S101", missing_key="S102", wrong_value="S103")


def read_schedule(source: Source) -> Schedule:
    """The schedule; raises :class:`ScheduleError` with all that is wrong."""
    with _no_collections():
        return schedule_from_node(load_node(source, ScheduleError), source)


def schedule_from_node(node: Node, source: Source) -> Schedule:
    """The same from a tree of nodes."""
    with _no_collections():
        entry = _validate(node, source)
        findings = Findings(source)
        names = NameReader(findings, loop_indices(entry.steps))
        name = _read_name(entry, node, source, findings)
        _check_params(entry.params, node.get("params"), findings)
        _check_names(node, names)
        buffers = read_storage(entry.buffers, node.get("buffers"), findings)
        reader = StepReader(buffers, names, findings)
        steps = reader.read(entry.steps, node.by_key["steps"][1], tuple(entry.params))
        reader.check_buffers()
        if findings.errors:
            raise ScheduleError(findings.errors)
        return Schedule(
            name=name,
            steps=steps,
            event_model=entry.event_model,
            default_stream=entry.default_stream,
            params=dict(entry.params),
            streams={n: Stream(n, s.nonblocking, s.host, s.engine, s.priority) for n, s in entry.streams.items()},
            events={event: Event(event, body.ring) for event, body in entry.events.items()},
            buffers=buffers,
            plan=None if entry.plan is None else {"name": entry.plan.name, "digest": entry.plan.digest},
            device=entry.device,
            predicted=None if entry.predicted is None else entry.predicted.model_dump(exclude_unset=True),
            source=source,
        )


@contextmanager
def _no_collections() -> Iterator[None]:
    """Do without the cycle collector: it takes half the time of a large file, whose nodes hold no cycles."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _validate(node: Node, source: Source) -> ScheduleFile:
    other = node.key("dagsched")
    if other is not None and node.get("dagsched-schedule") is None:
        headline = "this is a plan, and a schedule is needed"
        help_ = "a schedule starts with `dagsched-schedule: 1`"
        raise ScheduleError([Diagnostic("S100", headline, other.where, source, help=help_)])
    try:
        return ScheduleFile.model_validate(to_data(node))
    except ValidationError as error:
        raise ScheduleError(diagnostics_from(error, node, source, FORM)) from None


def _read_name(entry: ScheduleFile, node: Node, source: Source, findings: Findings) -> str:
    """The name in the file, or the file's: ``NAME`` of ``NAME.schedule.yaml``."""
    if entry.name is None:
        return default_name(source.name).removesuffix(".schedule") or "schedule"
    place = node.by_key["name"][1]
    try:
        check_name(entry.name, "a schedule's name")
    except AccessError as error:
        findings.report("S105", error.message, place.within(error.offset), remedy=error.remedy)
    return entry.name


def _check_params(params: dict[str, int | None], node: Node | None, findings: Findings) -> None:
    for name, value in params.items():
        key, body = node.by_key[name] if node is not None else (None, None)
        if not IDENTIFIER.match(name) or name in RESERVED:
            remedy = f"use letters, digits and `_`; {', '.join(f'`{word}`' for word in RESERVED)} are reserved"
            where = key.where if key else None
            findings.report("S115", f"`{name}` cannot name a parameter", where, remedy=remedy)
        if value is not None and not -(2**63) <= value < 2**63:
            where = body.where if body else None
            findings.report("S103", f"`{name}` does not fit into 64 bits", where, remedy="write a smaller number")


def _check_names(node: Node, names: NameReader) -> None:
    """The names under ``streams`` and ``events``, and the texts that are only shown."""
    for section, what in (("streams", "a stream's name"), ("events", "an event's name")):
        body = node.get(section)
        for key, value in body.entries if body is not None else ():
            names.name(key, what)
            names.line(value.get("engine"), "an engine's name")
    buffers, plan = node.get("buffers"), node.get("plan")
    for _, value in buffers.entries if buffers is not None else ():
        names.line(value.get("space"), "a space's name")
    for part in ("name", "digest"):
        names.line(plan.get(part) if plan is not None else None, f"a plan's {part}")
