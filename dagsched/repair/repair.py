"""Find the smallest edit after which the checker finds nothing.

The passes, in the order in which faults hide one another: let everything run (``stuck``), let nothing be read after it
was freed (``lifetime``), give events the handles that they need (``handles``), order what races (``order``), then drop
every wait that can go (``minimise``) and write an added wait into the place of a dropped one. Every change is checked
as it is made; one that causes another fault is not kept.
Invariant: the operations, their accesses and their order on each stream are those of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dagsched.proof.check import check_schedule
from dagsched.proof.check_expand import name_of
from dagsched.proof.check_model import Race, Verdict
from dagsched.proof.check_races import FoundRace
from dagsched.repair.draft import Draft, Origin
from dagsched.repair.handles import lengthen_rings
from dagsched.repair.intent import record_for_order
from dagsched.repair.lifetime import move_frees
from dagsched.repair.minimise import drop_needless
from dagsched.repair.order import Orderer
from dagsched.repair.places import Pair, place_pair
from dagsched.repair.retarget import merge_waits
from dagsched.repair.scene import Scene, gather_scene
from dagsched.repair.stuck import unblock
from dagsched.repair.trial import Trial, is_no_worse, races_of, stuck_nodes, try_draft
from dagsched.schedule.model import EventStep, Protected, Schedule

MOST_ROUNDS = 400
"""Races that are ordered one after another before the search stops."""

MANY = 4
"""Races from which on they are ordered many at once."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Repair:
    """What came of it. ``draft`` holds the changes, none where there is nothing to change or no way was found.

    ``before`` and ``after`` are verdicts; ``remaining`` is what the changes that were found leave wrong, and then none
    of them is proposed. ``untried``: there were too many waits to try all of them for removal.
    """

    draft: Draft
    schedule: Schedule
    before: Verdict
    after: Verdict
    remaining: Verdict | None = None
    untried: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the schedule, with the changes, is right."""
        return self.after.verdict == "ok"


def repair_schedule(schedule: Schedule, *, keep_waits: bool = False, report: Report | None = None) -> Repair:
    """The smallest edit of records, waits, syncs and event rings that makes a schedule right, with no wait to spare.

    ``keep_waits`` leaves the file's own waits alone even where they can go. ``report`` is told what is being done.
    """
    say = report or (lambda _: None)
    before = check_schedule(schedule)
    start = try_draft(Draft(schedule))
    if start is None:
        return Repair(Draft(schedule), schedule, before, before, before)
    trial = start
    passes = {"what blocks": _unblocked, "frees": _freed_later, "orders": _as_meant, "rings": _with_longer_rings}
    for name, repeat in passes.items():
        say(f"looking at {name}")
        trial = _repeat(trial, repeat)
    trial = _order(trial, say)
    trial = _repeat(trial, _with_longer_rings)
    if trial.examined.verdict != "ok":
        return Repair(Draft(schedule), schedule, before, before, check_schedule(trial.built.schedule))
    say("trying which waits can go")
    if not keep_waits:
        trial = _drop_resets(trial)
    minimised = drop_needless(trial, own_only=keep_waits)
    merged = merge_waits(_name_blockers(minimised.trial, start))
    if merged is not minimised.trial:
        minimised = drop_needless(merged, own_only=keep_waits)
    trial = minimised.trial
    draft = trial.draft.without_empty_loops()
    trial = (try_draft(draft) or trial) if draft != trial.draft else trial
    after = check_schedule(trial.built.schedule)
    if after.verdict != "ok":  # pragma: no cover - the trial said so already
        return Repair(Draft(schedule), schedule, before, before, after)
    return Repair(trial.draft, trial.built.schedule, before, after, None, minimised.untried)


def _repeat(trial: Trial, improve: Callable[[Trial], Trial | None]) -> Trial:
    """Improve until nothing improves any more."""
    for _ in range(MOST_ROUNDS):
        better = improve(trial)
        if better is None:
            break
        trial = better
    return trial


def _unblocked(trial: Trial) -> Trial | None:
    """The first way out of a deadlock that leaves none, else the one that lets most steps run."""
    run = trial.examined.stuck
    if run is None:
        return None
    best: Trial | None = None
    least = stuck_nodes(trial.examined)
    for draft in unblock(trial.draft, trial.built, trial.family, run):
        after = try_draft(draft)
        if after is None:
            continue
        left = stuck_nodes(after.examined)
        if not left:
            return after
        if left < least:
            best, least = after, left
    return best


def _freed_later(trial: Trial) -> Trial | None:
    gathered = trial.examined.gathered
    if not gathered.dangling:
        return None
    for draft in move_frees(trial.draft, trial.built, trial.family, gathered):
        after = try_draft(draft)
        if after is None:
            continue
        left = _freed_too_early(after)
        if len(left) <= len(gathered.dangling) and left != _freed_too_early(trial):
            return after
    return None


def _freed_too_early(trial: Trial) -> set[tuple[Origin, Origin]]:
    """The frees, as (free, use); a second free of the same contents may come to light once the first has moved."""
    origins = trial.built.origins
    nodes = trial.examined.gathered.dangling.values()
    return {(_root(origins[free.static]), _root(origins[use.static])) for free, use in nodes}


def _root(origin: Origin) -> Origin:
    """A step that was moved is the step that it was."""
    return origin if isinstance(origin, int) or origin.moved is None else origin.moved


def _as_meant(trial: Trial) -> Trial | None:
    idle = trial.examined.gathered.seen - trial.examined.gathered.bound
    for draft in record_for_order(trial):
        after = try_draft(draft)
        if after is None or not is_no_worse(after.examined, trial.examined):
            continue
        if len(after.examined.gathered.seen - after.examined.gathered.bound) < len(idle):
            return after
    return None


def _with_longer_rings(trial: Trial) -> Trial | None:
    gathered = trial.examined.gathered
    for draft in lengthen_rings(trial.draft, trial.built, gathered):
        after = try_draft(draft)
        fewer = after is not None and len(after.examined.gathered.reused) < len(gathered.reused)
        if fewer and after is not None and is_no_worse(after.examined, trial.examined):
            return after
    return None


def _name_blockers(trial: Trial, start: Trial) -> Trial:
    """Say of a dropped wait that it would block for ever, which matters more than that nothing needs it."""
    run = start.examined.stuck
    if run is None:
        return trial
    heads = {run.program.nodes[index].static for index in run.order.stuck}
    why = "it would block for ever, and no work needs the order that it is for"
    drops = {at: why if at in heads and "block" not in old else old for at, old in trial.draft.drops.items()}
    return replace(trial, draft=replace(trial.draft, drops=drops))


# races

Identity = tuple[Origin, Origin, Origin | None, int]


def _identity(trial: Trial, race: FoundRace) -> Identity:
    """A race by where its sides come from and how far they are apart."""
    pair = place_pair(trial.family, race.first, race.second)
    loop = None if pair.loop is None else trial.origin(pair.loop)
    return trial.origin(race.first.static), trial.origin(race.second.static), loop, pair.distance


def _order(trial: Trial, say: Report) -> Trial:
    """Order race after race, each in the first way that works; many at once where that works as well."""
    given_up: set[Identity] = set()
    for _ in range(MOST_ROUNDS):
        open_ones = [race for _, race in races_of(trial.examined) if _identity(trial, race) not in given_up]
        if not open_ones:
            break
        say(f"ordering {len(open_ones)} races")
        after = _ordered_at_once(trial, open_ones) if len(open_ones) >= MANY else None
        if after is None:
            after = _ordered(trial, open_ones[0])
        if after is None:
            given_up.add(_identity(trial, open_ones[0]))
        else:
            trial = after
    return trial


def _ordered_at_once(trial: Trial, races: list[FoundRace]) -> Trial | None:
    """The trial with the first proposal for each of many races that have no op in common; None where that fails."""
    scene = gather_scene(trial)
    if scene is None:
        return None
    base = trial.draft
    draft = base
    known = set(base.added)
    taken: set[str] = set()
    for race in races:
        ops = {name_of(race.first), name_of(race.second)}
        if ops & taken:
            continue
        first = next(_proposals(scene, race), None)
        if first is None or (first.drops, first.changed) != (base.drops, base.changed):
            continue
        new = [added for added in first.added if added not in known]
        if any(added.moved is not None for added in new):
            continue
        taken |= ops
        draft = replace(
            draft,
            added=(
                *(added for added in new if added.side == "after"),
                *draft.added,
                *(added for added in new if added.side == "before"),
            ),
            rings={**draft.rings, **first.rings},
        )
    after = try_draft(draft)
    if after is None or not is_no_worse(after.examined, trial.examined):
        return None
    return after if len(after.examined.gathered.races) < len(trial.examined.gathered.races) else None


def _ordered(trial: Trial, race: FoundRace) -> Trial | None:
    """The trial with one race ordered, None where no way works."""
    identity = _identity(trial, race)
    scene = gather_scene(trial)
    for draft in _proposals(scene, race) if scene is not None else ():
        after = try_draft(draft)
        if after is None or not is_no_worse(after.examined, trial.examined):
            continue
        if identity not in (_identity(after, other) for _, other in races_of(after.examined)):
            return after
    return None


def _proposals(scene: Scene, race: FoundRace) -> Iterator[Draft]:
    pair = place_pair(scene.family, race.first, race.second)
    same = scene.races[race.first.static, race.second.static]
    yield from Orderer(scene, pair, _why(same), _protects(same, pair)).drafts()


def _why(races: list[Race]) -> str:
    kinds = " and ".join(f"{', '.join(race.kinds)} on `{race.buffer}`" for race in races)
    return f"orders `{races[0].record_after}` before `{races[0].wait_before}` ({kinds})"


def _protects(races: list[Race], pair: Pair) -> tuple[Protected, ...]:
    """The hazards that a wait for one pair protects."""
    found = []
    for race in races:
        before, after = race.record_after, race.wait_before
        if race.distance and race.first.index:
            before, after = (
                f"{race.first.op}@{race.first.index}-{race.distance}",
                f"{race.second.op}@{race.first.index}",
            )
        found += [Protected(before, after, race.buffer, kind) for kind in race.kinds]
    return tuple(found)


def _drop_resets(trial: Trial) -> Trial:
    """Resets do nothing in the other event models."""
    model = trial.built.schedule.event_model
    if model == "flag":
        return trial
    draft = trial.draft
    for origin, step in zip(trial.built.origins, trial.family.steps, strict=True):
        if isinstance(step, EventStep) and step.action == "reset":
            draft = draft.drop(origin, f"a reset does nothing in the event model `{model}`")
    if draft is trial.draft:
        return trial
    return try_draft(draft) or trial
