"""Backend ``cpu``: streams are threads of this process, buffers NumPy arrays, and an op ends when its call returns.

Functions get views by parameter name: read-only ones of what an op only reads, of the bytes that it may touch and no
others. Copies and fills are NumPy's, which let other threads run meanwhile.
Without functions the run is *dry*: no memory is taken, and every op sleeps for as long as the device's profile says, on
its engine's lanes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dagsched.compiled import Compiled
from dagsched.plan.expressions import Int
from dagsched.plan.model import Op, OpKind, Plan
from dagsched.run.backend import Call, Options, Runs
from dagsched.run.errors import refuse
from dagsched.run.functions import Functions, Plug
from dagsched.run.moves import copier, filler, move_dynamic
from dagsched.run.numbers import as_number
from dagsched.run.program import OpPoint, Program, StreamProgram
from dagsched.run.storage import Array, Storage, View, allocate, common_period, period_of, slot_of, view_of

if TYPE_CHECKING:
    from dagsched.run.board import Board


LOGGER = logging.getLogger("dagsched.run")


def make_executor(compiled: Compiled, functions: Functions | None, options: Options) -> Runs:
    """An executor on this machine's threads; a dry one without functions."""
    from dagsched.run.executor import Executor

    if functions is None:
        from dagsched.run.dry import Dry

        return Executor(compiled, None, Dry(compiled), options)
    return Executor(compiled, functions, Cpu(), options)


class Cpu:
    """Ops as calls of NumPy and of the user's functions."""

    name = "cpu"
    handle: str | None = None

    def __init__(self) -> None:
        self.storage: dict[str, Storage] = {}
        self._told: set[str] = set()
        self.params: Mapping[str, int] = {}
        self.plan: Plan

    def open(self, program: Program, board: Board, params: Mapping[str, int]) -> None:
        self.storage = allocate(program.plan.buffers)
        self.params = params
        self.plan = program.plan

    def put(self, inputs: Mapping[str, Any]) -> None:
        for name, value in inputs.items():
            self.storage[name].put(value, f'inputs["{name}"]')

    def outputs(self) -> dict[str, Any]:
        newest = newest_versions(self.plan, self.params)
        return {
            name: _copy(store, newest.get(name, 0) % store.depth)
            for name, store in self.storage.items()
            if store.buffer.output
        }

    def begin(self) -> None:
        missing = [name for name, store in self.storage.items() if store.buffer.input and not store.filled]
        if missing:
            first = self.storage[missing[0]].buffer
            names = ", ".join(f"`{name}`" for name in missing)
            headline = f"nothing was given for {names}, which the plan marks as `input: true`"
            given = f'{{"{missing[0]}": array}}'
            help_ = f"write run(inputs={given}), or `inputs = {given}` in the module of `--functions`"
            raise refuse("R112", headline, first.where, self.plan.source, help=help_)

    def call(self, stream: StreamProgram, point: OpPoint, plug: Plug | None, take: Callable[[int], Any] | None) -> Call:
        op = point.op
        index = point.loop.index if point.loop else None
        stores = [self.storage[access.buffer] for access in op.accesses]
        if op.kind is OpKind.COPY:
            source, target = op.accesses
            if any(store.buffer.dynamic for store in stores):
                return move_dynamic(
                    stores[0], slot_of(source, stores[0], index, self.params),
                    stores[1], slot_of(target, stores[1], index, self.params),
                )  # fmt: skip
            views = [view_of(a, s, index, self.params) for a, s in zip(op.accesses, stores, strict=True)]
            periods = [period_of(a, s, index) for a, s in zip(op.accesses, stores, strict=True)]
            return copier(views[0], views[1], common_period(periods))
        if op.kind is OpKind.FILL:
            return filler(view_of(op.accesses[0], stores[0], index, self.params, write=True), op.value)
        assert plug is not None
        views = [view_of(a, s, index, self.params) for a, s in zip(op.accesses, stores, strict=True)]
        period = common_period([period_of(a, s, index) for a, s in zip(op.accesses, stores, strict=True)])
        return call_function(plug, views, period, take)

    def returned(self, point: OpPoint) -> Callable[[object], None] | None:
        op = point.op
        written = [access.buffer for access in op.accesses if access.mode.writes]
        if not written or op.function is None or op.name in self._told:
            return None
        slots = [slot for name in written for slot in self.storage[name].slots]

        def look(value: object) -> None:
            self._told.add(op.name)
            if isinstance(value, np.ndarray) and not any(np.may_share_memory(value, slot) for slot in slots):
                LOGGER.warning(
                    "function `%s` returned an array, which goes nowhere: let it write into `%s` (`%s[:] = ...`)",
                    op.function, written[0], written[0],
                )  # fmt: skip

        return look

    def look(self, buffers: tuple[str, ...], point: OpPoint) -> Call:
        index = point.loop.index if point.loop else None
        written = {access.buffer: access for access in point.op.accesses if access.mode.writes}
        slots = [(name, slot_of(written[name], self.storage[name], index, self.params)) for name in buffers]

        def look(i: int) -> dict[str, Array]:
            return {name: _copy(self.storage[name], slot(i)) for name, slot in slots}

        return look

    def record(self, stream: StreamProgram, number: int) -> Callable[[int], None] | None:
        return None

    def wait(self, stream: StreamProgram, number: int) -> Callable[[int], None] | None:
        return None

    def stamp(self, stream: StreamProgram) -> Callable[[], Any] | None:
        return None

    def time(self, stamp: Any) -> int:
        return int(stamp)

    def finish(self, stream: StreamProgram) -> None:
        return None

    def close(self) -> None:
        self.storage.clear()


