"""One run: what the streams' threads do in it, where its items come from, and what went wrong.

The first failure counts; it halts the board, so that no op starts after it. Nothing here belongs to the next run.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import perf_counter_ns
from typing import Any

from dagsched.diagnostics import Diagnostic, UsageError
from dagsched.plan.expressions import Name, evaluate
from dagsched.run.board import Halt
from dagsched.run.errors import ExecutionError, describe_failure, instance
from dagsched.run.follow import Part, follow_stream
from dagsched.run.heads import DONE, list_heads
from dagsched.run.program import Section, StreamProgram
from dagsched.run.setup import Setup
from dagsched.run.sinks import Sink
from dagsched.run.sources import ENDLESS, Counts, Feed, Source, find_lead, names_of_part
from dagsched.run.tape import Tape

Deliver = Callable[[int, Any], None]


class Run:
    """A run of a setup; ``start`` and ``end`` are nanoseconds of ``time.perf_counter_ns`` (0: not yet)."""

    def __init__(self, setup: Setup, counts: Counts, tape: Tape | None) -> None:
        self.setup = setup
        self.counts = counts
        self.tape = tape
        self.failure: ExecutionError | None = None
        self.cause: BaseException | None = None
        self.start = 0
        self.end = 0
        self._lock = threading.Lock()
        self._feeds: dict[str, Feed] = {}
        self._takes: dict[str, Callable[[int], Any]] = {}

    def jobs(self, sink: Sink | None = None, deliver: Deliver | None = None) -> list[Callable[[], None]]:
        """What each stream's thread is to do; raises :class:`UsageError` (R106, R114) for sources that do not fit."""
        setup = self.setup
        sections = {param: find_lead(setup.program, param) for param in self.counts.sources}
        takers = self._find_takers(sections)
        for param, iterable in self.counts.sources.items():
            pulled, section = setup.pulled[param], sections[param]
            source = Source(setup.board, param, iterable, pulled, takers[param], self._readers(param))
            self._feeds[param] = Feed(source, section, self._leader(section, takers[param]))
            for op in takers[param]:
                self._takes[op] = _taker(source, op)
        parts = self._parts(sink, deliver)
        return [self._job(stream, parts[stream.number]) for stream in setup.program.streams]

    def begin(self) -> None:
        """Start the clock and the sources."""
        params = self.setup.params
        self.start = perf_counter_ns()
        for param, feed in self._feeds.items():

            def ended(count: int, param: str = param) -> None:
                params[param] = count

            def failed(error: BaseException, number: int, param: str = param) -> None:
                subject = f"the source of `{param}`, asked for item {number},"
                finding = describe_failure(error, subject, None, None, ())
                self.fail(ExecutionError(finding, iteration=number), error)

            feed.source.start(ended, failed)

    def over(self) -> None:
        """Every thread has come to its end."""
        setup = self.setup
        with self._lock:
            self.end = perf_counter_ns()
        for feed in self._feeds.values():
            feed.source.end()
        setup.board.progress[setup.delivered] = ENDLESS
        setup.board.wake(setup.consumer)

    def end_sources(self) -> None:
        """Take no more items than have come."""
        for feed in self._feeds.values():
            feed.source.end()

    def fail(self, failure: ExecutionError, cause: BaseException | None) -> None:
        """End the run for this reason, unless there is one already; what is over cannot fail."""
        with self._lock:
            if self.end:
                return
            if self.failure is None:
                self.failure, self.cause = failure, cause
            self.setup.board.halt()
        self.end_sources()

    # What threads do

    def _job(self, stream: StreamProgram, parts: list[Part]) -> Callable[[], None]:
        setup = self.setup

        def job() -> None:
            try:
                for part in parts:
                    self._follow(stream.number, part)
                setup.backend.finish(stream)
            except Halt:
                self._let_end(stream)
            except BaseException as error:  # noqa: BLE001 - a function may raise anything, and the caller is told
                self._op_failed(stream, error)
                self._let_end(stream)
            setup.desk.op[stream.number] = DONE

        return job

    def _let_end(self, stream: StreamProgram) -> None:
        """What a device has been given ends before its memory is used again; its failures have a reason already."""
        with suppress(Exception):
            self.setup.backend.finish(stream)

    def _follow(self, me: int, part: Part) -> None:
        section, steps = part.section, part.steps
        for param, feed in self._feeds.items():
            if feed.section.number == section.number:
                if part.rounds is not None:
                    part.rounds.follow()
                    return
                for i in itertools.count():
                    if feed.leader == me:
                        feed.source.ask(i)
                    if not feed.source.has(me, i):
                        return
                    for step in steps:
                        step(i)
            elif section.number > feed.section.number and param in part.names:
                feed.source.await_end(me)
        if section.index is None:
            for step in steps:
                step(0)
            return
        params = self.setup.params
        for i in range(evaluate(section.lo, params), evaluate(section.hi, params)):
            for step in steps:
                step(i)

    def _op_failed(self, stream: StreamProgram, error: BaseException) -> None:
        setup = self.setup
        setup.board.halted.append(True)  # before anything else: no op starts any more
        number = setup.desk.op[stream.number]
        heads = list_heads(setup, stream.number)
        if number < 0:
            finding = describe_failure(error, f"stream `{stream.name}`", None, None, heads)
            self.fail(ExecutionError(finding, stream=stream.name, heads=heads), error)
            return
        name = setup.names[number]
        point = setup.points[name]
        iteration = point.own(setup.desk.iteration[stream.number])
        subject = f"op `{instance(name, iteration)}` on stream `{stream.name}`"
        finding = describe_failure(error, subject, point.op.where, setup.plan.source, heads)
        self.fail(ExecutionError(finding, op=name, iteration=iteration, stream=stream.name, heads=heads), error)

    # What jobs are made of

    def _parts(self, sink: Sink | None, deliver: Deliver | None) -> list[list[Part]]:
        """The steps of every stream; kept for later runs where nothing in them belongs to this one."""
        setup = self.setup
        late = any(feed.section.late for feed in self._feeds.values())
        lasting = self.tape is None and sink is None and not self._takes and not late
        if lasting and setup.kept is not None:
            return setup.kept
        desk = setup.desk
        desk.tape, desk.deliver = self.tape, deliver
        desk.sink = -1 if sink is None else desk.numbers[sink.op]
        looks = {sink.op: sink.buffers} if sink is not None and sink.buffers else {}
        parts = [
            follow_stream(
                setup.program, stream, desk, setup.backend, setup.plugs, setup.locks, self._takes.get, looks,
                setup.sleepers, self._feeds.values(),
            )
            for stream in setup.program.streams
        ]  # fmt: skip
        if lasting:
            setup.kept = parts
        return parts

    def _find_takers(self, sections: Mapping[str, Section]) -> dict[str, list[str]]:
        """The ops that take each source's items; every op that asks for items must get some."""
        setup = self.setup
        found: dict[str, list[str]] = {param: [] for param in sections}
        faults = []
        for name in (name for name, plug in setup.plugs.items() if plug.item):
            point = setup.points[name]
            fed = [param for param, section in sections.items() if section.loop and section.loop == point.loop]
            param = point.loop.count.name if point.loop and isinstance(point.loop.count, Name) else None
            if fed:
                found[fed[0]].append(name)
            elif param in self.counts.sequences:
                self._takes[name] = self.counts.sequences[param].__getitem__
            else:
                headline = f"the function of op `{name}` takes `item`, and no source feeds its loop"
                given = f'run({param}=items), or `sources = {{"{param}": items}}` in the module of `--functions`'
                help_ = f"give an iterable: {given}" if param else "drop the parameter `item`"
                faults.append(Diagnostic("R114", headline, point.op.where, setup.plan.source, help=help_))
        if faults:
            raise UsageError(faults)
        return found

    def _leader(self, section: Section, takers: list[str]) -> int:
        """The stream that the source keeps ahead of."""
        if takers:
            return self.setup.stream_of[takers[0]].number
        streams = self.setup.program.streams
        return next(s.number for s in streams if any(own.number == section.number for own, _ in s.parts))

    def _readers(self, param: str) -> tuple[int, ...]:
        """The streams that a source's progress may let go on."""
        return tuple(
            stream.number
            for stream in self.setup.program.streams
            if any(param in names_of_part(section, points) for section, points in stream.parts)
        )


def _taker(source: Source, op: str) -> Callable[[int], Any]:
    take = source.waiting[op].popleft
    return lambda i: take()
