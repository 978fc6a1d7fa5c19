"""What ``diff`` says: nothing for equal schedules, and each kind of change."""

from __future__ import annotations

from dataclasses import replace

from dagsched.schedule.model import Event, Indexed, LoopStep, OpStep, Schedule, Storage
from dagsched.view.difference import difference_data, difference_text
from tests.view.sample import detector


def without(schedule: Schedule, label: str) -> Schedule:
    """The schedule without the wait whose protected op is ``label``."""
    steps = []
    for step in schedule.steps:
        if isinstance(step, LoopStep):
            kept = tuple(s for s in step.steps if not any(p.before == label for p in getattr(s, "protects", ())))
            assert len(kept) == len(step.steps) - 1
            step = replace(step, steps=kept)
        steps.append(step)
    return replace(schedule, steps=tuple(steps))


def test_a_schedule_does_not_differ_from_itself() -> None:
    schedule = detector().schedule
    assert difference_data(schedule, schedule)["same"] is True
    assert difference_text(schedule, schedule) == "no difference in ops, streams, waits, rings and handles\n"


def test_waits_that_come_and_go() -> None:
    old = detector().schedule
    new = without(old, "resize@i-2")
    data = difference_data(old, new)
    wait = {"before": "resize", "after": "upload", "distance": 2, "for": ["WAR image"]}
    assert data["waits"] == {"added": [], "removed": [wait]}
    assert data["same"] is False
    assert difference_data(new, old)["waits"] == {"added": [wait], "removed": []}
    assert difference_text(old, new) == "waits\n  - upload 2 iterations later waits for resize  (WAR image)\n"


def test_ops_that_move_come_and_change_order() -> None:
    def schedule(*ops: tuple[str, str]) -> Schedule:
        return Schedule("x", tuple(OpStep(stream=Indexed(stream), op=name) for name, stream in ops))

    old = schedule(("a", "s"), ("b", "s"), ("c", "s"), ("d", "s"))
    new = schedule(("b", "s"), ("a", "s"), ("c", "t"), ("e", "t"))
    data = difference_data(old, new)
    assert data["ops"] == {"added": ["e"], "removed": ["d"]}
    assert data["moved"] == [{"op": "c", "from": "s", "to": "t"}]
    assert data["order"] == {"s": (["a", "b"], ["b", "a"])}
    assert difference_text(old, new) == (
        "ops\n  - d (on s)\n  + e (on t)\nmoved\n  ~ c: s -> t\norder\n  ~ s: a, b -> b, a\n"
    )


def test_rings_handles_and_predictions() -> None:
    old = Schedule("x", (), buffers={"b": Storage("b", ring=2), "old": Storage("old")}, events={"e": Event("e", 2)},
                   predicted={"bound": 1.0})  # fmt: skip
    new = Schedule("x", (), buffers={"b": Storage("b", ring=3)}, events={"e": Event("e"), "f": Event("f", 1)},
                   predicted={"bound": 0.5})  # fmt: skip
    data = difference_data(old, new)
    assert data["rings"] == {"b": {"old": 2, "new": 3}, "old": {"old": 1, "new": None}}
    assert data["events"] == {"e": {"old": 2, "new": "unbounded"}, "f": {"old": None, "new": 1}}
    assert data["predicted"] == {"bound": {"old": 1.0, "new": 0.5}}
    assert "  ~ b: 2 -> 3\n  - old: 1\n" in difference_text(old, new)
