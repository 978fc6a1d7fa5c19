"""Shrink an interleaving that fails to the shortest one that still does.

Every thread runs a beginning of its queue, so that what is left out is the end of each queue, as much as can be; then
the moves are put side by side by thread, so that the device changes between threads as seldom as it can. Each candidate
is run again, and only one that fails by itself is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from dagsched.proof.adversary_device import ISSUE
from dagsched.proof.adversary_pair import find_pair
from dagsched.proof.adversary_run import Entry, Outcome, Running, Subject, first_issued, replay
from dagsched.proof.adversary_search import Stop, come_before

MOST_SORTED = 24
"""Moves beyond which no sorting is tried."""

FEW = 12
"""Moves of a queue up to which every beginning is tried, and not only halves of halves."""

Test = Callable[[list[Entry]], Outcome | None]
"""Runs entries; None where they do not fail as they should."""


def shrink(subject: Subject, outcome: Outcome, stop: Stop) -> Outcome:
    """A shorter interleaving that fails in the same way."""
    if outcome.freed:
        return outcome
    test = _test(subject, outcome)
    best = _make_whole(outcome, test)
    if best.miss is not None and subject.program.monotone:
        shorter = _keep_needed(subject, best, test)
        # A miss that comes late in the issue order has more before it there than in the run that showed it.
        if shorter is not None and len(shorter.trail) <= len(best.trail):
            if len(shorter.trail) > MOST_SORTED:
                return shorter
            best = shorter
    if best.stuck:
        return _drop(best, test, stop)
    while True:
        best = _cut_queues(subject, best, test, stop)
        sorted_ = _sort(subject, best, test, stop)
        if sorted_ is best:
            return best
        best = sorted_  # in another order there may be more that can be left out


def _test(subject: Subject, outcome: Outcome) -> Test:
    stuck = bool(outcome.stuck)

    def test(entries: list[Entry]) -> Outcome | None:
        again = replay(subject, entries, complete=stuck)
        return again if (again.stuck if stuck else again.miss is not None) else None

    return test


def _make_whole(outcome: Outcome, test: Test) -> Outcome:
    """The same run with all work in one piece: what an access meets is compared with what has begun as done, and with
    what has not ended as not done, so that one of the two shows the same miss."""
    begins = [(entry, 0) for entry, part in outcome.trail if part != 2]
    ends = [(entry, 0) for entry, part in outcome.trail if part != 1]
    return test(begins) or test(ends) or test(outcome.trail) or outcome


def _keep_needed(subject: Subject, best: Outcome, test: Test) -> Outcome | None:
    """What neither of the two accesses in the wrong order must come after is left out at once, and the rest lined up
    thread by thread; None where that does not fail."""
    pair = find_pair(subject, best)
    first, second = pair.meant_first.number, pair.meant_second.number
    needed = come_before(subject.program, [second] if best.miss == second else [first, second])
    running = Running(subject)
    device = running.device
    at = -1
    while True:
        ready = [
            thread
            for thread in device.ready()
            if device.heads[thread] % ISSUE in needed and (device.heads[thread] != first or device.done[second])
        ]
        if not ready:
            return test(running.trail)
        at = at if at in ready else first_issued(device, ready)[0]
        running.move(at)


def _cut_queues(subject: Subject, best: Outcome, test: Test, stop: Stop) -> Outcome:
    """Leave out as much of the end of each queue as can be."""
    changed = True
    while changed and not stop():
        changed = False
        threads = Counter(subject.entry_thread(entry) for entry, _ in best.trail)
        for thread, count in threads.most_common():
            low, high = 0, count  # `high` is known to fail, `low` may not
            while low < high and not stop():
                middle = (low + high) // 2 if count > FEW else low
                shorter = test(_first(subject, best.trail, thread, middle))
                if shorter is not None and len(shorter.trail) < len(best.trail):
                    best, changed = shorter, True
                    high = min(middle, sum(subject.entry_thread(entry) == thread for entry, _ in best.trail))
                else:
                    low = middle + 1
    return best


def _first(subject: Subject, trail: Sequence[Entry], thread: int, most: int) -> list[Entry]:
    kept = []
    seen = 0
    for entry in trail:
        if subject.entry_thread(entry[0]) == thread:
            seen += 1
            if seen > most:
                continue
        kept.append(entry)
    return kept


def _drop(best: Outcome, test: Test, stop: Stop) -> Outcome:
    """Where a run hangs: leave out the moves at which the issue order would do as well."""
    entries = list(best.trail)
    size = len(entries)
    while size >= 1 and not stop():
        at = 0
        while at < len(entries) and not stop():
            fewer = entries[:at] + entries[at + size :]
            if test(fewer) is not None:
                entries = fewer
            else:
                at += size
        size //= 2
    return test(entries) or best


def _sort(subject: Subject, best: Outcome, test: Test, stop: Stop) -> Outcome:
    """Put the moves of a thread side by side."""
    if len(best.trail) > MOST_SORTED or best.stuck:
        return best
    changed = True
    while changed and not stop():
        changed = False
        for at in range(len(best.trail) - 2):
            thread = subject.entry_thread(best.trail[at][0])
            if subject.entry_thread(best.trail[at + 1][0]) == thread:
                continue
            later = next(
                (n for n in range(at + 2, len(best.trail)) if subject.entry_thread(best.trail[n][0]) == thread), None
            )
            if later is None:
                continue
            trail = best.trail
            sorted_ = test([*trail[: at + 1], trail[later], *trail[at + 1 : later], *trail[later + 1 :]])
            if (
                sorted_ is not None
                and len(sorted_.trail) <= len(trail)
                and _switches(subject, sorted_) < _switches(subject, best)
            ):
                best, changed = sorted_, True
                break
    return best


def _switches(subject: Subject, outcome: Outcome) -> int:
    threads = [subject.entry_thread(entry) for entry, _ in outcome.trail]
    return sum(a != b for a, b in pairwise(threads))


def run_until(subject: Subject, outcome: Outcome, number: int) -> list[Entry]:
    """The trail of a failed run, gone on with until a command has run; only what it takes."""
    thread = subject.program.commands[number].thread
    running = Running(subject)
    for entry, part in outcome.trail:
        at = subject.entry_thread(entry)
        if part == 1 or running.device.head(at) != entry:
            continue
        running.move(at)
    start = len(running.trail)
    while not running.device.done[number] and (ready := running.device.ready()):
        at = thread if thread in ready else first_issued(running.device, ready)[0]
        running.move(at)
    if not running.device.done[number]:
        return outcome.trail
    # Which of the moves behind the failure does it take?
    kept = list(running.trail)
    for at in range(len(kept) - 2, start - 1, -1):
        fewer = kept[:at] + kept[at + 1 :]
        again = Running(subject)
        for entry, _ in fewer:
            queue = subject.entry_thread(entry)
            if again.device.head(queue) == entry and queue in again.device.ready():
                again.move(queue)
        if again.device.done[number] and len(again.trail) == len(fewer):
            kept = fewer
    return kept
