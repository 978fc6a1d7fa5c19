"""Let hypothesis look for an interleaving that fails, and shrink what it finds.

An attack is a few choices: at which counts, in which order the threads are favoured, which pieces of work are held back
until nothing else can run, and which take effect in parts with everything else in between. Few delays at the right
places find what long random walks miss (S. Burckhardt and others, ASPLOS 2010); nothing at all is the simplest attack,
the order in which the host issues, and hypothesis shrinks towards it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, currently_in_test_context, find, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.errors import NoSuchExample

from dagsched.proof.adversary_device import ISSUE, Device
from dagsched.proof.adversary_run import Choose, Outcome, Running, Subject, drive, first_issued
from dagsched.proof.adversary_search import Stop

MOST_DELAYS = 4
MOST_PARTS = 3


@dataclass(frozen=True, slots=True)
class Attack:
    """``counts`` picks the subject; ``favour``: 0 keeps to the issue order, an even number ranks the threads, an odd
    one picks anew at every move; ``delays`` and ``parts`` name moves by their place among the commands."""

    counts: int = 0
    favour: int = 0
    delays: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()


def attacks(subjects: int) -> st.SearchStrategy[Attack]:
    """Attacks on some of ``subjects`` programs.

    Drawn bit by bit: other draws of hypothesis also try the constants of whatever code is loaded, and then the same
    seed would not make the same attacks.
    """
    place = _number(16)
    return st.builds(
        Attack,
        _number(subjects.bit_length()).map(lambda number: number % subjects),
        st.tuples(st.booleans(), place).map(lambda pair: pair[1] if pair[0] else 0),
        st.lists(place, max_size=MOST_DELAYS).map(tuple),
        st.tuples(st.booleans(), st.lists(place, max_size=MOST_PARTS)).map(
            lambda pair: tuple(pair[1]) if pair[0] else ()
        ),
    )


def draw_attack(random: Random, subjects: int) -> Attack:
    """An attack of the same kind, where hypothesis is running already and cannot be asked again."""

    def places(most: int) -> tuple[int, ...]:
        return tuple(random.getrandbits(16) for _ in range(random.randint(0, most)))

    favour = random.choice((0, random.getrandbits(16)))
    return Attack(random.randrange(subjects), favour, places(MOST_DELAYS), places(random.choice((0, MOST_PARTS))))


def _number(bits: int) -> st.SearchStrategy[int]:
    return st.tuples(*[st.booleans()] * bits).map(lambda row: sum(bit << n for n, bit in enumerate(row)))


@contextmanager
def _no_storage() -> Iterator[None]:
    """Keep hypothesis from writing into the directory that the user happens to be in."""
    storage: Any = storage_directory(intent_to_write=False)  # older releases: a plain path
    home = getattr(storage, "home_directory", storage)
    set_hypothesis_home_dir(Path(os.devnull) / "hypothesis")
    try:
        yield
    finally:
        set_hypothesis_home_dir(home)


def run_attack(subject: Subject, attack: Attack) -> Outcome:
    """The interleaving that an attack stands for."""
    moves = [number for number, is_move in enumerate(subject.wiring.moves) if is_move]
    if not moves:
        return drive(Running(subject), first_issued)
    held = {moves[place % len(moves)] for place in attack.delays}
    parts = {moves[place % len(moves)] for place in attack.parts}
    parts = {number for number in parts if subject.program.commands[number].what == "work"}
    return drive(Running(subject, bool(parts)), _policy(attack.favour, held, parts))


def _policy(favour: int, held: set[int], parts: set[int]) -> Choose:
    random = Random(favour)
    ranks: dict[int, float] = {}

    def rank(device: Device, thread: int) -> tuple[bool, float]:
        number = (device.head(thread) or 0) % ISSUE
        late = number in held or device.begun[thread]
        if not favour:
            return late, number
        if favour % 2:
            return late, random.random()
        return late, ranks.setdefault(thread, random.random())

    def choose(device: Device, ready: list[int]) -> tuple[int, bool]:
        thread = min(ready, key=lambda thread: rank(device, thread)) if len(ready) > 1 else ready[0]
        return thread, device.head(thread) in parts

    return choose


class _TimeUp(BaseException):
    """Leaves hypothesis at once: not an error, so that it is neither caught nor shrunk."""


@dataclass(slots=True)
class Sampled:
    """What sampling came to. ``trails`` holds a number for each different interleaving; ``steps`` counts moves;
    ``cut``: it was told to stop before all attacks were made."""

    outcome: Outcome | None = None
    subject: Subject | None = None
    runs: int = 0
    steps: int = 0
    trails: set[int] = field(default_factory=set)
    cut: bool = False


def sample(
    subjects: Sequence[Subject],
    examples: int,
    seed: int,
    stop: Stop,
    progress: Callable[[int], None] = lambda _: None,
) -> Sampled:
    """Try ``examples`` attacks, and those that shrinking tries; the same seed tries the same ones."""
    found = Sampled()
    if examples < 1 or not subjects:
        return found

    def fails(attack: Attack) -> bool:
        if stop():
            found.cut = True
            raise _TimeUp
        subject = subjects[attack.counts]
        outcome = run_attack(subject, attack)
        found.runs += 1
        found.steps += len(outcome.trail)
        found.trails.add(hash((attack.counts, tuple(outcome.trail))))
        progress(found.runs)
        if outcome.failed and (found.outcome is None or _size(subject, outcome) <= _size(found.subject, found.outcome)):
            found.outcome, found.subject = outcome, subject
        return outcome.failed

    quiet = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    if currently_in_test_context():
        # Inside a user's own hypothesis test: only draw, what fails is shrunk later on.
        random = Random(seed)
        with suppress(_TimeUp):
            any(fails(draw_attack(random, len(subjects))) for _ in range(examples))
        return found
    with _no_storage(), suppress(NoSuchExample, _TimeUp):
        find(attacks(len(subjects)), fails, settings=quiet, random=Random(seed))
    return found


def _size(subject: Subject | None, outcome: Outcome | None) -> tuple[int, int]:
    if subject is None or outcome is None:
        return (1 << 40, 0)
    return (len(subject.program.commands), len(outcome.trail))
