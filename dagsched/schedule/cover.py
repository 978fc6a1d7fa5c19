"""Cover the dependency graph with the fewest chains, so that independent ops never share a stream.

In the transitively reduced graph a path takes one edge out of each op and one into each; a maximum matching of ops
(as sources) with ops (as targets) along its edges therefore gives the fewest paths that cover all ops (Dilworth;
used for streams by Nimble). Two ops on one path are ordered by the plan anyway.
"""

from __future__ import annotations

from collections.abc import Sequence


def reduce_edges(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The transitive reduction of a graph whose edges run from lower to higher numbers: successors of each op.

    Ancestors are kept as bit sets, so an edge is implied where a nearer predecessor has its source as an ancestor;
    a set goes when its last successor has been seen, or those of large graphs would take gigabytes.
    """
    predecessors: list[set[int]] = [set() for _ in range(count)]
    for before, after in edges:
        if before != after:
            predecessors[after].add(before)
    uses = [0] * count
    for row in predecessors:
        for before in row:
            uses[before] += 1
    ancestors = [0] * count
    successors: list[list[int]] = [[] for _ in range(count)]
    for op in range(count):
        seen = 0
        for before in sorted(predecessors[op], reverse=True):
            if not seen >> before & 1:
                successors[before].append(op)
                seen |= ancestors[before] | 1 << before
            uses[before] -= 1
            if not uses[before]:
                ancestors[before] = 0
        if uses[op]:
            ancestors[op] = seen
    return successors


def cover_chains(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Chains of ops, each in order, that cover all ops once; fewest for the reduced graph."""
    following = _match(reduce_edges(count, edges), count)
    starts = set(range(count)) - {after for after in following if after >= 0}
    chains = []
    for op in sorted(starts):
        chain = [op]
        while following[chain[-1]] >= 0:
            chain.append(following[chain[-1]])
        chains.append(chain)
    return chains


def _match(successors: list[list[int]], count: int) -> list[int]:
    """A maximum matching: for each op the one that follows it on its path, or -1. Hopcroft-Karp is networkx's."""
    from networkx import Graph
    from networkx.algorithms.bipartite import hopcroft_karp_matching

    graph: Graph[int] = Graph()
    graph.add_nodes_from(range(2 * count))
    graph.add_edges_from((before, count + after) for before, row in enumerate(successors) for after in row)
    matching = hopcroft_karp_matching(graph, range(count))
    return [matching[op] - count if op in matching else -1 for op in range(count)]
