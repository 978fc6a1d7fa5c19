"""Random schedules: every kind of step, all event models, the legacy default stream, aliases, addresses, regions.

They are small, so that all their interleavings can be gone through, and nothing makes them right: most that have a
conflict race, some hang. A tool that judges schedules is tested with them; ``dagsched check`` was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from hypothesis import strategies as st

from dagsched.plan.expressions import Expr, Int, parse_condition, parse_expression
from dagsched.plan.model import Access, Mode, Slice
from dagsched.schedule.model import (
    AnyStep,
    Event,
    EventModel,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Schedule,
    Storage,
    Stream,
    SyncStep,
    WaitStreamStep,
)

Kind = Literal[
    "op", "host", "free", "record", "wait", "reset", "wait_stream", "sync", "set", "take", "acquire", "release"
]
KINDS: tuple[Kind, ...] = (
    "op", "host", "free", "record", "wait", "reset", "wait_stream", "sync", "set", "take", "acquire", "release",
)  # fmt: skip
"""The kinds of step. Ops, records and waits are drawn more often than the others."""

MODELS: tuple[EventModel, ...] = ("latch", "flag", "reevaluate")

BUFFERS = {
    "x": Storage("x"),
    "y": Storage("y", ring=2),
    "z": Storage("z", alias="x"),
    "p": Storage("p", space="ub", at=(0, 8)),
    "q": Storage("q", space="ub", at=(4, 12), ring=2),
}
"""Two plain blocks that are one, a ring, and two places that overlap."""

_REGIONS: list[tuple[Slice, ...]] = [(), (Slice(Int(0), Int(4)),), (Slice(Int(2), Int(6)),)]
_OFTEN: tuple[Kind, ...] = ("op", "op", "record", "wait")


def schedules(
    *,
    steps: int = 9,
    streams: int = 4,
    models: Sequence[EventModel] = MODELS,
    kinds: Sequence[Kind] = KINDS,
    loops: bool = True,
    params: bool = False,
    legacy: bool = True,
) -> st.SearchStrategy[Schedule]:
    """Schedules of at most about ``steps`` steps, loops gone through, on up to ``streams`` streams.

    ``kinds`` are the kinds of step; ``loops`` allows them, and ``params`` lets their count be the parameter ``n``;
    ``legacy`` allows a legacy default stream. Each is a :class:`dagsched.schedule.model.Schedule`.
    """
    unknown = [*set(kinds) - set(KINDS), *set(models) - set(MODELS)]
    if unknown or not kinds or not models:
        raise ValueError(f"no kind of step, or event model, is called {unknown}" if unknown else "none are allowed")
    if steps < 2 or streams < 1:
        raise ValueError("schedules need at least 2 steps and 1 stream")
    return _schedules(steps, streams, list(models), list(kinds), loops, params, legacy)


@st.composite
def _schedules(
    draw: st.DrawFn,
    steps: int,
    streams: int,
    models: list[EventModel],
    kinds: list[Kind],
    loops: bool,
    params: bool,
    legacy: bool,
) -> Schedule:
    model = draw(st.sampled_from(models))
    default = legacy and draw(st.integers(0, 4)) == 4
    names = [*(f"s{number}" for number in range(draw(st.integers(1, streams)))), *(["default"] if default else [])]
    often = [kind for kind in _OFTEN if kind in kinds]
    # A few kinds at a time, so that what meets often meets itself.
    some: list[Kind] = draw(st.lists(st.sampled_from([*kinds, *often, *often]), min_size=1, max_size=6))
    some = ["op", *some] if "op" in kinds else some
    if model != "flag" and set(some) != {"reset"}:
        some = [kind for kind in some if kind != "reset"]
    counter = iter(range(1_000))
    body: list[AnyStep]
    param = False
    if not loops or draw(st.booleans()):
        body = [draw(_steps(some, names, next(counter), None)) for _ in range(draw(st.integers(1, steps)))]
    else:
        before = [draw(_steps(some, names, next(counter), None)) for _ in range(draw(st.integers(0, 1)))]
        inner = [draw(_steps(some, names, next(counter), "i")) for _ in range(draw(st.integers(1, steps // 2)))]
        after = [draw(_steps(some, names, next(counter), None)) for _ in range(draw(st.integers(0, 2)))]
        param = params and draw(st.booleans())
        high = parse_expression("n") if param else Int(draw(st.integers(1, 2)))
        body = [*before, LoopStep("i", Int(0), high, tuple(inner)), *after]
    return Schedule(
        "random",
        tuple(body),
        event_model=model,
        default_stream="legacy" if default else "none",
        params={"n": None} if param else {},
        streams={"s2": Stream("s2", nonblocking=True)},
        events={"E": Event("E", draw(st.sampled_from([None, 2])))},
        buffers=BUFFERS,
    )


@st.composite
def _steps(draw: st.DrawFn, kinds: list[Kind], names: list[str], number: int, index: str | None) -> AnyStep:
    """One step; ``index`` is the loop around it."""
    when = parse_condition(f"{index} > 0") if index and draw(st.integers(0, 7)) == 7 else ()
    stream = Indexed(draw(st.sampled_from(names)))
    if index and draw(st.integers(0, 9)) == 9:
        stream = Indexed("s", parse_expression(f"{index}%2"))  # `s@0` is `s0`
    thread = None if draw(st.integers(0, 9)) == 9 else stream
    kind: Any = draw(st.sampled_from(kinds))
    if kind == "op":
        return OpStep(stream, f"op{number}", draw(_accesses(2, index)), when=when)
    if kind == "host":
        return HostStep(f"host{number}", draw(_accesses(1, index)), when=when)
    if kind == "free":
        return FreeStep(draw(_access(index)), when=when)
    if kind == "wait_stream":
        return WaitStreamStep(stream, Indexed(draw(st.sampled_from(names))), when=when)
    if kind == "sync":
        what = draw(st.sampled_from(["stream", "event", "device"]))
        if what == "event":
            return SyncStep("event", draw(_events(index)), when=when)
        return SyncStep("stream", stream, when=when) if what == "stream" else SyncStep("device", None, when=when)
    if kind in ("record", "wait", "reset"):
        return EventStep(kind, draw(_events(index)), thread, when=when)
    name = draw(st.sampled_from("AB")) if kind in ("acquire", "release") else "count"
    return FlagStep(kind, Indexed(name), thread, when=when)


def _indices(index: str | None) -> st.SearchStrategy[Expr | None]:
    texts = [index, f"{index}%2", f"{index}-1"] if index else ["1"]
    return st.sampled_from([None, *map(parse_expression, texts)])


@st.composite
def _events(draw: st.DrawFn, index: str | None) -> Indexed:
    return Indexed(draw(st.sampled_from("EEF")), draw(_indices(index)))


@st.composite
def _access(draw: st.DrawFn, index: str | None) -> Access:
    buffer = draw(st.sampled_from(sorted(BUFFERS)))
    version = draw(_indices(index)) if BUFFERS[buffer].ring > 1 else None
    return Access(buffer, draw(st.sampled_from(Mode)), version, draw(st.sampled_from(_REGIONS)))


@st.composite
def _accesses(draw: st.DrawFn, most: int, index: str | None) -> tuple[Access, ...]:
    return tuple(draw(_access(index)) for _ in range(draw(st.integers(0, most))))
