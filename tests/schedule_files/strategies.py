"""Random schedules that the reader accepts: all kinds of steps, nested loops, and names that are hard to quote."""

from __future__ import annotations

from math import prod
from typing import Any

from hypothesis import strategies as st

from dagsched.plan.expressions import Comparison, Condition, Expr, Int, parse_expression
from dagsched.plan.model import DTYPES, Access, Mode, Place, Slice
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

ODD = [
    "a", "class", "a b", "x*/y", "名前", "<script>", "on", "Off", "yes", "1:30", "- x", "#c", "a #c", "null", "~",
    "0x1", "0o7", "1_000", "1e3", "1.", ".5", "{}", 'q"\\', "it's", "a: b", "a, b", "&a", "*a", "!t", "%d", "|", ">",
    "=", "<<", "?", "2026-11-30", "\u00e9\u0301", "\u202e", "x" * 180,
]  # fmt: skip
LONG = ["op." * 90 + "done", "名" * 300]
"""What only ops, streams and events can be called, since compiled schedules name them after others."""

NAMES = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(
    lambda text: text == text.strip() and not set(text) & set("@[]\u2028\u2029\ufeff\ufffe\uffff")
)
LONG_NAMES = st.sampled_from(LONG) | NAMES
LINES = NAMES | st.sampled_from(["wait for done@i-2 [W1]", "[", "@"])
BUFFERS = ["x", "名前", "on", "a b", "- q"]
EVENT_ACTIONS = ["record", "wait", "reset"]
FLAG_ACTIONS = ["set", "take", "acquire", "release"]
SYNCS = ["stream", "event", "device"]
KINDS = [
    "op",
    "host",
    "free",
    "wait_stream",
    "loop",
    *EVENT_ACTIONS,
    *FLAG_ACTIONS,
    *(f"sync {kind}" for kind in SYNCS),
]

EXPRESSIONS = [
    "0", "7", "-3", "{0}", "{0}-2", "({0}+1)%2", "-{0}", "min({0}, 3)*2", "{0}//2-{1}", "2*({0}-{1})", "{0}-({1}-1)",
]  # fmt: skip


def expressions(names: tuple[str, ...]) -> st.SearchStrategy[Expr]:
    """Expressions over the innermost index and the outermost parameter."""
    return st.sampled_from(EXPRESSIONS).map(lambda text: parse_expression(text.format(names[-1], names[0])))


def conditions(names: tuple[str, ...]) -> st.SearchStrategy[Condition]:
    """Guards of up to two comparisons; most steps have none."""
    operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    comparison = st.builds(Comparison, expressions(names), operators, expressions(names))
    return st.just(()) | st.lists(comparison, min_size=1, max_size=2).map(tuple)


def indexed(names: tuple[str, ...]) -> st.SearchStrategy[Indexed]:
    return st.builds(Indexed, LONG_NAMES, st.none() | expressions(names))


@st.composite
def accesses(draw: st.DrawFn, mode: Mode, names: tuple[str, ...], buffers: dict[str, Storage]) -> Access:
    name = draw(st.sampled_from(BUFFERS))
    storage = buffers.get(name)
    extents: tuple[int, ...] = (9, 9)
    if storage is not None and (storage.shape or storage.size):
        extents = storage.shape or (storage.size or 1,)
    region = []
    for extent in extents[: draw(st.integers(0, len(extents)))]:
        lo = draw(st.integers(0, extent - 1))
        hi = draw(st.integers(lo + 1, extent))
        moved = draw(expressions(names)) if draw(st.integers(0, 4)) == 0 else None
        if moved is None or isinstance(moved, Int):
            region.append(Slice(*draw(st.sampled_from([(Int(lo), Int(hi)), (None, None), (Int(lo), None)]))))
        else:
            region.append(Slice(moved, None))
    return Access(name, mode, draw(st.none() | expressions(names)), tuple(region))


@st.composite
def all_accesses(draw: st.DrawFn, names: tuple[str, ...], buffers: dict[str, Storage]) -> tuple[Access, ...]:
    return tuple(one for mode in Mode for one in draw(st.lists(accesses(mode, names, buffers), max_size=2)))


PROTECTED = st.builds(
    Protected,
    before=st.sampled_from(["a", "infer@i-2", "名前@n-1"]) | NAMES,
    after=st.sampled_from(["upload@i", "a b@0"]) | NAMES,
    buffer=st.none() | NAMES,
    kind=st.sampled_from(["RAW", "WAR", "WAW", "AFTER"]),
)


