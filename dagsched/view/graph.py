"""A picture of a schedule: ops in boxes by stream, loops as frames, and a line for all that orders two ops.

Solid lines are waits (blue; orange where they reach into a later iteration, labelled ``@distance``), dotted lines
stream order, grey lines hazards that need no wait because the others imply them. Names are data: nodes get ids of our
own making, and every text goes through HTML escaping, so no name can add a node, an attribute or a script.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape as escape_html
from typing import TYPE_CHECKING

from dagsched.compiled import Compiled
from dagsched.hazards.model import Hazards
from dagsched.plan.expressions import expression_text
from dagsched.plan.model import Op, OpKind, Plan
from dagsched.schedule.model import Schedule, Stream
from dagsched.view.edges import Edge, Group, edges_of, groups_of
from dagsched.view.terminal import clip, escape, width_of
from dagsched.view.units import time_text

if TYPE_CHECKING:
    from graphviz import Digraph  # type: ignore[import-untyped]

INK, FAINT, WAIT, CARRIED, IMPLIED = "#1f2933", "#7b8794", "#2563eb", "#d97706", "#b8c0ca"
HUES = (
    ("#e0edff", "#5b8def"), ("#e3f6e8", "#4fa866"), ("#fdeede", "#d98a3d"), ("#f1e8fd", "#8f6bd6"),
    ("#e0f5f5", "#3a9ea0"), ("#fde7ee", "#d1608a"), ("#f4f3dc", "#9c9436"), ("#eceef1", "#7b8794"),
)  # fmt: skip
"""Fill and border for each stream, again from the start where there are more streams."""

_PLAIN_TABLE = '<table border="0" cellborder="0" cellspacing="0">'
_LONGEST = 32
_MOST_LABELS = 3
_MOST_IMPLIED = 300


def graph_dot(compiled: Compiled) -> str:
    """The picture of a compiled plan as DOT text; the same schedule always gives the same text."""
    return schedule_dot(compiled.schedule, compiled.hazards, compiled.resolved)


def schedule_dot(schedule: Schedule, hazards: Hazards | None = None, plan: Plan | None = None) -> str:
    """The picture of any schedule; ``hazards`` add the grey lines, ``plan`` what each op is and how long it takes."""
    groups = groups_of(schedule)
    edges = edges_of(schedule, hazards)
    hidden = sum(edge.kind == "implied" for edge in edges)
    if hidden > _MOST_IMPLIED:
        edges = tuple(edge for edge in edges if edge.kind != "implied")
    ids = {name: f"op{number}" for number, name in enumerate(name for group in groups for name, _ in group.ops)}
    streams = dict.fromkeys(stream for group in groups for _, stream in group.ops)
    hues = {stream: HUES[number % len(HUES)] for number, stream in enumerate(streams)}
    graph = new_graph(_legend(schedule.name, edges, hidden if hidden > _MOST_IMPLIED else 0))
    ops = {op.name: op for op in plan.ops()} if plan else {}
    for number, group in enumerate(groups):
        _add_group(graph, number, group, schedule, ids, hues, ops)
    for edge in edges:
        _add_edge(graph, edge, ids)
    return str(graph.source)


def new_graph(label: str) -> Digraph:
    """An empty picture in the look that all have, with a label (HTML-like) below it."""
    from graphviz import Digraph

    graph = Digraph("dagsched")
    graph.attr(
        rankdir="LR", bgcolor="white", fontname="Helvetica", fontsize="11", fontcolor=INK, pad="0.25",
        nodesep="0.28", ranksep="0.55", newrank="true", labelloc="b", labeljust="l", label=label,
    )  # fmt: skip
    graph.attr("node", shape="box", style="rounded,filled", fontname="Helvetica", fontsize="12", fontcolor=INK,
               margin="0.14,0.07", penwidth="1.2")  # fmt: skip
    graph.attr("edge", fontname="Helvetica", fontsize="9", arrowsize="0.7", penwidth="1.2")
    return graph


def _add_group(
    graph: Digraph,
    number: int,
    group: Group,
    schedule: Schedule,
    ids: dict[str, str],
    hues: dict[str, tuple[str, str]],
    ops: dict[str, Op],
) -> None:
    """A frame for a loop (none outside loops), in it one box a stream."""
    from graphviz import Digraph

    frame = Digraph(f"cluster_group{number}" if group.loop else f"group{number}")
    if group.loop:
        lo, hi = expression_text(group.loop.lo), expression_text(group.loop.hi)
        span = f"{hi} times" if lo == "0" else f"from {lo} to {hi}"
        title = f"<b>loop {html(group.loop.index)}</b>  {html(span)}"
        frame.attr(label=f"<{title}>", style="rounded", color=FAINT, fontcolor=INK, margin="14", labeljust="l",
                   penwidth="1.4", labelloc="t", fontsize="11")  # fmt: skip
    for place, stream in enumerate(dict.fromkeys(stream for _, stream in group.ops)):
        fill, border = hues[stream]
        with frame.subgraph(name=f"cluster_group{number}_stream{place}") as box:
            box.attr(label=f"<{_stream_title(schedule.streams.get(stream), stream)}>", style="rounded,filled",
                     fillcolor="#fafbfc", color=border, fontcolor=border, margin="9", labeljust="l", labelloc="t",
                     penwidth="0.8", fontsize="10")  # fmt: skip
            for name, on in group.ops:
                if on == stream:
                    text, width = _node_label(name, ops.get(name))
                    box.node(ids[name], label=text, fillcolor=fill, color=border, width=f"{width:.2f}",
                             tooltip=tooltip(name))  # fmt: skip
    graph.subgraph(frame)


def _stream_title(stream: Stream | None, name: str) -> str:
    if not name:
        return "<b>issuing thread</b>"
    engine = (stream.engine or ("host" if stream.host else "")) if stream else ""
    return f"<b>{html(name)}</b>" + (f"  {html(engine)}" if engine and engine != name else "")


def _node_label(name: str, op: Op | None) -> tuple[str, float]:
    """An HTML-like label (name, below it what the op does) and a width in inches that holds it.

    Renderers without a font for a script take its characters for narrow, so such names get their width from us.
    """
    shown, detail = clip(escape(name), _LONGEST), clip(escape(_detail(op)), _LONGEST) if op else ""
    label = f"<b>{html(shown)}</b>"
    if detail:
        label += f'<br/><font point-size="9" color="{FAINT}">{html(detail)}</font>'
    width = 0.0 if (shown + detail).isascii() else 0.3 + max(width_of(shown) * 0.1, width_of(detail) * 0.075)
    return f"<{label}>", max(0.75, width)


def _detail(op: Op) -> str:
    if op.kind is OpKind.COPY:
        text = " → ".join(access.buffer for access in op.accesses)
    elif op.kind is OpKind.FILL:
        text = f"fill {op.accesses[0].buffer}" if op.accesses else "fill"
    else:
        text = op.function if op.function and op.function != op.name else op.kind.value
    return f"{text} · {time_text(op.time)}" if op.time else text


def _add_edge(graph: Digraph, edge: Edge, ids: dict[str, str]) -> None:
    """One line; those into a later iteration do not push ops apart."""
    if edge.before not in ids or edge.after not in ids:
        return
    look = {"tooltip": tooltip(_edge_tooltip(edge))}
    if edge.kind == "order":
        look |= {"style": "dotted", "color": FAINT, "arrowhead": "vee", "weight": "4"}
    elif edge.kind == "implied":
        look |= {"color": IMPLIED, "penwidth": "0.9", "weight": "0"}
    else:
        colour = CARRIED if edge.distance else WAIT
        look |= {"color": colour, "weight": "2", "penwidth": "1.5", "label": _edge_label(edge, colour)}
    if edge.distance:
        look |= {"constraint": "false"}
    graph.edge(ids[edge.before], ids[edge.after], _attributes=look)


def _edge_label(edge: Edge, colour: str) -> str:
    lines = [html(clip(escape(text), _LONGEST)) for text in edge.texts[:_MOST_LABELS]]
    if len(edge.texts) > _MOST_LABELS:
        lines.append(f"{len(edge.texts) - _MOST_LABELS} more")
    if edge.distance:
        lines[:1] = [f"{lines[0]} <b>@{edge.distance}</b>" if lines else f"<b>@{edge.distance}</b>"]
    return f'<<font color="{colour}">{"<br/>".join(lines) or " "}</font>>'


def _edge_tooltip(edge: Edge) -> str:
    why = ", ".join(edge.texts) if edge.kind != "order" else "stream order"
    later = f", {edge.distance} iteration{'s' if edge.distance > 1 else ''} later" if edge.distance else ""
    return f"{edge.before} before {edge.after}{later}: {why}" if why else f"{edge.before} before {edge.after}{later}"


def _legend(name: str, edges: Iterable[Edge], hidden: int) -> str:
    """The title and the meaning of the lines that occur, as an HTML-like table."""
    kinds = {(edge.kind, edge.distance > 0) for edge in edges}
    entries = [
        (("wait", False) in kinds, "SOLID", WAIT, "wait"),
        (("wait", True) in kinds, "SOLID", CARRIED, "wait, @d: d iterations later"),
        (any(kind == "order" for kind, _ in kinds), "DOTTED", FAINT, "stream order"),
        (any(kind == "implied" for kind, _ in kinds), "SOLID", IMPLIED, "hazard that the others imply"),
    ]
    cells = f'<td align="left"><font point-size="13"><b>{html(clip(escape(name), _LONGEST))}</b></font>    </td>'
    for present, style, colour, text in entries:
        if present:
            line = f'<td sides="T" border="2" style="{style.lower()}" color="{colour}" width="30" height="1"></td>'
            mark = f'{_PLAIN_TABLE}<tr><td height="6"></td></tr><tr>{line}</tr></table>'
            cells += f'<td>{mark}</td><td align="left"><font color="{FAINT}">{text}   </font></td>'
    if hidden:
        cells += f'<td align="left"><font color="{FAINT}">{hidden} implied hazards are not drawn</font></td>'
    return f'<<table border="0" cellborder="0" cellspacing="3"><tr>{cells}</tr></table>>'


def html(text: str) -> str:
    """Text for an HTML-like label; an empty one would not parse, and a single ``\\N`` would become the node's id."""
    return escape_html(escape(text)).replace("\\", "\\\\") or " "


def tooltip(text: str) -> str:
    """A plain string attribute: no escape of DOT's is read into a name, and ``<b>`` stays text."""
    from graphviz import escape as escape_dot

    plain: str = escape_dot(escape(text))
    return plain
