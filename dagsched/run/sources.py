"""Counts and sources: what ``run(frames=...)`` is given for a parameter.

A number is a count. A sequence is a count, its length, and iteration i gets element i. Any other iterable is a source:
how many items it has is known when it ends. It is asked in a thread of its own, one item ahead of the first op that
takes one (or of the loop's first op), so that it is never asked for more than the rings have room for.
"""

from __future__ import annotations

import operator
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import isgeneratorfunction
from typing import Any

from dagsched.diagnostics import closest
from dagsched.plan.expressions import Comparison, Int, Name, add, names_in, names_in_condition
from dagsched.plan.model import Plan
from dagsched.run.board import LOOK_AGAIN, Board
from dagsched.run.errors import refuse
from dagsched.run.program import OpPoint, Point, Program, RecordPoint, Section, WaitPoint, linear_shift

ENDLESS = 2**62
"""The progress of a source that has ended, and the count of one that has not."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What the parameters of a run are: numbers, sequences with their elements, and sources."""

    known: dict[str, int]
    sequences: dict[str, Any]
    sources: dict[str, Iterable[Any]]


def name_counts(
    plan: Plan, source: tuple[Any, ...], counts: object, more: Mapping[str, Any], call: str
) -> dict[str, Any]:
    """What ``run`` or ``stream`` is given for parameters: one by position, in a mapping, and by name; else R107."""
    if counts is not None and not isinstance(counts, Mapping):
        headline = f"`counts` is of type `{type(counts).__name__}`, and a mapping from parameters to values is needed"
        raise refuse("R107", headline, help='write counts={"NAME": 100}')
    given = {**(counts or {}), **more}
    params = list(plan.params)
    if source and (len(source) > 1 or len(params) != 1):
        names = ", ".join(f"`{name}`" for name in params) or "none"
        headline = f"`{call}` takes one value by position, and the plan's parameters are {names}"
        raise refuse("R107", headline, help=f"write {call}({params[0]}=items)" if params else f"write {call}()")
    return {**given, params[0]: source[0]} if source else given


def read_counts(plan: Plan, given: Mapping[str, Any]) -> Counts:
    """Sort what a run is given; raises :class:`UsageError` (R103 to R105)."""
    known: dict[str, int] = {}
    sequences: dict[str, Any] = {}
    sources: dict[str, Iterable[Any]] = {}
    for name, value in given.items():
        if name not in plan.params:
            near = closest(name, plan.params)
            known_names = ", ".join(f"`{param}`" for param in plan.params)
            note = (f"the plan's parameters are {known_names}",) if plan.params else ("the plan has no parameters",)
            help_ = f"did you mean `{near}`?" if near else f"drop it, or declare `params: {{{name}: null}}` in the plan"
            raise refuse("R103", f"`{plan.name}` has no parameter `{name}`", notes=note, help=help_)
        if value is None or isinstance(value, Mapping | set | frozenset | str | bytes | bool):
            raise _no_count(name, value)
        try:
            known[name] = operator.index(value)
        except TypeError:
            if hasattr(value, "__len__") and hasattr(value, "__getitem__"):
                sequences[name] = value
                known[name] = len(value)
            elif isinstance(value, Iterable):
                sources[name] = value
            else:
                raise _no_count(name, value) from None
    for name, default in plan.params.items():
        if name not in given:
            if default is None:
                help_ = f"write run({name}=100), or give an iterable"
                raise refuse("R105", f"the run needs a value for `{name}`", help=help_)
            known[name] = default
    for name, count in known.items():
        if count < 0:
            raise refuse("R104", f"`{name}` is {count}, and a count is never negative", help=f"write {name}=0")
    return Counts(known, sequences, sources)


