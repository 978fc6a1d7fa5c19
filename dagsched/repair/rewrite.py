"""Write the changes of a repair into the file's own text, so that its comments and its layout stay.

Steps come and go item by item in the style of their neighbours. Where the text does not allow that (an alias stands for
two steps, a list would become empty) the whole file is written anew, and the result says why.
Invariant: the new text reads as exactly the repaired schedule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dagsched.diagnostics import DagschedError, ScheduleError, Source
from dagsched.edits import Edit, EditError, apply_edits, line_end
from dagsched.files import load_node
from dagsched.node_edits import (
    Insertion,
    Side,
    block_text,
    edit_mapping,
    edit_sequence,
    end_of,
    fixed_text,
    is_json,
    json_text,
    replace_node,
)
from dagsched.nodes import Node
from dagsched.plan.writer import flow_text
from dagsched.repair.draft import Added, Draft
from dagsched.repair.plain import plain_text
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, SyncStep, WaitStreamStep
from dagsched.schedule.reader import read_schedule
from dagsched.schedule.writer import schedule_json, schedule_yaml, step_data

_ORDER_KEYS = ("record", "wait", "wait_stream", "sync", "reset")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new text. ``edits`` lead to it from the old one; None where the file is written anew, for ``reason``."""

    text: str
    edits: tuple[Edit, ...] | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a step stands in the file: its node, the list that holds it, and its number there."""

    item: Node
    holder: Node
    at: int


def rewrite_source(source: Source, draft: Draft) -> Rewritten:
    """The text of a schedule's file with the changes of a draft; ``source`` is what the schedule was read from."""
    wanted = draft.build().schedule
    try:
        edits = tuple(_edits(source, draft))
        text = apply_edits(source.text, edits)
        if read_schedule(Source(source.name, text)) == wanted:
            return Rewritten(text, edits)
        reason = "the text would not say what is meant"
    except EditError as error:
        reason = error.reason
    except DagschedError:
        reason = "the text would not be a schedule"
    root = load_node(source, ScheduleError)
    return Rewritten(schedule_json(wanted) if is_json(source.text, root) else schedule_yaml(wanted), None, reason)


def _edits(source: Source, draft: Draft) -> Iterator[Edit]:
    root = load_node(source, ScheduleError)
    text = source.text
    places = list(_places(draft.original.steps, root.by_key["steps"][1]))
    holders = {id(place.holder): place.holder for place in places}
    shared = {id(place.item) for place in places}
    if len(shared) < len(places):
        raise EditError("an alias stands for more than one step")
    writer = _StepWriter(text, places)
    for key, holder in reversed(holders.items()):  # What ends an inner list stands before what follows its loop.
        mine = {number: place for number, place in enumerate(places) if id(place.holder) == key}
        drops = frozenset(place.at for number, place in mine.items() if number in draft.drops)
        if len(drops) == len(holder.items) and holder is root.by_key["steps"][1]:
            yield _emptied(text, root)
            continue
        insertions = [
            Insertion(mine[added.anchor].at, added.side, writer.write(added, draft))
            for added in draft.added
            if added.anchor in mine
        ]
        yield from edit_sequence(text, holder, drops, insertions)
    steps = tuple(draft.original.walk())
    for number, (step, _) in draft.changed.items():
        yield _change(text, places[number].item, steps[number], step)
    yield from _edit_tables(text, root, draft)


def _places(steps: tuple[AnyStep, ...], holder: Node) -> Iterator[_Place]:
    """The places of all steps, in the order of ``Schedule.walk``."""
    for at, (step, item) in enumerate(zip(steps, holder.items, strict=True)):
        yield _Place(item, holder, at)
        if isinstance(step, LoopStep):
            yield from _places(step.steps, item.by_key["steps"][1])


