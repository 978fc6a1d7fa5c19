"""Read the steps of a schedule file: what acts on which stream, on what, and where it stands.

Streams and events need no declaration. Nor do buffers, but a name that nearly is a declared buffer's is refused, since
a slip there would hide a race.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, cast

from dagsched.nodes import Node
from dagsched.plan.access import AccessError, parse_access
from dagsched.plan.expressions import MAX_MAGNITUDE, Expr, Int, names_in
from dagsched.plan.findings import Findings
from dagsched.plan.model import Access, Mode
from dagsched.plan.read_items import IDENTIFIER, RESERVED
from dagsched.schedule import schedule_file as file
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    LoopStep,
    OpStep,
    Protected,
    Storage,
    SyncStep,
    WaitStreamStep,
)
from dagsched.schedule.read_names import NameReader, Scope
from dagsched.schedule.read_storage import check_region

MODES = {
    "reads": Mode.READ,
    "writes": Mode.WRITE,
    "updates": Mode.UPDATE,
    "accumulates": Mode.ACCUMULATE,
}
"""The keys of accesses, in the order in which a step has them."""

ALIKE = 0.8
"""Names at least as similar as this (by ``difflib``) are taken for slips."""

MOST_COMPARED = 20_000
"""Pairs of names that are compared at most; a file with more undeclared buffers was not typed by hand."""

FlagAction = Literal["set", "take", "acquire", "release"]
EventAction = Literal["record", "wait", "reset"]
_FLAG_ACTIONS: dict[type[file.FlagStepEntry], FlagAction] = {
    file.SetStepEntry: "set",
    file.TakeStepEntry: "take",
    file.AcquireStepEntry: "acquire",
    file.ReleaseStepEntry: "release",
}
_EVENT_ACTIONS: dict[type[file.StepEntry], EventAction] = {
    file.RecordStepEntry: "record",
    file.WaitStepEntry: "wait",
    file.ResetStepEntry: "reset",
}


def loop_indices(entries: Sequence[file.StepEntry]) -> Iterator[str]:
    """The names of all loops' indices."""
    for entry in entries:
        if isinstance(entry, file.LoopStepEntry):
            yield entry.loop
            yield from loop_indices(entry.steps)


