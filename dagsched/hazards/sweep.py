"""Go through a resolved plan's op instances in order, few enough of them to tell all.

Instances are numbered consecutively: instance (op at position p of a loop body of B ops, iteration i) has the number
``base + i*B + p``. What an iteration has to wait for depends on the state that it finds: the access history, and what
each stream knows. When that state, taken relative to the iteration, comes back after P iterations, so does all that
follows; a loop is then told by its first W iterations and one period. Counts that stand for all others are therefore
0 to W + 2P, the last two periods twice over so that what is counted from a loop's end can be told from what is fixed.

Ops may be *shifted* (software pipelining): an op with shift s is gone through s iterations later than its place says,
so that a loop of n iterations takes n + S rounds, S being the largest shift. That is another order of the same
instances, and the caller answers for its keeping every hazard; the hazards found are then the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from math import lcm

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.hazards.growth import find_growths
from dagsched.hazards.history import AFTER, AccessHistory, CompiledAccess, Dependencies, compile_accesses
from dagsched.plan.expressions import Binary, Call, Expr, Int, Name, evaluate, linear_in, names_in
from dagsched.plan.model import Access, Buffer, Op, Plan
from dagsched.plan.regions import comes_back, unclamp
from dagsched.plan.samples import CEILING, describe_cases, find_limits
from dagsched.plan.segments import Segment, split_segments

MAX_INSTANCES = 1_500_000
"""Work that a plan may ask for; more (many independent loop counts with long start-ups) is refused."""

MAX_UNEVEN = 100_000
"""Instances of one loop that are gone through in search of a pattern; a loop that shows none may have no more.

Where that is too few for a pattern to show, as many as it takes, up to ``MAX_INSTANCES``.
"""

MAX_PERIOD = 4_096
"""Iterations after which slots and regions of a loop must fall into the same places again."""

MAX_COMPARED = 50_000
"""Boxes that are compared in search of a pattern, if there have been more of them each time ``MAX_GROWN`` times."""

MAX_GROWN = 64


@dataclass(frozen=True, slots=True)
class Sample:
    """Parameter values, and how often each segment runs (long constant loops are cut by whole periods)."""

    params: tuple[tuple[str, int], ...]
    counts: tuple[int, ...]


Visit = Callable[[int, int, int, int, Dependencies], None]
"""Called with (op number, segment number, iteration, sequence number, what it has to come after)."""


class Sweep:
    """One plan, ready to be gone through."""

    def __init__(self, plan: Plan, shifts: Mapping[str, int] | None = None) -> None:
        self.plan = plan
        self.segments: tuple[Segment, ...] = split_segments(plan)
        self.ops: tuple[Op, ...] = tuple(op for segment in self.segments for op in segment.ops)
        self.number = {op.name: n for n, op in enumerate(self.ops)}
        self.accesses: tuple[tuple[CompiledAccess, ...], ...] = tuple(compile_accesses(op, plan) for op in self.ops)
        self.segment_of = tuple(s for s, segment in enumerate(self.segments) for _ in segment.ops)
        self.shifts = tuple((shifts or {}).get(op.name, 0) for op in self.ops)
        self.drains = tuple(
            max((self.shifts[segment.first + n] for n in range(len(segment.ops))), default=0)
            for segment in self.segments
        )
        self.limits = find_limits(plan, self.segments)
        self.windows = tuple(
            _find_windows(plan, segment, drain) for segment, drain in zip(self.segments, self.drains, strict=True)
        )
        self.growths = tuple(
            find_growths(plan, self.segments, number, drain) for number, drain in enumerate(self.drains)
        )

    def start(self) -> Walk:
        """A walk at the plan's beginning."""
        return Walk(self)

    def run(self, sample: Sample, visit: Visit) -> None:
        """Go through all instances of a sample."""
        walk = self.start()
        for number, count in enumerate(sample.counts):
            walk.enter(number, dict(sample.params))
            for iteration in range(count + self.drains[number] if count > 0 else 0):
                walk.step(iteration, visit, count)

    def period_of(self, number: int) -> int:
        """Iterations after which slots and regions fall into the same pattern again (1 where nothing is periodic)."""
        segment = self.segments[number]
        period = 1
        for accesses in self.accesses[segment.first : segment.first + len(segment.ops)]:
            for access in accesses:
                if access.version is not None:
                    period = lcm(period, access.depth * _divisors(access.version))
                for part in access.access.region:
                    for bound in (part.lo, part.hi):
                        period = lcm(period, _divisors(bound) if bound is not None else 1)
        return period

    def is_uneven(self, number: int) -> bool:
        """Whether a region of a loop neither comes back, moves as a whole, nor grows: no state tells of its future."""
        segment = self.segments[number]
        if segment.loop is None:
            return False
        told = self.windows[number].keys() | self.growths[number].keys()
        index = segment.loop.index
        rows = (access for op in segment.ops for access in op.accesses if access.buffer not in told)
        return not all(comes_back(bound, index) for a in rows for part in a.region for bound in (part.lo, part.hi))