class _StepWriter:
    """Writes new steps as their neighbours are written."""

    def __init__(self, text: str, places: list[_Place]) -> None:
        self.text, self.places = text, places

    def write(self, added: Added, draft: Draft) -> Callable[[str], str]:
        """The text of a new step, for :class:`~dagsched.node_edits.Insertion`."""
        anchor = self.places[added.anchor]
        if added.moved is not None and self.places[added.moved].holder is anchor.holder:
            return self.moved(self.places[added.moved].item, anchor.holder)
        data = step_data(added.step)
        if anchor.holder.flow:
            json_like = is_json(self.text, anchor.item)
            return fixed_text(json_text(data) if json_like else plain_text(data))
        model = self.model(anchor)
        if model is None and len(data) == 1:
            return block_text(data, plain_text)
        if model is None or model.flow:
            json_like = model is not None and is_json(self.text, model)
            return fixed_text(json_text(data) if json_like else plain_text(data))
        return block_text(data, plain_text)

    def moved(self, item: Node, holder: Node) -> Callable[[str], str]:
        """A step as it stood elsewhere in the same list, in block style with the comment on its last line."""
        end = end_of(self.text, item)
        if not holder.flow:
            end = line_end(self.text, end)
        return lambda _: self.text[item.start : end].rstrip("\r\n").replace("\r\n", "\n")

    def model(self, anchor: _Place) -> Node | None:
        """The nearest step of the same list that makes order; None where it has none."""
        items = anchor.holder.items
        alike = [
            (abs(at - anchor.at), at) for at, item in enumerate(items) if any(key in item.by_key for key in _ORDER_KEYS)
        ]
        return items[min(alike)[1]] if alike else None


def _emptied(text: str, root: Node) -> Edit:
    """The edit that leaves no steps at all."""
    key, steps = root.by_key["steps"]
    return Edit(steps.start, steps.end, "[]") if steps.flow else Edit(key.end, end_of(text, steps), ": []")


def _change(text: str, item: Node, old: AnyStep, new: AnyStep) -> Edit:
    """The smallest edit that makes one step another."""
    for key, value in _values(old, new):
        node = item.get(key)
        if node is None:
            break
        json_like = is_json(text, item)
        return replace_node(node, json_text(value) if json_like else plain_text(value))
    data = step_data(new)
    if item.flow:
        return Edit(item.start, item.end, json_text(data) if is_json(text, item) else plain_text(data))
    indent = " " * (item.start - text.rfind("\n", 0, item.start) - 1)
    return Edit(item.start, end_of(text, item), block_text(data, plain_text)(indent))


def _values(old: AnyStep, new: AnyStep) -> list[tuple[str, Any]]:
    """The one key and value by which two steps differ, if there is just one."""
    before, after = step_data(old), step_data(new)
    keys = [key for key in after if after.get(key) != before.get(key)]
    if before.keys() != after.keys() or len(keys) != 1 or not isinstance(new, EventStep | WaitStreamStep | SyncStep):
        return []
    return [(keys[0], after[keys[0]])]


# the tables at the top


def _edit_tables(text: str, root: Node, draft: Draft) -> Iterator[Edit]:
    """Edits of ``events``, and of ``predicted``, which says nothing about the changed schedule."""
    keys = list(root.by_key)
    gone = {keys.index("predicted")} if "predicted" in keys and draft.build().schedule.predicted is None else set()
    json_like = is_json(text, root)
    added = {name: ring for name, (ring, _) in draft.rings.items() if name not in draft.original.events}
    above: list[Insertion] = []
    events = root.get("events")
    known = set(draft.original.events)
    if events is not None and known and known == draft.retired and not added:
        gone.add(keys.index("events"))
    elif events is not None and events.by_key:
        yield from _edit_events(text, events, draft, added)
    elif added:
        if events is not None:
            gone.add(keys.index("events"))
        data = {name: {"ring": ring} for name, ring in added.items()}
        entry = f'"events": {json_text(data)}' if json_like else f"events: {flow_text(data)}"
        at = keys.index("steps")
        side: Side = "after" if at else "before"
        above.append(Insertion(max(at - 1, 0), side, fixed_text(entry)))
    yield from edit_mapping(text, root, frozenset(gone), above)


def _edit_events(text: str, events: Node, draft: Draft, added: dict[str, int]) -> Iterator[Edit]:
    names = list(events.by_key)
    json_like = is_json(text, events)

    def entry(name: str, ring: int) -> str:
        value = json_text({name: {"ring": ring}}) if json_like else flow_text({name: {"ring": ring}})
        return value[1:-1]

    drops = frozenset(names.index(name) for name in draft.retired)
    insertions = [Insertion(len(names) - 1, "after", fixed_text(entry(name, ring))) for name, ring in added.items()]
    if len(drops) == len(names) and not insertions:
        raise EditError("no event would be left")
    for name, (ring, _) in draft.rings.items():
        if name in events.by_key and name not in draft.retired:
            value = events.by_key[name][1]
            old = value.get("ring")
            new = json.dumps({"ring": ring}) if is_json(text, value) or json_like else flow_text({"ring": ring})
            yield replace_node(value, new) if old is None else replace_node(old, str(ring))
    yield from edit_mapping(text, events, drops, insertions)