class StepReader:
    """Reads the steps of one file."""

    def __init__(self, buffers: dict[str, Storage], names: NameReader, findings: Findings) -> None:
        self.buffers = buffers
        self.names = names
        self.findings = findings
        self.undeclared: dict[str, Node] = {}
        self.freed: dict[str, Node] = {}

    def read(self, entries: Sequence[file.StepEntry], node: Node, scope: Scope) -> tuple[AnyStep, ...]:
        """Steps in a scope of parameters and loop indices."""
        return tuple(self.step(entry, place, scope) for entry, place in zip(entries, node.items, strict=True))

    def step(self, entry: file.StepEntry, place: Node, scope: Scope) -> AnyStep:
        shared: dict[str, Any] = {
            "when": self.names.guard(place.get("when"), scope),
            "label": self.names.line(place.get("label"), "a label"),
            "where": place.where,
        }
        if isinstance(entry, file.LoopStepEntry):
            return self.loop(entry, place, scope, shared)
        if isinstance(entry, file.HostStepEntry):
            name = self.names.name(place.by_key["host"][1], "a host action's name")
            return HostStep(host=name, accesses=self.accesses(place, scope), **shared)
        if isinstance(entry, file.FreeStepEntry):
            return FreeStep(access=self.free(place.by_key["free"][1], scope), **shared)
        if isinstance(entry, file.SyncStepEntry):
            return self.sync(place.by_key["sync"][1], scope, shared)
        holder = place.get("stream")
        stream = None if holder is None else self.names.indexed(holder, "a stream's name", scope)
        if isinstance(entry, file.FlagStepEntry):
            return self.flag(_FLAG_ACTIONS[type(entry)], place, scope, {"stream": stream, **shared})
        if type(entry) in _EVENT_ACTIONS:
            return self.event(_EVENT_ACTIONS[type(entry)], place, scope, {"stream": stream, **shared})
        assert stream is not None  # the file's models ask for it
        if isinstance(entry, file.WaitStreamStepEntry):
            target = self.names.indexed(place.by_key["wait_stream"][1], "a stream's name", scope)
            return WaitStreamStep(stream=stream, target=target, **shared)
        op = self.names.indexed(place.by_key["op"][1], "an op's name", scope)
        return OpStep(stream=stream, op=op.name, accesses=self.accesses(place, scope), iteration=op.index, **shared)

    def flag(self, action: FlagAction, place: Node, scope: Scope, shared: dict[str, Any]) -> FlagStep:
        what = "a flag's name" if action in ("set", "take") else "a lock's name"
        return FlagStep(action=action, flag=self.names.indexed(place.by_key[action][1], what, scope), **shared)

    def event(self, action: EventAction, place: Node, scope: Scope, shared: dict[str, Any]) -> EventStep:
        event = self.names.indexed(place.by_key[action][1], "an event's name", scope)
        reasons = place.get("for")
        protects = () if reasons is None else tuple(self.protected(reason) for reason in reasons.items)
        return EventStep(action=action, event=event, protects=protects, **shared)

    def protected(self, reason: Node) -> Protected:
        """A hazard as text; only its form is checked, since nothing follows from it."""
        values = {key: str(value.value) for key, (_, value) in reason.by_key.items()}
        for key in ("before", "after"):
            self.names.indexed(reason.by_key[key][1], "an op's name", None)
        self.names.line(reason.get("buffer"), "a buffer's name")
        return Protected(values["before"], values["after"], values.get("buffer"), values["kind"])

    def sync(self, body: Node, scope: Scope, shared: dict[str, Any]) -> SyncStep:
        if body.kind == "scalar":
            return SyncStep(kind="device", **shared)
        kind = cast("Literal['stream', 'event']", next(iter(body.by_key)))
        what = "a stream's name" if kind == "stream" else "an event's name"
        return SyncStep(kind=kind, target=self.names.indexed(body.by_key[kind][1], what, scope), **shared)

    # loops

    def loop(self, entry: file.LoopStepEntry, place: Node, scope: Scope, shared: dict[str, Any]) -> LoopStep:
        self.check_index(entry.loop, place.by_key["loop"][1], scope)
        bounds = place.get("range")
        if bounds is not None:
            lo, hi = (self.bound(bound, scope) for bound in bounds.items)
            if isinstance(lo, Int) and isinstance(hi, Int) and lo.value > hi.value:
                headline = f"the range of the loop `{entry.loop}` ends at {hi.value}, before its start at {lo.value}"
                remedy = f"write `range: [{hi.value}, {lo.value}]`"
                self.findings.report("S117", headline, bounds.where, remedy=remedy)
        else:
            count = place.by_key["count"][1]
            lo, hi = Int(0), self.bound(count, scope)
            if isinstance(hi, Int) and hi.value < 0:
                headline = f"a loop cannot run {hi.value} times"
                self.findings.report("S117", headline, count.where, remedy="write a count from 0 up")
        steps = self.read(entry.steps, place.by_key["steps"][1], (*scope, entry.loop))
        return LoopStep(index=entry.loop, lo=lo, hi=hi, steps=steps, **shared)

    def check_index(self, index: str, node: Node, scope: Scope) -> None:
        if not IDENTIFIER.match(index) or index in RESERVED:
            headline = f"`{index}` cannot name a loop index"
            self.findings.report("S115", headline, node.where, remedy="for example `loop: i`")
        elif index in scope:
            headline = f"the loop index `{index}` hides the parameter, or the index of an outer loop, of that name"
            free = next((other for other in "ijklmn" if other not in scope), f"{index}_")
            self.findings.report("S115", headline, node.where, remedy=f"for example `loop: {free}`")

    def bound(self, node: Node, scope: Scope) -> Expr:
        expr = Int(node.value) if isinstance(node.value, int) else self.names.expression(node, 0, scope)
        if isinstance(expr, Int) and abs(expr.value) > MAX_MAGNITUDE:
            self.findings.report("S117", "the number does not fit into 64 bits", node.where)
        return expr

    # accesses

    def accesses(self, place: Node, scope: Scope) -> tuple[Access, ...]:
        found = []
        for key, mode in MODES.items():
            items = place.get(key)
            for node in items.items if items is not None else ():
                access = self.access(node, mode, scope)
                found.append(access)
                if access.buffer not in self.buffers:
                    self.undeclared.setdefault(access.buffer, node)
        return tuple(found)

    def free(self, node: Node, scope: Scope) -> Access:
        access = self.access(node, Mode.WRITE, scope)
        if access.buffer not in self.buffers:
            self.freed.setdefault(access.buffer, node)
        return access

    def access(self, node: Node, mode: Mode, scope: Scope) -> Access:
        text = str(node.value)
        try:
            access = parse_access(text, mode, node.where)
        except AccessError as error:
            self.findings.report("S105", error.message, node.within(error.offset), remedy=error.remedy)
            return Access(next(iter(self.buffers), ""), mode)
        if access.version is None and not access.region:
            return access
        bounds = [bound for part in access.region for bound in (part.lo, part.hi)]
        used = [names_in(expr) for expr in (access.version, *bounds) if expr is not None]
        self.names.check_scope(frozenset().union(*used), node, len(access.buffer), scope)
        if access.region:
            check_region(access, self.buffers.get(access.buffer), node, self.findings)
        return access

    def check_buffers(self) -> None:
        """Report undeclared buffers that look like slips, and frees of buffers that nothing else names."""
        self.undeclared.pop("", None)
        for name, node in self.freed.items():
            if name and name not in self.undeclared:
                known = [*self.buffers, *self.undeclared]
                self.findings.unknown("S110", "buffer", name, known, node.where, "remove the step: nothing touches it")
        if len(self.undeclared) * len(self.buffers) > MOST_COMPARED:
            return
        for name, node in self.undeclared.items():
            near = next((other for other in self.buffers if _alike(name, other)), None)
            if near is not None:
                headline = f"`{name}` is not declared under `buffers`, and `{near}` is"
                remedy = f"write `{near}`, or declare `{name}` as well"
                self.findings.report("S110", headline, node.within(0, len(name)), remedy=remedy)


def _alike(name: str, other: str) -> bool:
    """Whether one name is likely a slip for the other; ``x1`` and ``x2`` are two names."""
    if re.sub(r"\d+", "", name) == re.sub(r"\d+", "", other):
        return False
    matcher = SequenceMatcher(None, name.lower(), other.lower())
    return matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE and matcher.ratio() >= ALIKE
