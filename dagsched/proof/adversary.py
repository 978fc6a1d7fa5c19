"""Set an adversary loose on a schedule: a device that runs, of all that may run next, whatever does most harm.

Contents are symbolic (who wrote each byte range), so a run shows at once where an access meets something else than is
meant. For a plan that is what its ops do one after another; for a hand-written schedule, what they do in the order in
which the host issues them as far as its waits allow: any other interleaving must let every access meet the same.

The search at each set of small counts: the order as issued, each piece of work held back in turn (decisive unless flags
are reset or locks shared; then the states are gone through), and attacks that hypothesis draws and shrinks. What fails
is made as short as it can be. Then every wait is dropped in turn, to see what it is good for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dagsched.plan.model import Plan
from dagsched.proof.adversary_counts import choose_environments
from dagsched.proof.adversary_device import wire
from dagsched.proof.adversary_meaning import give_meaning
from dagsched.proof.adversary_model import Attempt, Explored, Failure
from dagsched.proof.adversary_program import unfold
from dagsched.proof.adversary_report import describe
from dagsched.proof.adversary_run import Outcome, Reference, Subject
from dagsched.proof.adversary_search import explore, hold_each, run_as_issued
from dagsched.proof.adversary_shrink import shrink
from dagsched.proof.adversary_values import Layout
from dagsched.proof.adversary_waits import drop_waits
from dagsched.schedule.model import Schedule

MOST_COMMANDS = 20_000
"""Commands unfolded for one set of counts."""
MOST_STATES = 50_000
"""States gone through for one set of counts."""
EXAMPLES = 200
TIME_LIMIT = 20.0


@dataclass(frozen=True, slots=True)
class Options:
    """How hard to try. ``counts`` are values for the parameters (empty: small ones are chosen), ``examples`` the
    attacks that hypothesis draws, ``time_limit`` in seconds for everything; ``waits``: drop each wait in turn."""

    counts: tuple[int, ...] = ()
    examples: int = EXAMPLES
    seed: int = 0
    time_limit: float = TIME_LIMIT
    waits: bool = True


@dataclass(slots=True)
class _Tally:
    """What was tried so far."""

    runs: int = 0
    steps: int = 0
    states: int = 0
    trails: set[int] = field(default_factory=set)
    gaps: list[str] = field(default_factory=list)
    explored: bool = False

    def add(self, number: int, outcome: Outcome) -> None:
        self.runs += 1
        self.steps += len(outcome.trail)
        self.trails.add(hash((number, tuple(outcome.trail))))


def attack_schedule(
    schedule: Schedule,
    plan: Plan | None = None,
    options: Options = Options(),
    progress: Callable[[str, float], None] = lambda text, done: None,
) -> Attempt:
    """Attack a schedule; with ``plan``, the one as written that it was compiled from, hold it to that plan's meaning.

    ``progress`` is told what is being done, and about which part of all work is behind.

    Raises ``ExpressionError`` where an expression has no value.
    """
    return _Attack(schedule, plan, options, progress).run()


class _Attack:
    def __init__(
        self, schedule: Schedule, plan: Plan | None, options: Options, progress: Callable[[str, float], None]
    ) -> None:
        self.schedule, self.plan, self.options, self.progress = schedule, plan, options, progress
        self.started = time.monotonic()
        self.tally = _Tally()
        self.subjects: list[Subject] = []
        self.notes: list[str] = []

    def run(self) -> Attempt:
        failure = self.make_subjects() or self.search()
        if failure is not None:
            verdict = {"race": "race", "deadlock": "deadlock", "freed": "invalid", "fault": "invalid"}[failure.kind]
            return Attempt(verdict, self.explored(False), failure)  # type: ignore[arg-type]
        explored = self.explored(not self.tally.gaps)
        if not self.options.waits:
            return Attempt("ok", explored)
        half = lambda text, done: self.progress(text, 0.5 + done / 2)  # noqa: E731 - the second half of the work
        waits = drop_waits(self.schedule, self.subjects, self.share, half)
        return Attempt("ok", explored, waits=waits, waits_tried=True)

    def left(self) -> float:
        """Seconds of the time limit that are left."""
        return self.options.time_limit - (time.monotonic() - self.started)

    def share(self, part: float) -> Callable[[], bool]:
        """A clock that says when a part of the time that is left is over."""
        end = time.monotonic() + max(0.0, self.left() * part)
        return lambda: time.monotonic() > end

    def make_subjects(self) -> Failure | None:
        """One subject for each set of counts; for a plan, what it means there."""
        outside = 0
        for env in choose_environments(self.schedule, self.options.counts):
            made = self.make_subject(env)
            if isinstance(made, Failure):
                return made
            if made is None:
                outside += 1
                continue
            self.subjects.append(made)
            if made.program.cut:
                self.gap(f"only the first {MOST_COMMANDS:,} commands are run")
                break
        if outside:
            what = "one count" if outside == 1 else f"{outside} counts"
            self.notes.append(f"{what} at which a region leaves its buffer left out: a program refuses to run so often")
        return None

    def make_subject(self, env: dict[str, int]) -> Subject | Failure | None:
        """The subject for some counts; None where the program refuses to run so often."""
        program = unfold(self.schedule, env, MOST_COMMANDS)
        if self.plan is None:
            return Subject(program, wire(program), Layout(program.commands), Reference())
        layout, meaning = give_meaning(self.plan, program)
        if meaning.outside:
            return None
        if meaning.faults:
            headline = "the schedule is not right for its plan in any order"
            return Failure("fault", headline, tuple(sorted(env.items())), texts=tuple(meaning.faults[:8]))
        return Subject(program, wire(program), layout, meaning.reference)

    def gap(self, text: str) -> None:
        if text not in self.tally.gaps:
            self.tally.gaps.append(text)

    def search(self) -> Failure | None:
        """The first failure at the smallest counts, as short as it can be."""
        waits = 0.5 if self.options.waits else 1.0
        stop = self.share(waits * 0.7)
        for number, subject in enumerate(self.subjects):
            self.progress(f"counts {_counts(subject)}", 0.3 * number / len(self.subjects))
            outcome = self.search_one(number, subject, stop)
            if outcome is not None:
                return self.report(subject, outcome)
        return self.search_by_chance(self.share(waits))

    def search_one(self, number: int, subject: Subject, stop: Callable[[], bool]) -> Outcome | None:
        outcome = run_as_issued(subject)
        self.tally.add(number, outcome)
        if outcome.failed:
            return outcome
        for outcome in hold_each(subject):
            self.tally.add(number, outcome)
            if outcome.failed:
                return outcome
            if stop():
                self.gap("the time limit was reached before every piece of work was held back")
                return None
        if subject.program.monotone:
            return None
        self.tally.explored = True
        found = explore(subject, MOST_STATES, stop)
        self.tally.states += found.states
        self.tally.steps += found.steps
        if not found.complete and found.outcome is None and found.deadlock is None:
            self.gap(f"of the states, {found.states:,} were gone through at counts {_counts(subject)}")
        return found.outcome or found.deadlock

    def search_by_chance(self, stop: Callable[[], bool]) -> Failure | None:
        from dagsched.proof.adversary_sample import sample

        examples = self.options.examples

        def progress(done: int) -> None:
            if done % 16 == 0:
                self.progress(f"attack {done} of {examples}", 0.3 + 0.2 * min(1.0, done / examples))

        sampled = sample(self.subjects, examples, self.options.seed, stop, progress)
        self.tally.runs += sampled.runs
        self.tally.steps += sampled.steps
        self.tally.trails |= sampled.trails
        if sampled.cut:
            self.notes.append(f"{sampled.runs:,} of {examples:,} attacks were drawn before the time limit was reached")
        if sampled.outcome is not None and sampled.subject is not None:
            return self.report(sampled.subject, sampled.outcome)
        return None

    def report(self, subject: Subject, outcome: Outcome) -> Failure:
        self.progress("shrinking what fails", 0.5)
        limit = time.monotonic() + max(2.0, self.left())

        def stop() -> bool:
            return time.monotonic() > limit

        subject, outcome = self.lower_counts(subject, outcome, stop)
        return describe(subject, shrink(subject, outcome, stop))

    def lower_counts(self, subject: Subject, outcome: Outcome, stop: Callable[[], bool]) -> tuple[Subject, Outcome]:
        """The same failure at the smallest counts between those that were tried."""
        tried = [other.program.env for other in self.subjects if other is not subject]
        for name in subject.program.env:
            while not stop():
                env = {**subject.program.env, name: subject.program.env[name] - 1}
                if env[name] < 0 or env in tried:
                    break
                made = self.make_subject(env)
                found = self.search_one(-1, made, stop) if isinstance(made, Subject) else None
                if found is None or not isinstance(made, Subject):
                    break
                subject, outcome = made, found
        return subject, outcome

    def explored(self, whole: bool) -> Explored:
        tally = self.tally
        how = "each piece of work was held back as long as the device allows, so no other order can occur"
        if tally.explored:
            how = "every state that the device can be in was gone through"
        return Explored(
            tally.runs,
            len(tally.trails),
            tally.steps,
            tally.states,
            tuple(tuple(sorted(subject.program.env.items())) for subject in self.subjects),
            whole,
            how if whole else "",
            tuple(tally.gaps),
            tuple(self.notes),
        )


def _counts(subject: Subject) -> str:
    return ", ".join(f"{name} = {value}" for name, value in subject.program.env.items()) or "of the file"
