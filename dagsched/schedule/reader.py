"""Read a schedule: from a source to the schedule, or to everything that is wrong with it, with places.

Three stages, each reporting all that it finds: the file's form, its shape (the models of ``schedule_file``), and what
its values mean (here). Streams, events and buffers that are only named in steps need no declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import ValidationError

from dagsched.diagnostics import Diagnostic, ScheduleError, Source, Where
from dagsched.file_models import FormCodes, diagnostics_from
from dagsched.files import load_node
from dagsched.nodes import Node, to_data
from dagsched.plan.access import AccessError, check_name, parse_access, read_expression, split_indexed
from dagsched.plan.expressions import (
    Condition,
    Expr,
    ExpressionError,
    Int,
    names_in,
    names_in_condition,
    parse_condition,
)
from dagsched.plan.findings import Findings
from dagsched.plan.model import Access, Mode, Place
from dagsched.plan.read_items import IDENTIFIER, RESERVED
from dagsched.plan.reader import default_name
from dagsched.plan.units import UnitError, parse_size
from dagsched.schedule import schedule_file as file
from dagsched.schedule.model import (
    AnyStep,
    Event,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Protected,
    Schedule,
    Storage,
    Stream,
    SyncStep,
    WaitStreamStep,
)

FORM = FormCodes(unknown_key="S101", missing_key="S102", wrong_value="S103")
_MODES = (("reads", Mode.READ), ("writes", Mode.WRITE), ("updates", Mode.UPDATE), ("accumulates", Mode.ACCUMULATE))


def read_schedule(source: Source) -> Schedule:
    """The schedule; raises :class:`ScheduleError` with all that is wrong."""
    node = load_node(source, ScheduleError)
    return schedule_from_node(node, source)


def schedule_from_node(node: Node, source: Source) -> Schedule:
    """The same from a tree of nodes."""
    entry = _validate(node, source)
    findings = Findings(source)
    for name, place in _keys(node, "params"):
        if not IDENTIFIER.match(name) or name in RESERVED:
            headline = f"`{name}` cannot name a parameter"
            findings.report("S105", headline, place.where, remedy="use letters, digits and `_`")
    for section in ("streams", "events", "buffers"):
        for name, place in _keys(node, section):
            _check_name(name, place, f"a name in `{section}`", findings)
    buffers = _read_buffers(entry, node, findings)
    reader = _StepReader(buffers, findings)
    steps = reader.read(entry.steps, node.by_key["steps"][1], tuple(entry.params))
    if findings.errors:
        raise ScheduleError(findings.errors)
    predicted = node.get("predicted")
    return Schedule(
        name=entry.name if entry.name is not None else default_name(source.name).removesuffix(".schedule"),
        steps=steps,
        event_model=entry.event_model,
        default_stream=entry.default_stream,
        params=dict(entry.params),
        streams={n: Stream(n, s.nonblocking, s.host, s.engine, s.priority) for n, s in entry.streams.items()},
        events={name: Event(name, event.ring) for name, event in entry.events.items()},
        buffers=buffers,
        plan=None if entry.plan is None else {"name": entry.plan.name, "digest": entry.plan.digest},
        device=entry.device,
        predicted=None if predicted is None else to_data(predicted),
        source=source,
    )


def _validate(node: Node, source: Source) -> file.ScheduleFile:
    other = node.key("dagsched")
    if other is not None and node.get("dagsched-schedule") is None:
        headline = "this is a plan, and a schedule is needed"
        help_ = "a schedule starts with `dagsched-schedule: 1`"
        raise ScheduleError([Diagnostic("S100", headline, other.where, source, help=help_)])
    try:
        return file.ScheduleFile.model_validate(to_data(node))
    except ValidationError as error:
        raise ScheduleError(diagnostics_from(error, node, source, FORM)) from None


def _keys(node: Node, section: str) -> list[tuple[str, Node]]:
    body = node.get(section)
    return [] if body is None else [(name, key) for name, (key, _) in body.by_key.items()]


def _check_name(name: str, place: Node, what: str, findings: Findings) -> None:
    try:
        check_name(name, what)
    except AccessError as error:
        findings.report("S105", error.message, place.within(error.offset), remedy=error.remedy)


def _read_buffers(entry: file.ScheduleFile, node: Node, findings: Findings) -> dict[str, Storage]:
    buffers: dict[str, Storage] = {}
    body = node.get("buffers")
    for name, storage in entry.buffers.items():
        assert body is not None
        key, place = body.by_key[name]
        at = None if storage.at is None else (storage.at[0], storage.at[1])
        if at is not None and at[0] >= at[1]:
            remedy = f"write `at: [{at[1]}, {at[0]}]`" if at[0] > at[1] else "write `at: [lo, hi]`"
            findings.report("S120", f"`{name}` is placed at an empty range", place.by_key["at"][1].where, remedy=remedy)
        if storage.alias is not None:
            _check_alias(name, storage, entry, place, findings)
        buffers[name] = Storage(
            name=name,
            place=None if storage.place is None else Place(storage.place),
            ring=storage.ring,
            space=storage.space,
            at=at,
            alias=storage.alias,
            size=_read_size(name, storage.size, place, findings),
            shape=None if storage.shape is None else tuple(storage.shape),
            dtype=storage.dtype,
            where=key.where,
        )
    return buffers


def _read_size(name: str, size: int | str | None, place: Node, findings: Findings) -> int | None:
    if size is None or isinstance(size, int):
        return size
    try:
        return parse_size(size)
    except UnitError as error:
        where = place.by_key["size"][1].where
        findings.report("S104", f"the size of `{name}`: {error.message}", where, remedy=error.remedy)
        return None


def _check_alias(
    name: str, storage: file.StorageEntry, entry: file.ScheduleFile, place: Node, findings: Findings
) -> None:
    where = place.by_key["alias"][1].where
    if storage.alias not in entry.buffers:
        findings.unknown("S121", "buffer", str(storage.alias), [n for n in entry.buffers if n != name], where)
        return
    if storage.at is not None:
        findings.report("S121", f"`{name}` has both an `alias` and a place", where, remedy="remove `at` or `alias`")
    seen = [name]
    at: str | None = storage.alias
    while at is not None and at in entry.buffers:
        if at in seen:
            chain = " -> ".join(f"`{step}`" for step in [*seen, at])
            findings.report("S122", f"aliases go round in a circle: {chain}", where, remedy="remove one `alias`")
            return
        seen.append(at)
        at = entry.buffers[at].alias


class _StepReader:
    """Reads steps; ``findings`` gathers what is wrong."""

    def __init__(self, buffers: dict[str, Storage], findings: Findings) -> None:
        self.buffers = buffers
        self.findings = findings

    def read(self, entries: Sequence[file.StepEntry], node: Node, names: tuple[str, ...]) -> tuple[AnyStep, ...]:
        """Steps in a scope of parameters and loop indices."""
        return tuple(self.step(entry, place, names) for entry, place in zip(entries, node.items, strict=True))

    def step(self, entry: file.StepEntry, place: Node, names: tuple[str, ...]) -> AnyStep:
        where = place.where
        when = self.guard(entry, place, names)
        label = entry.label

        def indexed(key: str, holder: Node = place) -> Indexed:
            return self.indexed(holder.by_key[key][1], names)

        def stream() -> Indexed | None:
            return indexed("stream") if place.get("stream") is not None else None

        if isinstance(entry, file.LoopStepEntry):
            return self.loop(entry, place, names, when)
        if isinstance(entry, file.OpStepEntry):
            _check_name(entry.op, place.by_key["op"][1], "an op's name", self.findings)
            accesses = self.accesses(entry, place, names)
            return OpStep(stream=indexed("stream"), op=entry.op, accesses=accesses, when=when, label=label, where=where)
        if isinstance(entry, file.HostStepEntry):
            _check_name(entry.host, place.by_key["host"][1], "a host action's name", self.findings)
            accesses = self.accesses(entry, place, names)
            return HostStep(host=entry.host, accesses=accesses, when=when, label=label, where=where)
        if isinstance(entry, file.FreeStepEntry):
            access = self.access(place.by_key["free"][1], Mode.WRITE, names)
            return FreeStep(access=access, when=when, label=label, where=where)
        if isinstance(entry, file.WaitStreamStepEntry):
            target = indexed("wait_stream")
            return WaitStreamStep(stream=indexed("stream"), target=target, when=when, label=label, where=where)
        if isinstance(entry, file.SyncStepEntry):
            return self.sync(place, indexed, when, label, where)
        if isinstance(entry, file.FlagStepEntry):
            flag = next(k for k in ("set", "take", "acquire", "release") if k in place.by_key)
            return FlagStep(action=flag, flag=indexed(flag), stream=stream(), when=when, label=label, where=where)
        protects: tuple[Protected, ...] = ()
        if isinstance(entry, file.WaitStepEntry):
            protects = tuple(Protected(p.before, p.after, p.buffer, p.kind) for p in entry.protects)
        action = next(key for key in ("record", "wait", "reset") if key in place.by_key)
        return EventStep(
            action=action,
            event=indexed(action),
            stream=stream(),
            protects=protects,
            when=when,
            label=label,
            where=where,
        )

    def sync(
        self, place: Node, indexed: Callable[[str, Node], Indexed], when: Condition, label: str | None, where: Where
    ) -> SyncStep:
        body = place.by_key["sync"][1]
        if body.kind == "scalar":
            return SyncStep(kind="device", when=when, label=label, where=where)
        if "stream" in body.by_key:
            return SyncStep(kind="stream", target=indexed("stream", body), when=when, label=label, where=where)
        return SyncStep(kind="event", target=indexed("event", body), when=when, label=label, where=where)

    def loop(self, entry: file.LoopStepEntry, place: Node, names: tuple[str, ...], when: Condition) -> LoopStep:
        index = place.by_key["loop"][1]
        if not IDENTIFIER.match(entry.loop) or entry.loop in RESERVED:
            self.findings.report(
                "S105", f"`{entry.loop}` cannot name a loop index", index.where, remedy="write `loop: i`"
            )
        elif entry.loop in names:
            headline = f"the loop index `{entry.loop}` is taken"
            self.findings.report("S115", headline, index.where, remedy="choose another index")
        if entry.range is not None:
            bounds = place.by_key["range"][1].items
            lo, hi = self.number(bounds[0], names), self.number(bounds[1], names)
        else:
            lo, hi = Int(0), self.number(place.by_key["count"][1], names)
            if isinstance(hi, Int) and hi.value < 0:
                where = place.by_key["count"][1].where
                self.findings.report("S117", f"the count {hi.value} is negative", where, remedy="write `count: 0`")
        steps = self.read(entry.steps, place.by_key["steps"][1], (*names, entry.loop))
        return LoopStep(index=entry.loop, lo=lo, hi=hi, steps=steps, when=when, label=entry.label, where=place.where)

    def number(self, node: Node, names: tuple[str, ...]) -> Expr:
        if isinstance(node.value, int):
            return Int(node.value)
        try:
            expr = read_expression(str(node.value))
        except ExpressionError as error:
            self.findings.report("S105", error.message, node.within(error.offset))
            return Int(0)
        self.known(names_in(expr), names, node)
        return expr

    def guard(self, entry: file.StepEntry, place: Node, names: tuple[str, ...]) -> Condition:
        if entry.when is None:
            return ()
        node = place.by_key["when"][1]
        try:
            condition = parse_condition(entry.when)
        except ExpressionError as error:
            self.findings.report("S105", error.message, node.within(error.offset), remedy="for example `when: i >= 1`")
            return ()
        self.known(names_in_condition(condition), names, node)
        return condition

    def indexed(self, node: Node, names: tuple[str, ...]) -> Indexed:
        text = str(node.value)
        try:
            name, index = split_indexed(text)
        except AccessError as error:
            self.findings.report("S105", error.message, node.within(error.offset), remedy=error.remedy)
            return Indexed(text)
        if index is not None:
            self.known(names_in(index), names, node)
        return Indexed(name, index)

    def accesses(self, entry: file.AccessingEntry, place: Node, names: tuple[str, ...]) -> tuple[Access, ...]:
        return tuple(
            self.access(node, mode, names)
            for key, mode in _MODES
            if place.get(key) is not None
            for node in place.by_key[key][1].items
        )

    def access(self, node: Node, mode: Mode, names: tuple[str, ...]) -> Access:
        try:
            access = parse_access(str(node.value), mode, node.where)
        except AccessError as error:
            self.findings.report("S105", error.message, node.within(error.offset), remedy=error.remedy)
            return Access(str(node.value), mode)
        used = set() if access.version is None else set(names_in(access.version))
        for part in access.region:
            for bound in (part.lo, part.hi):
                used |= set() if bound is None else names_in(bound)
            if isinstance(part.lo, Int) and isinstance(part.hi, Int) and part.lo.value >= part.hi.value:
                headline = f"the region of `{access.buffer}` is empty"
                self.findings.report("S132", headline, node.where, remedy="write `lo:hi` with lo below hi")
        self.known(used, names, node)
        return access

    def known(self, used: set[str] | frozenset[str], names: tuple[str, ...], node: Node) -> None:
        for name in sorted(used - set(names)):
            remedy = "declare it in `params`, or name a loop index around the step"
            self.findings.unknown("S112", "name", name, names, node.where, remedy)
