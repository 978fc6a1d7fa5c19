"""What all races of one trial share, gathered once: a file may have thousands of them."""

from __future__ import annotations

from dataclasses import dataclass

from dagsched.proof.check_expand import WORK, Path, Program
from dagsched.proof.check_model import Race
from dagsched.repair.draft import Built, Draft
from dagsched.repair.places import Family, Pair
from dagsched.repair.trial import Trial
from dagsched.schedule.model import EventStep, FlagStep, WaitStreamStep


@dataclass(frozen=True, slots=True)
class Scene:
    """Facts about one trial; steps are meant by number.

    ``idle``: waits that bind to nothing, ``unheard``: records that no wait is bound to. ``events``: all names of events
    that are taken, ``resets``: those that are reset. ``annotated``: waits say what they protect; ``pulls``: there are
    ``wait_stream`` steps; ``locks``: something is acquired. ``races`` by both their steps; ``nodes``: the instances of
    ``program`` by step and iteration.
    """

    draft: Draft
    built: Built
    family: Family
    program: Program
    idle: frozenset[int]
    unheard: frozenset[int]
    events: frozenset[str]
    resets: frozenset[str]
    annotated: bool
    pulls: bool
    locks: bool
    races: dict[tuple[int, int], list[Race]]
    nodes: dict[tuple[int, Path], int]

    def is_last_on_stream(self, pair: Pair) -> bool:
        """Whether the first op is the last work issued on its stream when the second is issued."""
        first = self.nodes.get((pair.first.static, pair.first.path))
        second = self.nodes.get((pair.second.static, pair.second.path))
        if first is None or second is None:
            return False
        nodes = self.program.nodes
        thread = nodes[first].thread
        between = (nodes[at] for at in range(second - 1, first, -1))
        return not any(node.thread == thread and node.action in WORK for node in between)


def gather_scene(trial: Trial) -> Scene | None:
    """The scene of a trial; None where no run of it was made."""
    gathered, largest = trial.examined.gathered, trial.examined.largest
    if largest is None:
        return None
    steps = trial.family.steps
    records: dict[str, set[int]] = {"record": set(), "wait": set(), "reset": set()}
    for number, step in enumerate(steps):
        if isinstance(step, EventStep):
            records[step.action].add(number)
    races: dict[tuple[int, int], list[Race]] = {}
    for found, said in gathered.races.values():
        races.setdefault((found.first.static, found.second.static), []).append(said)
    named = [step for step in steps if isinstance(step, EventStep)]
    return Scene(
        draft=trial.draft,
        built=trial.built,
        family=trial.family,
        program=largest.program,
        idle=frozenset((gathered.seen - gathered.bound) & records["wait"]),
        unheard=frozenset((gathered.seen - gathered.waited) & records["record"]),
        events=frozenset(step.event.name for step in named) | frozenset(trial.built.schedule.events),
        resets=frozenset(step.event.name for step in named if step.action == "reset"),
        annotated=trial.built.schedule.plan is not None or any(step.protects for step in named),
        pulls=any(isinstance(step, WaitStreamStep) for step in steps),
        locks=any(isinstance(step, FlagStep) and step.action == "acquire" for step in steps),
        races=races,
        nodes={(node.static, node.path): node.index for node in largest.program.nodes},
    )
