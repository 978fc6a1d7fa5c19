"""A few iterations of a plan with loops as problems without, to tell in little time what a candidate comes to.

A candidate orders the ops of each loop's body once, and says on which stream and how many rounds late each is issued.
Issued so for some iterations, the instances are the ops of a problem that ``dagsched.choice.evaluate`` runs. Where a
count is open, each loop is run alone, and how far apart its iterations end behind the start-up is its interval; where
all counts are constant, everything is run, and long loops are extended by their interval. Rings are as deep as they
are likely to become, so the figure is an estimate: what is compiled of a candidate has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dagsched.choice.evaluate import Score, find_waits, run_candidate
from dagsched.choice.problem import Candidate, Problem
from dagsched.hazards.history import Dependencies
from dagsched.hazards.sweep import Sample, Sweep
from dagsched.plan.expressions import Int

WARM = 5
"""Iterations of a loop that are taken as its start-up; where ops are issued late, so many rounds more."""

SPANS = (15, 6, 4, 2)
"""Iterations behind the start-up, the most that the budget allows."""

_PERIODS = 12
"""Iterations that the interval is told by where there are as many: a multiple of the periods that loops often have."""

NEVER = Score(1 << 80, 0, 0)
"""The score of what cannot be issued."""

_PARAMETER = 1 << 20
"""What a parameter counts as."""


@dataclass(frozen=True, slots=True)
class Part:
    """A segment with ``size`` ops, numbered from ``first``, of which ``rounds`` iterations are looked at.

    ``count`` is how many there are (1 without a loop, None where only a parameter says), none of them faster than
    ``bound``; ``looped`` is False without a loop. Instance ``base + iteration * size + n`` of the stretch is that of
    the segment's op n.
    """

    first: int
    size: int
    rounds: int
    count: int | None
    base: int
    bound: int
    looped: bool


@dataclass(frozen=True, slots=True)
class Stretch:
    """Parts that are run together: their instances as a problem, and the op that each is an instance of."""

    parts: tuple[Part, ...]
    unrolled: Problem
    op_of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rounds:
    """The ops of a plan, each once, as ``problem``, and the stretches that tell its time.

    ``reach`` holds, for pairs of ops of one loop of which the second comes after the first, the fewest iterations
    between them: as far as ops may be issued late.
    """

    problem: Problem
    stretches: tuple[Stretch, ...]
    open: bool
    reach: tuple[tuple[int, int, int], ...]

    @property
    def limit(self) -> int:
        """Ticks that no score is below (0: none are known)."""
        return sum(part.bound for stretch in self.stretches for part in stretch.parts) if self.open else 0


def make_rounds(
    problem: Problem, sweep: Sweep, instances: int, bounds: Mapping[int, int], iterations: int = 0
) -> Rounds:
    """Unroll a plan, whose rings are fixed, to about so many instances.

    ``bounds`` are intervals in ticks that no schedule beats, by segment. With ``iterations``, open counts are so many,
    and everything is run.
    """
    span = next((span for span in SPANS if (WARM + span) * len(problem) <= instances), SPANS[-1])
    parts: list[Part] = []
    base = 0
    for number, (segment, most) in enumerate(zip(sweep.segments, sweep.limits, strict=True)):
        count = segment.count.value if isinstance(segment.count, Int) else iterations or None
        rounds = max(0, min(WARM + span, most, WARM + span if count is None else count))
        parts.append(
            Part(segment.first, len(segment.ops), rounds, count, base, bounds.get(number, 0), segment.loop is not None)
        )
        base += rounds * len(segment.ops)
    before: list[tuple[int, ...]] = []
    rows: list[tuple[int, int]] = []
    reach: dict[tuple[int, int], int] = {}

    def visit(number: int, segment: int, iteration: int, sequence: int, found: Dependencies) -> None:
        earlier = tuple(sorted({other for other, _ in found}))
        for other in earlier:
            known, then = rows[other]
            if sweep.segment_of[known] == segment:
                pair = known, number
                reach[pair] = min(iteration - then, reach.get(pair, iteration - then))
        before.append(earlier)
        rows.append((number, iteration))

    params = tuple((name, _PARAMETER) for name in sorted(sweep.plan.params))
    sweep.run(Sample(params, tuple(part.rounds for part in parts)), visit)
    op_of = [number for number, _ in rows]
    open_ = any(part.count is None for part in parts)
    runs = [[part] for part in parts if part.count is None] if open_ else [parts]
    return Rounds(
        problem,
        tuple(_make_stretch(problem, run, op_of, before) for run in runs),
        open_,
        tuple((*pair, distance) for pair, distance in sorted(reach.items())),
    )


def score_rounds(rounds: Rounds, candidate: Candidate) -> Score:
    """The time of one iteration of each open loop, one after another; where there is none, that of the whole run.

    ``NEVER`` for a candidate that cannot be issued.
    """
    if not is_issuable(rounds, candidate):
        return NEVER
    ticks = kept = 0
    for stretch in rounds.stretches:
        issued = issue_rounds(stretch, candidate)
        waits = find_waits(stretch.unrolled, issued)
        clock, ends = run_candidate(stretch.unrolled, issued, waits)
        if rounds.open:
            ticks += _interval(stretch.parts[0], ends, candidate)
        else:
            ticks = max(clock, max(ends, default=0))
            for part in stretch.parts:
                assert part.count is not None
                if part.count > part.rounds:
                    ticks += _interval(part, ends, candidate) * (part.count - part.rounds)
        last = {n for part in stretch.parts for n in _instances(part, part.rounds - 1, part.rounds)}
        kept += sum(len(row) for instance, row in zip(issued.order, waits, strict=True) if instance in last)
    return Score(ticks, kept, candidate.streams)


def issue_rounds(stretch: Stretch, candidate: Candidate) -> Candidate:
    """The instances in the order in which they are issued, on their streams."""
    order: list[int] = []
    for part in stretch.parts:
        row = candidate.order[part.first : part.first + part.size]
        late = [candidate.late[op] if candidate.late else 0 for op in row]
        drain = max(late, default=0)
        numbers = [part.base + op - part.first for op in row]
        for turn in range(part.rounds + drain if part.rounds else 0):
            base = turn * part.size
            if drain:
                order += [
                    base + n - behind * part.size
                    for n, behind in zip(numbers, late, strict=True)
                    if 0 <= turn - behind < part.rounds
                ]
            else:
                order += [base + n for n in numbers]
    return Candidate(tuple(order), tuple([candidate.stream_of[op] for op in stretch.op_of]))


def is_issuable(rounds: Rounds, candidate: Candidate) -> bool:
    """Whether what comes before is issued before, with ops as late as the candidate says."""
    late = candidate.late
    if not any(late):
        return True
    place = {op: position for position, op in enumerate(candidate.order)}
    for before, after, distance in rounds.reach:
        turns = late[after] + distance - late[before]
        if turns < 0 or (turns == 0 and place[before] >= place[after]):
            return False
    return True


def _interval(part: Part, ends: Sequence[int], candidate: Candidate) -> int:
    """Ticks an iteration of the slowest op behind the start-up, on average; no less than the loop's bound."""
    late = max(candidate.late[part.first : part.first + part.size], default=0)
    span = min(max(part.rounds - WARM - late, (part.rounds + 1) // 2), part.rounds - 1)
    if span < 1:
        return part.bound
    span -= span % _PERIODS if span > _PERIODS else 0
    early = _instances(part, part.rounds - span - 1, part.rounds - span)
    last = _instances(part, part.rounds - 1, part.rounds)
    passed = max((ends[b] - ends[a] for a, b in zip(early, last, strict=True)), default=0)
    return max(part.bound, passed // span)


def _instances(part: Part, first: int, end: int) -> range:
    """Of some iterations."""
    return range(part.base + max(0, first) * part.size, part.base + end * part.size)


def _make_stretch(
    problem: Problem, parts: Sequence[Part], op_of: Sequence[int], before: Sequence[tuple[int, ...]]
) -> Stretch:
    """Parts that follow one another, with what their instances must come after among themselves."""
    first = parts[0].base
    end = parts[-1].base + parts[-1].rounds * parts[-1].size
    ops = op_of[first:end]
    rows = [tuple(n - first for n in row if n >= first) for row in before[first:end]]
    after: list[list[int]] = [[] for _ in ops]
    for number, row in enumerate(rows):
        for earlier in row:
            after[earlier].append(number)
    unrolled = replace(
        problem,
        names=tuple(problem.names[op] for op in ops),
        ticks=tuple(problem.ticks[op] for op in ops),
        engine=tuple(problem.engine[op] for op in ops),
        share=tuple(problem.share[op] for op in ops),
        blocks=tuple(problem.blocks[op] for op in ops),
        host=tuple(problem.host[op] for op in ops),
        urgency=tuple(problem.urgency[op] for op in ops),
        pin=tuple(problem.pin[op] for op in ops),
        before=tuple(rows),
        after=tuple(map(tuple, after)),
        segment=tuple(problem.segment[op] for op in ops),
    )
    return Stretch(tuple(replace(part, base=part.base - first) for part in parts), unrolled, tuple(ops))
