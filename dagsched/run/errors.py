"""What can go wrong while a schedule runs, as exceptions that carry the op, the iteration, the stream and the place."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from dagsched.diagnostics import DagschedError, Diagnostic, Source, UsageError, Where


@dataclass(frozen=True, slots=True)
class Head:
    """What a stream is at: it ``begins``, ``runs``, ``waits for`` something (``awaited`` says what), or ``is done``."""

    stream: str
    state: str
    op: str | None = None
    iteration: int | None = None
    awaited: str | None = None

    def __str__(self) -> str:
        at = "" if self.op is None else f" `{instance(self.op, self.iteration)}`"
        if self.state == "waits for":
            return f"`{self.stream}` waits{f' before{at}' if at else ''} for {self.awaited}"
        return f"`{self.stream}` {self.state}{at}"


class ExecutionError(DagschedError):
    """A run ended early. The cause, if somebody's code raised it, is ``__cause__``.

    ``op``, ``iteration`` (None outside loops) and ``stream`` say where, ``heads`` what every stream was at.
    """

    def __init__(
        self,
        diagnostic: Diagnostic,
        *,
        op: str | None = None,
        iteration: int | None = None,
        stream: str | None = None,
        heads: Sequence[Head] = (),
    ) -> None:
        super().__init__([diagnostic])
        self.op = op
        self.iteration = iteration
        self.stream = stream
        self.heads = tuple(heads)


class RunTimeout(ExecutionError, TimeoutError):
    """A run took longer than its ``timeout``."""


class RunStopped(ExecutionError):
    """A run was stopped from outside, by ``executor.stop(now=True)`` or by closing the executor."""


def instance(op: str, iteration: int | None) -> str:
    """``infer@3``, or ``load`` outside loops."""
    return op if iteration is None else f"{op}@{iteration}"


def describe_failure(
    error: BaseException, what: str, where: Where | None, source: Source | None, heads: Sequence[Head]
) -> Diagnostic:
    """The diagnostic for somebody's code that raised; ``what`` is its subject (``op `decode` ...``)."""
    text = _text_of(error).strip().splitlines()
    said = f": {text[0]}" if text else ""
    notes = [f"raised {place}" for place in _innermost(error)]
    others = [str(head) for head in heads if head.state != "is done"]
    if others:
        notes.append(f"meanwhile {'; '.join(others)}")
    return Diagnostic("R201", f"{what} raised {type(error).__name__}{said}", where, source, notes=tuple(notes))


def _text_of(error: BaseException) -> str:
    """What an exception says; one that cannot even say it must not hide that something went wrong."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - it is somebody's code, too
        return "(its text cannot be had)"


def _innermost(error: BaseException) -> list[str]:
    """Where the error was raised, as text; nothing where it came straight from a library call of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return []
    last = frames[-1]
    return [f"in `{last.name}`, {last.filename}:{last.lineno}"]


def refuse(code: str, headline: str, where: Where | None = None, source: Source | None = None, *,
           notes: tuple[str, ...] = (), help: str | None = None) -> UsageError:  # fmt: skip
    """A :class:`UsageError` of one diagnostic: the caller asked for something that cannot be done."""
    return UsageError([Diagnostic(code, headline, where, source, notes=notes, help=help)])
