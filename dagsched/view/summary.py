"""What ``compile`` says about its result: ops, streams, waits, handles, rings, memory, proof, as text and as data."""

from __future__ import annotations

from typing import Any

from dagsched.compiled import Compiled
from dagsched.plan.expressions import Expr, Int, expression_text
from dagsched.plan.model import Loop, Op, Place, Plan
from dagsched.schedule.model import Stream
from dagsched.view.annotations import diagnostic_data
from dagsched.view.terminal import PLAIN, Paint, clip, escape, pad, width_of, wrap_names
from dagsched.view.units import interval_text, rate_text, size_text

_INDENT = 13

_NAMED = 60
"""Ops of a stream that the text names."""


def memory_by_place(plan: Plan) -> dict[str, int]:
    """Bytes of all slots of all buffers of a resolved plan, by place."""
    total = {place.value: 0 for place in Place}
    for buffer in plan.buffers.values():
        total[buffer.place.value] += buffer.size * (buffer.ring.depth or 1)
    return total


def summary_data(compiled: Compiled) -> dict[str, Any]:
    """The summary as plain data; sizes in bytes, times in seconds."""
    plan, schedule = compiled.resolved, compiled.schedule
    return {
        "dagsched": "compile/1",
        "plan": plan.name,
        "device": compiled.device.name,
        "policy": compiled.policy,
        "ops": len(compiled.hazards.ops),
        "loops": [
            {"index": item.index, "count": _count_data(item.count), "ops": len(item.body)}
            for item in plan.items
            if isinstance(item, Loop)
        ],
        "streams": [
            {"name": name, "engine": stream.engine, "host": stream.host, "ops": _ops_on(compiled, name)}
            for name, stream in _used_streams(compiled).items()
        ],
        "hazards": len(compiled.hazards.entries),
        "waits": {"found": compiled.waits_found, "kept": compiled.waits_kept, **_spared_data(compiled)},
        "handles": compiled.handles,
        "events": {event.name: event.ring or 1 for event in schedule.events.values()},
        "rings": {buffer.name: depth for buffer in plan.buffers.values() if (depth := buffer.ring.depth or 1) > 1},
        "memory": memory_by_place(plan),
        "proof": {
            "holds": compiled.proof.holds,
            "counts": compiled.proof.counts,
            "hazards": compiled.proof.hazards,
        },
        "predicted": schedule.predicted,
        "shifts": compiled.shifts,
        "unshifted": compiled.unshifted,
        "warnings": [diagnostic_data(warning) for warning in compiled.warnings],
    }


def _count_data(count: Expr) -> int | str:
    return count.value if isinstance(count, Int) else expression_text(count)


def _used_streams(compiled: Compiled) -> dict[str, Stream]:
    """Streams with ops, those that the schedule declares first and in its order."""
    used = set(compiled.streams.values())
    declared = {name: stream for name, stream in compiled.schedule.streams.items() if name in used}
    return declared | {name: Stream(name) for name in sorted(used - declared.keys())}


def _ops_on(compiled: Compiled, stream: str) -> list[str]:
    return [op for op in compiled.hazards.ops if compiled.streams.get(op) == stream]


def summary_text(compiled: Compiled, *, paint: Paint = PLAIN, width: int = 100) -> str:
    """The summary for people, at most ``width`` cells wide where names allow."""
    plan, schedule = compiled.resolved, compiled.schedule
    title = f"{paint(escape(plan.name), 'bold')}: {_shape(plan)} on {escape(compiled.device.name)}"
    rows = [
        ("streams", _streams_text(compiled, width)),
        ("waits", _waits_text(compiled)),
        ("events", _events_text(compiled)),
        ("rings", _rings_text(compiled, width)),
        ("memory", ", ".join(f"{place} {size_text(size)}" for place, size in memory_by_place(plan).items())),
    ]
    if schedule.predicted:
        rows.append(("predicted", f"\n{' ' * _INDENT}".join(predicted_lines(schedule.predicted))))
    if compiled.shifts:
        rows.append(("pipeline", _pipeline_text(compiled, width)))
    proof = compiled.proof
    verdict = paint("holds", "green") if proof.holds else paint("FAILS", "red")
    rows.append(("proof", f"{verdict} for {proof.counts}: {_counted(proof.hazards, 'hazard')} ordered, nothing blocks"))
    lines = [title, *(f"  {pad(name, _INDENT - 2)}{text}" for name, text in rows if text)]
    return "\n".join(lines) + "\n"


def _shape(plan: Plan) -> str:
    """``7 ops, 6 of them in loop i of frames iterations``."""
    total = sum(1 for _ in plan.ops())
    text = _counted(total, "op")
    for loop in (item for item in plan.items if isinstance(item, Loop)):
        inside = sum(1 for item in loop.body if isinstance(item, Op))
        share = "all" if inside == total else str(inside)
        text += f", {share} in loop {escape(loop.index)} (count {escape(expression_text(loop.count))})"
    return text


