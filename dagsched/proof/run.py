"""One run of a schedule beside its plan, for given parameter values.

The schedule is issued step by step; behind each iteration (and each stretch between loops) the plan's ops of that
iteration are gone through in the plan's order. Checked there: every op occurs exactly once, with the plan's accesses;
every access comes after all that it conflicts with; every read sees the bytes that the plan means; every wait binds to
the record that it names. A large constant loop is cut short where the state, relative to the iteration, has come back:
by then all further iterations are as those before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dagsched.plan.expressions import evaluate, holds
from dagsched.plan.model import Access, Mode, Plan
from dagsched.proof.clocks import Clocks, Instance, precedes
from dagsched.proof.contents import Accesses, Contents, overlap
from dagsched.proof.instances import Box, PlannedOp, PlannedSegment, find_box
from dagsched.proof.pairs import Pair, pair_accesses
from dagsched.proof.relative import relative_state
from dagsched.proof.rhythm import Rhythm
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, OpStep, Schedule, SyncStep

MOST_COMPARED = 50_000
"""Accesses and contents that the states of a loop tell of.

Where so many have been told and there were more each time ``MOST_GROWN`` times, no state is looked for any more.
"""

MOST_GROWN = 64

KINDS = {
    (first, second): tuple(
        kind
        for kind, holds_ in (
            ("RAW", first.writes and second.reads),
            ("WAR", first.reads and second.writes),
            ("WAW", first.writes and second.writes),
        )
        if holds_
    )
    for first in Mode
    for second in Mode
}
"""The hazards between two accesses of these modes."""


@dataclass(frozen=True, slots=True)
class Found:
    """A conflict: two instances in the plan's order, and whether happens-before has them in that order.

    ``buffer`` is None for ``after:``; ``params`` are those of the run in which it was seen.
    """

    first: Instance
    second: Instance
    buffer: str | None
    kinds: tuple[str, ...]
    ordered: bool
    params: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Outcome:
    """What runs have found: problems by code and subject, conflicts by their static form, waits that bound."""

    problems: dict[tuple[str, str], str] = field(default_factory=dict)
    hazards: dict[tuple[str, str, str | None, int | None], Found] = field(default_factory=dict)
    bound: set[int] = field(default_factory=set)

    def complain(self, code: str, subject: str, text: str) -> None:
        """Note a problem, once per subject."""
        self.problems.setdefault((code, subject), text)


@dataclass(frozen=True, slots=True)
class Subject:
    """What all runs share; ``look_back``: older versions of a buffer cannot be read any more, its slots are taken.

    ``kept``: how many instances of an op an ``after:`` can reach back over. ``pairs`` keeps each op's accesses beside
    those of its step, by the op's name and the step's identity.
    """

    plan: Plan
    schedule: Schedule
    segments: tuple[PlannedSegment, ...]
    by_version: frozenset[str]
    streams: tuple[str, ...]
    rhythms: tuple[Rhythm, ...]
    look_back: dict[str, int]
    kept: int = 1
    pairs: dict[tuple[str, int], tuple[Pair, ...]] = field(default_factory=dict)


class Run:
    """The state of one run; a ``probe`` leaves each loop once its state has come back, to find out when it does."""

    def __init__(self, subject: Subject, params: dict[str, int], outcome: Outcome, probe: bool = False) -> None:
        self.subject, self.params, self.outcome, self.probe = subject, params, outcome, probe
        self.clocks = Clocks(len(subject.streams))
        self.at = tuple(params.items())
        self.number = {name: n for n, name in enumerate(subject.streams)}
        self.accesses: dict[tuple[str, int], Accesses] = {}
        self.meant, self.actual = Contents(), Contents()
        self.newest: dict[str, int] = {}
        self.past: dict[str, list[Instance]] = {}
        self.recorded: set[tuple[str, int, int]] = set()
        self.segment = 0
        self.issued: dict[tuple[str, int], tuple[Instance, OpStep, dict[str, int]]] = {}
        self.repeated: dict[int, tuple[int, int]] = {}

    def go(self) -> None:
        """Issue everything, then look at how it ends."""
        for step in self.subject.schedule.steps:
            if isinstance(step, LoopStep):
                self._enter_loop(step)
            else:
                self._issue(step, dict(self.params), 0)
        self._leave_block()
        if self.segment < len(self.subject.segments):
            self._missing_segment()
        self._finish()

    # --- the schedule's side ---------------------------------------------------------------------------------------

    def _enter_loop(self, step: LoopStep) -> None:
        self._leave_block()
        segments = self.subject.segments
        if self.segment >= len(segments) or segments[self.segment].index is None:
            self.outcome.complain("V101", "loop", f"loop `{step.index}` of the schedule is no loop of the plan")
            return
        segment = segments[self.segment]
        count = max(0, evaluate(segment.count, self.params))
        lo, hi = evaluate(step.lo, self.params), evaluate(step.hi, self.params)
        rhythm = self.subject.rhythms[self.segment]
        if lo != 0 or max(0, hi) != count + rhythm.drain:
            text = f"loop `{step.index}` runs from {lo} to {hi}, and the plan's loop {count} times"
            self.outcome.complain("V101", "count", text)
            return
        seen: dict[object, int] = {}
        iteration, told, size, grown = 0, 0, 0, 0
        while iteration < count + rhythm.drain:
            swells = grown > MOST_GROWN and told > MOST_COMPARED
            if not swells and rhythm.may_repeat(iteration, count):
                state = relative_state(self, self.segment, iteration)
                before, size = size, len(state[0]) + len(state[1])
                told, grown = told + size, grown + 1 if size > before else 0
                if state in seen:
                    period = iteration - seen[state]
                    self.repeated.setdefault(self.segment, (iteration, period))
                    if self.probe:
                        break
                    skip = (count - rhythm.ending - iteration) // period - 1
                    if rhythm.constant and skip > 0:
                        self._skip(skip * period)
                        iteration += skip * period
                        seen = {}
                else:
                    seen[state] = iteration
            env = {**self.params, step.index: iteration}
            for inner in step.steps:
                self._issue(inner, env, iteration)
            if 0 <= iteration - rhythm.drain < count:
                self._settle(segment, iteration - rhythm.drain)
            iteration += 1
        if self.issued and not self.probe:
            self._complain_of_rest("are issued in iterations that the plan does not have")
        self.issued = {}
        self.segment += 1

    def _issue(self, step: AnyStep, env: dict[str, int], iteration: int) -> None:
        if not holds(step.when, env):
            return
        if isinstance(step, OpStep):
            stream = self.number[step.stream.name]
            segment = self.segment
            own = iteration if step.iteration is None else evaluate(step.iteration, env)
            instance = self.clocks.issue(step.op, segment, own, stream)
            if (step.op, own) in self.issued:
                self.outcome.complain("V102", step.op, f"`{step.op}` is issued twice in iteration {own}")
            self.issued[step.op, own] = (instance, step, env)
        elif isinstance(step, EventStep):
            self._event(step, env)
        elif isinstance(step, SyncStep):
            target = None if step.target is None else self.number.get(step.target.name)
            if step.kind == "device" or target is not None:
                self.clocks.sync(None if step.kind == "device" else target)

    def _event(self, step: EventStep, env: dict[str, int]) -> None:
        assert step.stream is not None
        event = self.subject.schedule.events.get(step.event.name)
        index = None if step.event.index is None else evaluate(step.event.index, env)
        ring = event.ring if event else None
        handle = (step.event.name, index if ring is None and index is not None else (index or 0) % (ring or 1))
        stream = self.number[step.stream.name]
        if step.action == "record":
            self.clocks.record(handle, index, self.segment, stream)
            if index is not None:
                self.recorded.add((step.event.name, self.segment, index))
            return
        bound = self.clocks.wait(handle, index, stream)
        if bound is None:
            return
        self.outcome.bound.add(id(step))
        wrong = index is not None and bound.index is not None and bound.index != index
        if wrong and (step.event.name, bound.segment, index) in self.recorded:
            text = (
                f"a wait of stream `{step.stream.name}` for `{step.event.name}@{index}` binds to the record of "
                f"`{step.event.name}@{bound.index}`: the handle is recorded again too early"
            )
            self.outcome.complain("V104", step.event.name, text)

    # --- the plan's side -------------------------------------------------------------------------------------------

    def _leave_block(self) -> None:
        segments = self.subject.segments
        if self.segment < len(segments) and segments[self.segment].index is None:
            self._settle(segments[self.segment], 0)
            self.segment += 1
        elif self.issued:
            self._complain_of_rest("stand outside the plan's loop")
            self.issued = {}

    def _complain_of_rest(self, what: str) -> None:
        names = ", ".join(dict.fromkeys(f"`{name}`" for name, _ in self.issued))
        self.outcome.complain("V102", names, f"{names} {what}")

    def _missing_segment(self) -> None:
        for segment in self.subject.segments[self.segment :]:
            for planned in segment.ops:
                self.outcome.complain("V102", planned.name, f"`{planned.name}` is never issued")

    def _settle(self, segment: PlannedSegment, iteration: int) -> None:
        """Go through the plan's ops of one iteration."""
        issued = {name: self.issued.pop((name, own)) for name, own in list(self.issued) if own == iteration}
        here = self.params if segment.index is None else {**self.params, segment.index: iteration}
        for planned in segment.ops:
            row = issued.pop(planned.name, None)
            if row is None:
                self.outcome.complain("V102", planned.name, f"`{planned.name}` is not issued in iteration {iteration}")
                continue
            instance, step, env = row
            self._check_after(planned, instance, iteration)
            planned_env = {**here, **dict(planned.inner)} if planned.inner else here
            if len(step.accesses) != len(planned.op.accesses):
                self.outcome.complain("V107", planned.name, f"`{planned.name}` does not have the plan's accesses")
                continue
            for pair in self._pairs(planned, step):
                self._check_access(planned, instance, pair, planned_env, env, segment.index)
            self.past.setdefault(planned.name, []).append(instance)
            del self.past[planned.name][: -self.subject.kept]
        for name in issued:
            self.outcome.complain("V102", name, f"`{name}` is issued, and the plan has no such op there")

    def _check_after(self, planned: PlannedOp, instance: Instance, iteration: int) -> None:
        for name, distance in planned.after:
            candidates = self.past.get(name, [])
            if candidates and candidates[-1].segment == instance.segment:
                candidates = [c for c in candidates if c.iteration <= iteration - distance]
            if candidates:
                self._note(candidates[-1], instance, None, ("AFTER",))

    def _pairs(self, planned: PlannedOp, step: OpStep) -> tuple[Pair, ...]:
        known, key = self.subject.pairs, (planned.name, id(step))
        if key not in known:
            subject = self.subject
            known[key] = pair_accesses(subject.plan, subject.schedule, subject.by_version, planned.op, step)
        return known[key]

    def _check_access(
        self,
        planned: PlannedOp,
        instance: Instance,
        pair: Pair,
        planned_env: dict[str, int],
        env: dict[str, int],
        index: str | None,
    ) -> None:
        access, buffer, ring = pair.access, pair.buffer, pair.ring
        scheduled = pair.scheduled
        box = pair.box if pair.box is not None else find_box(access, buffer, planned_env)
        slot = 0 if scheduled.version is None else evaluate(scheduled.version, env) % ring
        if not pair.alike or (pair.box is None and find_box(scheduled, buffer, env) != box):
            self.outcome.complain("V107", planned.name, f"`{planned.name}` does not have the plan's accesses")
            return
        for (lo, hi), extent in zip(box, buffer.extents, strict=True):
            if not 0 <= lo < hi <= extent:
                self.outcome.complain("V108", planned.name, f"`{planned.name}` reaches outside `{access.buffer}`")
                return
        version = self._version(access, planned_env, index)
        if pair.by_version and version % ring != slot:
            text = f"`{planned.name}` uses slot {slot} of `{access.buffer}`, and version {version} lives in another"
            self.outcome.complain("V107", planned.name, text)
        self._check_order(instance, access, slot, box)
        self._check_contents(planned, instance, pair, (version if pair.by_version else 0), slot, box)
        if access.mode is not Mode.READ:
            self.newest[access.buffer] = version

    def _version(self, access: Access, env: dict[str, int], index: str | None) -> int:
        if access.version is not None:
            return evaluate(access.version, env)
        return env[index] if index is not None else self.newest.get(access.buffer, -1)

    def _check_order(self, instance: Instance, access: Access, slot: int, box: Box) -> None:
        key = access.buffer, slot
        history = self.accesses.get(key)
        if history is None:
            history = self.accesses[key] = Accesses()
        for mode, earlier in history.enter(box, access.mode, instance):
            self._note(earlier, instance, access.buffer, KINDS[mode, access.mode])
        growing = self.subject.rhythms[self.segment].growing.get(access.buffer)
        if growing is not None:
            history.unite(growing, instance.iteration)

    def _note(self, first: Instance, second: Instance, buffer: str | None, kinds: tuple[str, ...]) -> None:
        distance = None
        if first.segment == second.segment and self.subject.segments[first.segment].index is not None:
            distance = second.iteration - first.iteration
        key = (first.name, second.name, buffer, distance)
        known = self.outcome.hazards.get(key)
        if known is not None and not known.ordered:
            return
        ordered = precedes(first, second)
        if known is None or not ordered or second.iteration > known.second.iteration:
            self.outcome.hazards[key] = Found(first, second, buffer, kinds, ordered, self.at)

    def _check_contents(
        self, planned: PlannedOp, instance: Instance, pair: Pair, version: int, slot: int, box: Box
    ) -> None:
        """Compare who wrote the bytes read under the plan's meaning and in the slots."""
        access, buffer, ring = pair.access, pair.buffer, pair.ring
        name = access.buffer
        twice = ring > 1 or pair.by_version
        if access.mode.reads and not (buffer.input and not twice):
            found, missing = self.meant.read((name, version), box)
            if missing and not buffer.input:
                text = f"`{planned.name}` reads bytes of `{name}` that nothing has written"
                self.outcome.complain("V103", f"{planned.name} {name}", text)
            elif twice:
                got, unwritten = self.actual.read((name, slot), box)
                if _differ(found, got, unwritten) or (missing and version % ring != slot):
                    text = f"`{planned.name}` sees other contents of `{name}` in a ring of {ring} than the plan means"
                    self.outcome.complain("V103", f"{planned.name} {name}", text)
        if access.mode.writes and not (buffer.input and not twice):
            self.meant.write((name, version), box, instance)
            growing = self.subject.rhythms[self.segment].growing.get(name)
            if twice:
                self.actual.write((name, slot), box, instance)
            elif growing is not None:
                self.meant.unite((name, version), growing, instance.iteration)

    def _finish(self) -> None:
        for number, name in enumerate(self.subject.streams):
            if self.clocks.host[number] < self.clocks.issued[number]:
                self.outcome.complain("V106", name, f"nothing waits for the end of stream `{name}`")
        for name, buffer in self.subject.plan.buffers.items():
            storage = self.subject.schedule.buffers.get(name)
            if not buffer.output or storage is None or storage.ring == 1 or name not in self.newest:
                continue
            newest = self.newest[name]
            whole = tuple((0, extent) for extent in buffer.extents)
            found, _ = self.meant.read((name, newest if name in self.subject.by_version else 0), whole)
            got, unwritten = self.actual.read((name, newest % storage.ring), whole)
            if _differ(found, got, unwritten):
                self.outcome.complain("V103", name, f"the final contents of `{name}` are not what the plan means")

    # --- cutting long loops short ----------------------------------------------------------------------------------

    def _skip(self, iterations: int) -> None:
        """Age everything of the current loop by whole periods."""
        moved: dict[int, Instance] = {}
        for history in self.accesses.values():
            moved.update((id(i), i) for _, _, i in history.live())
        for contents in (self.meant, self.actual):
            for spans in contents.blocks.values():
                moved.update((id(row[3]), row[3]) for row in spans.rows if isinstance(row[3], Instance))
        for past in self.past.values():
            moved.update((id(i), i) for i in past)
        moved.update((id(i), i) for i, _, _ in self.issued.values())
        for instance in moved.values():
            if instance.segment == self.segment:
                instance.iteration += iterations
        for recorded in self.clocks.handles.values():
            if recorded.segment == self.segment and recorded.index is not None:
                recorded.index += iterations
        self.recorded = {(e, s, x + iterations if s == self.segment else x) for e, s, x in self.recorded}
        index = self.subject.segments[self.segment].index
        if index is not None:
            self.issued = {
                (name, own + iterations): (instance, step, {**env, index: env[index] + iterations})
                for (name, own), (instance, step, env) in self.issued.items()
            }
        growing = self.subject.rhythms[self.segment].growing
        for (name, _), history in self.accesses.items():
            if name in growing:
                history.move(growing[name], iterations)
        for contents in (self.meant, self.actual):
            for block, spans in contents.blocks.items():
                if isinstance(block, tuple) and block[0] in growing:
                    spans.move(growing[block[0]], iterations)
        touched = {a.buffer for p in self.subject.segments[self.segment].ops for a in p.op.accesses if index}
        blocks = self.meant.blocks
        keys = [key for key in blocks if isinstance(key, tuple) and key[0] in touched & self.subject.by_version]
        moved_blocks = {(key[0], key[1] + iterations): blocks.pop(key) for key in keys}
        blocks.update(moved_blocks)
        for name in touched & set(self.newest):
            self.newest[name] += iterations


def _differ(found: list[tuple[Box, Instance]], got: list[tuple[Box, Instance]], unwritten: list[Box]) -> bool:
    """Whether bytes have another writer here than there."""
    if any(overlap(box, rest) for box, _ in found for rest in unwritten):
        return True
    if any(writer is not other for box, writer in found for part, other in got if overlap(box, part)):
        return True
    return sum(1 for part, _ in got if not any(overlap(part, box) for box, _ in found)) > 0
