"""Say why one op instance comes before another: the chain of streams, records and waits that leads there."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dagsched.diagnostics import Diagnostic, ScheduleError, Where, closest
from dagsched.plan.expressions import ExpressionError
from dagsched.proof.check_clock import is_before
from dagsched.proof.check_counts import count_steps
from dagsched.proof.check_expand import HOST, WORK, Node, TooManySteps, name_of
from dagsched.proof.check_run import Run, run_schedule
from dagsched.proof.check_shape import used_params
from dagsched.proof.check_text import node_text
from dagsched.schedule.model import Schedule

_VALUES = r"-?\d+(?:,-?\d+)*"
_INSTANCE = re.compile(rf"(?P<op>.*?)(?:@(?P<at>{_VALUES})|(?P<brackets>(?:\[{_VALUES}\])+))?\Z", re.DOTALL)
MARGIN = 3
"""Iterations beyond the ones asked about, where counts are parameters."""
MOST = 400_000
"""Steps that are issued at the most in a run that is looked for."""

MOST_NAMED = 12
"""Ops that a message lists at the most."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """One link of a chain; ``stream`` is None on the issuing thread, ``by`` says why it follows the link before."""

    text: str
    stream: str | None
    where: Where | None
    by: str

    def as_data(self) -> dict[str, Any]:
        """The JSON form of one link."""
        line = self.where.line if self.where else None
        return {"step": self.text, "stream": self.stream, "line": line, "by": self.by}


Chain = tuple[PathStep, ...]


def orders(schedule: Schedule, first: str, second: str) -> Chain | None:
    """The chain that orders ``first`` before ``second`` in every run, or None where nothing does.

    Instances are ``op``, ``op@3`` or ``op[3]`` (nested loops: ``op@3,1``). A name that stands for several instances
    stands for all of them: each must be ordered, and the chain is that of the first pair. Counts that are parameters
    are taken as just large enough. Raises :class:`~dagsched.diagnostics.ScheduleError` for an instance that never
    occurs.
    """
    run, firsts, seconds = find_instances(schedule, first, second)
    for a in firsts:
        for b in seconds:
            if a.index == b.index or not is_before(run.program, run.order, a.index, b.index):
                return None
    return find_chain(run, firsts[0], seconds[0])


def find_instances(
    schedule: Schedule, first: str, second: str, params: Mapping[str, int] | None = None
) -> tuple[Run, list[Node], list[Node]]:
    """A run in which both occur, and the instances that each name stands for; raises as :func:`orders` does.

    ``params`` fixes parameters; others are taken as just large enough.
    """
    wanted = [_parse(schedule, first), _parse(schedule, second)]
    run = _run_for(schedule, wanted, params or {})
    firsts, seconds = (list(_instances(schedule, run, *instance)) for instance in wanted)
    for (text, _), found in zip(wanted, (firsts, seconds), strict=True):
        if not found:
            raise _unknown(schedule, run, first if found is firsts else second, text)
    return run, firsts, seconds


def _parse(schedule: Schedule, text: str) -> tuple[str, tuple[int, ...]]:
    match = _INSTANCE.fullmatch(text.strip())
    assert match is not None
    values = match["at"] or match["brackets"]
    if values is None:
        return match["op"], ()
    return match["op"], tuple(int(value) for value in re.findall(r"-?\d+", values))


def _run_for(schedule: Schedule, wanted: list[tuple[str, tuple[int, ...]]], fixed: Mapping[str, int]) -> Run:
    """A run in which the instances occur, with counts that are parameters no larger than that takes."""
    params = [name for name in used_params(schedule) if name not in fixed]
    count = max([0, *(value for _, values in wanted for value in values)]) + MARGIN
    while True:
        env = {**dict.fromkeys(params, count), **fixed}
        try:
            run = run_schedule(schedule, env, MOST)
        except (TooManySteps, ExpressionError) as error:
            text = error.message if isinstance(error, ExpressionError) else f"it issues more than {MOST:,} steps"
            raise ScheduleError([Diagnostic("S408", f"the schedule cannot be followed: {text}")]) from error
        if all(any(True for _ in _instances(schedule, run, *instance)) for instance in wanted):
            return run
        if (
            not params
            or count_steps(schedule, {**dict.fromkeys(params, 4 * count), **fixed}) > MOST // 4
            or count > 256
        ):
            return run
        count *= 4


def _instances(schedule: Schedule, run: Run, op: str, values: tuple[int, ...]) -> Iterator[Node]:
    """The instances that a name stands for. One value in nested loops is that of the innermost loop."""
    for node in run.program.nodes:
        if node.action in WORK and name_of(node) == op:
            path = tuple(value for _, value in node.instance)
            if not values or path == values or path[-len(values) :] == values:
                yield node


def _unknown(schedule: Schedule, run: Run, text: str, op: str) -> ScheduleError:
    names = {name_of(node) for node in run.program.nodes if node.action in WORK}
    if op in names:
        values = [str(node.instance[-1][1]) for node in run.program.nodes if name_of_work(node) == op and node.path]
        having = "it stands outside all loops"
        if values:
            last = f" and end at `{op}@{values[-1]}`" if not used_params(schedule) else ""
            having = f"its iterations start at `{op}@{values[0]}`{last}"
        return ScheduleError(
            [
                Diagnostic(
                    "S410", f"`{text}` never occurs", source=schedule.source, notes=(having,), help=f"ask for `{op}`"
                )
            ]
        )
    guess = closest(op, names)
    some = ", ".join(f"`{name}`" for name in sorted(names)[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    meant = f"did you mean `{guess}`?" if guess else f"name one of {some}" if names else None
    return ScheduleError([Diagnostic("S410", f"the schedule has no op `{op}`", source=schedule.source, help=meant)])


def name_of_work(node: Node) -> str | None:
    """The name of a node of work, None for any other."""
    return name_of(node) if node.action in WORK else None


def find_chain(run: Run, first: Node, second: Node) -> Chain:
    """A shortest chain from one node to another that is certain to come after it."""
    nodes, clocks = run.program.nodes, run.order.clocks
    previous = _previous(run)

    def follows(index: int) -> bool:
        node = nodes[index]
        if node.thread == first.thread:
            return index >= first.index
        return (clocks[index] or {}).get(first.thread, 0) >= first.ordinal

    after: dict[int, tuple[int, str]] = {}
    todo = deque([second.index])
    seen = {second.index}
    while todo:
        index = todo.popleft()
        if index == first.index:
            break
        for before, by in _reasons(run, previous, index):
            if before not in seen and follows(before):
                seen.add(before)
                after[before] = (index, by)
                todo.append(before)
    if first.index not in after and first.index != second.index:
        return (_link(run, first, ""), _link(run, second, "in every interleaving, whoever comes first"))
    chain = [_link(run, first, "")]
    at = first.index
    while at != second.index:
        at, by = after[at]
        chain.append(_link(run, nodes[at], by))
    return tuple(chain)


def _previous(run: Run) -> list[int]:
    last = [-1] * len(run.program.threads)
    previous = []
    for node in run.program.nodes:
        previous.append(last[node.thread])
        last[node.thread] = node.index
    return previous


def _reasons(run: Run, previous: list[int], index: int) -> Iterator[tuple[int, str]]:
    """The nodes that a node comes after at once, each with the reason; the plainest reasons first."""
    nodes, links = run.program.nodes, run.links
    node = nodes[index]
    for before in links.after[index]:
        if node.action == "sync":
            yield before, "sync"
        elif nodes[before].action == "record" and nodes[before].key == node.key and node.key is not None:
            yield before, "a wait comes after its record"
        else:
            yield before, "the legacy default stream"
    for before in links.gates.get(index, (0, ()))[1]:
        yield before, "a wait comes after its record" if node.action == "wait" else "a take comes after its set"
    if previous[index] >= 0:
        stream = run.program.stream(node)
        yield previous[index], f"order of stream `{stream}`" if stream is not None else "order of the host"
    if node.thread != HOST and links.issued[index] >= 0:
        yield links.issued[index], "issued later by the host"


def _link(run: Run, node: Node, by: str) -> PathStep:
    return PathStep(node_text(run.program, node), run.program.stream(node), node.step.where, by)