def _streams_text(compiled: Compiled, width: int) -> str:
    streams = _used_streams(compiled)
    names = {name: escape(name) for name in streams}
    engines = {name: escape(stream.engine or ("host" if stream.host else "")) for name, stream in streams.items()}
    first = max(map(width_of, names.values()), default=0)
    second = max(map(width_of, engines.values()), default=0)
    indent = _INDENT + 2 + first + 2 + second + 2
    lines = [f"{len(streams)}, policy {escape(compiled.policy)}"]
    members: dict[str, list[str]] = {name: [] for name in streams}
    for op in compiled.hazards.ops:
        if op in compiled.streams:
            members[compiled.streams[op]].append(escape(op))
    for name, ops_on in members.items():
        more = [f"and {len(ops_on) - _NAMED:,} more"] if len(ops_on) > _NAMED else []
        ops = wrap_names([*ops_on[:_NAMED], *more], width, indent)
        lines.append(f"{' ' * (_INDENT + 2)}{pad(names[name], first)}  {pad(engines[name], second)}  {ops}")
    return "\n".join(lines)


def _events_text(compiled: Compiled) -> str:
    """Handles, events and the longest ring of handles."""
    events = compiled.schedule.events.values()
    if not events:
        return "no handles"
    text = f"{_counted(compiled.handles, 'handle')} for {_counted(len(events), 'event')}"
    deepest = max(event.ring or 1 for event in events)
    return f"{text}, in rings of up to {deepest}" if deepest > 1 else text


def _rings_text(compiled: Compiled, width: int) -> str:
    rings = [
        f"{escape(name)} {buffer.ring.depth}"
        for name, buffer in compiled.resolved.buffers.items()
        if (buffer.ring.depth or 1) > 1
    ]
    if rings:
        return wrap_names(rings, width, _INDENT)
    return "none: one slot each is enough" if compiled.rings else "none: every buffer has one slot"


def _waits_text(compiled: Compiled) -> str:
    text = f"{compiled.waits_kept} kept of {_counted(compiled.waits_found, 'cross-stream hazard')} found"
    if compiled.spared is None:
        return text
    sure = "no schedule on these streams has fewer" if compiled.spared.method == "exact" else "found greedily"
    return f"{text}, {compiled.spared.before} before order was added ({sure})"


def _spared_data(compiled: Compiled) -> dict[str, Any]:
    if compiled.spared is None:
        return {}
    return {"without_added_order": compiled.spared.before, "method": compiled.spared.method}


def _pipeline_text(compiled: Compiled, width: int) -> str:
    """Which ops are issued late, and what it would take if they were not."""
    late = [
        f"{escape(op)} {_counted(rounds, 'iteration')} late" if rounds > 1 else f"{escape(op)} one iteration late"
        for op, rounds in compiled.shifts.items()
    ]
    text = wrap_names(late, width, _INDENT)
    if compiled.unshifted is None:
        return text
    looped = "initiation_interval" in (compiled.schedule.predicted or {})
    return f"{text}\n{' ' * _INDENT}otherwise {interval_text(compiled.unshifted)}{'/iteration' if looped else ''}"


def predicted_lines(predicted: dict[str, Any]) -> list[str]:
    """What it takes and the limit, how often a second (or one after another), what holds it up, what is not known."""
    interval, makespan = predicted.get("initiation_interval"), predicted.get("makespan")
    took = makespan if makespan is not None else interval
    if took is None:
        return []
    unknown: list[str] = []
    if names := predicted.get("unknown"):
        unknown.append(f"no time is given for {clip(escape(', '.join(names)), 60)}: 0 is assumed")
    if not took:
        return ["nothing takes time", *unknown]
    first = interval_text(took) + ("/iteration" if makespan is None else "")
    if predicted.get("estimated"):
        first += " (an estimate)"
    if predicted.get("bound"):
        binds = f" ({escape(str(predicted['binds']))})" if predicted.get("binds") else ""
        first += f", limit {interval_text(predicted['bound'])}{binds}"
        if predicted.get("optimal"):
            first += ", proved optimal"
    lines = [first]
    serial = predicted.get("serial")
    if serial:
        overlaps = took < (1 - 1e-9) * serial
        if makespan is not None:
            lines.append(f"one after another {interval_text(serial)}")
        else:
            lines.append(f"{rate_text(took)} iterations/s, one after another {rate_text(serial)}")
        if not overlaps:
            lines[-1] += ": nothing overlaps"
    if predicted.get("held"):
        lines.append(f"held up by {escape(str(predicted['held']))}")
    return [*lines, *unknown]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
