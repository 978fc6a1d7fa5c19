"""Random schedules of all kinds of steps, with names that are hard to quote."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dagsched.plan.expressions import Binary, Call, Comparison, Condition, Expr, Int, Name
from dagsched.plan.model import Access, Mode, Place, Slice
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
    Protected,
    Schedule,
    Storage,
    Stream,
    SyncStep,
    WaitStreamStep,
)

NAMES = st.sampled_from(
    [
        "a",
        "class",
        "a b",
        "x*/y",
        "名前",
        "<script>",
        "on",
        "1:30",
        "- x",
        "#c",
        "null",
        "0x1",
        "{}",
        'q"\\',
        "~",
        "a: b",
    ]
)


def expressions(names: tuple[str, ...]) -> st.SearchStrategy[Expr]:
    """Small expressions over names."""
    leaves: list[st.SearchStrategy[Expr]] = [st.integers(0, 9).map(Int)]
    if names:
        leaves.append(st.sampled_from(names).map(Name))
    leaf = st.one_of(leaves)
    binary = (
        st.builds(Binary, st.sampled_from(["+", "-", "*"]), st.sampled_from(names).map(Name), leaf) if names else leaf
    )
    return st.one_of(leaf, binary, st.builds(lambda a, b: Call("min", (a, b)), binary, binary))


def _stable(expr: Expr) -> bool:
    from dagsched.plan.access import exact_text
    from dagsched.plan.expressions import parse_expression

    return parse_expression(exact_text(expr)) == expr


@st.composite
def indexed(draw: st.DrawFn, names: tuple[str, ...]) -> Indexed:
    index = draw(st.none() | expressions(names).filter(_stable))
    return Indexed(draw(NAMES), index)


@st.composite
def accesses(draw: st.DrawFn, mode: Mode, names: tuple[str, ...]) -> Access:
    region: tuple[Slice, ...] = ()
    if draw(st.booleans()):
        lo = draw(st.integers(0, 9))
        region = (draw(st.sampled_from([Slice(Int(lo), Int(lo + 3)), Slice(None, None), Slice(Int(lo), None)])),)
    version = draw(st.none() | expressions(names).filter(_stable))
    return Access(draw(NAMES), mode, version, region)


@st.composite
def all_accesses(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[Access, ...]:
    return tuple(a for mode in Mode for a in draw(st.lists(accesses(mode, names), max_size=2)))


@st.composite
def steps(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> AnyStep:
    kinds = ["op", "event", "wait_stream", "sync", "host", "free", "flag"] + (["loop"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    stream = draw(indexed(names))
    step: AnyStep
    if kind == "op":
        step = OpStep(stream=stream, op=draw(NAMES), accesses=draw(all_accesses(names)))
    elif kind == "event":
        action = draw(st.sampled_from(["record", "wait", "reset"]))
        protects = (Protected("a@i-2", "b@i", draw(st.none() | NAMES), "WAR"),) if action == "wait" else ()
        protects = draw(st.sampled_from([(), protects]))
        event = draw(indexed(names))
        step = EventStep(action=action, event=event, stream=draw(st.sampled_from([None, stream])), protects=protects)  # type: ignore[arg-type]
    elif kind == "wait_stream":
        step = WaitStreamStep(stream=stream, target=draw(indexed(names)))
    elif kind == "sync":
        target = draw(st.sampled_from(["stream", "event", "device"]))
        step = SyncStep(kind=target, target=None if target == "device" else stream)  # type: ignore[arg-type]
    elif kind == "host":
        step = HostStep(host=draw(NAMES), accesses=draw(all_accesses(names)))
    elif kind == "free":
        step = FreeStep(access=draw(accesses(Mode.WRITE, names)))
    elif kind == "flag":
        action = draw(st.sampled_from(["set", "take", "acquire", "release"]))
        step = FlagStep(action=action, flag=draw(indexed(names)), stream=draw(st.sampled_from([None, stream])))  # type: ignore[arg-type]
    else:
        index = f"i{depth}"
        body = tuple(draw(st.lists(steps((*names, index), depth - 1), max_size=3)))
        bounds: list[Expr] = [Int(3), Name("n")]
        step = LoopStep(index=index, lo=Int(draw(st.integers(0, 1))), hi=draw(st.sampled_from(bounds)), steps=body)
    if draw(st.booleans()):
        guard: Condition = (Comparison(Name("n"), ">=", Int(1)), Comparison(Name("n"), "!=", Int(7)))
        step = replace(step, when=guard, label=draw(st.none() | NAMES))
    return step


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """A whole schedule; its only parameter is ``n``."""
    streams = {name: Stream(name, True, False, draw(st.none() | NAMES), 1) for name in draw(st.sets(NAMES, max_size=2))}
    events = {name: Event(name, draw(st.none() | st.integers(1, 3))) for name in draw(st.sets(NAMES, max_size=2))}
    buffers = {}
    for name in draw(st.sets(NAMES, max_size=3)):
        at = draw(st.sampled_from([None, (0, 64)]))
        buffers[name] = Storage(
            name, draw(st.sampled_from([None, *Place])), draw(st.integers(1, 3)), draw(st.none() | NAMES), at
        )
    return Schedule(
        name=draw(NAMES),
        steps=tuple(draw(st.lists(steps(("n",)), max_size=5))),
        event_model=draw(st.sampled_from(["latch", "flag", "reevaluate"])),
        default_stream=draw(st.sampled_from(["none", "legacy"])),
        params={"n": draw(st.none() | st.integers(0, 5))},
        streams=streams,
        events=events,
        buffers=buffers,
    )
