"""How long an op takes: the time that the plan states, else what size, bandwidth and latency give, or its work.

Work is timed by the roofline: the longer of its operations at the engine's peak (of the cores that the op has) and its
bytes at the bandwidth of device memory, which all cores share and one core can use up.

An op has one duration for all iterations: regions that move with the loop are measured in iteration 0, buffers whose
size varies at their capacity. Where neither a time nor a bandwidth is known the duration is 0 and marked as unknown,
so that a report can say what its figures leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from dagsched.cost.engines import engine_capacity, engine_for, engine_share
from dagsched.cost.model import Device, Engine
from dagsched.diagnostics import Diagnostic, PlanError, one_a_place
from dagsched.plan.expressions import names_in
from dagsched.plan.model import Access, Op, OpKind, Plan, Work
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
    seconds, known = _duration(op, plan, engine, device)
    share = min(engine_share(op, engine), engine_capacity(engine))
    blocks = op.kind is OpKind.COPY and any(plan.buffers[access.buffer].pageable for access in op.accesses)
    return OpCost(engine, seconds, known, share, blocks)


def op_costs(plan: Plan, device: Device) -> dict[str, OpCost]:
    """The cost of every op of a plan, by name; raises :class:`PlanError` with all that :func:`op_cost` finds wrong."""
    costs: dict[str, OpCost] = {}
    findings: list[Diagnostic] = []
    for op in plan.ops():
        try:
            costs[op.name] = op_cost(op, plan, device)
        except PlanError as error:
            findings += error.diagnostics
    if findings:
        raise PlanError(one_a_place(findings))
    return costs


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


def _duration(op: Op, plan: Plan, engine: Engine, device: Device) -> tuple[float, bool]:
    if op.time is not None:
        return op.time, True
    if op.work is not None:
        return _roofline(op, op.work, plan, engine, device), True
    if op.kind not in (OpKind.COPY, OpKind.FILL) or engine.bandwidth is None:
        return 0.0, False
    return engine.latency + moved_bytes(op.accesses[0], plan) / engine.bandwidth, True


def _roofline(op: Op, work: Work, plan: Plan, engine: Engine, device: Device) -> float:
    """Seconds that work takes at the engine's peaks; raises :class:`PlanError` for peaks that are not known (D123)."""
    part = Fraction(min(engine_share(op, engine), engine_capacity(engine)), engine_capacity(engine))
    peak = _peak(work, engine)
    if work.flop and peak is None and engine.flops and work.dtype is None:
        raise PlanError([_no_dtype(op, plan, engine)])
    lacking = ([_flops_entry(work)] if work.flop and peak is None else []) + (
        ["memory_bandwidth: ... GB/s"] if work.bytes and engine.memory_bandwidth is None else []
    )
    if lacking:
        raise PlanError([_no_peak(op, work, plan, engine, device, lacking)])
    seconds = work.flop / (peak * float(part)) if work.flop and peak else 0.0
    if work.bytes and engine.memory_bandwidth is not None:
        seconds = max(seconds, work.bytes / engine.memory_bandwidth)
    return engine.latency + seconds


def _peak(work: Work, engine: Engine) -> float | None:
    """The peak for the work's dtype, or the only one where it states none, or that of any dtype."""
    if work.dtype is None and len(engine.flops) == 1:
        return next(iter(engine.flops.values()))
    return engine.flops.get(work.dtype or "", engine.flops.get(""))


def _flops_entry(work: Work) -> str:
    return f"flops: {{{work.dtype}: ... TFLOP/s}}" if work.dtype else "flops: ... TFLOP/s"


def _no_dtype(op: Op, plan: Plan, engine: Engine) -> Diagnostic:
    known = ", ".join(f"`{dtype}`" for dtype in engine.flops)
    headline = f"the peak of engine `{engine.name}` depends on the dtype, and `{op.name}` does not say which"
    help_ = f"write `work: {{dtype: {next(iter(engine.flops))}, ...}}`"
    return Diagnostic("D123", headline, op.where, plan.source, notes=(f"peaks: {known}",), help=help_)


def _no_peak(op: Op, work: Work, plan: Plan, engine: Engine, device: Device, lacking: list[str]) -> Diagnostic:
    """What the profile lacks, and how to get one that has it: a shipped profile is no file that users change."""
    keys = " and no ".join(f"`{entry.partition(':')[0]}`" for entry in lacking)
    if work.flop and work.dtype and engine.flops and len(lacking) == 1 and lacking[0].startswith("flops"):
        keys = f"peak for `{work.dtype}` under `flops`"
    headline = f"`{op.name}` states its work, and engine `{engine.name}` of `{device.name}` has no {keys}"
    entries = " and ".join(f"`{entry}`" for entry in lacking)
    notes: tuple[str, ...] = ()
    help_ = f"add {entries} to `{engine.name}` under `device:`, or give the op a `time`"
    if isinstance(plan.device, str):
        help_ = f"add {entries} to `{engine.name}` in `{plan.device}`, or give the op a `time`"
    if isinstance(plan.device, str) and plan.device == device.name:
        notes = (f"a profile of your own: `dagsched devices {device.name} --format yaml > my-card.yaml`",)
        help_ = f"add {entries} to `{engine.name}` there and write `device: ./my-card.yaml`, or give the op a `time`"
    return Diagnostic("D123", headline, op.where, plan.source, notes=notes, help=help_)
