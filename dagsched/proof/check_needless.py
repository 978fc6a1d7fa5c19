"""Decide, over all loop counts checked, which waits can go."""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.proof.check_counts import Counts
from dagsched.proof.check_model import WaitFact
from dagsched.proof.check_run import Run, run_schedule
from dagsched.proof.check_text import step_text
from dagsched.proof.check_waits import Trial, Trials, drop_whole, is_wait
from dagsched.schedule.model import AnyStep, EventStep

BUDGET = 500_000
"""Clocks recomputed before the trials stop."""

EXPLORE = 500
"""Contended steps tried in one trial, besides some for each node."""


@dataclass(frozen=True, slots=True)
class Needless:
    """The waits that can go; ``untried``: there were too many to try all."""

    redundant: tuple[WaitFact, ...] = ()
    removable: tuple[WaitFact, ...] = ()
    untried: bool = False


def find_needless(counts: Counts, largest: Run, ok: bool) -> Needless:
    """The redundant and the removable waits.

    Removable ones are looked for only where the schedule is ``ok``; ``largest`` is the run of the largest counts.
    """
    statics = largest.program.statics
    ok = ok and any(node.touches for node in largest.program.nodes)  # Else order is all that the waits are for.
    open_ones: dict[int, Trial] = {number: Trial() for number, step in enumerate(statics) if is_wait(step)}
    facts: dict[int, WaitFact] = {}
    untried: set[int] = set()
    work = 0
    for position, env in enumerate(reversed(counts.environments)):
        if not open_ones or work > BUDGET:
            break
        run = largest if position == 0 else run_schedule(counts.schedule, env)
        whole = bool(run.links.contended or run.links.gates or run.program.default is not None)
        trials = Trials(run.program, run.links, run.order, run.conflicts)
        for number in list(open_ones):
            if work + trials.work > BUDGET:
                untried.add(number)
                continue
            if whole:
                work += len(run.program.nodes) * (60 if run.links.contended else 2)
                found = _drop_whole(counts, run, env, number) if work <= BUDGET else None
                if found is None:
                    untried.add(number)
                    continue
                trial = found
            else:
                trial = trials.drop(number, ok)
            known = open_ones[number]
            known.same, known.safe = known.same and trial.same, known.safe and trial.safe
            if not known.same and not (ok and known.safe):
                del open_ones[number]
            elif not trial.same and number not in facts:
                facts[number] = _removable(run, trials, number, trial)
        work += trials.work
    tried = {number: trial for number, trial in open_ones.items() if number not in untried}
    redundant = tuple(_fact(largest, number) for number, trial in tried.items() if trial.same)
    removable = tuple(
        facts[number] for number, trial in tried.items() if not trial.same and not _is_asked_for(statics[number])
    )
    return Needless(redundant, removable, bool(untried))


def _is_asked_for(step: AnyStep) -> bool:
    """Whether a wait says itself that it keeps an order which no buffer shows."""
    return isinstance(step, EventStep) and any(protected.kind == "AFTER" for protected in step.protects)


def _drop_whole(counts: Counts, run: Run, env: dict[str, int], number: int) -> Trial | None:
    """The trial, None where it was cut short and shows nothing."""
    explore = EXPLORE + 4 * len(run.program.nodes)
    other = run_schedule(counts.schedule, env, without=frozenset((number,)), explore=explore)
    trial = drop_whole(run.program, run.order, run.conflicts, other.program, other.order, other.conflicts)
    short = run.order.limited or (other.order.limited and (trial.same or trial.safe))
    return None if short else trial


def _fact(run: Run, number: int) -> WaitFact:
    step = run.program.statics[number]
    return WaitFact(step.label, step_text(step), step.where, number=number)


def _removable(run: Run, trials: Trials, number: int, trial: Trial) -> WaitFact:
    step = run.program.statics[number]
    pair = trials.serialises(number)
    threads = run.program.threads
    streams = None if pair is None else (threads[pair[0]], threads[pair[1]])
    return WaitFact(step.label, step_text(step), step.where, trials.forbidden(trial), streams, number)
