"""Target ``acl-graph``: loops are captured and replayed through aclmdlRI.

Host functions in a loop are not captured: no document says that aclrtLaunchHostFunc may be. The runtime refuses to
capture on Atlas 200I/500 A2 (310B) and Atlas training (910) products.
"""

from __future__ import annotations

from dataclasses import replace

from dagsched.compiled import Compiled
from dagsched.emit.acl_cpp import ASCENDCL
from dagsched.emit.cpp_graph import emit_graphs

ASCENDCL_GRAPH = replace(ASCENDCL, suffix="_acl_graph")


def emit_acl_graph(compiled: Compiled) -> dict[str, str]:
    """File names and texts; raises :class:`PlanError` where no loop can be captured (E106)."""
    return emit_graphs(compiled, ASCENDCL_GRAPH, host_calls=False)
