"""Which results ``executor.stream(...)`` yields: an op's return values, or copies of what a loop puts out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dagsched.diagnostics import closest
from dagsched.plan.expressions import Name
from dagsched.plan.model import Loop, Op, OpKind, Plan
from dagsched.run.errors import refuse


@dataclass(frozen=True, slots=True)
class Sink:
    """``op`` yields a result an iteration: what its function returned, or copies of ``buffers`` as it left them.

    ``depth`` is the longest ring of its loop.
    """

    op: str
    buffers: tuple[str, ...]
    depth: int


def find_sink(plan: Plan, sources: Iterable[str], wanted: str | None) -> Sink:
    """The sink of a resolved plan whose ``sources`` are fed by iterables; raises :class:`UsageError` (R108)."""
    homes = {op.name: item for item in plan.items if isinstance(item, Loop) for op in _body(item)}
    if wanted is not None:
        if wanted not in homes:
            near = closest(wanted, homes)
            headline = f"there is no op `{wanted}` in a loop, which could yield results"
            known = ", ".join(f"`{name}`" for name in homes) or "none"
            raise refuse("R108", headline, help=f"did you mean `{near}`?" if near else f"ops in loops are {known}")
        loop = homes[wanted]
        if next(op for op in _body(loop) if op.name == wanted).kind not in (OpKind.COMPUTE, OpKind.HOST):
            headline = f"op `{wanted}` calls no function, so that it yields no results"
            raise refuse("R108", headline, loop.where, plan.source, help="name a host or compute op")
        return Sink(wanted, (), _depth(plan, loop))
    loops = [item for item in plan.items if isinstance(item, Loop)]
    if not loops:
        raise refuse("R108", f"`{plan.name}` has no loop whose iterations could yield results", help="call run()")
    fed = [loop for loop in loops if loop.count in [Name(param) for param in sources]]
    loop = (fed or loops)[0]
    hosts = [op for op in _body(loop) if op.kind is OpKind.HOST]
    if hosts:
        return Sink(hosts[-1].name, (), _depth(plan, loop))
    for op in reversed(_body(loop)):
        names = tuple(a.buffer for a in op.accesses if a.mode.writes and plan.buffers[a.buffer].output)
        if names:
            return Sink(op.name, names, _depth(plan, loop))
    headline = f"loop `{loop.index}` yields no results: it has no host op, and writes no output"
    help_ = "add a host op, or mark a buffer that it writes as `output: true`"
    raise refuse("R108", headline, loop.where, plan.source, help=help_)


def _body(loop: Loop) -> list[Op]:
    return [op for op in loop.body if isinstance(op, Op)]


def _depth(plan: Plan, loop: Loop) -> int:
    return max((plan.buffers[a.buffer].ring.depth or 1 for op in _body(loop) for a in op.accesses), default=1)
