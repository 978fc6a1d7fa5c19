"""Search for better streams and a better order in plans with loops, by the model of a few iterations.

Starts are what the policies give, and every op on a stream of its own: where streams are many and calls are cheap
nothing is faster than that, and joining streams again where the model shows no loss leaves few. Local search goes on
from them, also issuing the tail of a body rounds late. What comes out is proposed, the best first; whether it gains is
for the caller to find out, who knows what rings, shifts and waits become of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from dagsched.choice.evaluate import Score
from dagsched.choice.problem import FREE, Candidate, Problem
from dagsched.choice.restore import restore_known
from dagsched.choice.rounds import NEVER, Rounds, is_issuable, score_rounds
from dagsched.choice.search import Found, propose_neighbour, search_nearby
from dagsched.choice.splits import split_streams

_CUTS = 0.12
"""How often a neighbour issues a part of a body earlier or later, instead of moving ops."""

_MOST_LATE = 3
"""Rounds by which ops are issued late at the most."""

_PURE = 0.7
"""How often a neighbour that puts ops of the host and of the device on one stream is passed over."""

_FEW = 40
"""Of more ops than this, not each gets a stream of its own: there is no time to join them again."""

_HOPEFUL = 1.05
"""What is slower than this, compared with the best in the model, is not proposed."""

_SEEDS = 3
"""Starts from which local search goes on."""


@dataclass(slots=True)
class _Pool:
    """The best candidate of each time that was seen."""

    best: dict[int, Found]

    def add(self, found: Found) -> None:
        known = self.best.get(found.score.ticks)
        if known is None or found.score < known.score:
            self.best[found.score.ticks] = found


def propose_candidates(rounds: Rounds, starts: Sequence[Candidate], steps: int, most: int) -> Iterator[Candidate]:
    """At most about ``most`` candidates that are worth compiling, found with about ``steps`` runs of the model.

    ``starts`` are those that are known already.
    """
    problem = rounds.problem
    limit = rounds.limit
    pool = _Pool({})

    def judge(_: Problem, candidate: Candidate) -> Score:
        score = score_rounds(rounds, candidate)
        if score is not NEVER:
            pool.add(Found(score, candidate))
        return score

    known = sorted((Found(judge(problem, start), start) for start in starts), key=lambda found: found.score)
    seen = {_shape(problem, start) for start in starts}
    settled: set[Candidate] = set()

    def settle(found: Found, runs: int) -> Iterator[Candidate]:
        if found.candidate in settled:
            return
        settled.add(found.candidate)
        nearest = min(known, key=lambda start: _differ(found.candidate, start.candidate)).candidate
        found = restore_known(problem, found, nearest, runs, judge)
        if _shape(problem, found.candidate) not in seen:
            seen.add(_shape(problem, found.candidate))
            yield found.candidate

    held: list[Found] = []
    left = steps // 2
    for start in known:
        split, left = split_streams(problem, start, left, limit, judge)
        held.append(split)
        if split.score.ticks <= limit:
            yield from settle(split, steps // 8)
    seeds = list(held)
    if len(problem) <= _FEW:
        apart = _spread(problem, known[0].candidate)
        seeds.append(Found(judge(problem, apart), apart))
    seeds = sorted(seeds, key=lambda found: found.score)[:_SEEDS]
    for seed in seeds:
        each = (steps // 2 + left) // len(seeds)
        found = search_nearby(problem, seed, each, limit, judge, partial(_propose, rounds))
        if found.score.ticks <= limit:
            yield from settle(found, steps // 4)
        held.append(found)
    held += pool.best.values()
    held.sort(key=lambda found: found.score)
    hopeful = [found for found in held if found.score.ticks <= held[0].score.ticks * _HOPEFUL]
    for found in hopeful[:most]:
        yield from settle(found, steps // 8)


def _differ(candidate: Candidate, known: Candidate) -> int:
    """How many ops are on another stream."""
    return sum(own != other for own, other in zip(candidate.stream_of, known.stream_of, strict=True))


def _shape(problem: Problem, candidate: Candidate) -> tuple[tuple[int, ...], ...]:
    """What distinguishes candidates: streams that no op is pinned to have no names."""
    names = {stream: stream for stream in range(len(problem.pinned))}
    streams = tuple(names.setdefault(candidate.stream_of[op], len(names)) for op in candidate.order)
    return candidate.order, streams, candidate.late


def _spread(problem: Problem, start: Candidate) -> Candidate:
    """Every op that may on a stream of its own, the longest first, as long as there may be more streams."""
    stream_of = list(start.stream_of)
    used = set(stream_of) | set(range(len(problem.pinned)))
    sizes = {stream: stream_of.count(stream) for stream in used}
    fresh = len(used)
    for op in sorted(range(len(problem)), key=lambda op: (-problem.ticks[op], op)):
        if problem.pin[op] == FREE and sizes[stream_of[op]] > 1 and len(used) < problem.most:
            while fresh in used:
                fresh += 1
            sizes[stream_of[op]] -= 1
            stream_of[op] = fresh
            used.add(fresh)
            sizes[fresh] = 1
    return replace(start, stream_of=tuple(stream_of))


def _propose(rounds: Rounds, problem: Problem, candidate: Candidate, rng: Random) -> Candidate | None:
    """A neighbour with ops moved, or with the tail of a body a round later or earlier."""
    if rng.random() < _CUTS:
        changed = _move_cut(rounds, candidate, rng)
    else:
        changed = propose_neighbour(problem, candidate, rng)
        if changed is not None and rng.random() < _PURE and _mixed(problem, changed) > _mixed(problem, candidate):
            return None
        if changed is not None and candidate.late:  # lateness stays with the places
            by_place = [candidate.late[op] for op in candidate.order]
            late = [0] * len(problem)
            for op, turns in zip(changed.order, by_place, strict=True):
                late[op] = turns
            changed = replace(changed, late=tuple(late))
    return changed if changed is not None and is_issuable(rounds, changed) else None


def _mixed(problem: Problem, candidate: Candidate) -> int:
    """How many streams have ops of the host and of the device."""
    kinds = set(zip(candidate.stream_of, problem.host, strict=True))
    return len(kinds) - candidate.streams


def _move_cut(rounds: Rounds, candidate: Candidate, rng: Random) -> Candidate | None:
    """From some place in a body on, everything a round later or earlier."""
    bodies = [part for stretch in rounds.stretches for part in stretch.parts if part.size > 1 and part.rounds > 1]
    if not bodies:
        return None
    part = rng.choice(bodies)
    cut = rng.randrange(1, part.size)
    step = rng.choice((1, -1))
    late = list(candidate.late or (0,) * len(candidate.order))
    row = candidate.order[part.first : part.first + part.size]
    for op in row[cut:]:
        late[op] += step
    turns = [late[op] for op in row]
    if turns != sorted(turns) or turns[-1] > _MOST_LATE or turns[0] < 0:
        return None
    return replace(candidate, late=tuple(late))
