"""Re-check a proof document against its schedule, link by link, without the engine that found it.

The schedule is issued once for each set of parameters that a chain was found with, and nothing is kept but the order
of its steps. A link
``stream`` holds where both op instances stand on one stream, the first before the second. A link ``wait`` holds where
a record of the event stands behind its ``from`` op on that op's stream, with no other record of the same handle before
a wait for it that stands before the ``to`` op on that op's stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dagsched.plan.expressions import evaluate, holds, names_in
from dagsched.plan.model import Plan
from dagsched.proof.instances import list_segments
from dagsched.schedule.model import AnyStep, EventStep, LoopStep, OpStep, Schedule

_Op = tuple[str, int]


def recheck_proof(document: Mapping[str, Any], plan: Plan, schedule: Schedule) -> list[str]:
    """What does not hold; empty where every chain does and every op of the plan is spoken of in the schedule."""
    if document.get("plan") != schedule.plan:
        return ["the proof is for another plan than the schedule"]
    traces: dict[tuple[tuple[str, int], ...], _Trace] = {}
    names = {step.op for step in schedule.walk() if isinstance(step, OpStep)}
    faults = [
        f"`{planned.name}` is not in the schedule"
        for segment in list_segments(plan)
        for planned in segment.ops
        if planned.name not in names
    ]
    for hazard in document.get("hazards", []):
        params = tuple(hazard["at"]["params"].items())
        if params not in traces:
            traces[params] = _Trace(schedule, dict(params))
        trace = traces[params]
        first = (hazard["before"], hazard["at"]["before"])
        last = (hazard["after"], hazard["at"]["after"])
        at = first
        for link in hazard["chain"]:
            source, target = _instance(link["from"]), _instance(link["to"])
            if source != at or not trace.holds(link, source, target):
                faults.append(
                    f"`{first[0]}` before `{last[0]}`: the link from `{source[0]}` to `{target[0]}` does not hold"
                )
                break
            at = target
        else:
            if at != last:
                faults.append(f"the chain from `{first[0]}` does not reach `{last[0]}`")
    return faults


def _instance(named: Mapping[str, Any]) -> _Op:
    return named["op"], named["iteration"] or 0


class _Trace:
    """The positions of all steps of a schedule as issued."""

    def __init__(self, schedule: Schedule, params: dict[str, int]) -> None:
        self.schedule = schedule
        self.ops: dict[_Op, tuple[int, str]] = {}
        self.records: dict[str, list[tuple[int, str, int]]] = {}
        self.waits: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self.position = 0
        self.params = params
        for step in schedule.steps:
            if isinstance(step, LoopStep):
                self._loop(step)
            else:
                self._enter(step, params, 0)

    def _loop(self, step: LoopStep) -> None:
        for iteration in _iterations(evaluate(step.hi, self.params), bool(names_in(step.hi))):
            for inner in step.steps:
                self._enter(inner, {**self.params, step.index: iteration}, iteration)

    def _enter(self, step: AnyStep, env: dict[str, int], iteration: int) -> None:
        if not holds(step.when, env):
            return
        self.position += 1
        if isinstance(step, OpStep):
            own = iteration if step.iteration is None else evaluate(step.iteration, env)
            self.ops[step.op, own] = self.position, step.stream.name
        elif isinstance(step, EventStep) and step.stream is not None:
            event = self.schedule.events.get(step.event.name)
            index = 0 if step.event.index is None else evaluate(step.event.index, env)
            handle = index % ((event.ring if event else None) or 1)
            if step.action == "record":
                self.records.setdefault(step.event.name, []).append((self.position, step.stream.name, handle))
            else:
                self.waits.setdefault((step.event.name, step.stream.name), []).append((self.position, handle))

    def holds(self, link: Mapping[str, Any], source: _Op, target: _Op) -> bool:
        """Whether one link holds."""
        if source not in self.ops or target not in self.ops:
            return False
        (start, here), (end, there) = self.ops[source], self.ops[target]
        if link["by"] == "stream":
            return here == there and start < end
        records = self.records.get(link["event"], [])
        for waited, handle in self.waits.get((link["event"], there), []):
            if waited > end:
                break
            bound = [(at, stream) for at, stream, own in records if own == handle and at < waited]
            if bound and bound[-1][1] == here and bound[-1][0] > start:
                return True
        return False


def _iterations(count: int, parametric: bool) -> Iterator[int]:
    """All iterations; of a long constant loop the first and the last ones, which are those that chains name."""
    if parametric or count <= 4_000:
        yield from range(count)
    else:
        yield from range(2_000)
        yield from range(count - 2_000, count)
