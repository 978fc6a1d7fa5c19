"""A schedule with changes noted beside it, so that each change stays tied to the step of the file that it is made at.

Steps of the original are named by their number in the order of ``Schedule.walk``; new ones stand before or after one of
them. :meth:`Draft.build` gives the changed schedule and where each of its steps comes from.
Invariant: a draft never changes in place; a new one is made for every change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dagsched.node_edits import Side
from dagsched.schedule.model import AnyStep, Event, EventStep, LoopStep, Schedule, SyncStep, WaitStreamStep


@dataclass(frozen=True, slots=True, eq=False)
class Added:
    """A new step beside the original step ``anchor``. ``moved`` is the original step that stood elsewhere before."""

    anchor: int
    side: Side
    step: AnyStep
    reason: str
    moved: int | None = None


Origin = int | Added
"""Where a step of a changed schedule comes from: the number of an original step, or what was added."""


@dataclass(frozen=True, slots=True)
class Built:
    """A changed schedule; ``origins`` has an entry for each of its steps, in the order of ``Schedule.walk``."""

    schedule: Schedule
    origins: tuple[Origin, ...]

    def number_of(self, origin: Origin) -> int | None:
        """The number of a step in the changed schedule, None where it was dropped."""
        found = (at for at, other in enumerate(self.origins) if other is origin or other == origin)
        return next(found, None)


@dataclass(frozen=True, slots=True)
class Draft:
    """``drops``: number of an original step → why it goes. ``changed``: number → the step in its place and why.
    ``rings``: event → its new ring and why; ``retired``: events that nothing uses any more."""

    original: Schedule
    drops: dict[int, str] = field(default_factory=dict)
    added: tuple[Added, ...] = ()
    changed: dict[int, tuple[AnyStep, str]] = field(default_factory=dict)
    rings: dict[str, tuple[int, str]] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.drops or self.added or self.changed or self.rings or self.retired)

    def build(self) -> Built:
        """The changed schedule."""
        origins: list[Origin] = []
        beside: dict[tuple[int, Side], list[Added]] = {}
        for added in self.added:
            beside.setdefault((added.anchor, added.side), []).append(added)
        number = 0

        def put(place: tuple[int, Side], out: list[AnyStep]) -> None:
            for added in beside.get(place, ()):
                origins.append(added)
                out.append(added.step)

        def build(steps: tuple[AnyStep, ...]) -> tuple[AnyStep, ...]:
            nonlocal number
            out: list[AnyStep] = []
            for step in steps:
                mine = number
                number += 1
                put((mine, "before"), out)
                if mine in self.drops:
                    number += _size(step) - 1
                else:
                    origins.append(mine)
                    step = self.changed[mine][0] if mine in self.changed else step
                    out.append(replace(step, steps=build(step.steps)) if isinstance(step, LoopStep) else step)
                put((mine, "after"), out)
            return tuple(out)

        steps = build(self.original.steps)
        events = {name: event for name, event in self.original.events.items() if name not in self.retired}
        events.update({name: Event(name, ring) for name, (ring, _) in self.rings.items()})
        predicted = self.original.predicted if not (self.drops or self.added or self.changed) else None
        return Built(replace(self.original, steps=steps, events=events, predicted=predicted), tuple(origins))

    def add(self, step: AnyStep, side: Side, origin: Origin, reason: str, moved: int | None = None) -> Draft:
        """The draft with a new step before or after another."""
        if isinstance(origin, int):
            added = Added(origin, side, step, reason, moved)
            # What stands nearest to its anchor was added last on the near side.
            if side == "before":
                return replace(self, added=(*self.added, added))
            return replace(self, added=(added, *self.added))
        added = Added(origin.anchor, origin.side, step, reason, moved)
        at = self.added.index(origin) + (side == "after")
        return replace(self, added=(*self.added[:at], added, *self.added[at:]))

    def drop(self, origin: Origin, reason: str) -> Draft:
        """The draft without a step; one that was added is forgotten."""
        if isinstance(origin, int):
            changed = {number: entry for number, entry in self.changed.items() if number != origin}
            return replace(self, drops={**self.drops, origin: reason}, changed=changed)
        drops = self.drops if origin.moved is None else {**self.drops, origin.moved: reason}
        return replace(self, drops=drops, added=tuple(added for added in self.added if added is not origin))

    def keep(self, number: int) -> Draft:
        """The draft with an original step that it dropped."""
        return replace(self, drops={other: why for other, why in self.drops.items() if other != number})

    def change(self, origin: Origin, step: AnyStep, reason: str) -> Draft:
        """The draft with another step in a step's place."""
        if isinstance(origin, int):
            return replace(self, changed={**self.changed, origin: (step, reason)})
        new = replace(origin, step=step, reason=reason)
        return replace(self, added=tuple(new if added is origin else added for added in self.added))

    def set_ring(self, event: str, ring: int, reason: str) -> Draft:
        """The draft with another ring of an event."""
        return replace(self, rings={**self.rings, event: (ring, reason)})

    def tidy(self) -> Draft:
        """The draft without records that nothing waits for since a wait was dropped, and events used no longer."""
        draft = self
        before, after = _used_events(self.original.walk()), _used_events(draft.build().schedule.walk())
        orphaned = before - after
        built = draft.build()
        for origin, step in zip(built.origins, built.schedule.walk(), strict=True):
            if not isinstance(step, EventStep) or step.action == "wait" or step.event.name in after:
                continue
            if step.event.name in orphaned or isinstance(origin, Added):
                draft = draft.drop(origin, f"nothing waits for `{step.event.name}` any more")
        draft = draft.without_empty_loops()
        named = {_event_of(step) for step in draft.build().schedule.walk()}
        once = {_event_of(step) for step in self.original.walk()}
        retired = frozenset(name for name in self.original.events if name not in named and name in once)
        rings = {name: entry for name, entry in draft.rings.items() if name in named}
        return replace(draft, retired=retired, rings=rings)

    def without_empty_loops(self) -> Draft:
        """Drop loops that nothing is left in."""
        drops = dict(self.drops)
        anchors = {added.anchor for added in self.added}
        loops: list[tuple[int, LoopStep]] = []
        for number, step in enumerate(self.original.walk()):
            if isinstance(step, LoopStep):
                loops.append((number, step))
        for number, loop in reversed(loops):  # Inner loops first.
            inside = range(number + 1, number + _size(loop))
            left = set(inside) - _dropped(self.original, drops)
            if inside and not left and not anchors & set(inside):
                drops = {at: why for at, why in drops.items() if at not in inside}
                drops[number] = "nothing is left in it"
        return replace(self, drops=drops)


def _dropped(original: Schedule, drops: dict[int, str]) -> set[int]:
    """The numbers of all dropped steps, with what dropped loops hold."""
    steps = tuple(original.walk())
    return {at for number in drops for at in range(number, number + _size(steps[number]))}


def _size(step: AnyStep) -> int:
    """How many steps a step is, with those that it holds."""
    return 1 + sum(map(_size, step.steps)) if isinstance(step, LoopStep) else 1


def _used_events(steps: object) -> set[str]:
    """The events that something waits for."""
    found = set()
    for step in steps:  # type: ignore[attr-defined]
        if isinstance(step, EventStep) and step.action == "wait":
            found.add(step.event.name)
        elif isinstance(step, SyncStep) and step.kind == "event" and step.target is not None:
            found.add(step.target.name)
    return found


def _event_of(step: AnyStep) -> str | None:
    if isinstance(step, EventStep):
        return step.event.name
    return step.target.name if isinstance(step, SyncStep) and step.kind == "event" and step.target else None


def is_blocking(step: AnyStep) -> bool:
    """Whether a step makes something wait for something else."""
    return isinstance(step, SyncStep | WaitStreamStep) or (isinstance(step, EventStep) and step.action == "wait")
