"""Runs a compiled schedule on a backend whose streams are threads: once or often, with counts or sources.

A run ends when every stream has come to its end, when an op or a source raises, at a timeout, at Ctrl-C, or when it is
stopped. However it ends, no op starts after that, and nothing of it is left: the threads sleep until the next run.
Only one run goes on at a time; a second caller is refused, not queued.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic
from types import TracebackType
from typing import Any, Self

from dagsched.compiled import Compiled
from dagsched.diagnostics import Diagnostic
from dagsched.plan.expressions import evaluate
from dagsched.plan.model import Loop
from dagsched.run.backend import Backend, Options, require_numbers
from dagsched.run.crew import Crew
from dagsched.run.errors import Head, RunStopped, RunTimeout, refuse
from dagsched.run.functions import Functions
from dagsched.run.heads import heads_text, list_heads
from dagsched.run.measured import make_timeline
from dagsched.run.one_run import Deliver, Run
from dagsched.run.result import Result, Trace
from dagsched.run.setup import Setup, set_up
from dagsched.run.sinks import Sink, find_sink
from dagsched.run.sources import check_inputs, name_counts, read_counts
from dagsched.run.tape import Tape, new_tape

LOGGER = logging.getLogger("dagsched.run")
PROMPT = 0.5
"""Seconds that ops get to end in after Ctrl-C."""

OnStall = Callable[[tuple[Head, ...]], None]
OnProgress = Callable[[int, float], None]
"""Told now and then how many iterations have begun on every stream, and after how many seconds."""


class Executor:
    """Runs one compiled schedule as often as one likes; made by ``schedule.executor(...)``.

    Use it in a ``with`` statement, or call :meth:`close`. Buffers with what is in them, threads, and all that is worked
    out about the schedule are kept from run to run.
    """

    def __init__(self, compiled: Compiled, functions: Functions | None, backend: Backend, options: Options) -> None:
        self.compiled = compiled
        self.options = options
        self._setup = set_up(compiled, functions, backend)
        self._busy = threading.Lock()
        self._current: Run | None = None
        self._closed = False
        self._left_behind = False
        self._crew = Crew([stream.name for stream in self._setup.program.streams])
        self._finalizer = weakref.finalize(self, _abandon, self._crew, backend, os.getpid())
        self._process = os.getpid()

    def run(
        self,
        *source: Any,
        inputs: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        watchdog: float | None = None,
        on_stall: OnStall | None = None,
        on_progress: OnProgress | None = None,
        trace: int | None = None,
        counts: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Result:
        """Run once and wait for the end.

        Each parameter of the plan is given a number, a sequence or any other iterable (a source) by name; a plan's
        only one by position, too. ``inputs``
        are contents for ``input: true`` buffers, kept for later runs. After ``timeout`` seconds the run is stopped and
        :class:`RunTimeout` raised. Where nothing has moved for ``watchdog`` seconds, ``on_stall`` gets what every
        stream is at (without it, a warning is logged). ``trace`` overrides the executor's.

        Parameters whose names are taken here can be given in a mapping, ``counts``.

        Raises :class:`ExecutionError` where an op or a source raises, :class:`UsageError` for what does not fit.
        """
        _check_seconds(timeout=timeout, watchdog=watchdog)
        _check_calls(on_stall=on_stall, on_progress=on_progress)
        given = name_counts(self._setup.plan, source, counts, more, "run")
        with _Entered(self, inputs, given, trace) as run:
            self._start(run)
            self._attend(run, timeout, watchdog, on_stall, on_progress)
            self._settle(run)
            return self._result(run)

    def stream(
        self,
        *source: Iterable[Any],
        inputs: Mapping[str, Any] | None = None,
        sink: str | None = None,
        ahead: int | None = None,
        timeout: float | None = None,
        trace: int | None = None,
        counts: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Iterator[Any]:
        """Run once and yield the result of every iteration, in order.

        A result is what the function of op ``sink`` returned (without it: the last host op of the loop that the source
        feeds), or, where that loop has no host op, a dict with copies of the ``output: true`` buffers that it writes.
        At most ``ahead`` results wait to be fetched (without it: as many as the loop's longest ring has slots); then
        the sink's stream waits, and with it, ring by ring, the source. Leaving the loop early stops the run.
        """
        _check_seconds(timeout=timeout)
        if ahead is not None and (isinstance(ahead, bool) or not isinstance(ahead, int) or ahead < 1):
            raise refuse("R107", f"`ahead` is {ahead!r}, and at least one result must find room", help="write ahead=1")
        given = name_counts(self._setup.plan, source, counts, more, "stream")
        return self._stream(inputs, sink, ahead, timeout, trace, given)

    def stop(self, now: bool = False) -> None:
        """Take nothing more from the sources; what has been taken is finished, and the run ends as if they had ended.

        With ``now`` no further op starts, and whoever waits for the run gets :class:`RunStopped`. Safe to call from any
        thread; without a run it does nothing.
        """
        run = self._current
        if run is not None and now:
            run.fail(RunStopped(Diagnostic("R204", "the run was stopped")), None)
        elif run is not None:
            run.end_sources()

    def close(self) -> None:
        """Stop what runs, end the threads, and give the buffers back. Closing twice does no harm.

        Called by a function that the executor runs, it only stops the run; the rest comes when that has ended.
        """
        if self._closed:
            return
        self._closed = True
        if self._process != os.getpid():
            return  # threads and devices are the parent's
        self.stop(now=True)
        if not self._crew.is_here:
            self._shut()

    def _shut(self) -> None:
        """End the threads and give everything back, once."""
        if not self._finalizer.detach():
            return
        if self._crew.busy and not self._left_behind:  # after Ctrl-C nobody wants to wait a second time
            self._crew.join(self.options.grace)
        self._crew.close(0.0 if self._crew.busy else self.options.grace)
        self._setup.kept = None
        self._setup.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def heads(self) -> tuple[Head, ...]:
        """What every stream is at just now."""
        return list_heads(self._setup)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "running" if self._current else "ready"
        return f"<Executor of {self._setup.plan.name!r} on {self._setup.backend.name}: {state}>"

    def _prepare(self, inputs: Mapping[str, Any] | None, given: Mapping[str, Any], trace: int | None) -> Run:
        setup = self._setup
        require_numbers(trace=self.options.trace if trace is None else trace)
        counts = read_counts(setup.plan, given)
        check_inputs(setup.plan, inputs or {})
        setup.backend.put(inputs or {})
        setup.params.clear()
        setup.params.update(counts.known)
        setup.board.reset()
        setup.backend.begin()
        streams, desk = len(setup.program.streams), setup.desk
        desk.op[:] = desk.before[:] = [-1] * streams
        desk.iteration[:] = [0] * streams
        limit = self.options.trace if trace is None else trace
        return Run(setup, counts, new_tape(streams, limit) if limit > 0 else None)

    def _start(self, run: Run, sink: Sink | None = None, deliver: Deliver | None = None) -> None:
        jobs = run.jobs(sink, deliver)
        self._current = run
        run.begin()
        self._crew.start(jobs, run.over)

    def _attend(
        self,
        run: Run,
        timeout: float | None,
        watchdog: float | None,
        on_stall: OnStall | None,
        on_progress: OnProgress | None,
    ) -> None:
        """Wait for the end of a run, looking after it meanwhile."""
        begun = moved = monotonic()
        seen, told = -1, False
        board, desk = self._setup.board, self._setup.desk
        while True:
            left = None if timeout is None else begun + timeout - monotonic()
            pause = _shortest(left, None if watchdog is None else watchdog / 4, 0.1 if on_progress else None)
            ended = self._crew.join(-1 if pause is None else max(0.0, pause))
            now = monotonic()
            if on_progress:
                on_progress(self._iterations(), now - begun)
            if ended:
                return
            if timeout is not None and now >= begun + timeout:
                self._time_out(run, timeout)
                return
            state = sum(board.progress) + sum(desk.iteration) + sum(desk.op)
            if state != seen:
                moved, seen, told = now, state, False
            elif watchdog is not None and now - moved >= watchdog and not told:
                told = True
                (on_stall or _log_stall)(self.heads)

    def _time_out(self, run: Run, timeout: float) -> None:
        heads = self.heads
        notes = tuple(filter(None, [heads_text(heads)]))
        help_ = f"give it more time, such as {10 * timeout:g} s (`timeout=`, `--timeout`), or run fewer iterations"
        finding = Diagnostic("R203", f"the run did not end within {timeout:g} s", notes=notes, help=help_)
        run.fail(RunTimeout(finding, heads=heads), None)

    def _settle(self, run: Run) -> None:
        """After the end: let running ops end where the run was stopped, and raise what went wrong."""
        if run.failure is None:
            return
        if not self._crew.join(self.options.grace):
            run.failure.add_note(f"after {self.options.grace:g} s more, {heads_text(self.heads)}")
        raise run.failure from run.cause

    def _interrupt(self, run: Run, patience: float) -> None:
        """Ctrl-C, or the consumer has gone: stop, and wait a moment for what runs."""
        run.fail(RunStopped(Diagnostic("R204", "the run was interrupted")), None)
        self._left_behind = not self._crew.join(patience)

    def _result(self, run: Run) -> Result:
        setup, device, counts = self._setup, self.compiled.device, dict(self._setup.params)
        program, seconds, start = setup.program, (run.end - run.start) / 1e9, run.start
        tape = _on_host_clock(setup, run.tape) if run.tape is not None else new_tape(len(program.streams), 0)
        source = f"measured on {setup.backend.name}"
        return Result(
            compiled=self.compiled,
            backend=setup.backend.name,
            counts=counts,
            iterations=self._iterations(),
            seconds=seconds,
            outputs=setup.backend.outputs(),
            trace=Trace(lambda: make_timeline(program, device, tape, counts, start, seconds, source)),
        )

    def _iterations(self) -> int:
        """Iterations of the plan's longest loop, or, while it runs, those that all its streams have begun."""
        setup = self._setup
        if not self._crew.busy:
            loops = [item for item in setup.plan.items if isinstance(item, Loop)]
            return max((evaluate(loop.count, setup.params) for loop in loops), default=0)
        looping = [s.number for s in setup.program.streams if any(part.index for part, _ in s.parts)]
        return min((setup.desk.iteration[number] for number in looping), default=0)

    def _stream(
        self,
        inputs: Mapping[str, Any] | None,
        wanted: str | None,
        ahead: int | None,
        timeout: float | None,
        trace: int | None,
        counts: Mapping[str, Any],
    ) -> Iterator[Any]:
        with _Entered(self, inputs, counts, trace) as run:
            setup = self._setup
            board, progress, taken = setup.board, setup.board.progress, setup.taken
            sink = find_sink(setup.plan, run.counts.sources, wanted)
            most = sink.depth if ahead is None else ahead
            queue: deque[Any] = deque()
            stream = setup.stream_of[sink.op].number
            note_delivered = board.recorder(setup.delivered, (setup.consumer,))
            note_taken = board.recorder(taken, (stream,))

            def deliver(i: int, value: Any) -> None:
                if progress[taken] <= i - most:
                    board.await_record(stream, taken, i - most)
                queue.append(value)
                note_delivered(i)

            self._start(run, sink, deliver)
            deadline = None if timeout is None else monotonic() + timeout
            fetched = 0
            while True:
                over = run.end != 0 or bool(board.halted)  # looked at first: what came before it is in the queue
                while queue:
                    value = queue.popleft()
                    note_taken(fetched)
                    fetched += 1
                    yield value
                if over:
                    break
                left = None if deadline is None else deadline - monotonic()
                if timeout is not None and left is not None and left <= 0:
                    self._time_out(run, timeout)
                board.doze(setup.consumer, setup.delivered, fetched, left)
            self._crew.join(self.options.grace)
            self._settle(run)


class _Entered:
    """The time of one run: refuses a second one, and cleans up however it ends."""

    def __init__(
        self, executor: Executor, inputs: Mapping[str, Any] | None, counts: Mapping[str, Any], trace: int | None
    ) -> None:
        self.executor, self.inputs, self.counts, self.trace = executor, inputs, counts, trace
        self.run: Run | None = None

    def __enter__(self) -> Run:
        executor = self.executor
        if executor._closed:
            raise refuse("R130", "the executor is closed", help="make a new one: schedule.executor(...)")
        if executor._process != os.getpid():
            headline = "the executor was made before this process was forked, and its threads are not here"
            raise refuse("R133", headline, help="make a new one in this process: schedule.executor(...)")
        if not executor._busy.acquire(blocking=False):
            headline = "the executor is running already, and it runs one thing at a time"
            raise refuse("R131", headline, help="make one executor for each thread")
        try:
            if executor._crew.busy:
                headline = f"an op of a run that was stopped has not ended yet: {heads_text(executor.heads)}"
                raise refuse("R132", headline, help="wait for it (`grace=60`), or make a new executor")
            self.run = executor._prepare(self.inputs, self.counts, self.trace)
            return self.run
        except BaseException:
            executor._busy.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        executor = self.executor
        try:
            if error is not None and self.run is not None and self.run.failure is None and executor._crew.busy:
                executor._interrupt(self.run, executor.options.grace if kind is GeneratorExit else PROMPT)
        finally:
            executor._current = None
            executor._busy.release()
            if executor._closed:  # by a function of the run
                executor._shut()


def _abandon(crew: Crew, backend: Backend, process: int) -> None:
    """Nobody has closed the executor, and nobody can any more."""
    if process != os.getpid():
        return
    crew.close(0.0)
    if not crew.busy:
        backend.close()


def _on_host_clock(setup: Setup, tape: Tape) -> Tape:
    """The tape with the device's stamps as times of the host's clock."""
    time = setup.backend.time
    for stream, marks in zip(setup.program.streams, tape.ops, strict=True):
        if setup.backend.stamp(stream) is not None:
            timed = [(op, i, time(start), time(end)) for op, i, start, end in marks]
            marks.clear()
            marks.extend(timed)
    return tape


def _check_seconds(**given: object) -> None:
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
            headline = f"`{name}` is {value!r}, and a number of seconds above 0 is needed"
            raise refuse("R107", headline, help=f"write {name}=5.0, or leave it out")


def _check_calls(**given: object) -> None:
    for name, value in given.items():
        if value is not None and not callable(value):
            headline = f"`{name}` is of type `{type(value).__name__}`, and something to call is needed"
            raise refuse("R107", headline, help=f"write {name}=print, or leave it out")


def _shortest(*pauses: float | None) -> float | None:
    return min((pause for pause in pauses if pause is not None), default=None)


def _log_stall(heads: tuple[Head, ...]) -> None:
    LOGGER.warning("nothing moves: %s", heads_text(heads))
