"""Go through a schedule as the host would, and see which op each wait is bound to.

A loop is gone through as often as its longest ring of handles needs to come round; then its pattern repeats. Handles
follow the latch model: a wait is bound to the record of its handle issued last before it. In the other models a wait
may come before its record, and is then bound to the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dagsched.plan.expressions import Binary, Call, Expr, ExpressionError, Int, evaluate, holds
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Protected,
    Schedule,
    WaitStreamStep,
)

_MOST_ROUNDS = 128
_BUDGET = 200_000
"""Steps that are gone through at the most; a longer body is gone through fewer times, but at least four."""


@dataclass(frozen=True, slots=True)
class WaitPair:
    """``after`` waits for ``before``; ``distance`` counts iterations of the loop that holds both, else 0."""

    before: str
    after: str
    distance: int
    protects: tuple[Protected, ...]


def op_of(step: AnyStep) -> tuple[str | None, str]:
    """The op that a step issues (None for others) and its stream; the issuing thread's own actions are on ``""``."""
    if isinstance(step, OpStep):
        return step.op, step.stream.name
    return (step.host, "") if isinstance(step, HostStep) else (None, "")


def wait_pairs(schedule: Schedule) -> tuple[WaitPair, ...]:
    """The pairs of ops that waits order directly, each once, in the order in which they are first seen.

    A wait that names what it protects holds back the protected op; others hold back the next op on their stream.
    """
    walk = _Walk(schedule)
    # A count of 0 would show nothing, so it is drawn like one that is not known.
    walk.run(schedule.steps, {name: value or walk.rounds for name, value in schedule.params.items()}, None)
    return tuple(dict.fromkeys(walk.pairs))


@dataclass(frozen=True, slots=True)
class _Instance:
    """An op as issued in one round of its outermost loop."""

    op: str
    place: tuple[int, int] | None


@dataclass(slots=True)
class _Pending:
    """A wait that has been issued; ``targets`` are the ops that it protects, empty where it does not say."""

    before: _Instance | None
    protects: tuple[Protected, ...]
    targets: frozenset[str] = field(default_factory=frozenset)


class _Walk:
    """The state of the issuing host."""

    def __init__(self, schedule: Schedule) -> None:
        self.rings = {event.name: event.ring for event in schedule.events.values()}
        self.latch = schedule.event_model == "latch"
        self.rounds = _rounds(schedule, self.rings)
        self.last: dict[str, _Instance] = {}
        self.recorded: dict[tuple[str, int], _Instance | None] = {}
        self.early: dict[tuple[str, int], list[_Pending]] = {}
        self.pending: dict[str, list[_Pending]] = {}
        self.pairs: list[WaitPair] = []

    def run(self, steps: Iterable[AnyStep], env: Mapping[str, int], place: tuple[int, int] | None) -> None:
        """Issue steps; ``place`` is the outermost loop (by identity) and its round."""
        for step in steps:
            if not _is_on(step, env):
                continue
            if isinstance(step, LoopStep):
                for value in self._values(step, env):
                    inner = place or (id(step), value)
                    self.run(step.steps, {**env, step.index: value}, inner)
            elif isinstance(step, EventStep):
                self._event(step, env)
            elif isinstance(step, WaitStreamStep):
                source = self.last.get(step.target.name)
                self.pending.setdefault(step.stream.name, []).append(_Pending(source, ()))
            else:
                self._op(step, place)

    def _values(self, loop: LoopStep, env: Mapping[str, int]) -> Iterator[int]:
        try:
            low, high = evaluate(loop.lo, env), evaluate(loop.hi, env)
        except ExpressionError:
            low, high = 0, self.rounds
        yield from range(low, min(high, low + self.rounds))

    def _event(self, step: EventStep, env: Mapping[str, int]) -> None:
        handle = self._handle(step.event, env)
        stream = step.stream.name if step.stream else ""
        if step.action == "record":
            self.recorded[handle] = self.last.get(stream)
            for waiting in self.early.pop(handle, ()):
                waiting.before = self.last.get(stream)
        elif step.action == "wait":
            waiting = _Pending(self.recorded.get(handle), step.protects)
            if handle not in self.recorded and not self.latch:
                self.early.setdefault(handle, []).append(waiting)
            said = [entry for entry in step.protects if waiting.before and _op(entry.before) == waiting.before.op]
            waiting.targets = frozenset(_op(entry.after) for entry in said)
            self.pending.setdefault(stream, []).append(waiting)

    def _handle(self, event: Indexed, env: Mapping[str, int]) -> tuple[str, int]:
        try:
            value = evaluate(event.index, env) if event.index is not None else 0
        except ExpressionError:
            value = 0
        ring = self.rings.get(event.name)
        return event.name, value % ring if ring else value

    def _op(self, step: AnyStep, place: tuple[int, int] | None) -> None:
        name, stream = op_of(step)
        if name is None:
            return
        waiting = self.pending.get(stream, [])
        self.pending[stream] = [wait for wait in waiting if wait.targets and name not in wait.targets]
        for wait in waiting:
            if not wait.targets or name in wait.targets:
                self._pair(wait, name, place)
        self.last[stream] = _Instance(name, place)

    def _pair(self, wait: _Pending, after: str, place: tuple[int, int] | None) -> None:
        before = wait.before
        if before is None:
            return
        common = place is not None and before.place is not None and place[0] == before.place[0]
        distance = place[1] - before.place[1] if place and before.place and common else 0
        if before.op != after or distance:
            protects = tuple(entry for entry in wait.protects if _op(entry.before) == before.op)
            said = tuple(entry for entry in protects if _op(entry.after) == after)
            self.pairs.append(WaitPair(before.op, after, distance, said or protects))


def _op(instance: str) -> str:
    """``upload`` of ``upload@i-2``."""
    name, at, _ = instance.rpartition("@")
    return name if at else instance


def _is_on(step: AnyStep, env: Mapping[str, int]) -> bool:
    try:
        return holds(step.when, env)
    except ExpressionError:
        return True


def _rounds(schedule: Schedule, rings: Mapping[str, int | None]) -> int:
    """Rounds of a loop after which its waits repeat."""
    steps = list(schedule.walk())
    reach = max([2, *(ring for ring in rings.values() if ring)])
    for step in steps:
        if isinstance(step, EventStep) and step.event.index is not None:
            reach = max(reach, _largest(step.event.index))
    return max(4, min(2 * reach + 2, _MOST_ROUNDS, _BUDGET // max(1, len(steps))))


def _largest(expr: Expr) -> int:
    if isinstance(expr, Int):
        return abs(expr.value)
    if isinstance(expr, Binary):
        return max(_largest(expr.left), _largest(expr.right))
    return max(map(_largest, expr.args)) if isinstance(expr, Call) else 0
