"""The dependency graph as networkx has it, for users and for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagsched.hazards.model import Hazards
from dagsched.plan.model import Plan

if TYPE_CHECKING:
    from networkx import MultiDiGraph


def build_graph(plan: Plan, hazards: Hazards, streams: dict[str, str]) -> MultiDiGraph[str]:
    """Ops as nodes (``kind``, ``stream``, ``time`` in seconds), hazards as edges (``buffer``, ``kind``, ``distance``).

    An edge with distance 0 or None runs within an iteration or across loops; those alone make a directed acyclic graph.
    """
    import networkx as nx

    graph: MultiDiGraph[str] = nx.MultiDiGraph(name=plan.name)
    for op in plan.ops():
        graph.add_node(op.name, kind=str(op.kind), stream=streams[op.name], time=op.time, function=op.function)
    for hazard in hazards.entries:
        graph.add_edge(hazard.before, hazard.after, buffer=hazard.buffer, kind=hazard.kind, distance=hazard.distance)
    return graph