class Walk:
    """A position in the plan: the history so far, and the numbers of the current segment."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.history = AccessHistory()
        self.base = 0
        self.next = 0
        self.segment = -1
        self.env: dict[str, int] = {}
        self.newest: dict[int, int] = {}

    def enter(self, number: int, params: dict[str, int]) -> None:
        """Begin a segment."""
        self.segment, self.base, self.env = number, self.next, params

    def step(self, iteration: int, visit: Visit, count: int | None = None) -> None:
        """Run one round of the current segment: of each op the iteration that its shift leaves it, if there is one.

        ``count`` is how many iterations there are (None: no end is near). Instances that do not exist keep their
        sequence numbers free.
        """
        segment = self.sweep.segments[self.segment]
        self.history.expect(self.sweep.growths[self.segment], iteration)
        sequence = self.base + iteration * len(segment.ops)
        for number in range(segment.first, segment.first + len(segment.ops)):
            own = iteration - self.sweep.shifts[number]
            if own >= 0 and (count is None or own < count):
                if segment.loop:
                    self.env[segment.loop.index] = own
                found = self.history.touch(number, sequence, self.sweep.accesses[number], self.env)
                if self.sweep.ops[number].after:
                    self._add_after(number, own, found)
                visit(number, self.segment, own, sequence, found)
                self.newest[number] = sequence
            sequence += 1
        self.next = sequence

    def _add_after(self, number: int, iteration: int, found: Dependencies) -> None:
        segment = self.sweep.segments[self.segment]
        for edge in self.sweep.ops[number].after:
            earlier = self.sweep.number[edge.op]
            sequence = self.newest.get(earlier)
            if sequence is None:
                continue
            if self.sweep.segment_of[earlier] == self.segment:
                if iteration < edge.distance:
                    continue
                rounds = iteration - edge.distance + self.sweep.shifts[earlier]
                sequence = self.base + rounds * len(segment.ops) + earlier - segment.first
            found[sequence, ""] = AFTER

    def live(self, iteration: int) -> set[int]:
        """All instances that a later one can still have to come after, as far as they matter to the current loop.

        Of an op whose region moves up, those behind are left out but for the newest, which its stream orders last.
        """
        windows = self.sweep.windows[self.segment]
        found = self.history.live({name: step * iteration + low for name, (step, low) in windows.items()})
        segment = self.sweep.segments[self.segment]
        for number in range(segment.first, segment.first + len(segment.ops)) if windows else ():
            if number in self.newest and any(a.buffer in windows for a in self.sweep.accesses[number]):
                found.add(self.newest[number])
        for op in self.sweep.ops:
            for edge in op.after:
                earlier = self.sweep.number[edge.op]
                newest = self.newest.get(earlier)
                if newest is None:
                    continue
                found.add(newest)
                if self.sweep.segment_of[earlier] == self.segment:
                    body = len(self.sweep.segments[self.segment].ops)
                    found.update(range(newest, max(self.base, newest - edge.distance * body) - 1, -body))
        return found

    def state(self, iteration: int, clocks: Callable[[Callable[[int], int]], object]) -> object:
        """The state before an iteration, relative to it; ``clocks`` adds what the caller keeps."""
        here = self.base + iteration * len(self.sweep.segments[self.segment].ops)

        def name(sequence: int) -> int:
            return sequence if sequence < self.base else sequence - here - MAX_INSTANCES

        windows = self.sweep.windows[self.segment]

        def shift(buffer: str) -> tuple[int, int] | None:
            window = windows.get(buffer)
            return None if window is None else (window[0] * iteration, window[0] * iteration + window[1])

        return self.history.canonical(name, shift, self.sweep.growths[self.segment], iteration), clocks(name)

    def size(self) -> int:
        """How many boxes the history has."""
        return sum(map(len, self.history.blocks.values()))


def _find_windows(plan: Plan, segment: Segment, drain: int) -> dict[str, tuple[int, int]]:
    """Buffers whose region moves up evenly in a loop: (step per iteration, lowest bound in iteration 0).

    With shifted ops, ``drain`` rounds late at the most, the bound is the lowest in round 0 of any of them.
    """
    if segment.loop is None:
        return {}
    found: dict[str, list[Access]] = {}
    for op in segment.ops:
        for access in op.accesses:
            found.setdefault(access.buffer, []).append(access)
    windows = {}
    for buffer, accesses in found.items():
        steps = {_step(access, segment.loop.index, plan.buffers[buffer]) for access in accesses}
        if len(steps) == 1 and (step := steps.pop()) is not None and step > 0:
            lows = [
                evaluate(low, {segment.loop.index: 0})
                for a in accesses
                if (low := a.region[0].lo) is not None and names_in(low) <= {segment.loop.index}
            ]
            if len(lows) == len(accesses):
                windows[buffer] = (step, min(lows) - step * drain)
    return windows


def _step(access: Access, index: str, buffer: Buffer) -> int | None:
    """How far an access's first axis moves per iteration, as a whole and for ever; None where it does not."""
    if not access.region or any(
        bound is not None and index in names_in(bound) for part in access.region[1:] for bound in (part.lo, part.hi)
    ):
        return None
    lo, hi = access.region[0].lo, unclamp(access.region[0].hi, buffer.extents[0])
    below, above = (None if bound is None else linear_in(bound, index) for bound in (lo, hi))
    return below[0] if below is not None and above is not None and below[0] == above[0] else None


