"""Build a plan in Python, step by step, with the same checks, codes and meaning as a plan file.

The builder gathers the values of a plan file and sends them through the reader, so that a plan built here and the same
plan in YAML are equal, and the same mistake has the same code. Places in messages are lines of the Python file that
made the plan.
"""

from __future__ import annotations

import linecache
import math
import operator
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypedDict, Unpack

from dagsched.diagnostics import Diagnostic, Label, PlanError, Source, Where
from dagsched.nodes import Lines, Node
from dagsched.plan import model as plan_model
from dagsched.plan.reader import plan_from_node
from dagsched.plan.units import time_text
from dagsched.plan.writer import plan_data, plan_text

Names = Sequence[str] | str
"""One access or op, or several, each written as in a plan file: ``"state@i-1[0:4KiB]"``."""


class OpOptions(TypedDict, total=False):
    """What every op may say; ``time`` is in seconds, or a text with a unit."""

    after: Names
    engine: str | None
    stream: str | None
    time: float | str | None
    priority: int | None


class FunctionOptions(OpOptions, total=False):
    """What compute and host ops may say besides; ``args`` maps parameter names to buffers."""

    reads: Names
    writes: Names
    updates: Names
    accumulates: Names
    args: Mapping[str, str] | None
    cores: int | None


class ComputeOptions(FunctionOptions, total=False):
    """What compute ops may say besides: ``work={"flop": 12.3e9, "bytes": "4MiB"}`` instead of a time."""

    work: Mapping[str, float | str] | None


class _CallSite(Lines):
    """The place of all that one call added."""

    __slots__ = ("place",)

    def __init__(self, line: int) -> None:
        super().__init__("")
        self.place = Where(line, 1)

    def where(self, start: int, end: int) -> Where:
        return self.place


Entries = list[tuple[Node, Node]]


