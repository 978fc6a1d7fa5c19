"""Read a plan: from a source to the plan as written, or to everything that is wrong with it, with places.

Three stages, each reporting all that it finds: the file's form (``dagsched.files``), its shape (the models of
``plan_file``), and what its values mean (here, ``read_buffers`` and ``read_items``).
Invariant: a plan that this returns satisfies the comments of ``dagsched.plan.model``.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from pydantic import ValidationError

from dagsched.diagnostics import Diagnostic, PlanError, Source
from dagsched.file_models import FormCodes, diagnostics_from
from dagsched.files import load_node
from dagsched.nodes import Node, to_data
from dagsched.plan.access import AccessError, check_name, shorten
from dagsched.plan.findings import Findings
from dagsched.plan.model import Buffer, Memory, Plan, StreamOptions
from dagsched.plan.plan_file import PlanFile
from dagsched.plan.read_buffers import read_buffers
from dagsched.plan.read_items import IDENTIFIER, RESERVED, ItemReader
from dagsched.plan.units import UnitError, parse_size
from dagsched.plan.writer import scalar_text

FORM = FormCodes(unknown_key="P101", missing_key="P102", wrong_value="P103")


def read_plan(source: Source) -> Plan:
    """The plan as written; raises :class:`PlanError` with all that is wrong."""
    return read_plan_with_warnings(source)[0]


def read_plan_with_warnings(source: Source) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """The plan as written, and what its author should look at; raises :class:`PlanError`."""
    return plan_from_node(load_node(source), source)


def plan_from_node(node: Node, source: Source) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """The same from a tree of nodes, which need not come from a file."""
    findings = Findings(source)
    file = _validate(node, source)
    _check_params(file.params, node.get("params"), findings)
    buffers, broken = read_buffers(file.buffers, node.by_key["buffers"][1], findings)
    reader = ItemReader(buffers, broken, file.params, findings)
    items = reader.read(file.ops, node.by_key["ops"][1])
    name = _read_name(file, node, source, findings)
    _check_device(file, node, findings)
    memory = _read_memory(file, node, findings)
    if findings.errors:
        raise PlanError(findings.errors)
    _warn_unused(buffers, file, node, reader, findings)
    plan = Plan(
        name=name,
        buffers=buffers,
        items=items,
        device=file.device,
        params=dict(file.params),
        streams=StreamOptions(file.streams.max, file.streams.policy),
        memory=memory,
        source=source,
    )
    return plan, findings.warnings


def _validate(node: Node, source: Source) -> PlanFile:
    other = node.key("dagsched-schedule")
    if other is not None and node.get("dagsched") is None:
        headline = "this is a schedule, and a plan is needed"
        raise PlanError([Diagnostic("P100", headline, other.where, source, help="a plan starts with `dagsched: 1`")])
    try:
        return PlanFile.model_validate(to_data(node))
    except ValidationError as error:
        raise PlanError(diagnostics_from(error, node, source, FORM)) from None


def _check_params(params: dict[str, int | None], node: Node | None, findings: Findings) -> None:
    for name, value in params.items():
        key, body = node.by_key[name] if node is not None else (None, None)
        if not IDENTIFIER.match(name) or name in RESERVED:
            headline = f"`{name}` cannot name a parameter"
            remedy = "use letters, digits and `_`" + (f"; {', '.join(f'`{word}`' for word in RESERVED)} are reserved")
            findings.report("P115", headline, key.where if key else None, remedy=remedy)
        if value is not None and not -(2**63) <= value < 2**63:
            findings.report("P103", f"`{name}` does not fit into 64 bits", body.where if body else None)


def _read_name(file: PlanFile, node: Node, source: Source, findings: Findings) -> str:
    if file.name is None:
        return default_name(source.name)
    place = node.by_key["name"][1]
    try:
        check_name(file.name, "a plan's name")
    except AccessError as error:
        findings.report("P105", error.message, place.within(error.offset), remedy=error.remedy)
        return file.name
    if re.search(r"[/\\]", file.name) or file.name.startswith("."):
        headline = "a plan's name must not contain `/` or `\\`, nor start with `.`, since files are named after it"
        remedy = f"for example `name: {scalar_text(default_name(file.name))}`"
        findings.report("P106", headline, place.where, remedy=remedy)
    return file.name


def default_name(path: str) -> str:
    """The name of a plan whose file does not say one: ``NAME`` of ``NAME.dagsched.yaml`` or ``NAME.yaml``."""
    stem = re.sub(r"\.(ya?ml|json)\Z", "", PurePath(path.replace("\\", "/")).name, flags=re.IGNORECASE)
    stem = re.sub(r"\.(dagsched|plan)\Z", "", stem)
    stem = shorten(stem.lstrip("."))
    return stem if stem not in ("", "-", "<stdin>") else "plan"


def _check_device(file: PlanFile, node: Node, findings: Findings) -> None:
    if file.device == "":
        findings.report("P103", "`device` must not be empty", node.by_key["device"][1].where,
                        remedy="for example `device: ascend-910b`")  # fmt: skip


def _read_memory(file: PlanFile, node: Node, findings: Findings) -> Memory:
    limits: dict[str, int] = {}
    for place in ("host", "device"):
        value = getattr(file.memory, place)
        if value is None:
            continue
        try:
            limits[place] = parse_size(value)
        except UnitError as error:
            body = node.by_key["memory"][1].by_key[place][1]
            findings.report("P104", error.message, body.within(error.offset), remedy=error.remedy)
    return Memory(**limits)


def _warn_unused(
    buffers: dict[str, Buffer], file: PlanFile, node: Node, reader: ItemReader, findings: Findings
) -> None:
    for name, buffer in buffers.items():
        if name not in reader.used:
            findings.report("P170", f"no op touches `{name}`", buffer.where, remedy="remove it", severity="warning")
    params = node.get("params")
    for name in file.params:
        if name not in reader.used_params and params is not None:
            where = params.by_key[name][0].where
            findings.report(
                "P171", f"nothing uses the parameter `{name}`", where, remedy="remove it", severity="warning"
            )
