"""``report.html``: what came of a compilation, on one page that loads nothing: figures, timeline, graph, waits, proof.

Equal plans give equal bytes on one machine (the graph's layout is that of the Graphviz installed). A part that would be
too large to read is left out and says how to get it; a machine without a renderer gets the page without the graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dagsched.compiled import Compiled
from dagsched.diagnostics import DagschedError, Diagnostic
from dagsched.plan.expressions import Int, add, expression_text, names_in
from dagsched.plan.model import Loop
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, Schedule
from dagsched.timeline import Timeline
from dagsched.view.matrix import matrix_cells
from dagsched.view.summary import memory_by_place, summary_data
from dagsched.view.terminal import clip, escape
from dagsched.view.timeline_html import PAGE_STYLE, ZOOM, busy_table, html, zoomable
from dagsched.view.units import interval_text, size_text

MAX_OPS = 60
"""Ops beyond which graph and matrix are left out."""
MAX_WAITS = 300
MAX_COMMANDS = 20_000
"""Commands beyond which only the first iterations are simulated."""
READABLE = 32
"""More iterations of a loop than these are too thin to see: fewer are shown."""

_ITERATIONS = 12

_STYLE = """\
.facts{display:grid;grid-template-columns:max-content 1fr;gap:3px 18px;margin:14px 0}
.facts dt{color:var(--dim)}.facts dd{margin:0}
.ok{color:#15803d;font-weight:600}.bad{color:#b91c1c;font-weight:600}
.warning{border-left:3px solid #d97706;padding:2px 0 2px 12px;margin:10px 0}
.card{background:#fff;padding:6px}.card svg{max-width:max(100%,760px);height:auto}
.matrix td,.matrix th{padding:3px 10px;border:1px solid var(--line);text-align:center;font-size:13px;white-space:nowrap}
.matrix th{background:var(--soft);font-weight:500}.matrix .RAW{color:#2563eb}.matrix .WAR{color:#c2410c}
.matrix .WAW{color:#7c3aed}.matrix td span{display:block}
.waits td{font-size:14px}.waits td:first-child,.waits th:first-child{padding-left:12px}
.waits th,.waits td:first-child{white-space:nowrap}
.waits td:last-child{min-width:14em}.waits td,.waits code{overflow-wrap:normal}
@media(prefers-color-scheme:dark){.ok{color:#4ade80}.bad{color:#f87171}.matrix .RAW{color:#7aa7ff}
.matrix .WAR{color:#fb923c}.matrix .WAW{color:#b794f6}}
@media(max-width:600px){body{padding:16px 12px}.facts{grid-template-columns:1fr}.facts dd{margin-bottom:8px}}
"""


def report_html(compiled: Compiled) -> str:
    """The whole page."""
    name = html(compiled.plan.name)
    parts = [
        f"<h1>{name}</h1>",
        f'<p class="dim">{html(_shape(compiled))}</p>',
        _facts(compiled),
        *_warnings(compiled.warnings),
        "<h2>Predicted timeline</h2>",
        *_timeline_part(compiled),
        "<h2>Dependency graph</h2>",
        _graph_part(compiled),
        "<h2>Dependency matrix</h2>",
        _matrix_part(compiled),
        "<h2>Waits</h2>",
        _waits_part(compiled.schedule),
        "<h2>Proof</h2>",
        _proof_part(compiled),
    ]
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{name}: report</title>\n'
        f"<style>\n{PAGE_STYLE}{_STYLE}</style>\n</head>\n<body>\n{body}\n<script>\n{ZOOM}</script>\n</body>\n</html>\n"
    )


def _shape(compiled: Compiled) -> str:
    ops = len(compiled.hazards.ops)
    text = f"{ops} op{'' if ops == 1 else 's'} on {compiled.device.name}"
    for item in compiled.resolved.items:
        if isinstance(item, Loop):
            text += f", loop {item.index} (count {expression_text(item.count)})"
    return text


def _facts(compiled: Compiled) -> str:
    data = summary_data(compiled)
    streams = ", ".join(f"{s['name']} ({', '.join(s['ops'])})" for s in data["streams"])
    rings = ", ".join(f"{name} {depth}" for name, depth in data["rings"].items()) or "every buffer has one slot"
    memory = ", ".join(f"{place} {size_text(size)}" for place, size in memory_by_place(compiled.resolved).items())
    rows = [
        *_predicted_rows(compiled),
        ("streams", f"{len(data['streams'])}, policy {data['policy']}: {clip(escape(streams), 600)}"),
        ("waits", f"{compiled.waits_kept} kept of {compiled.waits_found} cross-stream hazards found"),
        ("event handles", f"{compiled.handles} for {len(compiled.schedule.events)} events"),
        ("rings", clip(escape(rings), 600)),
        ("memory", memory),
    ]
    items = "\n".join(f"<dt>{html(key)}</dt><dd>{html(value)}</dd>" for key, value in rows)
    return f'<dl class="facts">\n<dt>proof</dt><dd>{_verdict(compiled)}</dd>\n{items}\n</dl>'


def _predicted_rows(compiled: Compiled) -> Iterator[tuple[str, str]]:
    """What it takes, what it could take at the least, and why no less."""
    predicted = compiled.schedule.predicted or {}
    took = predicted.get("initiation_interval", predicted.get("makespan"))
    if took is None:
        return
    each = " an iteration" if "initiation_interval" in predicted else ""
    serial = f"; one after another {interval_text(predicted['serial'])}" if predicted.get("serial") is not None else ""
    note = " (estimated)" if predicted.get("estimated") else ", proved optimal" if predicted.get("optimal") else ""
    yield "predicted", f"{interval_text(took)}{each}{note}{serial}"
    if predicted.get("bound") is not None:
        above = took / predicted["bound"] - 1 if predicted["bound"] else 0.0
        over = f"; the prediction is {above:.1%} above it" if above >= 0.0005 else "; the prediction is at it"
        yield "lower bound", f"{interval_text(predicted['bound'])}{each}{over if predicted['bound'] else ''}"
    if predicted.get("binds") and predicted.get("bound"):
        yield "what binds", str(predicted["binds"])
    if predicted.get("held"):
        yield "held up by", str(predicted["held"])
    if predicted.get("unknown"):
        yield "no time known for", clip(escape(", ".join(predicted["unknown"])), 300)


def _verdict(compiled: Compiled) -> str:
    proof = compiled.proof
    word = '<span class="ok">holds</span>' if proof.holds else '<span class="bad">FAILS</span>'
    return f"{word} for {_prose(proof.counts)}: {proof.hazards} hazards ordered, nothing blocks"


def _prose(text: str) -> str:
    """A message with what stands in backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html(text))


def _warnings(warnings: Iterable[Diagnostic]) -> Iterator[str]:
    for number, warning in enumerate(warnings):
        if number == 0:
            yield "<h2>Warnings</h2>"
        line = f" (line {warning.where.line})" if warning.where else ""
        help_ = f'<br><span class="dim">{_prose(warning.help)}</span>' if warning.help else ""
        yield f'<div class="warning"><b>{warning.code}</b> {_prose(warning.headline)}{line}{help_}</div>'


def _timeline_part(compiled: Compiled) -> list[str]:
    try:
        timeline, note = _predict(compiled)
    except DagschedError as error:
        return [f'<p class="dim">No run can be simulated: {html(error.diagnostics[0].headline)}.</p>']
    about = "; ".join(filter(None, [timeline.source, note, *timeline.notes]))
    return [
        f'<p class="dim">{html(about)}. Thin lines are waits; the orange ones are what their op started upon.</p>',
        zoomable(timeline),
        busy_table(timeline),
    ]


def _predict(compiled: Compiled) -> tuple[Timeline, str]:
    """The timeline; of a schedule with a very long loop only that loop's first iterations, and nothing after it."""
    from dagsched.view.predicted import predict_timeline

    schedule, note = compiled.schedule, ""
    steps: list[AnyStep] = []
    for step in schedule.steps:
        steps.append(step)
        if isinstance(step, LoopStep) and isinstance(step.lo, Int) and isinstance(step.hi, Int):
            count = step.hi.value - step.lo.value
            if count * len(step.steps) > MAX_COMMANDS:
                steps[-1] = replace(step, hi=add(step.lo, _ITERATIONS))
                note = f"the first {_ITERATIONS} of {count:,} iterations of loop {step.index}"
                break
    counted = {name for step in schedule.steps if isinstance(step, LoopStep) for name in names_in(step.hi)}
    counts = {
        name: _ITERATIONS
        for name, value in schedule.params.items()
        if value is None or value * len(schedule.steps) > MAX_COMMANDS or (name in counted and value > READABLE)
    }
    return predict_timeline(replace(schedule, steps=tuple(steps)), compiled.resolved, compiled.device, counts), note


def _graph_part(compiled: Compiled) -> str:
    from dagsched.view.graph import graph_dot
    from dagsched.view.render import render_graph

    if len(compiled.hazards.ops) > MAX_OPS:
        return _left_out(
            f"{len(compiled.hazards.ops):,} ops make no readable picture", "dagsched graph PLAN -o graph.svg"
        )
    try:
        picture = render_graph(graph_dot(compiled), "svg").decode("utf-8")
    except DagschedError as error:
        return f'<p class="dim">{html(error.diagnostics[0].headline)}.</p>'
    # What precedes the element (XML declaration, document type, a comment with a version) is no part of a page.
    picture = re.sub(r"\A.*?(?=<svg\b)", "", picture, flags=re.DOTALL)
    return f'<div class="wide card">\n{picture.strip()}\n</div>'


def _matrix_part(compiled: Compiled) -> str:
    hazards = compiled.hazards
    if len(hazards.ops) > MAX_OPS:
        return _left_out(f"{len(hazards.ops):,} ops make no readable table", "dagsched matrix PLAN --format csv")
    cells = matrix_cells(hazards)
    head = "".join(f"<th>{_short(op)}</th>" for op in hazards.ops)
    rows = [f"<tr><th></th>{head}</tr>"]
    for op in hazards.ops:
        row = "".join(f"<td>{_kinds(cells.get((op, other), ()))}</td>" for other in hazards.ops)
        rows.append(f"<tr><th>{_short(op)}</th>{row}</tr>")
    table = "\n".join(rows)
    return (
        '<p class="dim">Row before column; @d: d iterations later.</p>\n'
        f'<div class="wide"><table class="matrix">\n{table}\n</table></div>'
    )


def _kinds(kinds: Iterable[str]) -> str:
    """One line for each; kinds that have a colour have a class of their own name."""
    known = ("RAW", "WAR", "WAW")
    return "".join(f'<span class="{kind[:3] if kind[:3] in known else "dim"}">{html(kind)}</span>' for kind in kinds)


def _waits_part(schedule: Schedule) -> str:
    waits = [step for step in schedule.walk() if isinstance(step, EventStep) and step.action == "wait"]
    if not waits:
        return '<p class="dim">None: stream order alone is enough.</p>'
    rows = [_wait_row(step) for step in waits[:MAX_WAITS]]
    more = _left_out(f"{len(waits) - MAX_WAITS:,} more", "look into the schedule") if len(waits) > MAX_WAITS else ""
    head = "<tr><th>stream</th><th>waits for</th><th>so that</th></tr>"
    return f'<div class="wide"><table class="waits">\n{head}\n{"".join(rows)}\n</table></div>{more}'


def _wait_row(step: EventStep) -> str:
    index = "" if step.event.index is None else f"@{expression_text(step.event.index)}"
    reasons = "<br>".join(
        f"{html(entry.before)} comes before {html(entry.after)}"
        f' <span class="dim">({html(entry.kind)}{html(f" on {entry.buffer}") if entry.buffer else ""})</span>'
        for entry in step.protects
    )
    stream = html(step.stream.name if step.stream else "host")
    return f"<tr><td>{stream}</td><td><code>{html(step.event.name + index)}</code></td><td>{reasons}</td></tr>\n"


def _proof_part(compiled: Compiled) -> str:
    return (
        f"<p>{_verdict(compiled)}. The verifier has read the plan and the schedule, and nothing of what made it. Every "
        "op instance occurs once with the plan's accesses, every hazard is ordered in the plan's direction, no wait "
        "can block for ever, and no event handle is recorded again too early. <code>proof.json</code> holds the chain "
        "that orders each hazard.</p>"
    )


def _left_out(why: str, command: str) -> str:
    return f'<p class="dim">{html(why)}: <code>{html(command)}</code></p>'


def _short(name: str) -> str:
    return html(clip(escape(name), 24))