def _no_count(name: str, value: object) -> Exception:
    kind = type(value).__name__
    help_ = f"write run({name}=100), or give an iterable"
    if isinstance(value, str | bytes):
        number = value.strip() if isinstance(value, str) and value.strip().isdecimal() else "list(items)"
        help_ = f"write run({name}={number})"
    elif hasattr(value, "__aiter__"):
        help_ = "give a plain iterable, such as iter(queue.get, None) of a queue.Queue that a task fills"
    elif callable(getattr(value, "get", None)) and not isinstance(value, Mapping):
        help_ = f"write {name}=iter(queue.get, None), which ends when None comes"
    elif isgeneratorfunction(value):
        help_ = f"call it: {name}={value.__name__}()"
    return refuse("R104", f"`{name}` is neither a count nor a list or source of items but of type `{kind}`", help=help_)


def check_inputs(plan: Plan, inputs: object) -> None:
    """Refuse contents for what is no input of the plan (R109)."""
    if not isinstance(inputs, Mapping):
        headline = f"`inputs` is of type `{type(inputs).__name__}`, and a mapping from buffers to arrays is needed"
        raise refuse("R109", headline, help='write inputs={"NAME": array}')
    known = [buffer.name for buffer in plan.buffers.values() if buffer.input]
    for name in (name for name in inputs if name not in known):
        near = closest(name, known)
        headline = f"`inputs` names `{name}`, which is no buffer with `input: true`"
        help_ = (
            f"did you mean `{near}`?"
            if near
            else f"the plan's inputs are {', '.join(f'`{known_name}`' for known_name in known) or 'none'}"
        )
        raise refuse("R109", headline, help=help_)


def find_lead(program: Program, param: str) -> Section:
    """The loop that a source of ``param`` feeds: the first whose count it is.

    Raises :class:`UsageError` (R106) where something before the source's end depends on how many items it has.
    """
    for section in program.sections:
        if section.counted == param:
            _require_open_count(program, param, section)
            return section
        if section.index is not None and param in names_in(section.hi):
            break
    headline = f"no loop takes `{param}` as its count, so that no source can feed it"
    raise refuse("R106", headline, help=f"give `{param}` as a number or a list")


def _require_open_count(program: Program, param: str, lead: Section) -> None:
    for stream in program.streams:
        for section, points in stream.parts:
            if section.number > lead.number:
                continue
            for point in points:
                if _depends(point, param, section):
                    name = point.op.name if isinstance(point, OpPoint) else stream.name
                    where = point.op.where if isinstance(point, OpPoint) else None
                    headline = f"`{name}` needs to know `{param}` before the source of it has ended"
                    source = program.plan.source if where else None
                    raise refuse("R106", headline, where, source, help=f"give `{param}` as a number or a list")


def _depends(point: Point, param: str, section: Section) -> bool:
    """Whether a point of the loop that a source feeds cannot do without the count."""
    if isinstance(point, OpPoint) and section.late:
        if set(point.when) != _rounds_of(point, section):
            return True  # it does not run in just the rounds in which the items say that it has an iteration
        point = replace(point, when=())
    if isinstance(point, WaitPoint):
        return point.index is not None and param in names_in(point.index)  # one too many does no harm
    return not isinstance(point, RecordPoint) and param in names_of(point)


def _rounds_of(point: OpPoint, section: Section) -> set[Comparison]:
    """The guard of an op that is issued late: that its iteration exists."""
    index, counted = section.index or "", section.counted or ""
    late = -linear_shift(point.iteration or Int(0), index)
    first = {Comparison(Name(index), ">=", Int(late))} if late else set()
    last = {Comparison(Name(index), "<", add(Name(counted), late))} if late < section.late else set()
    return first | last


def names_of(point: Point) -> frozenset[str]:
    """The names that a point's expressions use."""
    found = names_in_condition(point.when)
    if not isinstance(point, OpPoint):
        return found | names_in(point.index) if point.index is not None else found
    bounds = [bound for access in point.op.accesses for part in access.region for bound in (part.lo, part.hi)]
    bounds += [access.version for access in point.op.accesses]
    return found.union(*(names_in(bound) for bound in bounds if bound is not None))


