"""Large schedules, long loops and hopeless ones: quick answers, and honest ones."""

from __future__ import annotations

import random
import time
from typing import Literal

import pytest

from dagsched.diagnostics import ScheduleError, Source
from dagsched.plan.expressions import Int, Name, parse_expression
from dagsched.plan.model import Access, Mode, Slice
from dagsched.proof.check import check_schedule, orders
from dagsched.schedule.model import (
    AnyStep,
    Event,
    EventStep,
    FlagStep,
    Indexed,
    LoopStep,
    OpStep,
    Schedule,
    Storage,
    SyncStep,
)
from dagsched.schedule.reader import read_schedule


def on(stream: str) -> Indexed:
    return Indexed(stream)


def many_steps(streams: int, number: int, drop: int | None = None) -> Schedule:
    """Ops on random streams, each of which waits for the last user of its buffers; one wait may be left out."""
    pick = random.Random(streams)
    steps: list[AnyStep] = []
    last: dict[str, tuple[str, str]] = {}
    waits = 0
    while len(steps) < number:
        stream, op = f"s{pick.randrange(streams)}", f"op{len(steps)}"
        buffers = sorted({f"b{pick.randrange(200)}" for _ in range(2)})
        for buffer in buffers:
            if buffer in last and last[buffer][0] != stream:
                waits += 1
                if waits != drop:
                    steps.append(EventStep("wait", on(last[buffer][1]), on(stream)))
        steps.append(OpStep(on(stream), op, tuple(Access(buffer, Mode.UPDATE) for buffer in buffers)))
        steps.append(EventStep("record", on(f"{op}.done"), on(stream)))
        last |= dict.fromkeys(buffers, (stream, f"{op}.done"))
    return Schedule("many", tuple(steps))


@pytest.mark.parametrize("streams", [8, 64])
def test_20_000_steps_in_under_5_seconds(streams: int) -> None:
    schedule = many_steps(streams, 20_000)
    start = time.process_time()
    verdict = check_schedule(schedule)
    assert time.process_time() - start < 5
    assert verdict.verdict == "ok" and not verdict.limited
    assert verdict.waits.total > 5_000 and verdict.waits.redundant


def test_a_needed_wait_that_is_gone_is_noticed() -> None:
    whole = many_steps(8, 2_000)
    redundant = {wait.text for wait in check_schedule(whole).waits.redundant}
    waits = [step for step in whole.steps if isinstance(step, EventStep) and step.action == "wait"]
    missed = 0
    for number in random.Random(1).sample(range(len(waits)), 60):
        verdict = check_schedule(many_steps(8, 2_000, drop=number + 1)).verdict
        needed = f"wait {waits[number].event.name}" not in redundant
        missed += needed and verdict != "race"
    assert not missed


def pipeline(count: int | None, extra: tuple[AnyStep, ...] = ()) -> Schedule:
    """An upload and a compute in a ring of two; ``None``: the parameter ``n``."""
    i = Name("i")

    def step(action: Literal["record", "wait"], event: str, stream: str) -> EventStep:
        index = "i-2" if (action, event) == ("wait", "free") else "i"
        return EventStep(action, Indexed(event, parse_expression(index)), on(stream))

    body: tuple[AnyStep, ...] = (
        step("wait", "free", "copy"),
        OpStep(on("copy"), "upload", (Access("d", Mode.WRITE, i),)),
        step("record", "full", "copy"),
        step("wait", "full", "run"),
        OpStep(on("run"), "infer", (Access("d", Mode.READ, i), Access("out", Mode.UPDATE))),
        step("record", "free", "run"),
        *extra,
    )
    high = Name("n") if count is None else Int(count)
    return Schedule(
        "pipeline",
        (LoopStep("i", Int(0), high, body), SyncStep("stream", on("run"))),
        params={"n": None} if count is None else {},
        buffers={"d": Storage("d", ring=2), "out": Storage("out")},
        events={"free": Event("free", 2), "full": Event("full", 2)},
    )


def test_a_million_iterations_are_answered_from_a_few() -> None:
    start = time.process_time()
    verdict = check_schedule(pipeline(1_000_000))
    assert time.process_time() - start < 2
    assert verdict.verdict == "ok" and not verdict.limited and verdict.counts_text == "the counts in the file"
    racing = OpStep(on("late"), "peek", (Access("d", Mode.READ, parse_expression("i-1")),))
    races = check_schedule(pipeline(1_000_000, (racing,))).races
    assert {(race.first.op, race.second.op, race.distance) for race in races} == {
        ("upload", "peek", 1),
        ("peek", "upload", 1),
    }


def test_a_loop_that_never_settles_says_how_far_it_was_checked() -> None:
    own_stream = OpStep(Indexed("s", Name("i")), "apart", ())
    verdict = check_schedule(pipeline(None, (own_stream,)))
    assert verdict.verdict == "ok" and verdict.limited
    assert verdict.counts_text == "counts `n` from 0 to 32 only: `s@i` is a new stream in each iteration"
    assert [finding.code for finding in verdict.findings] == ["S407"]


def test_a_long_loop_that_never_settles_is_checked_in_part() -> None:
    steps = (OpStep(on("a"), "square", (Access("m", Mode.WRITE, None, (Slice(parse_expression("i*i")),)),)),)
    verdict = check_schedule(Schedule("x", (LoopStep("i", Int(0), Int(10**7), steps),)), budget=1_000)
    assert verdict.limited and "first 256 iterations" in verdict.counts_text


