"""Bind every wait: what must have run before each node of a program can run.

The rules, by kind of step:

* ``latch``: a wait binds to the record of its handle issued last before it; never recorded: it waits for nothing.
* ``flag``: a record sets a bit, a wait blocks until it is set. Where nothing resets the handle, a wait comes after the
  first of its records to run; a handle that is reset is *contended*, and its interleavings are explored.
* ``reevaluate``: a wait may run when the newest record of its handle that the host has issued by then has run; where
  none has been issued by then it waits for nothing. A handle recorded once, before all its waits, is as in ``latch``.
* ``sync`` of an event binds to its newest record, as the runtime knows it by the call, whatever the event model.
* ``set``/``take``: where one thread does all the taking, its k-th take needs k sets to have run; else contended.
* ``acquire``/``release``: a lock; contended where more than one thread uses it. It keeps critical sections apart but
  puts them in no order, so it does not end a race.
* legacy default stream: whatever is queued on ``default`` comes after all earlier work of the blocking streams, and
  whatever is queued later on a blocking stream comes after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field

from dagsched.proof.check_expand import HOST, Handle, Node, Program
from dagsched.schedule.model import SyncStep

NOTHING: tuple[int, ...] = ()


@dataclass(slots=True)
class Links:
    """``after``: nodes that must have run, beyond thread order and issue order. ``gates``: node → (k, candidates), at
    least k of which must have run. ``contended``: node → its object. ``issued``: the last host node before a node's
    issue. ``bound``: wait → its record (None: it waits for nothing), where that is decided when it is issued."""

    after: list[tuple[int, ...]]
    issued: list[int]
    gates: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    contended: dict[int, tuple[str, Handle]] = field(default_factory=dict)
    bound: dict[int, int | None] = field(default_factory=dict)


def bind(program: Program) -> Links:
    """Bind all waits of a program."""
    return _Binder(program).run()


class _Binder:
    def __init__(self, program: Program) -> None:
        self.program = program
        size = len(program.nodes)
        self.links = Links([NOTHING] * size, [-1] * size)
        self.last = [-1] * len(program.threads)
        self.newest: dict[Handle, int] = {}

    def run(self) -> Links:
        links = self.links
        model = self.program.schedule.event_model
        users: dict[tuple[str, Handle], list[Node]] = defaultdict(list)
        legacy = self.program.default is not None
        host = -1
        for node in self.program.nodes:
            index, action, key = node.index, node.action, node.key
            links.issued[index] = host
            if legacy and node.thread != HOST:
                links.after[index] = self.default_order(node)
            if action == "wait":
                assert key is not None
                if model == "latch" or node.private:
                    self.latch(node, key)
                else:
                    users[("event", key)].append(node)
            elif action == "record":
                assert key is not None
                self.newest[key] = index
                if not node.private and model != "latch":
                    users[("event", key)].append(node)
            elif action == "reset" and model == "flag":
                assert key is not None
                users[("event", key)].append(node)
            elif action == "sync":
                links.after[index] = self.sync(node)
            elif action in ("set", "take"):
                assert key is not None
                users[("flag", key)].append(node)
            elif action in ("acquire", "release"):
                assert key is not None
                users[("lock", key)].append(node)
            self.last[node.thread] = index
            if node.thread == HOST:
                host = index
        for (kind, key), nodes in users.items():
            self.share(kind, key, nodes)
        return links

    def latch(self, node: Node, key: Handle) -> None:
        record = self.newest.get(key)
        self.links.bound[node.index] = record
        if record is not None:
            self.links.after[node.index] = (*self.links.after[node.index], record)

    def default_order(self, node: Node) -> tuple[int, ...]:
        """The implicit order between the legacy default stream and the blocking streams."""
        program = self.program
        assert program.default is not None
        if node.thread == program.default:
            return tuple(self.last[t] for t, blocks in enumerate(program.blocking) if blocks and self.last[t] >= 0)
        if program.blocking[node.thread] and self.last[program.default] >= 0:
            return (self.last[program.default],)
        return NOTHING

    def sync(self, node: Node) -> tuple[int, ...]:
        step, program = node.step, self.program
        assert isinstance(step, SyncStep)
        if step.kind == "event":
            assert node.key is not None
            record = self.newest.get(node.key)
            self.links.bound[node.index] = record
            return NOTHING if record is None else (record,)
        if step.kind == "device":
            return tuple(last for last in self.last[1:] if last >= 0)
        assert node.key is not None
        thread = node.key[1]
        assert isinstance(thread, int)
        found = [self.last[thread]]
        if thread == program.default:  # A marker on the default stream itself waits for the blocking streams.
            found += [self.last[t] for t, blocks in enumerate(program.blocking) if blocks]
        return tuple(last for last in found if last >= 0)

    def share(self, kind: str, key: Handle, nodes: list[Node]) -> None:
        """Bind the waits on an object that need not be decided when the wait is issued."""
        links = self.links
        threads = {node.thread for node in nodes}
        if kind == "lock":
            contended = len(threads) > 1 or not _alternates(nodes)
        elif kind == "flag":
            takes = [node for node in nodes if node.action == "take"]
            sets = tuple(node.index for node in nodes if node.action == "set")
            contended = len({node.thread for node in takes}) > 1
            if takes and not contended:
                self.count_takes(takes, sets)
        elif self.program.schedule.event_model == "flag":
            contended = any(node.action == "reset" for node in nodes)
            firsts: dict[int, int] = {}
            for node in nodes:
                if node.action == "record":
                    firsts.setdefault(node.thread, node.index)
            records = tuple(firsts.values())
            if not contended:
                for node in nodes:
                    if node.action == "wait":
                        links.gates[node.index] = (1, records)
                        links.bound[node.index] = records[0] if len(records) == 1 else None
        else:
            contended = self.reevaluate(nodes)
        if contended:
            for node in nodes:
                links.contended[node.index] = (kind, key)

    def count_takes(self, takes: list[Node], sets: tuple[int, ...]) -> None:
        """The gates of takes by one thread: the k-th needs k sets to have run.

        Sets of the taker itself, and of the host before the first take is issued, have run for sure. Where all others
        are done by one thread, in order, that makes each take wait for one of them.
        """
        nodes, gates = self.program.nodes, self.links.gates
        taker, first = takes[0].thread, takes[0].index
        early = [at for at in sets if nodes[at].thread == taker or (nodes[at].thread == HOST and at < first)]
        known = set(early)
        others = tuple(at for at in sets if at not in known)
        alone = len({nodes[at].thread for at in others}) <= 1
        for count, node in enumerate(takes, 1):
            if alone:
                needed = count - bisect_left(early, node.index)
                if needed > 0:
                    gates[node.index] = (1, others[needed - 1 : needed])
            else:
                gates[node.index] = (count, sets)

    def reevaluate(self, nodes: list[Node]) -> bool:
        """Bind the waits of a handle; True where that depends on when they run."""
        records = [node.index for node in nodes if node.action == "record"]
        waits = [node.index for node in nodes if node.action == "wait"]
        device = [wait for wait in waits if self.program.nodes[wait].thread != HOST]
        if device and records and device[0] < records[-1]:
            return True  # A wait on a stream may see what is issued after it.
        for wait in waits:
            record = max((record for record in records if record < wait), default=None)
            self.links.bound[wait] = record
            if record is not None:
                self.links.after[wait] = (*self.links.after[wait], record)
        return False


def _alternates(nodes: list[Node]) -> bool:
    """Whether one thread's acquires and releases pair up."""
    return all(node.action == ("acquire", "release")[at % 2] for at, node in enumerate(nodes))