@st.composite
def steps(draw: st.DrawFn, names: tuple[str, ...], buffers: dict[str, Storage], depth: int) -> AnyStep:
    kind = draw(st.sampled_from([kind for kind in KINDS if (kind != "loop" or depth) and (kind != "free" or buffers)]))
    shared: dict[str, Any] = {"when": draw(conditions(names)), "label": draw(st.none() | LINES)}
    own = indexed(names)
    if kind == "op":
        instance = draw(own)  # an op's iteration is written like an index
        touched = draw(all_accesses(names, buffers))
        return OpStep(stream=draw(own), op=draw(LONG_NAMES), accesses=touched, iteration=instance.index, **shared)
    if kind == "host":
        return HostStep(host=draw(LONG_NAMES), accesses=draw(all_accesses(names, buffers)), **shared)
    if kind == "free":
        access = draw(accesses(Mode.WRITE, names, buffers).filter(lambda access: access.buffer in buffers))
        return FreeStep(access=access, **shared)
    if kind == "wait_stream":
        return WaitStreamStep(stream=draw(own), target=draw(own), **shared)
    if kind.startswith("sync "):
        what = kind.removeprefix("sync ")
        return SyncStep(kind=what, target=None if what == "device" else draw(own), **shared)  # type: ignore[arg-type]
    if kind in FLAG_ACTIONS:
        return FlagStep(action=kind, flag=draw(own), stream=draw(st.none() | own), **shared)  # type: ignore[arg-type]
    if kind == "loop":
        index = f"i{depth}"
        lo, hi = draw(st.just(Int(0)) | expressions(names)), draw(expressions(names))
        if isinstance(lo, Int) and isinstance(hi, Int) and lo.value > hi.value:
            lo, hi = hi, lo
        body = tuple(draw(st.lists(steps((*names, index), buffers, depth - 1), max_size=3)))
        return LoopStep(index=index, lo=lo, hi=hi, steps=body, **shared)
    protects = tuple(draw(st.lists(PROTECTED, max_size=2))) if kind == "wait" else ()
    stream = draw(st.none() | own)
    return EventStep(action=kind, event=draw(own), stream=stream, protects=protects, **shared)  # type: ignore[arg-type]


@st.composite
def storages(draw: st.DrawFn) -> dict[str, Storage]:
    found: dict[str, Storage] = {}
    for name in draw(st.lists(st.sampled_from(BUFFERS), max_size=4, unique=True)):
        if found and draw(st.integers(0, 3)) == 0:
            found[name] = Storage(name, alias=draw(st.sampled_from(sorted(found))))
            continue
        shape = draw(st.none() | st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple))
        dtype = draw(st.none() | st.sampled_from(sorted(DTYPES))) if shape else None
        known = prod(shape) * DTYPES[dtype] if shape and dtype else None
        size = draw(st.sampled_from([None, known])) if known else draw(st.none() | st.integers(1, 2**40))
        ring = draw(st.integers(1, 4))
        lo = draw(st.integers(0, 100))
        length = (size or known or draw(st.integers(1, 99))) * ring
        at = draw(st.sampled_from([None, (lo, lo + length)]))
        place = draw(st.sampled_from([None, *Place]))
        found[name] = Storage(name, place, ring, draw(st.none() | LINES), at, None, size, shape, dtype)
    return found


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """A whole schedule; its parameters are ``n`` and perhaps ``数``."""
    buffers = draw(storages())
    streams = [
        Stream(
            name,
            draw(st.booleans()),
            draw(st.booleans()),
            draw(st.none() | LINES),
            draw(st.none() | st.integers(-9, 9)),
        )
        for name in draw(st.lists(LONG_NAMES, max_size=3, unique=True))
    ]
    events = [
        Event(n, draw(st.none() | st.integers(1, 9))) for n in draw(st.lists(LONG_NAMES, max_size=3, unique=True))
    ]
    times = st.sampled_from([0.0, 0.0069, 6.25e-05, 1234.5])
    predicted = st.fixed_dictionaries({"makespan": times, "bound": times, "binds": LINES})
    devices: st.SearchStrategy[str | dict[str, Any]] = st.sampled_from(
        ["ascend-910b", "./my device.yaml", {"name": "x", "engines": {"on": {"lanes": [4, None, True]}}}]
    )
    params = {"n": draw(st.none() | st.integers(-5, 2**63 - 1)), **({"数": None} if draw(st.booleans()) else {})}
    return Schedule(
        name=draw(NAMES),
        steps=tuple(draw(st.lists(steps(tuple(params), buffers, 2), max_size=6))),
        event_model=draw(st.sampled_from(["latch", "flag", "reevaluate"])),
        default_stream=draw(st.sampled_from(["none", "legacy"])),
        params=params,
        streams={stream.name: stream for stream in streams},
        events={event.name: event for event in events},
        buffers=buffers,
        plan=draw(st.none() | st.fixed_dictionaries({"name": NAMES, "digest": st.just("0" * 64)})),
        device=draw(st.none() | devices),
        predicted=draw(st.none() | predicted),
    )


def kinds_of(schedule: Schedule) -> set[str]:
    """Which of ``KINDS`` a schedule's steps are."""
    names = {OpStep: "op", HostStep: "host", FreeStep: "free", WaitStreamStep: "wait_stream", LoopStep: "loop"}
    kinds: set[str] = set()
    for step in schedule.walk():
        if isinstance(step, EventStep | FlagStep):
            kinds.add(step.action)
        else:
            kinds.add(f"sync {step.kind}" if isinstance(step, SyncStep) else names[type(step)])
    return kinds