class Plan:
    """A plan under construction; :attr:`model` is the finished, frozen :class:`dagsched.plan.model.Plan`.

    Sizes are bytes, or texts with a unit (``"48MiB"``); times are seconds, or texts with a unit (``"1.4 ms"``).
    Mistakes are reported, all at once, when :attr:`model` is asked for (:class:`dagsched.diagnostics.PlanError`).
    """

    def __init__(
        self,
        name: str,
        *,
        device: str | Mapping[str, Any] = "ascend-910b",
        params: Mapping[str, int | None] | None = None,
        streams_max: int | None = None,
        policy: str = "auto",
        memory: Mapping[Literal["host", "device"], int | str] | None = None,
    ) -> None:
        self._file = sys._getframe(1).f_code.co_filename
        self._made_at = sys._getframe(1).f_lineno
        self._head: Entries = []
        self._params: Entries = []
        self._buffers: Entries = []
        self._bodies: list[list[Node]] = [[]]
        self._finished: tuple[plan_model.Plan, tuple[Diagnostic, ...]] | None = None
        streams = _given(max=streams_max, policy=None if policy == "auto" else policy)
        for key, value in {"dagsched": 1, "name": name, "device": device, "streams": streams or None,
                           "memory": memory or None}.items():  # fmt: skip
            if value is not None:
                self._add(self._head, key, value)
        for param, default in (params or {}).items():
            self._add(self._params, param, default)

    @classmethod
    def from_model(cls, model: plan_model.Plan, warnings: tuple[Diagnostic, ...] | None = None) -> Plan:
        """A builder that starts from a finished plan.

        With the ``warnings`` of its reader the plan is taken as it is, places in its file included, until something is
        added to it.
        """
        data = plan_data(model)
        plan = cls(
            data["name"],
            device=data["device"],
            params=data.get("params"),
            streams_max=model.streams.max,
            policy=model.streams.policy,
            memory=data.get("memory"),
        )
        plan._file, plan._made_at = sys._getframe(1).f_code.co_filename, sys._getframe(1).f_lineno
        for name, entry in data["buffers"].items():
            plan._add(plan._buffers, name, entry)
        plan._bodies[0] = [_node(item, plan._site()) for item in data["ops"]]
        plan._finished = None if warnings is None else (model, warnings)
        return plan

    def param(self, name: str, default: int | None = None) -> str:
        """Declare a number that is known when the program runs; returns its name."""
        self._add(self._params, name, default)
        return name

    def buffer(
        self,
        name: str,
        *,
        place: Literal["host", "device"],
        size: int | str | None = None,
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
        ring: int | Literal["auto"] | Mapping[str, int] = 1,
        pageable: bool = False,
        input: bool = False,
        output: bool = False,
        dynamic: bool = False,
    ) -> str:
        """Declare a buffer by ``size``, or by ``shape`` and ``dtype``; returns its name."""
        marks = {"pageable": pageable, "input": input, "output": output, "dynamic": dynamic}
        self._add(self._buffers, name, _given(place=place, size=size, shape=shape, dtype=dtype, ring=ring) | marks)
        return name

    def copy(self, name: str, source: str, target: str, **options: Unpack[OpOptions]) -> str:
        """Add a copy; returns the op's name."""
        self._op(name, {"copy": {"from": source, "to": target}}, options)
        return name

    def fill(self, name: str, target: str, value: int = 0, **options: Unpack[OpOptions]) -> str:
        """Add an op that sets every byte of ``target`` to ``value``; returns the op's name."""
        self._op(name, {"fill": {"to": target, "value": value}}, options)
        return name

    def compute(self, name: str, function: str | None = None, **options: Unpack[ComputeOptions]) -> str:
        """Add a function on the device, by default the one of the op's name; returns the op's name."""
        self._op(None if function is None else name, {"compute": name if function is None else function}, options)
        return name

    def host(self, name: str, function: str | None = None, **options: Unpack[FunctionOptions]) -> str:
        """Add a function on the host, by default the one of the op's name; returns the op's name."""
        self._op(None if function is None else name, {"host": name if function is None else function}, options)
        return name

    @contextmanager
    def loop(self, index: str, count: int | str) -> Iterator[str]:
        """``with plan.loop("i", count="frames"):`` puts what follows into a loop; yields the index's name."""
        site = self._site()
        self._bodies.append([])
        try:
            yield index
        except BaseException:
            self._bodies.pop()
            raise
        body = _sequence(self._bodies.pop(), site)
        head = _node({"loop": index, "count": count}, site)
        self._append(_mapping([*head.entries, (_node("ops", site), body)], site))

    @property
    def model(self) -> plan_model.Plan:
        """The plan as written; raises :class:`PlanError` with all that is wrong."""
        return self._finish()[0]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the plan's author should look at; raises :class:`PlanError` where the plan is wrong."""
        return self._finish()[1]

    def to_yaml(self, schema: str | None = None) -> str:
        """The plan as canonical YAML; raises :class:`PlanError` where it is wrong."""
        return plan_text(self.model, schema)

    def _finish(self) -> tuple[plan_model.Plan, tuple[Diagnostic, ...]]:
        if len(self._bodies) > 1:
            raise RuntimeError("the plan is asked for inside `with plan.loop(...)`; leave the loop first")
        if self._finished is None:
            source = Source(self._file, "".join(linecache.getlines(self._file)))
            self._refuse_twice(source)
            site = _CallSite(self._made_at)
            entries = list(self._head)
            if self._params:
                entries.append((_node("params", site), _mapping(self._params, site)))
            entries.append((_node("buffers", site), _mapping(self._buffers, site)))
            entries.append((_node("ops", site), _sequence(self._bodies[0], site)))
            self._finished = plan_from_node(_mapping(entries, site), source)
        return self._finished

    def _refuse_twice(self, source: Source) -> None:
        """A second buffer or parameter of one name is the mistake that a duplicate key is in a file."""
        found = []
        for entries in (self._params, self._buffers):
            first: dict[str, Node] = {}
            for key, _ in entries:
                if key.raw in first:
                    label = Label(first[key.raw].where, "the first one")
                    headline = f"the key `{key.raw}` stands twice"
                    found.append(Diagnostic("P004", headline, key.where, source, (label,)))
                first.setdefault(key.raw, key)
        if found:
            raise PlanError(found)

    def _op(self, name: str | None, what: dict[str, Any], options: Mapping[str, Any]) -> None:
        """Add an op; one without a name is called by its function's."""
        values = {key: value for key, value in options.items() if value is not None}
        for key in ("reads", "writes", "updates", "accumulates", "after"):
            if isinstance(values.get(key), str):
                values[key] = [values[key]]
        if "time" in values:
            values["time"] = _time(values["time"])
        named = {} if name is None else {"name": name}
        self._append(_node({**named, **what, **values}, self._site()))

    def _append(self, item: Node) -> None:
        self._finished = None
        self._bodies[-1].append(item)

    def _add(self, entries: Entries, key: str, value: Any) -> None:
        self._finished = None
        site = self._site()
        entries.append((_node(key, site), _node(value, site)))

    def _site(self) -> _CallSite:
        """The line of the plan's own file that is being executed; where the plan was made, if none is."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._file:
            if frame.f_back is None:
                return _CallSite(self._made_at)
            frame = frame.f_back
        return _CallSite(frame.f_lineno)


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _time(value: Any) -> Any:
    """Seconds as the text that a plan file would have."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return time_text(value) if number and math.isfinite(value) else str(value) if number else value


def _node(value: Any, site: _CallSite) -> Node:
    """Plain data as a node; integers of other libraries become Python's."""
    if isinstance(value, Mapping):
        return _mapping([(_node(str(key), site), _node(item, site)) for key, item in value.items()], site)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return _sequence([_node(item, site) for item in value], site)
    if hasattr(value, "__index__") and not isinstance(value, bool):
        value = operator.index(value)
    text = isinstance(value, str)
    return Node("scalar", 0, 0, site, value, str(value), quoted=text)


def _mapping(entries: Entries, site: _CallSite) -> Node:
    return Node("mapping", 0, 0, site, flow=True, by_key={key.raw: (key, value) for key, value in entries})


def _sequence(items: list[Node], site: _CallSite) -> Node:
    return Node("sequence", 0, 0, site, flow=True, items=tuple(items))
