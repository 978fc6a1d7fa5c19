"""Whether what a driver answers is what a plan means."""

from __future__ import annotations

from typing import cast

from tests.emit.pipelines import Pipeline
from tests.emit.sequential import Sequential


def agrees(
    pipeline: Pipeline, counts: dict[str, int], answers: list[dict[str, object]], phases: dict[str, int] | None = None
) -> None:
    """Host functions saw, and outputs hold, what the sequential meaning says."""
    meaning = Sequential(pipeline.plan, counts, phases)
    calls = [answer for answer in answers if "call" in answer]
    seen = sorted((str(a["call"]), tuple(cast(list[int], a["indices"])), cast(int, a["mix"])) for a in calls)
    assert seen == sorted(meaning.log)
    outputs = {(a["output"], a["version"]): a["bytes"] for a in answers if "output" in a}
    for buffer in pipeline.compiled.resolved.buffers.values():
        final = meaning.final(buffer.name, buffer.ring.depth or 1)
        if buffer.output and final is not None:
            assert outputs[buffer.name, final[0]] == final[1].hex(), f"{buffer.name} for {counts}"
