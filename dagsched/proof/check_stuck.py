"""Say of each stuck queue head what it waits for, why that never comes, and what to change."""

from __future__ import annotations

from dagsched.diagnostics import closest
from dagsched.proof.check_clock import Order
from dagsched.proof.check_expand import HOST, Node, Program
from dagsched.proof.check_links import Links
from dagsched.proof.check_model import Deadlock, StuckHead
from dagsched.proof.check_text import event_text, node_text
from dagsched.schedule.model import EventStep, FlagStep

MAX_TRAIL = 40
OPENS = {"wait": "record", "take": "set", "acquire": "release"}


def make_deadlock(program: Program, links: Links, order: Order) -> Deadlock:
    """The stuck queue heads of a run, and the steps that lead there where that is a matter of who comes first."""
    stuck = _Stuck(program, links, order.stuck)
    explained = [(program.nodes[index], *stuck.explain(program.nodes[index])) for index in order.stuck]
    explained.sort(key=lambda entry: entry[2] is None)  # Causes first, then what is stuck behind them.
    heads = tuple(
        StuckHead(program.stream(node), node_text(program, node), node.step.where, why) for node, why, _ in explained
    )
    trail = tuple(node_text(program, program.nodes[index]) for index in order.trail[-MAX_TRAIL:])
    return Deadlock(heads, trail, explained[0][2])


class _Stuck:
    def __init__(self, program: Program, links: Links, heads: tuple[int, ...]) -> None:
        self.program, self.links = program, links
        self.heads = {program.nodes[index].thread: index for index in heads}

    def has_run(self, node: Node) -> bool:
        """Whether a node has run in the stuck state: it stands before its queue's head, and was issued."""
        head = self.heads.get(node.thread)
        if head is not None:
            return node.index < head
        return node.index < self.heads.get(HOST, len(self.program.nodes))

    def explain(self, node: Node) -> tuple[str, str | None]:
        """Why a head never runs, and what would help."""
        for before in self.links.after[node.index]:
            other = self.program.nodes[before]
            if not self.has_run(other):
                return f"waits for `{node_text(self.program, other)}` {self.on(other)}", None
        opens = OPENS.get(node.action)
        name = event_text(node.step)
        if opens is None:
            return "cannot run", None
        if node.action == "acquire":
            return self.explain_lock(node, name)
        users = [other for other in self.program.nodes if other.key == node.key and other.action == opens]
        left = [other for other in users if not self.has_run(other)]
        if not users:
            return f"nothing {opens}s `{name}`", self.missing(node, name, opens)
        if not left:
            return self.explain_used_up(node, name, opens, users)
        other = left[0]
        line = f" (line {other.step.where.line})" if other.step.where else ""
        what = f"`{node_text(self.program, other)}`"
        if other.thread == node.thread and other.thread in self.heads:
            return f"{what} comes after it {self.on(other)}", f"move `{opens} {name}`{line} before it"
        head = self.heads.get(HOST)
        if head is not None and head < other.index and other.thread != node.thread:
            stuck = node_text(self.program, self.program.nodes[head])
            return f"{what} is issued after `{stuck}`", f"issue `{opens} {name}`{line} before `{stuck}`"
        return f"{what} is stuck {self.on(other)}", f"issue `{opens} {name}`{line} before what it is stuck behind"

    def explain_used_up(self, node: Node, name: str, opens: str, users: list[Node]) -> tuple[str, str | None]:
        streams = sorted({self.program.stream(other) or "" for other in users} - {""})
        if node.action == "take":
            count = f"all {len(users)} of `{opens} {name}` are" if len(users) > 1 else f"the only `{opens} {name}` is"
            return f"{count} used up", f"add one `{opens} {name}` for each take"
        mine = self.program.stream(node)
        fix = None
        if streams and mine is not None and streams[0] != mine:
            fix = f"make stream `{streams[0]}` wait until `{name}` was reset, before it records it again: "
            fix += f"`{{stream: {streams[0]}, wait_stream: {mine}}}`"
        return f"`{name}` was reset after its last record (a record that finds it set is lost)", fix

    def explain_lock(self, node: Node, name: str) -> tuple[str, str | None]:
        held = None
        for other in self.program.nodes:
            if other.key == node.key and self.has_run(other):
                held = other if other.action == "acquire" else None
        at = f" by `{node_text(self.program, held)}` {self.on(held)}" if held is not None else ""
        return (
            f"the lock `{name}` is held{at}",
            "acquire locks in the same order everywhere, and hold none across a wait",
        )

    def missing(self, node: Node, name: str, opens: str) -> str:
        bare = node.step.event.name if isinstance(node.step, EventStep) else ""
        bare = node.step.flag.name if isinstance(node.step, FlagStep) else bare
        others = {
            other.key[0]
            for other in self.program.nodes
            if other.action == opens and other.key is not None and not other.private
        }
        near = closest(bare, others - {bare})
        if near is not None:
            return f"did you mean `{near}`?"
        return f"add `{opens}: {name}` after the work that this should wait for"

    def on(self, node: Node) -> str:
        stream = self.program.stream(node)
        return f"on stream `{stream}`" if stream is not None else "on the issuing thread"
