"""A run's summary as text: how long, against what was predicted and what is possible, and where the time went."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dagsched.run.usage import Usage
from dagsched.view.terminal import PLAIN, Paint, escape, pad
from dagsched.view.units import time_text

if TYPE_CHECKING:
    from dagsched.run.result import Result

_MOST_WAITS = 6


def usage_text(result: Result, paint: Paint = PLAIN) -> str:
    """The summary; one fact a line, shares in per cent."""
    usage = result.usage
    rows = [("run", _run_line(result))]
    rows += _predicted_rows(result)
    if usage.window:
        rows.append(("transfers", _kinds_line(usage)))
        rows += _table("engines", usage.engines)
        rows += _table("streams", usage.streams)
        at_once = f"{usage.overlap:.2f} ops at once on average while any runs; two or more {_per_cent(usage.two)} of it"
        rows.append(("overlap", at_once))
        rows += _wait_rows(usage)
        rows += [("note", note) for note in result.trace.timeline.notes]
    lines = [f"{paint(escape(result.name), 'bold')} on {escape(result.backend)}"]
    seen = ""
    for name, text in rows:
        lines.append(f"  {pad('' if name == seen else name, 10)} {text}")
        seen = name
    return "\n".join(lines) + "\n"


def result_data(result: Result) -> dict[str, Any]:
    """The summary as plain data; times in seconds, shares from 0 to 1."""
    usage = asdict(result.usage)
    return {
        "dagsched": "run/1",
        "plan": result.name,
        "device": result.compiled.device.name,
        "backend": result.backend,
        "counts": result.counts,
        "iterations": result.iterations,
        "seconds": result.seconds,
        "predicted": result.compiled.schedule.predicted,
        **usage,
        "waits": list(usage["waits"]),
    }


def _run_line(result: Result) -> str:
    if not result.iterations:
        return time_text(result.seconds)
    each = result.seconds / result.iterations
    rate = f"{1 / each:,.4g} a second" if each else ""
    count = "1 iteration" if result.iterations == 1 else f"{result.iterations:,} iterations"
    return f"{count} in {time_text(result.seconds)}: {time_text(each)} each, {rate}"


def _predicted_rows(result: Result) -> list[tuple[str, str]]:
    predicted = result.compiled.schedule.predicted or {}
    device = escape(result.compiled.device.name)
    if "initiation_interval" in predicted:
        rows = [("predicted", f"{time_text(predicted['initiation_interval'])} an iteration for {device}")]
        measured, wanted = result.usage.interval, float(predicted["initiation_interval"])
        if measured:
            text = f"{time_text(measured)} an iteration in the steady state"
            rows.append((_label(result), text + (f", {_per_cent(wanted / measured)} of that rate" if wanted else "")))
    elif "makespan" in predicted:
        wanted = float(predicted["makespan"])
        text = f"{time_text(wanted)} for {device}"
        rows = [("predicted", text)]
        if result.seconds and wanted:
            rows.append(
                (_label(result), f"{time_text(result.seconds)}, {_per_cent(wanted / result.seconds)} of that rate")
            )
    else:
        return []
    binds = f" ({escape(str(predicted['binds']))})" if predicted.get("binds") else ""
    return [*rows, ("bound", f"{time_text(float(predicted['bound']))}{binds}")]


def _label(result: Result) -> str:
    return "simulated" if result.backend == "simulate" else "measured"


def _kinds_line(usage: Usage) -> str:
    """H2D, compute and D2H in milliseconds and per cent of the three together, as tutorials state it."""
    names = {"h2d": "H2D", "compute": "compute", "d2h": "D2H"}
    total = sum(usage.kinds[kind] for kind in names)
    parts = [
        f"{text} {usage.kinds[kind] * 1e3:,.2f} ms ({_per_cent(usage.kinds[kind] / total if total else 0.0)})"
        for kind, text in names.items()
    ]
    extra = [f"{text} {usage.kinds[kind] * 1e3:,.2f} ms" for kind, text in (("d2d", "D2D"), ("host", "host"))
             if usage.kinds[kind]]  # fmt: skip
    return ", ".join(parts) + (f"; beside them {', '.join(extra)}" if extra else "")


def _table(title: str, shares: dict[str, float]) -> list[tuple[str, str]]:
    width = max((len(escape(name)) for name in shares), default=0)
    return [(title, f"{pad(escape(name), width)}  busy {_per_cent(share)}") for name, share in shares.items()]


def _wait_rows(usage: Usage) -> list[tuple[str, str]]:
    rows = [
        (
            "waits",
            f"{escape(waited.op)} for {escape(waited.other)}: {time_text(waited.seconds)} in {waited.times:,} waits",
        )
        for waited in usage.waits[:_MOST_WAITS]
    ]
    rest = usage.waits[_MOST_WAITS:]
    if rest:
        rows.append(("waits", f"and {len(rest)} more: {time_text(sum(waited.seconds for waited in rest))}"))
    return rows


def _per_cent(share: float) -> str:
    return f"{share * 100:.1f} %"
