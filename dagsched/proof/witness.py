"""Write the proof down: for each hazard the chain of stream order, records and waits that orders it.

A chain is read from the later op back to the earlier one. Each link says either that an op comes before the next in
their stream, or that its stream is recorded behind it and the next op's stream waits for that record before it.
"""

from __future__ import annotations

from typing import Any

from dagsched.proof.clocks import Instance, Joined, precedes
from dagsched.proof.counts import Coverage
from dagsched.proof.run import Found, Outcome, Subject

VERSION = "proof/1"

NEAR = 64
"""So many waits are looked at one by one."""


class NoChainError(Exception):
    """Two ops are ordered by more than ops, records right behind them, and waits: compiled schedules are not."""


def write_witness(subject: Subject, outcome: Outcome, coverage: Coverage) -> dict[str, Any]:
    """The document of ``proof.json``; raises :class:`NoChainError`."""
    hazards = [_hazard(subject, found) for found in sorted(outcome.hazards.values(), key=_order)]
    return {
        "dagsched": VERSION,
        "plan": dict(subject.schedule.plan or {"name": subject.plan.name}),
        "holds_for": coverage.text,
        "counts": {name: {"run": most, "period": period} for name, (most, period) in coverage.params.items()},
        "checked": [
            "each op instance occurs exactly once, with the plan's accesses",
            "each hazard is ordered by happens-before, in the plan's direction",
            "each read sees the bytes that the plan means, in rings too",
            "no wait binds to another record than the one that it names, and none can block for ever",
            "the host waits for every stream at the end",
        ],
        "hazards": hazards,
    }


def _order(found: Found) -> tuple[str, str, str, int]:
    return found.second.name, found.first.name, found.buffer or "", found.second.iteration - found.first.iteration


def _hazard(subject: Subject, found: Found) -> dict[str, Any]:
    first, second = found.first, found.second
    near = first.segment == second.segment and subject.segments[first.segment].index is not None
    return {
        "before": first.name,
        "after": second.name,
        "buffer": found.buffer,
        "kinds": list(found.kinds),
        "distance": second.iteration - first.iteration if near else None,
        "at": {"params": dict(found.params), "before": first.iteration, "after": second.iteration},
        "chain": find_chain(subject, first, second),
    }


def find_chain(subject: Subject, first: Instance, second: Instance) -> list[dict[str, Any]]:
    """The links from the first instance to the second, in that order; needs ``first`` to precede ``second``."""
    links: list[dict[str, Any]] = []
    node = second
    while node.stream != first.stream:
        joined, waiter = _last_wait_that_knows(node, first)
        if waiter is not node:
            links.append(_stream_link(subject, waiter, node))
        source = joined.recorded.last
        if source is None or not (source is first or precedes(first, source)):
            raise NoChainError(joined.recorded.event)
        links.append(
            {
                "by": "wait",
                "event": joined.recorded.event,
                "index": joined.recorded.index,
                "from": _named(subject, source),
                "to": _named(subject, waiter),
            }
        )
        node = source
    if node is not first:
        links.append(_stream_link(subject, first, node))
    return links[::-1]


def _last_wait_that_knows(node: Instance, first: Instance) -> tuple[Joined, Instance]:
    """The nearest wait at or before a node on its stream whose record knows ``first``; of far ones the first of all."""
    at = node
    for _ in range(NEAR):
        for joined in at.waits:
            if joined.recorded.clock[first.stream] >= first.position:
                return joined, at
        if at.before is None:
            break
        at = at.before
    while True:  # clocks only grow along a stream, so what they know is found by jumps
        if at.jump is not None and precedes(first, at.jump):
            at = at.jump
        elif at.before is not None and precedes(first, at.before):
            at = at.before
        else:
            break
    for joined in at.waits:
        if joined.recorded.clock[first.stream] >= first.position:
            return joined, at
    raise NoChainError(node.name)  # it is the host that has waited


def _stream_link(subject: Subject, earlier: Instance, later: Instance) -> dict[str, Any]:
    return {"by": "stream", "from": _named(subject, earlier), "to": _named(subject, later)}


def _named(subject: Subject, instance: Instance) -> dict[str, Any]:
    looped = subject.segments[instance.segment].index is not None
    return {
        "op": instance.name,
        "iteration": instance.iteration if looped else None,
        "stream": subject.streams[instance.stream],
    }