def names_of_part(section: Section, points: Iterable[Point]) -> frozenset[str]:
    """The names that a stream must have values for before it enters a section."""
    found = names_in(section.lo) | names_in(section.hi)
    return found.union(*(names_of(point) for point in points))


class Source:
    """One source in one run: the thread that asks it, and the items that wait for their ops.

    ``takers`` are the ops that take items, each once an iteration and in order; ``pulled`` is the number of the board's
    counter of items that have come, ``readers`` are the streams that wait for them.
    A source may sleep for as long as it likes, so that its thread can outlive the run. Once ``count`` is known, nothing
    that the thread does reaches the board any more.
    """

    def __init__(
        self,
        board: Board,
        param: str,
        iterable: Iterable[Any],
        pulled: int,
        takers: Iterable[str],
        readers: tuple[int, ...],
    ) -> None:
        self.board = board
        self.param = param
        self.iterable = iterable
        self.pulled = pulled
        self.waiting: dict[str, deque[Any]] = {op: deque() for op in takers}
        self.readers = readers
        self.count = ENDLESS
        self._come = self._asked = 0
        self._asleep = False
        self._lock = threading.Lock()
        self._bed = threading.Lock()
        self._bed.acquire()
        self._note = board.recorder(self.pulled, readers)

    def start(self, ended: Callable[[int], None], failed: Callable[[BaseException, int], None]) -> None:
        """Begin to ask; ``ended`` is told the count, ``failed`` what the source raised, and for which item."""
        self._ended, self._failed = ended, failed
        threading.Thread(target=self._work, name=f"dagsched:{self.param}", daemon=True).start()

    def end(self) -> None:
        """Take no more items than have come."""
        with self._lock:
            if self.count != ENDLESS:
                return
            self.count = self._come
            self._ended(self.count)
            self.board.progress[self.pulled] = ENDLESS
        for reader in self.readers:
            self.board.wake(reader)
        self._wake()

    def ask(self, i: int) -> None:
        """The first stream to use items begins iteration i: item i + 1 may be asked for."""
        self._asked = max(self._asked, i + 1)
        if self._asleep:
            self._wake()

    def has(self, thread: int, i: int) -> bool:
        """Whether iteration i exists; sleeps until that is known."""
        if self.board.progress[self.pulled] <= i:
            self.board.await_record(thread, self.pulled, i)
        return i < self.count

    def await_end(self, thread: int) -> None:
        """Sleep until the count is known."""
        self.board.await_record(thread, self.pulled, ENDLESS - 1)

    def _wake(self) -> None:
        self._asleep = False
        with suppress(RuntimeError):  # it has been called already
            self._bed.release()

    def _await_demand(self, number: int) -> None:
        """Sleep until item ``number`` may be asked for, or the count is known."""
        while self._asked < number and self.count == ENDLESS:
            self._asleep = True
            if self._asked < number and self.count == ENDLESS:
                self._bed.acquire(timeout=LOOK_AGAIN)
        self._asleep = False

    def _work(self) -> None:
        number = 0
        try:
            iterator: Iterator[Any] = iter(self.iterable)
            while self.count == ENDLESS:
                item = next(iterator, self)
                if item is self:
                    self.end()
                    return
                with self._lock:
                    if self.count != ENDLESS:
                        return
                    for line in self.waiting.values():
                        line.append(item)
                    self._come = number = number + 1
                    self._note(number - 1)
                    for reader in self.readers:
                        if self.board.restless[reader]:
                            self.board.wake(reader)
                self._await_demand(number)
        except BaseException as error:  # noqa: BLE001 - whatever the source raises is told to the caller
            if self.count == ENDLESS:
                self._failed(error, number)


@dataclass(frozen=True, slots=True)
class Feed:
    """A source with the loop that it feeds, and the stream whose iterations keep it going."""

    source: Source
    section: Section
    leader: int
