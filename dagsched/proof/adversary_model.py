"""What the adversary found, as data: the interleaving that fails, what was explored, and which waits are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dagsched.diagnostics import Where

FailureKind = Literal["race", "deadlock", "freed", "fault"]


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One move of an interleaving. ``stream`` is None for the issuing thread; ``does`` says what it touches, ``wrong``
    what it met that it should not have, "" where all is well."""

    stream: str | None
    text: str
    does: str = ""
    wrong: str = ""
    where: Where | None = None

    def as_data(self) -> dict[str, Any]:
        return {
            "stream": self.stream,
            "step": self.text,
            "does": self.does,
            "wrong": self.wrong or None,
            "line": self.where.line if self.where else None,
        }


@dataclass(frozen=True, slots=True)
class Party:
    """One of the two instances that come in the wrong order; ``index`` is the loop around both."""

    op: str
    instance: str
    stream: str | None
    where: Where | None
    index: str | None = None

    def as_data(self) -> dict[str, Any]:
        line = self.where.line if self.where else None
        return {"op": self.op, "instance": self.instance, "stream": self.stream, "line": line}


@dataclass(frozen=True, slots=True)
class StuckHead:
    """The head of a queue that never runs, and what it waits for; ``stream`` is None for the issuing thread."""

    stream: str | None
    step: str
    why: str
    where: Where | None

    def as_data(self) -> dict[str, Any]:
        line = self.where.line if self.where else None
        return {"stream": self.stream, "step": self.step, "why": self.why, "line": line}


@dataclass(frozen=True, slots=True)
class Failure:
    """One interleaving that goes wrong, as short as it could be made.

    ``race``: ``first`` is issued (in a plan: written) before ``second``, and ``kinds``, ``buffer`` and ``distance`` are
    what ``check`` calls their race. ``deadlock``: ``heads`` are stuck. ``freed``: ``second`` reads what ``first`` has
    freed. ``fault``: ``texts`` say where a compiled schedule is not its plan's. ``headline`` and ``texts`` are for
    people, ``help`` is a change that can be typed.
    """

    kind: FailureKind
    headline: str
    env: tuple[tuple[str, int], ...] = ()
    steps: tuple[ShownStep, ...] = ()
    threads: tuple[str | None, ...] = ()
    first: Party | None = None
    second: Party | None = None
    buffer: str | None = None
    kinds: tuple[str, ...] = ()
    distance: int | None = None
    heads: tuple[StuckHead, ...] = ()
    texts: tuple[str, ...] = ()
    help: str | None = None

    def as_data(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "headline": self.headline,
            "counts": dict(self.env),
            "steps": [step.as_data() for step in self.steps],
            "first": self.first.as_data() if self.first else None,
            "second": self.second.as_data() if self.second else None,
            "buffer": self.buffer,
            "kinds": list(self.kinds),
            "distance": self.distance,
            "stuck": [head.as_data() for head in self.heads] or None,
            "notes": list(self.texts),
            "help": self.help,
        }


@dataclass(frozen=True, slots=True)
class WaitTrial:
    """What came of dropping one wait: ``needed`` (then with the interleaving that breaks), ``needless`` at these
    counts, or ``open``: nothing broke, and not everything was tried."""

    text: str
    stream: str | None
    label: str | None
    where: Where | None
    result: Literal["needed", "needless", "open"]
    failure: Failure | None = None

    def as_data(self) -> dict[str, Any]:
        return {
            "wait": self.text,
            "stream": self.stream,
            "label": self.label,
            "line": self.where.line if self.where else None,
            "result": self.result,
            "failure": self.failure.as_data() if self.failure else None,
        }


@dataclass(frozen=True, slots=True)
class Explored:
    """How much was tried. ``whole``: no interleaving at these counts can fail, since the runs decide it (``how`` says
    why); ``gaps`` say what was left out, ``notes`` what was not tried and did not need to be."""

    interleavings: int = 0
    distinct: int = 0
    steps: int = 0
    states: int = 0
    environments: tuple[tuple[tuple[str, int], ...], ...] = ()
    whole: bool = False
    how: str = ""
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        return {
            "interleavings": self.interleavings,
            "distinct": self.distinct,
            "steps": self.steps,
            "states": self.states,
            "counts": [dict(env) for env in self.environments],
            "exhaustive": self.whole,
            "how": self.how,
            "left_out": list(self.gaps),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Attempt:
    """The whole answer: whether any interleaving failed, what was explored, and what each wait is good for.

    ``waits_tried`` is False where the waits were not dropped in turn: something failed already, or nobody asked.
    """

    verdict: Literal["ok", "race", "deadlock", "invalid"]
    explored: Explored
    failure: Failure | None = None
    waits: tuple[WaitTrial, ...] = ()
    waits_tried: bool = False

    def as_data(self, file: str) -> dict[str, Any]:
        """The JSON form that ``dagsched prove --format json`` prints."""
        return {
            "dagsched": "prove/1",
            "file": file,
            "verdict": self.verdict,
            "failure": self.failure.as_data() if self.failure else None,
            "explored": self.explored.as_data(),
            "waits": [wait.as_data() for wait in self.waits],
        }
