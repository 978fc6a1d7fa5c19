"""Random schedules: small enough to run every interleaving, with every kind of step."""

from __future__ import annotations

from hypothesis import strategies as st

from dagsched.plan.expressions import Condition, Expr, Int, parse_condition, parse_expression
from dagsched.plan.model import Access, Mode, Slice
from dagsched.schedule.model import (
    AnyStep,
    Event,
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

BUFFERS = {
    "x": Storage("x"),
    "y": Storage("y", ring=2),
    "z": Storage("z", alias="x"),
    "p": Storage("p", space="ub", at=(0, 8)),
    "q": Storage("q", space="ub", at=(4, 12), ring=2),
}
REGIONS: list[tuple[Slice, ...]] = [(), (Slice(Int(0), Int(4)),), (Slice(Int(2), Int(6)),)]
KINDS = ["op", "op", "op", "record", "wait", "record", "wait", "reset", "set", "take", "acquire", "release", "sync"]
KINDS += ["host", "free", "wait_stream"]


@st.composite
def steps(draw: st.DrawFn, kinds: list[str], streams: list[str], number: int, index: str | None) -> AnyStep:
    """One step; ``index`` is the loop around it."""

    def expr() -> Expr | None:
        texts = [f"{index}", f"{index}%2", f"{index}-1"] if index else ["1"]
        text = draw(st.sampled_from([None, *texts]))
        return None if text is None else parse_expression(text)

    def access() -> Access:
        buffer = draw(st.sampled_from(sorted(BUFFERS)))
        version = expr() if buffer in "yq" else None
        return Access(buffer, draw(st.sampled_from(Mode)), version, draw(st.sampled_from(REGIONS)))

    def accesses(most: int) -> tuple[Access, ...]:
        return tuple(access() for _ in range(draw(st.integers(0, most))))

    when = parse_condition(f"{index} > 0") if index and draw(st.integers(0, 7)) == 7 else ()
    stream = Indexed(draw(st.sampled_from(streams)))
    thread = None if draw(st.integers(0, 9)) == 9 else stream
    kind = draw(st.sampled_from(kinds))
    if kind == "op":
        return OpStep(stream, f"op{number}", accesses(2), when=when)
    if kind == "host":
        return HostStep(f"host{number}", accesses(1), when=when)
    if kind == "free":
        return FreeStep(access(), when=when)
    if kind == "wait_stream":
        return WaitStreamStep(stream, Indexed(draw(st.sampled_from(streams))), when=when)
    if kind == "sync":
        what = draw(st.sampled_from(["stream", "event", "device"]))
        if what == "device":
            return SyncStep("device", None, when=when)
        return SyncStep("stream", stream, when=when) if what == "stream" else SyncStep("event", event(draw, expr()))
    if kind in ("record", "wait", "reset"):
        return EventStep(kind, event(draw, expr()), thread, when=when)  # type: ignore[arg-type]
    name = draw(st.sampled_from("AB")) if kind in ("acquire", "release") else "count"
    return FlagStep(kind, Indexed(name), thread, when=when)  # type: ignore[arg-type]


def event(draw: st.DrawFn, index: Expr | None) -> Indexed:
    return Indexed(draw(st.sampled_from("EEF")), index)


@st.composite
def schedules(draw: st.DrawFn, longest: int = 9) -> Schedule:
    """A schedule of at most about ``longest`` instances on up to four streams."""
    model = draw(st.sampled_from(["latch", "flag", "reevaluate"]))
    legacy = draw(st.integers(0, 4)) == 4
    streams = ["s", "t", "u", "v"][: draw(st.integers(1, 4))] + (["default"] if legacy else [])
    # A few kinds at a time, so that what meets often meets itself.
    kinds = ["op", *draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))]
    if model != "flag":
        kinds = [kind for kind in kinds if kind != "reset"]
    number = iter(range(1000))
    body: list[AnyStep]
    if draw(st.booleans()):
        body = [draw(steps(kinds, streams, next(number), None)) for _ in range(draw(st.integers(1, longest)))]
    else:
        before = [draw(steps(kinds, streams, next(number), None)) for _ in range(draw(st.integers(0, 1)))]
        inner = [draw(steps(kinds, streams, next(number), "i")) for _ in range(draw(st.integers(1, longest // 2)))]
        after = [draw(steps(kinds, streams, next(number), None)) for _ in range(draw(st.integers(0, 2)))]
        body = [*before, LoopStep("i", Int(0), Int(draw(st.integers(1, 2))), tuple(inner)), *after]
    return Schedule(
        "random",
        tuple(body),
        event_model=model,  # type: ignore[arg-type]
        default_stream="legacy" if legacy else "none",
        streams={"u": Stream("u", nonblocking=True)},
        events={"E": Event("E", draw(st.sampled_from([None, 2])))},
        buffers=BUFFERS,
    )


@st.composite
def open_loops(draw: st.DrawFn) -> Schedule:
    """A latch schedule with a loop of ``n`` iterations, rings, moving regions, guards, and steps after the loop."""
    streams = ["s", "t", "u"][: draw(st.integers(2, 3))]
    counter = iter(range(1000))

    def pick(*texts: str) -> Expr:
        return parse_expression(draw(st.sampled_from(texts)))

    def access(index: str) -> Access:
        mode = draw(st.sampled_from(Mode))
        buffer = draw(st.sampled_from(["x", "y", "w", "m"]))
        if buffer == "m" and index == "i" and draw(st.booleans()):
            return Access("m", mode, None, (Slice(parse_expression("i*4"), parse_expression("i*4+4")),))
        version = pick(index, f"{index}-1", f"{index}+1", f"{index}%2", "0") if buffer in "xy" else None
        return Access(buffer, mode, version)

    def step(index: str) -> AnyStep:
        when: Condition = ()
        if draw(st.integers(0, 5)) == 5:
            guards = ["i > 0", "i == 0", "i%2 == 0", "i < n-1"] if index == "i" else ["n > 0", "n == 2"]
            when = parse_condition(draw(st.sampled_from(guards)))
        stream = Indexed(draw(st.sampled_from(streams)))
        kind = draw(st.sampled_from(["op", "op", "record", "wait", "wait", "wait_stream", "host", "sync"]))
        number = next(counter)
        if kind == "op":
            return OpStep(stream, f"op{number}", (access(index), access(index)), when=when)
        if kind == "host":
            return HostStep(f"host{number}", (access(index),), when=when)
        if kind == "sync":
            return SyncStep("stream", stream, when=when)
        if kind == "wait_stream":
            return WaitStreamStep(stream, Indexed(draw(st.sampled_from(streams))), when=when)
        handle = Indexed(draw(st.sampled_from("EF")), pick(index) if kind == "record" else pick(index, f"{index}-1"))
        return EventStep(kind, handle, stream, when=when)  # type: ignore[arg-type]

    inner = tuple(step("i") for _ in range(draw(st.integers(2, 5))))
    after = tuple(step("n") for _ in range(draw(st.integers(0, 2))))
    rings = {name: Storage(name, ring=draw(st.integers(1, 3))) for name in "xy"}
    return Schedule(
        "open",
        (LoopStep("i", Int(0), pick("n", "n", "n+1", "2*n"), inner), *after),
        params={"n": None},
        events={"E": Event("E", draw(st.sampled_from([None, 1, 2, 3])))},
        buffers={**rings, "w": Storage("w"), "m": Storage("m")},
    )
