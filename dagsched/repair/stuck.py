"""The ways out of a deadlock that an edit of records and waits offers.

What stands behind the thing that it would unblock is moved in front of it. A flag that is recorded again before it was
reset gets a wait for the reset. A wait for what nothing records, or what it itself holds up, is dropped last of all,
since that loses the order which somebody meant. Locks taken in a circle and flags taken too often have no such way.
"""

from __future__ import annotations

from collections.abc import Iterator

from dagsched.proof.check_expand import HOST, Node, streams_of
from dagsched.proof.check_run import Run
from dagsched.proof.check_stuck import OPENS
from dagsched.proof.check_text import step_text
from dagsched.repair.draft import Built, Draft
from dagsched.repair.order import move
from dagsched.repair.places import Family
from dagsched.schedule.model import AnyStep, EventStep, Indexed, LoopStep, WaitStreamStep


def unblock(draft: Draft, built: Built, family: Family, run: Run) -> Iterator[Draft]:
    """Drafts in which one of the stuck queue heads may run."""
    nodes = [run.program.nodes[index] for index in run.order.stuck]
    host = next((node for node in nodes if node.thread == HOST), None)
    heads = [node for node in nodes if node.action in OPENS]
    for head in heads:
        yield from _issue_earlier(draft, built, family, run, head, host)
    for head in heads:
        yield from _wait_for_reset(draft, built, family, run, head)
    for head in heads:
        # Without accesses nothing tells what a wait that could be met is there for.
        dead = not _openers(run, head) or any(node.touches for node in run.program.nodes)
        if head.action == "take" or (head.action == "wait" and dead):
            yield draft.drop(built.origins[head.static], _dead_reason(run, head))
    for node in {node.static: node for node in run.program.nodes if node.action == "wait"}.values():
        if not node.private and not _openers(run, node):  # It would be stuck next.
            yield draft.drop(built.origins[node.static], _dead_reason(run, node))


def _dead_reason(run: Run, head: Node) -> str:
    text = step_text(head.step)
    if head.action == "take":
        return f"`{text}` would block for ever: nothing sets the flag once more"
    if any(node.action == "record" and node.key == head.key for node in run.program.nodes):
        return f"`{text}` would block for ever: its record is stuck behind it"
    return f"`{text}` would block for ever: nothing makes that record"


def _openers(run: Run, head: Node) -> list[int]:
    """The steps that can unblock a head, by number."""
    opens = OPENS[head.action]
    found = (node.static for node in run.program.nodes if node.action == opens and node.key == head.key)
    return list(dict.fromkeys(found))


def _issue_earlier(
    draft: Draft, built: Built, family: Family, run: Run, head: Node, host: Node | None
) -> Iterator[Draft]:
    """Issue what unblocks a head, with what it follows on its stream, before the step that holds the host up, or
    before the head itself."""
    anchors = [node.static for node in (host, head) if node is not None]
    if head.action == "acquire":  # Only the issuing thread can hold a lock across what the head holds up.
        anchors = anchors[:-1]
    for opener in _openers(run, head):
        siblings = family.siblings(opener)
        for anchor in dict.fromkeys(anchors):
            if anchor not in siblings or anchor >= opener:
                continue
            between = siblings[siblings.index(anchor) + 1 : siblings.index(opener)]
            if any(isinstance(family.steps[number], LoopStep) for number in between):
                continue
            mine = _streams(family.steps[opener])
            with_it = [number for number in between if _streams(family.steps[number]) & mine]
            block = [number for number in with_it if not _waits_alike(family.steps[number], head.step)]
            moved = draft
            reason = f"`{step_text(head.step)}` waits for it, and it was issued only behind what that holds up"
            for number in (*block, opener):
                moved = move(moved, built, number, family.steps[number], anchor, reason)
            yield moved


def _streams(step: AnyStep) -> frozenset[Indexed | None]:
    return frozenset(streams_of(step)) or frozenset((None,))


def _waits_alike(step: AnyStep, head: AnyStep) -> bool:
    """Whether a step waits for what the head waits for, and so cannot come before that either."""
    return isinstance(step, EventStep) and isinstance(head, EventStep) and (step.action, step.event) == (
        head.action, head.event
    )  # fmt: skip


def _wait_for_reset(draft: Draft, built: Built, family: Family, run: Run, head: Node) -> Iterator[Draft]:
    """Let the stream that records a flag wait until the stream that resets it has done so."""
    if built.schedule.event_model != "flag" or not isinstance(head.step, EventStep) or head.step.stream is None:
        return
    waiting = head.step.stream
    for opener in _openers(run, head):
        record = family.steps[opener]
        if not isinstance(record, EventStep) or record.stream is None or record.stream == waiting:
            continue
        step = WaitStreamStep(stream=record.stream, target=waiting)
        reason = f"`{step_text(record)}` is lost while the flag is still set from the time before"
        siblings = family.siblings(opener)
        for number in siblings[: siblings.index(opener) + 1]:
            yield draft.add(step, "before", built.origins[number], reason)
