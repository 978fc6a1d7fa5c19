"""How long an op takes: the time that the plan states, else what size, bandwidth and latency give.

An op has one duration for all iterations: regions that move with the loop are measured in iteration 0, buffers whose
size varies at their capacity. Where neither a time nor a bandwidth is known the duration is 0 and marked as unknown,
so that a report can say what its figures leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from dagsched.cost.engines import engine_capacity, engine_for, engine_share
from dagsched.cost.model import Device, Engine
from dagsched.plan.expressions import names_in
from dagsched.plan.model import Access, Op, OpKind, Plan
from dagsched.plan.regions import box_of

_MANY = 1 << 62
"""What a parameter without a default counts as: ``min(i*32+32, rows)`` is then a whole chunk in iteration 0."""


@dataclass(frozen=True, slots=True)
class OpCost:
    """What one instance of an op costs.

    ``seconds`` on ``share`` units of ``engine``'s capacity; ``known`` is False where nothing says how long the op
    takes (``seconds`` is 0 then). ``blocks``: the call returns only when the op has finished (pageable memory).
    """

    engine: Engine
    seconds: float
    known: bool = True
    share: int = 1
    blocks: bool = False


def op_seconds(op: Op, plan: Plan, device: Device) -> float:
    """Seconds that an op takes on its engine; 0 where that is not known (see :func:`op_cost`)."""
    return op_cost(op, plan, device).seconds


def op_cost(op: Op, plan: Plan, device: Device) -> OpCost:
    """Engine, duration and share of an op; raises :class:`PlanError` as :func:`engine_for` does."""
    engine = engine_for(op, plan, device)
    seconds, known = _duration(op, plan, engine)
    share = min(engine_share(op, engine), engine_capacity(engine))
    blocks = op.kind is OpKind.COPY and any(plan.buffers[access.buffer].pageable for access in op.accesses)
    return OpCost(engine, seconds, known, share, blocks)


def op_costs(plan: Plan, device: Device) -> dict[str, OpCost]:
    """The cost of every op of a plan, by name."""
    return {op.name: op_cost(op, plan, device) for op in plan.ops()}


def moved_bytes(access: Access, plan: Plan) -> int:
    """Bytes that an access touches in iteration 0 (at most the whole buffer)."""
    buffer = plan.buffers[access.buffer]
    env = {name: _MANY if value is None else value for name, value in plan.params.items()}
    bounds = (bound for part in access.region for bound in (part.lo, part.hi) if bound is not None)
    for name in {name for bound in bounds for name in names_in(bound)}:
        env.setdefault(name, 0)
    box = box_of(access, buffer, env)
    widths = (min(max(hi - lo, 0), extent) for (lo, hi), extent in zip(box, buffer.extents, strict=True))
    return prod(widths) * buffer.itemsize


def _duration(op: Op, plan: Plan, engine: Engine) -> tuple[float, bool]:
    if op.time is not None:
        return op.time, True
    if op.kind not in (OpKind.COPY, OpKind.FILL) or engine.bandwidth is None:
        return 0.0, False
    return engine.latency + moved_bytes(op.accesses[0], plan) / engine.bandwidth, True
