"""Backend ``simulate``: nothing runs; the result is what the cost model predicts for the plan's device.

The same calls, the same result: functions and inputs are checked as for a real run and then not used, and a source is
asked for all of its items, since their number is what counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from dagsched.compiled import Compiled
from dagsched.cost.simulator import simulate_schedule
from dagsched.plan.expressions import evaluate
from dagsched.plan.model import Loop, Op
from dagsched.run.backend import Options, Runs
from dagsched.run.errors import refuse
from dagsched.run.functions import Functions, plug_functions
from dagsched.run.measured import find_flows
from dagsched.run.program import OpPoint, Program, split_streams
from dagsched.run.result import Result, Trace
from dagsched.run.sources import check_inputs, name_counts, read_counts
from dagsched.timeline import HOST_TRACK, Span, Timeline

_OF_REAL_RUNS = frozenset({"timeout", "watchdog", "on_stall", "on_progress", "trace"})


def make_executor(compiled: Compiled, functions: Functions | None, options: Options) -> Runs:
    """An executor that predicts; raises :class:`UsageError` for functions that do not fit."""
    if functions is not None:
        plug_functions(compiled.resolved, functions)
    return Simulator(compiled)


class Simulator:
    """Predicts runs of one compiled schedule."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self._program = split_streams(compiled)

    def run(
        self,
        *source: Any,
        inputs: Mapping[str, Any] | None = None,
        counts: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Result:
        """The predicted run, as :meth:`Executor.run` yields a real one; ``seconds`` is the predicted makespan.

        What concerns real runs only (``timeout``, ``watchdog``, ``on_stall``, ``on_progress``, ``trace``) may be given.
        Raises :class:`UsageError` for what does not fit, :class:`ScheduleError` for runs too long to simulate.
        """
        plan = self._program.plan
        check_inputs(plan, inputs or {})
        given = {name: value for name, value in more.items() if name not in _OF_REAL_RUNS}
        read = read_counts(plan, name_counts(plan, source, counts, given, "run"))
        known = {**read.known, **{name: sum(1 for _ in source) for name, source in read.sources.items()}}
        timeline = _predict(self.compiled, self._program, known)
        loops = [item for item in plan.items if isinstance(item, Loop)]
        return Result(
            compiled=self.compiled,
            backend="simulate",
            counts=known,
            iterations=max((evaluate(loop.count, known) for loop in loops), default=0),
            seconds=timeline.makespan,
            trace=Trace(lambda: timeline),
        )

    def stream(self, *source: Iterable[Any], **counts: Any) -> Iterator[Any]:
        """Refused (R108): a simulation has no results."""
        self._refuse_stream()

    def _refuse_stream(self) -> NoReturn:
        raise refuse("R108", "a simulation yields no results", help="call run(), and look at its trace")

    def stop(self) -> None:
        """A simulation has no sources that could be stopped."""

    def close(self) -> None:
        """A simulation holds nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Simulator of {self.compiled.plan.name!r} for {self.compiled.device.name}>"


def _predict(compiled: Compiled, program: Program, counts: Mapping[str, int]) -> Timeline:
    predicted = simulate_schedule(compiled.by_hand or compiled.schedule, compiled.resolved, compiled.device, counts)
    points = [p for s in program.streams for _, part in s.parts for p in part if isinstance(p, OpPoint)]
    numbers = {point.op.name: number for number, point in enumerate(points)}
    loops = {op.name for item in compiled.resolved.items if isinstance(item, Loop) for op in item.body
             if isinstance(op, Op)}  # fmt: skip
    spans: list[Span] = []
    place: dict[tuple[int, int], int] = {}
    for span in predicted.spans:
        own = span.iteration if span.op in loops else None
        place[numbers[span.op], points[numbers[span.op]].issued(own)] = len(spans)
        issued = span.issued_ticks / 1e12
        spans.append(
            Span(span.stream or HOST_TRACK, span.op, span.start, span.end, own, span.engine, issued)
        )  # fmt: skip

    def binds(op: int, i: int, record: int, before: int, after: int) -> bool:
        return spans[before].end == spans[after].start

    flows = find_flows(program, numbers, place, counts, binds)
    tracks = tuple(stream.name for stream in program.streams)
    notes = (f"no time is known for {', '.join(predicted.unknown)}",) if predicted.unknown else ()
    source = f"predicted for {compiled.device.name}"
    return Timeline(program.plan.name, tracks, tuple(spans), flows, predicted.makespan, source, notes)