def _divisors(expr: Expr) -> int:
    """The product of what an expression divides by: its pattern repeats with it."""
    if isinstance(expr, Binary):
        own = abs(expr.right.value) if expr.op in ("//", "%") and isinstance(expr.right, Int) else 1
        return max(1, own) * _divisors(expr.left) * _divisors(expr.right)
    if isinstance(expr, Call):
        product_ = 1
        for argument in expr.args:
            product_ *= _divisors(argument)
        return product_
    return 1


@dataclass(frozen=True, slots=True)
class Regime:
    """A loop's start-up and period in iterations; ``period`` 0: none was found, and ``warmup`` is all there is."""

    warmup: int
    period: int


class Clocks:
    """What a caller of :func:`choose_samples` keeps beside the history (nothing, here)."""

    def visit(self, number: int, segment: int, iteration: int, sequence: int, found: Dependencies) -> None:
        """Take note of one instance."""

    def state(self, walk: Walk, iteration: int) -> Callable[[Callable[[int], int]], object]:
        """What is known before an iteration, as a comparable value under a renaming."""
        return lambda name: ()


def measure_loops(sweep: Sweep, clocks: Clocks) -> tuple[Regime, ...]:
    """Run each loop until its state comes back; what stands behind the last loop tells of none, and is not run."""
    walk = sweep.start()
    regimes: list[Regime] = []
    last = max((number for number, segment in enumerate(sweep.segments) if segment.loop is not None), default=-1)
    for number, segment in enumerate(sweep.segments):
        params = dict.fromkeys(sweep.plan.params, 0)
        if isinstance(segment.count, Int):
            most = min(segment.count.value, sweep.limits[number])
        else:
            most = sweep.limits[number]
        for name, done in ((s.count, r) for s, r in zip(sweep.segments, regimes, strict=False)):
            if isinstance(name, Name):
                params[name.name] = done.warmup + 2 * done.period
        if number > last:
            regimes.append(Regime(min(most, 1), 0))
            continue
        walk.enter(number, params)
        regimes.append(_measure(walk, sweep, number, most, clocks))
    return tuple(regimes)


