"""Unroll loops inside loops: afterwards every loop holds ops only.

An inner loop ``j`` of constant count becomes its ops once per value of ``j``, named ``op.0``, ``op.1``, ...; the
meaning of the plan does not change, since the order of instances does not. ``after: [op]`` follows: from within the
same inner loop it names the same (or, with a distance, an earlier) value of ``j``, from outside all of them.
"""

from __future__ import annotations

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


_Prefixes = dict[tuple[str, int], dict[tuple[int, ...], list[_Copy]]]
"""The copies of an op by their values in so many of the outer loops."""


def unroll_loops(plan: Plan) -> Plan:
    """Unroll all inner loops; raises :class:`PlanError` for a parametric inner count or too many ops."""
    _require_few(plan)
    copies: list[_Copy] = []
    ends = []
    for item in plan.items:
        _expand(plan, (item,) if isinstance(item, Op) else item.body, (), (), {}, copies)
        ends.append(len(copies))
    expanded: dict[str, list[_Copy]] = {}
    for copy in copies:
        expanded.setdefault(copy.op.name, []).append(copy)
    prefixes: _Prefixes = {}
    ops = tuple(_rename(copy, expanded, prefixes) for copy in copies)
    items: list[Op | Loop] = []
    for item, first, end in zip(plan.items, (0, *ends), ends, strict=False):
        items.append(ops[first] if isinstance(item, Op) else replace(item, body=ops[first:end]))
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
            out.append(_Copy(_with_indices(item, indices), loops, values))
            continue
        if not isinstance(item.count, Int):
            raise PlanError([_parametric(plan, item)])
        rounds = item.count.value if _size(item.body) else min(1, item.count.value)  # once is enough for no ops
        for value in range(rounds):
            _expand(plan, item.body, (*loops, id(item)), (*values, value), {**indices, item.index: value}, out)


def _require_few(plan: Plan) -> None:
    """Refuse inner loops before anything is unrolled: the first with which there are too many ops."""
    total = 0
    for item in plan.items:
        for inner in (item,) if isinstance(item, Op) else item.body:
            total += _size((inner,))
            if total > MAX_OPS and isinstance(inner, Loop):
                raise PlanError([_too_many(plan, inner)])


def _size(body: tuple[Op | Loop, ...]) -> int:
    """How many ops a body unrolls to (at least one for each op, where a count is not known)."""
    return sum(
        1 if isinstance(item, Op) else _size(item.body) * (item.count.value if isinstance(item.count, Int) else 1)
        for item in body
    )


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


def _rename(copy: _Copy, expanded: dict[str, list[_Copy]], prefixes: _Prefixes) -> Op:
    after: list[After] = []
    for edge in copy.op.after:
        after.extend(_targets(copy, edge, expanded.get(edge.op, []), prefixes))
    return replace(copy.op, name=_name(copy), after=tuple(after))


def _targets(copy: _Copy, edge: After, candidates: list[_Copy], prefixes: _Prefixes) -> list[After]:
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
    if (edge.op, shared) not in prefixes:
        known = prefixes[edge.op, shared] = {}
        for candidate in candidates:
            known.setdefault(candidate.values[:shared], []).append(candidate)
    return [After(_name(candidate), 0, edge.where) for candidate in prefixes[edge.op, shared].get(wanted, ())]


def _parametric(plan: Plan, loop: Loop) -> Diagnostic:
    return Diagnostic(
        code="P201",
        headline=f"loop `{loop.index}` inside a loop has a count that is not a constant",
        where=loop.where,
        source=plan.source,
        notes=("a loop inside a loop is unrolled, so its count must be known when the plan is compiled",),
        help="give the inner loop a constant count, or make it a loop of its own at the top level",
    )


def _too_many(plan: Plan, loop: Loop) -> Diagnostic:
    return Diagnostic(
        code="P202",
        headline=f"unrolling loop `{loop.index}` inside a loop makes more than {MAX_OPS:,} ops of the plan",
        where=loop.where,
        source=plan.source,
        help="lower the inner loop's count, or make it the outer loop",
    )
