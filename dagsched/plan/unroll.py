"""Unroll loops inside loops: afterwards every loop holds ops only.

An inner loop ``j`` of constant count becomes its ops once per value of ``j``, named ``op.0``, ``op.1``, ...; the
meaning of the plan does not change, since the order of instances does not. ``after: [op]`` follows: from within the
same inner loop it names the same (or, with a distance, an earlier) value of ``j``, from outside all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.plan.expressions import Expr, Int, substitute
from dagsched.plan.model import Access, After, Loop, Op, Plan, Slice

MAX_OPS = 200_000
"""Unrolling that yields more ops than this is refused rather than left to run out of memory."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """One unrolled copy of an op: the op, the loops around it in the body, and their values."""

    op: Op
    loops: tuple[int, ...]
    values: tuple[int, ...]


def unroll_loops(plan: Plan) -> Plan:
    """Unroll all inner loops; raises :class:`PlanError` for a parametric inner count or too many ops."""
    items: list[Op | Loop] = []
    expanded: dict[str, list[_Copy]] = {}
    total = 0
    for item in plan.items:
        if isinstance(item, Op):
            expanded[item.name] = [_Copy(item, (), ())]
            total += 1
            continue
        copies: list[_Copy] = []
        _expand(plan, item.body, (), (), {}, copies)
        for copy in copies:
            expanded.setdefault(copy.op.name, []).append(copy)
    for item in plan.items:
        if isinstance(item, Op):
            items.append(_rename(expanded[item.name][0], expanded))
        else:
            body = []
            copies = []
            _expand(plan, item.body, (), (), {}, copies)
            body = [_rename(copy, expanded) for copy in copies]
            items.append(replace(item, body=tuple(body)))
    return replace(plan, items=tuple(items))


def _expand(
    plan: Plan,
    body: tuple[Op | Loop, ...],
    loops: tuple[int, ...],
    values: tuple[int, ...],
    indices: dict[str, int],
    out: list[_Copy],
) -> None:
    for item in body:
        if isinstance(item, Op):
            if len(out) >= MAX_OPS:
                raise PlanError([_too_many(plan, item)])
            out.append(_Copy(_with_indices(item, indices), loops, values))
            continue
        if not isinstance(item.count, Int):
            raise PlanError([_parametric(plan, item)])
        if len(out) + item.count.value * _size(item.body) > MAX_OPS:
            raise PlanError([_too_many(plan, next(_ops(item.body)))])
        for value in range(item.count.value):
            _expand(plan, item.body, (*loops, id(item)), (*values, value), {**indices, item.index: value}, out)


def _size(body: tuple[Op | Loop, ...]) -> int:
    """How many ops a body unrolls to (at least one for each op, where a count is not known)."""
    return sum(
        1 if isinstance(item, Op) else _size(item.body) * (item.count.value if isinstance(item.count, Int) else 1)
        for item in body
    )


def _ops(body: tuple[Op | Loop, ...]) -> Iterator[Op]:
    for item in body:
        if isinstance(item, Op):
            yield item
        else:
            yield from _ops(item.body)


def _with_indices(op: Op, indices: dict[str, int]) -> Op:
    if not indices:
        return op
    env: dict[str, Expr] = {name: Int(value) for name, value in indices.items()}
    return replace(
        op, accesses=tuple(_substitute(access, env) for access in op.accesses), indices=tuple(indices.items())
    )


def _substitute(access: Access, env: dict[str, Expr]) -> Access:
    version = None if access.version is None else substitute(access.version, env)
    region = tuple(
        Slice(
            None if part.lo is None else substitute(part.lo, env),
            None if part.hi is None else substitute(part.hi, env),
        )
        for part in access.region
    )
    return replace(access, version=version, region=region)


def _name(copy: _Copy) -> str:
    return ".".join([copy.op.name, *(str(value) for value in copy.values)])


def _rename(copy: _Copy, expanded: dict[str, list[_Copy]]) -> Op:
    after: list[After] = []
    for edge in copy.op.after:
        after.extend(_targets(copy, edge, expanded.get(edge.op, [])))
    return replace(copy.op, name=_name(copy), after=tuple(after))


def _targets(copy: _Copy, edge: After, candidates: list[_Copy]) -> list[After]:
    """Which copies of ``edge.op`` a copy comes after: those of the same values in the inner loops that both are in."""
    if not copy.values or not candidates or not candidates[0].values:
        return [replace(edge, op=_name(candidate)) for candidate in candidates]
    shared = 0
    for mine, theirs in zip(copy.loops, candidates[0].loops, strict=False):
        if mine != theirs:
            break
        shared += 1
    if shared == 0:
        return [replace(edge, op=_name(candidate)) for candidate in candidates]
    wanted = (*copy.values[: shared - 1], copy.values[shared - 1] - edge.distance)
    return [After(_name(candidate), 0, edge.where) for candidate in candidates if candidate.values[:shared] == wanted]


def _parametric(plan: Plan, loop: Loop) -> Diagnostic:
    return Diagnostic(
        code="P201",
        headline=f"loop `{loop.index}` inside a loop has a count that is not a constant",
        where=loop.where,
        source=plan.source,
        notes=("a loop inside a loop is unrolled, so its count must be known when the plan is compiled",),
        help="give the inner loop a constant count, or make it a loop of its own at the top level",
    )


def _too_many(plan: Plan, op: Op) -> Diagnostic:
    return Diagnostic(
        code="P202",
        headline=f"unrolling the inner loops yields more than {MAX_OPS:,} ops",
        where=op.where,
        source=plan.source,
        help="lower the inner loop's count, or make it the outer loop",
    )
