"""Happens-before by brute force: an explicit graph of one run, and networkx's reachability."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx

from dagsched.plan.expressions import evaluate, holds
from dagsched.plan.model import Loop, Op, Plan
from dagsched.schedule.model import EventStep, LoopStep, OpStep, Schedule
from tests.passes.oracle import Edge, Instance, conflicts


def order_graph(schedule: Schedule, params: dict[str, int]) -> nx.DiGraph[Any]:
    """Nodes are steps as issued and op instances; edges are stream order and bound waits."""
    graph: nx.DiGraph[Any] = nx.DiGraph()
    rings = {name: event.ring for name, event in schedule.events.items()}
    newest: dict[str, object] = {}
    records: dict[tuple[str, int], object] = {}

    def enter(stream: str, node: object) -> None:
        if stream in newest:
            graph.add_edge(newest[stream], node)
        graph.add_node(node)
        newest[stream] = node

    def run(steps: tuple, env: dict[str, int], iteration: int) -> None:  # type: ignore[type-arg]
        for step in steps:
            if not holds(step.when, env):
                continue
            if isinstance(step, LoopStep):
                for i in range(evaluate(step.lo, env), evaluate(step.hi, env)):
                    run(step.steps, {**env, step.index: i}, i)
            elif isinstance(step, OpStep):
                enter(step.stream.name, (step.op, iteration))
            elif isinstance(step, EventStep):
                assert step.stream is not None
                x = evaluate(step.event.index, env) if step.event.index is not None else 0
                handle = (step.event.name, x % (rings[step.event.name] or 1))
                node = ("step", graph.number_of_nodes())
                enter(step.stream.name, node)
                if step.action == "record":
                    records[handle] = node
                elif handle in records:
                    graph.add_edge(records[handle], node)

    run(schedule.steps, dict(params), 0)
    return graph


def unordered(plan: Plan, schedule: Schedule, params: dict[str, int]) -> set[Edge]:
    """Conflicting pairs that the schedule does not order in the plan's direction."""
    graph = order_graph(schedule, params)
    reach: dict[Instance, set[Instance]] = {}
    missing = set()
    for first, second in conflicts(plan, params):
        if first not in reach:
            reach[first] = nx.descendants(graph, first) if first in graph else set()
        if second not in reach[first]:
            missing.add((first, second))
    return missing


def racing(plan: Plan, schedule: Schedule, params: dict[str, int]) -> set[Edge]:
    """Pairs whose accesses conflict and that the schedule orders in neither direction; ``after:`` is no access."""
    graph = order_graph(schedule, params)
    pairs = conflicts(_without_after(plan), params)
    reach = {node: nx.descendants(graph, node) for pair in pairs for node in pair if node in graph}
    return {(a, b) for a, b in pairs if b not in reach.get(a, ()) and a not in reach.get(b, ())}


def _without_after(plan: Plan) -> Plan:
    def change(item: Op | Loop) -> Op | Loop:
        if isinstance(item, Loop):
            return replace(item, body=tuple(map(change, item.body)))
        return replace(item, after=())

    return replace(plan, items=tuple(map(change, plan.items)))
