"""What a schedule's expressions do as a loop goes on: the static half of the argument for every loop count.

The state of a schedule at the start of an iteration, written relative to the iteration, decides everything later, as
long as all expressions move along with the loop: versions and ringed handles repeat (their period divides
``Shape.period``), handles without a ring and moving regions shift by a fixed amount, guards stop changing after
``Shape.settled`` iterations (or change only within ``Shape.tail`` of the end). :func:`find_shape` says so or that some
expression puts this out of reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import lcm

from dagsched.plan.expressions import (
    Binary,
    Comparison,
    Condition,
    Expr,
    Int,
    combine,
    expression_text,
    linear_in,
    names_in,
    names_in_condition,
)
from dagsched.plan.model import Access
from dagsched.proof.check_expand import streams_of
from dagsched.proof.check_storage import Homes, Key
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Schedule,
    SyncStep,
)


class OutOfReach(Exception):
    """An expression for which no argument over all counts is known; says which."""


@dataclass(slots=True)
class Shape:
    """``handles``: handle name → loop → (slope, lowest offset ever asked for again); ``fixed``: the indices asked for
    outside the loops, ``relative``: those that follow a parameter, as (factor, offset). ``moving``: storage → loop →
    (slope, lowest offset). ``ends_with_work``: shorter runs are not just beginnings of longer ones. Loops by number."""

    period: int = 1
    settled: int = 2
    tail: int = 1
    handles: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    fixed: dict[str, set[int]] = field(default_factory=dict)
    relative: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    moving: dict[Key, dict[int, tuple[int, int]]] = field(default_factory=dict)
    loops: dict[int, LoopStep] = field(default_factory=dict)
    ends_with_work: bool = True


def used_params(schedule: Schedule) -> tuple[str, ...]:
    """The parameters that any expression names, in the order declared."""
    used: set[str] = set()
    for step in schedule.walk():
        used |= names_in_condition(step.when)
        for expr in expressions_of(step):
            used |= names_in(expr)
    return tuple(name for name in schedule.params if name in used)


def expressions_of(step: AnyStep) -> list[Expr]:
    """Every expression of a step, save its guard and the steps of a loop."""
    if isinstance(step, LoopStep):
        return [step.lo, step.hi]
    names: list[Indexed] = list(streams_of(step))
    if isinstance(step, EventStep):
        names.append(step.event)
    elif isinstance(step, FlagStep):
        names.append(step.flag)
    elif isinstance(step, SyncStep) and step.target is not None:
        names.append(step.target)
    found = [name.index for name in names if name.index is not None]
    for access in accesses_of(step):
        found += [] if access.version is None else [access.version]
        found += [bound for part in access.region for bound in (part.lo, part.hi) if bound is not None]
    return found


def accesses_of(step: AnyStep) -> tuple[Access, ...]:
    """The accesses of a step."""
    if isinstance(step, OpStep | HostStep):
        return step.accesses
    return (step.access,) if isinstance(step, FreeStep) else ()


def find_shape(schedule: Schedule, params: Iterable[str]) -> Shape:
    """The shape of a schedule whose top-level loops may run ``params`` times; raises :class:`OutOfReach`."""
    return _Shaper(schedule, frozenset(params)).run()


class _Shaper:
    def __init__(self, schedule: Schedule, params: frozenset[str]) -> None:
        self.schedule, self.params = schedule, params
        self.homes = Homes(schedule)
        self.shape = Shape()
        self.numbers = {id(step): number for number, step in enumerate(schedule.walk())}
        self.partial: set[Key] = set()

    def run(self) -> Shape:
        if self.schedule.event_model != "latch":
            raise OutOfReach(f"the event model is `{self.schedule.event_model}`")
        shape = self.shape
        for event in self.schedule.events.values():
            shape.period = lcm(shape.period, event.ring or 1)
        for storage in self.schedule.buffers.values():
            shape.period = lcm(shape.period, max(storage.ring, 1))
        after: list[AnyStep] = []
        for step in self.schedule.steps:
            if isinstance(step, LoopStep) and self.params & (names_in(step.lo) | names_in(step.hi)):
                self.param_loop(step)
                after = []
            else:
                self.outside((step,))
                after.append(step)
        self.settle_handles()
        both = self.partial & shape.moving.keys()
        if both:
            raise OutOfReach(f"`{min(both)[1]}` is accessed both by moving and by fixed regions")
        mentions = any(self.params & names_in_condition(step.when) for step in self.schedule.walk())
        work = any(accesses_of(inner) for step in after for inner in _walk(step))
        shape.ends_with_work = work or mentions or len(shape.loops) != 1 or len(self.params) != 1
        return shape

    def param_loop(self, loop: LoopStep) -> None:
        number = self.numbers[id(loop)]
        if self.params & names_in(loop.lo):
            raise OutOfReach(f"the loop `{loop.index}` starts at a parameter")
        self.outside_guard(loop.when)
        ends = [linear_in(loop.hi, param) for param in sorted(self.params & names_in(loop.hi))]
        if len(ends) != 1 or ends[0] is None or ends[0][0] < 1 or not isinstance(ends[0][1], Int):
            raise OutOfReach(f"the count `{expression_text(loop.hi)}` of the loop `{loop.index}`")
        self.shape.loops[number] = loop
        for step in loop.steps:
            self.inside(step, loop, number)

    def inside(self, step: AnyStep, loop: LoopStep, number: int) -> None:
        """A step in a loop whose count is a parameter."""
        index = loop.index
        for comparison in step.when:
            self.guard(comparison, loop)
        if isinstance(step, LoopStep):
            if step.index == index or (self.params | {index}) & (names_in(step.lo) | names_in(step.hi)):
                raise OutOfReach(f"the inner loop `{step.index}` has no constant count")
            for inner in step.steps:
                self.inside(inner, loop, number)
            return
        for stream in streams_of(step):
            if stream.index is not None and self.slope(stream.index, index):
                raise OutOfReach(f"`{stream.name}@{expression_text(stream.index)}` is a new stream in each iteration")
        event = _handle_of(step)
        if event is not None and event.index is not None:
            self.handle(event, index, number)
        for access in accesses_of(step):
            if access.version is not None:
                self.slope(access.version, index)
            self.region(access, index, number)

    def handle(self, event: Indexed, index: str, number: int) -> None:
        expr = event.index
        assert expr is not None
        slope = self.slope(expr, index)
        if self.is_ringed(event.name) or not slope:
            return
        linear = linear_in(expr, index)
        if linear is None or not isinstance(linear[1], Int) or linear[0] < 0:
            raise OutOfReach(f"the handle `{event.name}@{expression_text(expr)}`")
        loops = self.shape.handles.setdefault(event.name, {})
        known = loops.get(number, (linear[0], linear[1].value))
        if known[0] != linear[0] or len(loops.keys() | {number}) > 1:
            raise OutOfReach(f"the handles `{event.name}` move in two ways")
        loops[number] = (linear[0], min(known[1], linear[1].value))

    def is_ringed(self, name: str) -> bool:
        event = self.schedule.events.get(name)
        return event is not None and bool(event.ring)

    def region(self, access: Access, index: str, number: int) -> None:
        home = self.homes.resolve(access.buffer)
        slopes = []
        for part in access.region:
            for bound in (part.lo, part.hi):
                if bound is None:
                    slopes.append(0)
                    continue
                if self.params & names_in(bound):
                    raise OutOfReach(f"a region of `{access.buffer}` depends on a parameter")
                slope = self.slope(bound, index)
                linear = linear_in(bound, index)
                if slope and (linear is None or not isinstance(linear[1], Int)):
                    raise OutOfReach(f"the region `{expression_text(bound)}` of `{access.buffer}`")
                slopes.append(linear[0] if slope and linear else 0)
        if not any(slopes):
            if access.region:
                self.partial.add(home.storage)
            return
        first = access.region[0]
        if slopes[0] != slopes[1] or any(slopes[2:]) or slopes[0] < 0 or home.at is not None or first.lo is None:
            raise OutOfReach(f"the region of `{access.buffer}`")
        linear = linear_in(first.lo, index)
        assert linear is not None and isinstance(linear[1], Int)
        loops = self.shape.moving.setdefault(home.storage, {})
        known = loops.get(number, (linear[0], linear[1].value))
        if known[0] != linear[0]:
            raise OutOfReach(f"regions of `{access.buffer}` move at two speeds")
        loops[number] = (linear[0], min(known[1], linear[1].value))

    def guard(self, comparison: Comparison, loop: LoopStep) -> None:
        difference = combine("-", comparison.left, comparison.right)
        slope = self.slope(difference, loop.index)
        if not slope:
            self.outside_guard((comparison,))
            return
        linear = linear_in(difference, loop.index)
        if linear is None:
            raise OutOfReach(f"a guard on `{loop.index}`")
        coefficient, rest = linear
        params = self.params & names_in(rest)
        if not params:
            value = _constant(rest)
            self.shape.settled = max(self.shape.settled, abs(value) // abs(coefficient) + 2)
            return
        param = min(params)
        ahead, end = linear_in(rest, param), linear_in(loop.hi, param)
        if len(params) > 1 or ahead is None or end is None or ahead[0] != -coefficient * end[0]:
            raise OutOfReach(f"a guard on `{loop.index}` and `{param}`")
        away = abs(_constant(ahead[1])) + abs(coefficient * _constant(end[1]))
        self.shape.tail = max(self.shape.tail, away // abs(coefficient) + 2)

    def outside(self, steps: tuple[AnyStep, ...]) -> None:
        """Steps that no parametric loop holds."""
        for step in steps:
            self.outside_guard(step.when)
            if isinstance(step, LoopStep):
                if self.params & (names_in(step.lo) | names_in(step.hi)):
                    raise OutOfReach(f"the loop `{step.index}` stands in another loop")
                self.outside(step.steps)
                continue
            for stream in streams_of(step):
                for param in self.params & names_in(stream.index or Int(0)):
                    if stream.index is not None and self.slope(stream.index, param):
                        raise OutOfReach(f"the stream `{stream.name}@{expression_text(stream.index)}`")
            event = _handle_of(step)
            if event is not None:
                self.outside_handle(event)
            for access in accesses_of(step):
                for param in self.params:
                    if access.version is not None:
                        self.slope(access.version, param)
                if access.region:
                    self.partial.add(self.homes.resolve(access.buffer).storage)
                    if any(
                        self.params & names_in(bound)
                        for part in access.region
                        for bound in (part.lo, part.hi)
                        if bound is not None
                    ):
                        raise OutOfReach(f"a region of `{access.buffer}` depends on a parameter")

    def outside_handle(self, event: Indexed) -> None:
        expr = event.index or Int(0)
        names = names_in(expr)
        params = self.params & names
        if self.is_ringed(event.name):
            for param in params:
                self.slope(expr, param)
        elif not names:
            self.shape.fixed.setdefault(event.name, set()).add(_constant(expr))
        elif len(params) == len(names) == 1:
            linear = linear_in(expr, min(params))
            if linear is None or not isinstance(linear[1], Int):
                raise OutOfReach(f"the handle `{event.name}@{expression_text(expr)}`")
            self.shape.relative.setdefault(event.name, []).append((linear[0], linear[1].value))
        elif params:
            raise OutOfReach(f"the handle `{event.name}@{expression_text(expr)}`")
        else:
            self.shape.relative.setdefault(event.name, []).append((0, 0))

    def settle_handles(self) -> None:
        """Keep, of the handles that move with a loop, those that something after the loop may ask for."""
        shape = self.shape
        for name, loops in shape.handles.items():
            ((number, (slope, low)),) = loops.items()
            loop = shape.loops[number]
            end = linear_in(loop.hi, min(self.params & names_in(loop.hi)))
            assert end is not None
            for coefficient, offset in shape.relative.get(name, ()):
                if coefficient != slope * end[0]:
                    raise OutOfReach(f"the handles `{name}` outside the loop `{loop.index}`")
                low = min(low, offset - slope * _constant(end[1]))
            loops[number] = (slope, low)
        for values in shape.fixed.values():
            shape.settled = max([shape.settled, *(abs(value) + 2 for value in values)])

    def outside_guard(self, condition: Condition) -> None:
        for comparison in condition:
            difference = combine("-", comparison.left, comparison.right)
            for param in self.params & names_in(difference):
                if self.slope(difference, param):
                    linear = linear_in(difference, param)
                    if linear is None or not isinstance(linear[1], Int):
                        raise OutOfReach(f"a guard on `{param}`")
                    self.shape.settled = max(self.shape.settled, abs(linear[1].value) // abs(linear[0]) + 2)

    def slope(self, expr: Expr, index: str) -> int:
        """By how much an expression moves with an index (1 for any steady movement that is not plainly linear); its
        period goes into the shape. Raises :class:`OutOfReach` where it is not steady."""
        if index not in names_in(expr):
            return 0
        linear = linear_in(expr, index)
        if linear is not None:
            return linear[0]
        if isinstance(expr, Binary):
            if expr.op in ("+", "-"):
                left, right = self.slope(expr.left, index), self.slope(expr.right, index)
                return 1 if left or right else 0
            if expr.op == "*" and (not names_in(expr.left) or not names_in(expr.right)):
                return 1 if self.slope(expr.left, index) or self.slope(expr.right, index) else 0
            if expr.op in ("%", "//") and isinstance(expr.right, Int):
                inner = self.slope(expr.left, index)
                self.shape.period = lcm(self.shape.period, abs(expr.right.value)) * (
                    abs(expr.right.value) if expr.op == "//" else 1
                )
                return 0 if expr.op == "%" or not inner else 1
        raise OutOfReach(f"`{expression_text(expr)}` does not move evenly with `{index}`")


def _constant(expr: Expr) -> int:
    if not isinstance(expr, Int):
        raise OutOfReach(f"`{expression_text(expr)}` is not a constant")
    return expr.value


def _handle_of(step: AnyStep) -> Indexed | None:
    if isinstance(step, EventStep):
        return step.event
    if isinstance(step, FlagStep):
        return step.flag
    return step.target if isinstance(step, SyncStep) and step.kind == "event" else None


def _walk(step: AnyStep) -> Iterable[AnyStep]:
    yield step
    if isinstance(step, LoopStep):
        for inner in step.steps:
            yield from _walk(inner)
