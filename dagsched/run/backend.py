"""What a backend must provide, and the table of backends by name.

A backend turns ops into calls; order, loops, sources, failures and measurements are the executor's business. All calls
for one stream come from that stream's own thread, in the order in which the schedule issues them. On a backend whose
streams are the threads themselves (``cpu``), an op has ended when its call returns, and a record and a wait are nothing
but the executor's own book-keeping; on one with queues, calls enqueue, and records and waits are events of the device.

A module that the table names has ``make_executor(compiled, functions, options)``, and ``OPTIONS``, the names of what
only it knows, if there is anything. The modules of this package get there by a :class:`Backend`; any other object with
the methods of :class:`Runs` will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from dagsched.compiled import Compiled
from dagsched.diagnostics import closest
from dagsched.run.errors import refuse
from dagsched.run.functions import Functions, Plug
from dagsched.run.program import OpPoint, Program, StreamProgram

if TYPE_CHECKING:
    from dagsched.run.board import Board
    from dagsched.run.result import Result

Call = Callable[[int], object]
"""Runs or enqueues an op in the iteration of its own loop; yields what its function returned."""

BACKENDS: dict[str, str] = {
    "cpu": "dagsched.run.cpu",
    "simulate": "dagsched.run.simulate",
    "opencl": "dagsched.run.opencl",
    "acl": "dagsched.run.acl_device",
    "torch": "dagsched.run.torch_device",
}
"""Backends by name: the module whose ``make_executor`` makes the executor."""


@dataclass(frozen=True, slots=True)
class Options:
    """``trace`` is how many op instances a run remembers at most (the last ones); ``grace`` how many seconds running
    ops get to end in when a run is stopped; ``extra`` is what only one backend knows."""

    trace: int = 100_000
    grace: float = 10.0
    extra: Mapping[str, Any] | None = None


class Runs(Protocol):
    """An executor: what ``schedule.executor(...)`` yields, on every backend."""

    def run(self, *source: Any, **counts: Any) -> Result:
        """Run once."""

    def stream(self, *source: Any, **counts: Any) -> Iterator[Any]:
        """Run once, and yield each iteration's result."""

    def stop(self) -> None:
        """Take nothing more from the sources of the run that goes on."""

    def close(self) -> None:
        """Give everything back."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Backend(Protocol):
    """Turns ops into calls, for an executor whose streams are threads."""

    name: str
    handle: str | None
    """What a function calls the queue that it enqueues on, where there is one."""

    def open(self, program: Program, board: Board, params: Mapping[str, int]) -> None:
        """Make buffers and queues; ``params`` will hold the counts of the run that goes on."""

    def put(self, inputs: Mapping[str, Any]) -> None:
        """Give ``input: true`` buffers their contents."""

    def outputs(self) -> dict[str, Any]:
        """Copies of the ``output: true`` buffers, when the run is over."""

    def begin(self) -> None:
        """A run begins."""

    def call(self, stream: StreamProgram, point: OpPoint, plug: Plug | None, take: Callable[[int], Any] | None) -> Call:
        """How an op runs; ``take`` yields the source's item of an iteration, where the function takes one."""

    def returned(self, point: OpPoint) -> Callable[[object], None] | None:
        """What looks at the value of an op's first call, which goes nowhere; None: nothing does."""

    def look(self, buffers: tuple[str, ...], point: OpPoint) -> Call:
        """Copies of buffers as ``point`` has left them, by name."""

    def record(self, stream: StreamProgram, number: int) -> Callable[[int], None] | None:
        """What to do on the device before record ``number`` is noted; None: nothing."""

    def wait(self, stream: StreamProgram, number: int) -> Callable[[int], None] | None:
        """What to do on the device once record ``number`` is noted for an iteration; None: nothing."""

    def stamp(self, stream: StreamProgram) -> Callable[[], Any] | None:
        """For a stream whose ops have other times than their calls: what marks a moment in its queue; else None."""

    def time(self, stamp: Any) -> int:
        """When a stamp's moment was, in nanoseconds of ``time.perf_counter_ns``."""

    def finish(self, stream: StreamProgram) -> None:
        """Wait for the end of all that a stream has been given."""

    def close(self) -> None:
        """Give buffers and queues back."""


def require_backend(name: str, known: Iterable[str] = BACKENDS) -> None:
    """Refuse a backend that is none of ``known`` (R102)."""
    names = list(known)
    if name == "emulated" and name not in names:
        headline = "backend `emulated` runs emitted programs with made-up functions, and has no executor for yours"
        help_ = 'use the command `dagsched run PLAN --backend emulated`, or `backend="cpu"`'
        raise refuse("R102", headline, help=help_)
    if name not in names:
        near = closest(name, names)
        help_ = f"did you mean `{near}`?" if near else f"there are {', '.join(f'`{one}`' for one in names)}"
        raise refuse("R102", f"there is no backend `{name}`", help=help_)


def require_numbers(*, trace: object, grace: object = 0) -> None:
    """Refuse options that are no numbers from 0 up (R107)."""
    kinds: dict[str, tuple[object, Any, str]] = {
        "trace": (trace, int, "a number of op instances"),
        "grace": (grace, int | float, "a number of seconds"),
    }
    for name, (value, kind, what) in kinds.items():
        if isinstance(value, bool) or not isinstance(value, kind) or not value >= 0:
            raise refuse("R107", f"`{name}` is {value!r}, and {what} from 0 up is needed", help=f"write {name}=10")


def make_executor(compiled: Compiled, functions: Functions | None, backend: str, options: Options) -> Runs:
    """An executor of the named backend.

    Raises :class:`UsageError` for an unknown one (R102) and for options that are no numbers from 0 up (R107),
    :class:`TypeError` for options that it does not have.
    """
    require_backend(backend)
    require_numbers(trace=options.trace, grace=options.grace)
    module = import_module(BACKENDS[backend])
    for name in options.extra or {}:
        if name not in getattr(module, "OPTIONS", ()):
            raise TypeError(f"backend `{backend}` has no option `{name}`")
    executor: Runs = module.make_executor(compiled, functions, options)
    return executor