def _copy(store: Storage, slot: int) -> Array:
    return (store.actual(slot) if store.buffer.dynamic else store.slots[slot]).copy()


def newest_versions(plan: Plan, params: Mapping[str, int]) -> dict[str, int]:
    """For every buffer that a run has written, the version that the plan's order writes last."""
    newest: dict[str, int] = {}
    for item in plan.items:
        ops = [item] if isinstance(item, Op) else [op for op in item.body if isinstance(op, Op)]
        index = None if isinstance(item, Op) else item.index
        last = 0 if isinstance(item, Op) else as_number(item.count, None, params)(0) - 1
        for access in (access for op in ops for access in op.accesses if access.mode.writes and last >= 0):
            newest[access.buffer] = as_number(access.version or Int(0), index, params)(last)
    return newest


def call_function(
    plug: Plug, views: list[View], period: int | None, take: Callable[[int], Any] | None, queue: Any = None
) -> Call:
    """A call of a function in iteration i: with views by name, and the indices, the item and the queue if it asks."""
    function = plug.function
    told: dict[str, Any] = {name: value for name, value in plug.indices if value is not None}
    if plug.handle is not None:
        told[plug.handle] = queue
    own = [name for name, value in plug.indices if value is None]
    with_item = plug.item and take is not None
    if period is not None and not own and not with_item:
        return _call_table(plug, views, period, told)
    positional = [views[number] for number in plug.positional]
    named = [(name, views[number]) for name, number in plug.named]

    def call(i: int) -> object:
        arguments: dict[str, Any] = {name: view(i) for name, view in named}
        arguments.update(told)
        for name in own:
            arguments[name] = i
        if with_item and take is not None:
            arguments["item"] = take(i)
        return function(*[view(i) for view in positional], **arguments)

    if period is None:
        return call
    table = [
        (tuple(view(i) for view in positional), {**{name: view(i) for name, view in named}, **told})
        for i in range(period)
    ]

    def call_kept(i: int) -> object:
        args, kept = table[i % period]
        arguments: dict[str, Any] = dict(kept)
        for name in own:
            arguments[name] = i
        if with_item and take is not None:
            arguments["item"] = take(i)
        return function(*args, **arguments)

    return call_kept


def _call_table(plug: Plug, views: list[View], period: int, told: dict[str, Any]) -> Call:
    """Calls whose arguments repeat: made once."""
    function = plug.function
    if plug.ordered and not told:
        numbers = [*plug.positional, *(number for _, number in plug.named)]
        rows = [tuple(views[number](i) for number in numbers) for i in range(period)]
        if period == 1:
            only = rows[0]
            return lambda i: function(*only)
        return lambda i: function(*rows[i % period])
    args = [tuple(views[number](i) for number in plug.positional) for i in range(period)]
    named = [{**{name: views[number](i) for name, number in plug.named}, **told} for i in range(period)]
    return lambda i: function(*args[i % period], **named[i % period])
