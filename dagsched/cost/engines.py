"""Which engine of a device runs an op.

Invariant: every op of a plan gets an engine on every device. Where a device has none of the kind that an op needs (an
inline profile with compute lanes only, say, under a plan with copies), an implicit one of a single lane stands in,
without bandwidth or latency: its ops keep their order among themselves and, unless they state a time, cost nothing.
"""

from __future__ import annotations

from dagsched.cost.model import Device, Engine, EngineKind
from dagsched.diagnostics import Diagnostic, PlanError, closest
from dagsched.plan.model import Op, OpKind, Place, Plan


def engine_for(op: Op, plan: Plan, device: Device) -> Engine:
    """The engine that runs an op: the one it names, else the device's first of the kind that the op needs.

    A copy needs the kind of its direction (host to host: a host engine), a compute op ``compute``, a host op ``host``,
    a fill ``d2d`` on device memory (``compute`` where there is none) and ``host`` on host memory. A missing kind
    yields an implicit engine of one lane, without bandwidth or latency, which is not in ``device.engines``.
    Raises :class:`PlanError` where an op names an engine that the device lacks (D120) or that cannot run it (D121),
    or asks for more cores than there are (D122).
    """
    kind = engine_kind(op, plan)
    if op.engine is not None:
        engine = _named(op, plan, device)
        _require_fit(op, plan, engine)
        return engine
    found = device.default_engine(kind)
    if found is None and op.kind is OpKind.FILL and kind == "d2d":
        found = device.default_engine("compute")
    if found is None:
        return _implicit(kind, device)
    _require_fit(op, plan, found)
    return found


def engine_kind(op: Op, plan: Plan) -> EngineKind:
    """The kind of engine that an op needs, whether or not a device has it."""
    if op.kind is OpKind.COMPUTE:
        return "compute"
    if op.kind is OpKind.HOST:
        return "host"
    places = [plan.buffers[access.buffer].place for access in op.accesses]
    if op.kind is OpKind.FILL:
        return "d2d" if places[0] is Place.DEVICE else "host"
    kinds: dict[tuple[Place, Place], EngineKind] = {
        (Place.HOST, Place.DEVICE): "h2d",
        (Place.DEVICE, Place.HOST): "d2h",
        (Place.DEVICE, Place.DEVICE): "d2d",
        (Place.HOST, Place.HOST): "host",
    }
    return kinds[places[0], places[1]]


def engine_capacity(engine: Engine) -> int:
    """How much an engine holds at once: its cores where it has any, else its lanes."""
    return engine.cores or engine.lanes


def engine_share(op: Op, engine: Engine) -> int:
    """How much of an engine's capacity an op takes.

    A lane is an equal part of the cores: an op that does not state ``cores`` takes one lane, which is the whole of an
    engine with one lane; an op that states them takes just those. An engine without cores counts lanes only.
    """
    if engine.cores is None:
        return 1
    return engine.cores // engine.lanes if op.cores is None else op.cores


def _named(op: Op, plan: Plan, device: Device) -> Engine:
    assert op.engine is not None
    engine = device.engines.get(op.engine)
    if engine is None:
        near = closest(op.engine, device.engines)
        known = ", ".join(f"`{name}`" for name in device.engines)
        headline = f"op `{op.name}` names engine `{op.engine}`, which device `{device.name}` does not have"
        note = f"`{device.name}` has {known}"
        raise PlanError([_finding("D120", headline, op, plan, note, f"write `engine: {near}`" if near else None)])
    host_op = op.kind is OpKind.HOST or (op.kind is not OpKind.COMPUTE and engine_kind(op, plan) == "host")
    if host_op != (engine.kind == "host"):
        needed = "host" if host_op else "device"
        headline = f"op `{op.name}` runs on the {needed}, and engine `{op.engine}` is of kind `{engine.kind}`"
        fitting = device.default_engine(engine_kind(op, plan))
        help_ = f"write `engine: {fitting.name}`" if fitting else None
        raise PlanError([_finding("D121", headline, op, plan, None, help_)])
    return engine


def _require_fit(op: Op, plan: Plan, engine: Engine) -> None:
    if op.cores is not None and engine.cores is not None and op.cores > engine.cores:
        headline = f"op `{op.name}` needs {op.cores} cores, and engine `{engine.name}` has {engine.cores}"
        raise PlanError([_finding("D122", headline, op, plan, None, f"write `cores: {engine.cores}`")])


def _implicit(kind: EngineKind, device: Device) -> Engine:
    name: str = kind
    while name in device.engines:
        name += "-implicit"
    return Engine(name, kind)


def _finding(code: str, headline: str, op: Op, plan: Plan, note: str | None, help_: str | None) -> Diagnostic:
    return Diagnostic(code, headline, op.where, plan.source, notes=(note,) if note else (), help=help_)
