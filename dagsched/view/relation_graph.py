"""How two ops stand to each other, as DOT text: the chain that orders them, or a run in which they collide.

The chain is drawn as ``graph`` draws schedules: ops in a box for each stream, blue lines with the event's name where a
wait leads over, dotted ones for stream order. A collision is a table, a row for each stream and a column for each unit
of time, the two ops framed in red. Names are data, as in ``view/graph.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from dagsched.proof.check_collide import Collision, Moment
from dagsched.proof.check_paths import Chain
from dagsched.proof.check_relate import Relation
from dagsched.timeline import HOST_TRACK
from dagsched.view.chain import Hop, hops_of
from dagsched.view.graph import FAINT, HUES, INK, WAIT, html, new_graph, tooltip

_RED = "#b91c1c"
_MOST_COLUMNS = 12


def relation_dot(relation: Relation, title: str) -> str:
    """The picture of a relation; ``title`` says in a line what it shows."""
    if relation.collision is not None:
        return _collision_dot(relation.collision, title)
    return _chain_dot(relation.chain or (), title)


def _chain_dot(chain: Chain, title: str) -> str:
    graph = new_graph(_heading(title))
    hops = hops_of(chain)
    ends = {0, len(hops) - 1}
    hues = _hues([hop.lane for hop in hops])
    for number, (lane, (fill, border)) in enumerate(hues.items()):
        with graph.subgraph(name=f"cluster_lane{number}") as box:
            box.attr(label=f"<<b>{html(lane)}</b>>", style="rounded,filled", fillcolor="#fafbfc", color=border,
                     fontcolor=border, margin="9", labeljust="l", labelloc="t", penwidth="0.8",
                     fontsize="10")  # fmt: skip
            for place, hop in enumerate(hops):
                if hop.lane == lane:
                    text = f"<<b>{html(hop.text)}</b>>" if place in ends else f"<{html(hop.text)}>"
                    box.node(f"hop{place}", label=text, fillcolor=fill, color=border, tooltip=tooltip(hop.text))
    for place, hop in enumerate(hops[1:]):
        graph.edge(f"hop{place}", f"hop{place + 1}", _attributes=_line(hop))
    return str(graph.source)


def _line(hop: Hop) -> dict[str, str]:
    if hop.over is None:
        return {"style": "dotted", "color": FAINT, "arrowhead": "vee", "tooltip": "stream order"}
    label = f'<<font color="{WAIT}">{html(hop.over)}</font>>'
    return {"color": WAIT, "penwidth": "1.5", "label": label, "tooltip": tooltip(hop.over)}


def _collision_dot(collision: Collision, title: str) -> str:
    graph = new_graph(_heading(title))
    lanes = [_lane(moment) for moments in collision.runs for moment in moments if moment.work]
    hues = _hues(lanes)
    for number, moments in enumerate(collision.runs):
        work = [moment for moment in moments if moment.work]
        graph.node(f"run{number}", label=f"<{_table(collision, work, hues)}>", shape="plain", style="", tooltip="a run")
    return str(graph.source)


def _table(collision: Collision, work: Sequence[Moment], hues: dict[str, tuple[str, str]]) -> str:
    """One run; of a long one only the end is shown."""
    starts = sorted({moment.start for moment in work})
    shown = starts[-_MOST_COLUMNS:]
    rows = []
    for lane in dict.fromkeys(_lane(moment) for moment in work if moment.start in shown):
        fill, border = hues[lane]
        cells = [f'<td align="left"><font color="{border}"><b>{html(lane)}</b>  </font></td>']
        if len(shown) < len(starts):
            cells.append(f'<td><font color="{FAINT}">…</font></td>')
        here = {moment.start: moment for moment in work if _lane(moment) == lane}
        for start in shown:
            moment = here.get(start)
            if moment is None:
                cells.append("<td>  </td>")
                continue
            collides = moment.node in (collision.first, collision.second)
            frame = f'border="2" color="{_RED}"' if collides else f'border="1" color="{border}"'
            text = f"<b>{html(moment.text)}</b>" if collides else html(moment.text)
            cells.append(f'<td {frame} bgcolor="{fill}" cellpadding="6">{text}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table border="0" cellborder="0" cellspacing="4">{"".join(rows)}</table>'


def _hues(lanes: Sequence[str]) -> dict[str, tuple[str, str]]:
    return {lane: HUES[number % len(HUES)] for number, lane in enumerate(dict.fromkeys(lanes))}


def _lane(moment: Moment) -> str:
    return moment.stream if moment.stream is not None else HOST_TRACK


def _heading(title: str) -> str:
    lines = "<br/>".join(map(html, title.split("\n")))
    return f'<<font point-size="13" color="{INK}"><b>{lines}</b></font>>'
