"""Runs on backend ``cpu`` compute what the plan means, op after op; and where a wait is missing, some run does not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError, UsageError
from dagsched.library import Schedule
from dagsched.run.backend import Call, Options
from dagsched.run.cpu import Cpu
from dagsched.run.exclusive import find_exclusive
from dagsched.run.executor import Executor
from dagsched.run.functions import Plug
from dagsched.run.program import OpPoint, StreamProgram, split_streams
from dagsched.schedule.model import AnyStep, EventStep, LoopStep
from tests.emit.pipelines import LARGEST, PLANS, read
from tests.emit.random_plans import random_plan
from tests.run.bindings import check_bindings
from tests.run.meaning import Functions, inputs_of, require_meaning

Take = Callable[[int], Any]
COUNTS = (0, 1, 2, 5)
RANDOM_PLANS = int(os.environ.get("DAGSCHED_RUN_PLANS", "12"))
"""``make soak`` sets ten thousand."""


def _run_and_compare(compiled: Compiled, seed: int | None, counts: tuple[int, ...], iterate: bool) -> None:
    functions = Functions(compiled.resolved, seed)
    with Schedule(compiled).executor(functions.functions) as executor:
        for count in counts:
            functions.log.clear()
            given = dict.fromkeys(compiled.plan.params, count)
            value = {name: iter(range(count)) for name in given} if iterate else given
            try:
                result = executor.run(inputs=inputs_of(compiled.plan), timeout=60, trace=0, counts=value)
            except UsageError as error:
                assert iterate and error.diagnostics[0].code == "R106"
                continue
            assert result.counts == given
            require_meaning(compiled, given, functions.log, result.outputs)


@pytest.mark.parametrize("iterate", [False, True], ids=["counts", "sources"])
@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_kind_of_plan(path: Path, iterate: bool) -> None:
    compiled = compile_plan(read(path))
    counts = tuple(min(count, LARGEST.get(path.stem, count)) for count in (*COUNTS, 7))
    _run_and_compare(compiled, 1, counts, iterate)


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.yaml")), ids=lambda path: path.stem)
def test_waits_are_bound_as_a_host_would_bind_them(path: Path) -> None:
    compiled = compile_plan(read(path))
    params = list(compiled.plan.params)
    for values in product((0, 1, 2, 9), repeat=len(params)):
        check_bindings(split_streams(compiled), compiled.schedule, dict(zip(params, values, strict=True)))


def test_random_plans_with_random_sleeps() -> None:
    seed = ran = waits = 0
    while ran < RANDOM_PLANS:
        try:
            compiled = compile_plan(random_plan(seed))
        except PlanError:
            pass
        else:
            ran += 1
            waits += sum(check_bindings(split_streams(compiled), compiled.schedule, {"n": n}) for n in (0, 1, 2, 5, 8))
            _run_and_compare(compiled, seed, COUNTS[seed % 2 :: 2], iterate=seed % 3 == 0)
        seed += 1
    assert waits > 3 * RANDOM_PLANS


def _without_wait(steps: tuple[AnyStep, ...], drop: AnyStep) -> tuple[AnyStep, ...]:
    return tuple(
        replace(step, steps=_without_wait(step.steps, drop)) if isinstance(step, LoopStep) else step
        for step in steps
        if step is not drop
    )


class _Slow(Cpu):
    """Backend ``cpu`` with one op that comes late, so that whatever does not wait for it comes too early."""

    def __init__(self, op: str) -> None:
        super().__init__()
        self.op = op

    def call(self, stream: StreamProgram, point: OpPoint, plug: Plug | None, take: Take | None) -> Call:
        call = super().call(stream, point, plug, take)
        if point.op.name != self.op:
            return call

        def late(i: int) -> object:
            time.sleep(0.004)
            return call(i)

        return late


@pytest.mark.parametrize("name", ["mixed", "detector", "regions", "dynamic"])
def test_without_a_wait_a_run_differs(name: str) -> None:
    """Each wait protects something: drop it, let the op that it waits for come late, and the contents are others."""
    compiled = compile_plan(read(PLANS / f"{name}.yaml"))
    params, most = list(compiled.plan.params), min(4, LARGEST.get(name, 4))
    every = [dict(zip(params, values, strict=True)) for values in product((most, 2, 1, 0), repeat=len(params))]
    waits = [step for step in compiled.schedule.walk() if isinstance(step, EventStep) and step.action == "wait"]
    assert waits
    locked = {op for ops in find_exclusive(split_streams(compiled)).values() for op in ops}
    for wait in waits:
        late = wait.protects[0].before.split("@")[0]
        if late in locked:  # whoever accumulates first holds the others back, so that coming late changes nothing
            continue
        steps = _without_wait(compiled.schedule.steps, wait)
        broken = replace(compiled, schedule=replace(compiled.schedule, steps=steps))
        assert _agrees(compiled, every[0], late), f"with {wait}"
        assert not all(_agrees(broken, counts, late) for counts in every), f"without {wait}"


def _agrees(compiled: Compiled, counts: dict[str, int], late: str) -> bool:
    functions = Functions(compiled.resolved, None)
    with Executor(compiled, functions.functions, _Slow(late), Options()) as executor:
        result = executor.run(inputs=inputs_of(compiled.plan), timeout=60, counts=counts)
    try:
        require_meaning(compiled, counts, functions.log, result.outputs)
    except AssertionError:
        return False
    return True
