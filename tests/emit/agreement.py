"""Whether what a driver answers is what a plan means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from tests.emit.driver import Emitted, build, run_cases
from tests.emit.pipelines import Pipeline
from tests.emit.sequential import Sequential

COUNTS = (0, 1, 2, 7)

BATCH = 25
"""Pipelines in a program of many."""


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


def agree_in_batches(folder: Path, pipelines: list[Pipeline], program_of: Callable[[Pipeline], Emitted]) -> None:
    """Run many pipelines, some to a program, for some counts with several timings each."""
    for start in range(0, len(pipelines), BATCH):
        batch = pipelines[start : start + BATCH]
        place = folder / str(start)
        place.mkdir()
        program = build(place, [program_of(pipeline) for pipeline in batch])
        for number, pipeline in enumerate(batch):
            cases = [(count, seed) for count in COUNTS for seed in (0, 1, 2)]
            answers = run_cases(program, [pipeline.command(number, count, seed) for count, seed in cases])
            for (count, _), answer in zip(cases, answers, strict=True):
                assert answer[-1] == {"alive": 0}, pipeline.plan.name
                agrees(pipeline, pipeline.counts(count), answer[: answer.index({"again": True})])