def _measure(walk: Walk, sweep: Sweep, number: int, most: int, clocks: Clocks) -> Regime:
    segment = sweep.segments[number]
    if segment.loop is None or not segment.ops:
        for iteration in range(min(most, 1)):
            walk.step(iteration, clocks.visit)
        return Regime(min(most, 1), 0)
    stride = sweep.period_of(number)
    settled = max([_settles(segment) + sweep.drains[number], *(g.settled() for g in sweep.growths[number].values())])
    uneven = sweep.is_uneven(number)
    count = most if most < CEILING else None
    rounds = most + sweep.drains[number] if most > 0 else 0
    seen: dict[object, int] = {}
    iteration, compared, size, grown = 0, 0, 0, 0
    shown = min(settled + max(8 * stride, MAX_GROWN), MAX_INSTANCES // len(segment.ops))
    longest = max(MAX_UNEVEN // len(segment.ops), shown)
    while iteration < rounds:
        swells = grown > MAX_GROWN and compared > MAX_COMPARED
        hopeless = uneven or stride > MAX_PERIOD or settled > longest or swells or iteration > longest
        if hopeless and rounds > longest:
            raise PlanError([_no_pattern(sweep, segment, longest, stride)])
        if not hopeless and iteration % stride == 0 and iteration >= settled:
            before, size = size, walk.size()
            compared, grown = compared + size, grown + 1 if size > before else 0
            state = walk.state(iteration, clocks.state(walk, iteration))
            if state in seen:
                return Regime(seen[state], iteration - seen[state])
            seen[state] = iteration
            if len(seen) > 64:
                seen = {state: iteration}
        walk.step(iteration, clocks.visit, count)
        iteration += 1
    return Regime(iteration, 0)


def _settles(segment: Segment) -> int:
    """The iteration from which ``min`` and ``max`` have picked their side and ``after:`` has reached back."""
    bounds = [_largest(a.version) for op in segment.ops for a in op.accesses if a.version is not None]
    bounds += [edge.distance for op in segment.ops for edge in op.after]
    return max(bounds, default=0)


def _largest(expr: Expr, inside: bool = False) -> int:
    if isinstance(expr, Int):
        return abs(expr.value) + 1 if inside else 0
    if isinstance(expr, Call):
        return sum(_largest(argument, True) for argument in expr.args)
    if isinstance(expr, Binary):
        return _largest(expr.left, inside) + _largest(expr.right, inside)
    return 0


def choose_samples(sweep: Sweep, regimes: tuple[Regime, ...]) -> list[Sample]:
    """Counts that stand for all; loops with nothing behind them need only their largest."""
    names = sorted({name for segment in sweep.segments for name in names_in(segment.count)})
    values = [_param_values(sweep, regimes, name) for name in names]
    last = len(sweep.segments) - 1
    samples: dict[Sample, None] = {}
    work = 0
    for choice in product(*values):
        params = dict.fromkeys(sweep.plan.params, 0) | dict(zip(names, choice, strict=True))
        options: list[list[int]] = []
        for number, segment in enumerate(sweep.segments):
            count = evaluate(segment.count, params)
            options.append(_counts(count, regimes[number], isinstance(segment.count, Int), number < last))
            if segment.loop and (count < 0 or count > sweep.limits[number]):
                options[-1] = []
        for counts in product(*options):
            samples[Sample(tuple(sorted(params.items())), counts)] = None
            work += sum(n * len(segment.ops) for n, segment in zip(counts, sweep.segments, strict=True))
            if work > MAX_INSTANCES:
                raise PlanError([describe_cases(sweep.plan, sweep.segments)])
    return list(samples)


def _counts(count: int, regime: Regime, constant: bool, followed: bool) -> list[int]:
    """The counts to try for one segment: a long constant loop is cut by whole periods."""
    shortest = regime.warmup + regime.period
    if not constant or regime.period == 0 or count <= shortest + 2 * regime.period:
        return [count]
    cut = shortest + (count - shortest) % regime.period
    return [cut, cut + regime.period] if followed else [cut + regime.period]


def _param_values(sweep: Sweep, regimes: tuple[Regime, ...], name: str) -> list[int]:
    most = 0
    followed = False
    for number, segment in enumerate(sweep.segments):
        if isinstance(segment.count, Int) or name not in names_in(segment.count):
            continue
        followed |= number < len(sweep.segments) - 1 or sweep.drains[number] > 0
        enough = regimes[number].warmup + max(1, 2 * regimes[number].period)
        enough = min(enough + _largest(segment.count), sweep.limits[number])
        value = 0
        others = dict.fromkeys(names_in(segment.count), 0)
        while value < 4 * enough + 8 and evaluate(segment.count, {**others, name: value}) < enough:
            value += 1
        most = max(most, value)
    return list(range(most + 1)) if followed else [most]


def _no_pattern(sweep: Sweep, segment: Segment, longest: int, stride: int) -> Diagnostic:
    index = segment.loop.index if segment.loop else "?"
    if stride > MAX_PERIOD:
        headline = f"the slots and regions of loop `{index}` repeat only every {stride:,} iterations"
        notes = (f"a pattern of more than {MAX_PERIOD:,} iterations is not followed",)
        help_ = "shorten the rings, lower what `//` and `%` divide by, or give the loop a smaller constant count"
    else:
        headline = f"loop `{index}` shows no repeating pattern, and may be too long to go through one by one"
        notes = (f"its versions or regions do not move evenly; only up to {longest:,} iterations are gone through",)
        help_ = "give the loop a smaller constant count, or move its regions by one constant step"
    where = segment.loop.where if segment.loop else None
    return Diagnostic("P240", headline, where, sweep.plan.source, notes=notes, help=help_)