def test_endless_interleavings_end() -> None:
    steps: list[AnyStep] = []
    for number in range(200):
        for stream in "abcdef":
            steps.append(FlagStep("acquire", on(f"lock{number % 3}"), on(stream)))
            steps.append(OpStep(on(stream), f"{stream}{number}", (Access("x", Mode.ACCUMULATE),)))
            steps.append(FlagStep("release", on(f"lock{number % 3}"), on(stream)))
    start = time.process_time()
    verdict = check_schedule(Schedule("locks", tuple(steps)))
    assert time.process_time() - start < 30
    assert verdict.limited and "S302" in {finding.code for finding in verdict.findings}


def test_instances_that_never_occur() -> None:
    with pytest.raises(ScheduleError) as missing:
        orders(pipeline(4), "uplod@1", "infer@1")
    assert missing.value.diagnostics[0].help == "did you mean `upload`?"
    with pytest.raises(ScheduleError) as beyond:
        orders(pipeline(4), "upload@9", "infer@1")
    assert beyond.value.diagnostics[0].headline == "`upload@9` never occurs"
    assert orders(pipeline(None), "upload@100", "infer@100") is not None


def test_a_division_by_zero_is_a_finding() -> None:
    step = OpStep(on("s"), "op", (Access("x", Mode.WRITE, parse_expression("4//(i-i)")),))
    verdict = check_schedule(Schedule("x", (LoopStep("i", Int(0), Int(2), (step,)),)))
    assert verdict.verdict == "invalid"
    assert verdict.findings[0].code == "S408"


@pytest.mark.parametrize(("size", "verdict"), [(12, "ok"), (None, "race")])
def test_a_region_that_moves_past_a_known_end_touches_nothing_there(size: int | None, verdict: str) -> None:
    """``b[i*4:i*4+4]`` has left a block of 12 bytes by iteration 3, when its slot comes round again."""
    text = f"""
dagsched-schedule: 1
buffers: {{b: {{place: device, ring: 3{"" if size is None else f", size: {size}"}}}}}
events: {{read: {{ring: 1}}}}
steps:
  - loop: i
    count: 7
    steps:
      - {{stream: s, op: reader, reads: ["b@i[i*4:i*4+4]"]}}
      - {{stream: s, record: read@i}}
      - {{stream: t, wait: read@i}}
      - {{stream: t, op: writer, updates: [b@i]}}
"""
    assert check_schedule(read_schedule(Source("moving.yaml", text))).verdict == verdict


def test_thousands_of_ops_that_all_race_are_not_all_listed() -> None:
    """20,000 ops, each in conflict with each on the other streams: the verdict is clear without 175 million races."""
    wide = tuple(OpStep(on(f"s{at % 8}"), f"op{at}", (Access("b", Mode.WRITE),)) for at in range(20_000))
    verdict = check_schedule(Schedule("wide", wide))
    assert verdict.verdict == "race" and verdict.limited
    assert 1_000 < len(verdict.races) <= 20_000


def test_long_loops_with_flags_are_checked_in_part() -> None:
    body: tuple[AnyStep, ...] = (
        OpStep(on("a"), "put", (Access("x", Mode.WRITE),)),
        EventStep("record", Indexed("E"), on("a")),
        EventStep("wait", Indexed("E"), on("b")),
        EventStep("reset", Indexed("E"), on("b")),
        OpStep(on("b"), "get", (Access("x", Mode.READ),)),
        EventStep("record", Indexed("F"), on("b")),
        EventStep("wait", Indexed("F"), on("a")),
        EventStep("reset", Indexed("F"), on("a")),
    )
    verdict = check_schedule(Schedule("long", (LoopStep("i", Int(0), Int(10**6), body),), event_model="flag"))
    assert verdict.verdict == "ok" and verdict.limited
    assert "the first" in verdict.counts_text


@pytest.mark.parametrize(("free", "expected"), [(1, "ok"), (2, "ok"), (3, "race")])
def test_flags_that_the_host_sets_at_first(free: int, expected: str) -> None:
    """As kernels on Ascend do: as many slots are free at first as the flag is set; the ring has two."""
    body: tuple[AnyStep, ...] = (
        FlagStep("take", Indexed("Free"), on("mte2")),
        OpStep(on("mte2"), "load", (Access("ub", Mode.WRITE, Name("i")),)),
        FlagStep("set", Indexed("Full"), on("mte2")),
        FlagStep("take", Indexed("Full"), on("v")),
        OpStep(on("v"), "compute", (Access("ub", Mode.READ, Name("i")),)),
        FlagStep("set", Indexed("Free"), on("v")),
    )
    first = (FlagStep("set", Indexed("Free")),) * free
    schedule = Schedule(
        "flags", (*first, LoopStep("i", Int(0), Int(2_000), body)), buffers={"ub": Storage("ub", ring=2)}
    )
    verdict = check_schedule(schedule)
    assert verdict.verdict == expected
    assert {(race.first.op, race.second.op, race.distance) for race in verdict.races} <= {("compute", "load", 2)}


def test_a_dozen_of_parameters_is_too_many_to_try_all() -> None:
    body = (OpStep(on("a"), "put", (Access("x", Mode.WRITE),)),)
    names = [f"n{at}" for at in range(30)]
    loops = tuple(LoopStep("i", Int(0), Name(name), body) for name in names)
    verdict = check_schedule(Schedule("grid", loops, params=dict.fromkeys(names)))
    assert verdict.verdict == "ok" and verdict.limited
