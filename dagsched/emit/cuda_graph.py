"""Target ``cuda-graph``: loops are captured and replayed as CUDA graphs, or as HIP graphs."""

from __future__ import annotations

from dataclasses import replace

from dagsched.compiled import Compiled
from dagsched.emit.cpp_graph import emit_graphs
from dagsched.emit.cuda_cpp import CUDA, with_prefix

CUDA_GRAPH = replace(CUDA, suffix="_cuda_graph")


def emit_cuda_graph(compiled: Compiled) -> dict[str, str]:
    """File names and texts; raises :class:`PlanError` where no loop can be captured (E106)."""
    return with_prefix(emit_graphs(compiled, CUDA_GRAPH, host_calls=True))
