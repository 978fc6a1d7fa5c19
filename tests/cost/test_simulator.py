"""What a schedule does on a device, step by step."""

from __future__ import annotations

import pytest

from dagsched.cost.durations import OpCost
from dagsched.cost.model import CallCosts, Device, Engine, Limits
from dagsched.cost.simulator import simulate_costs
from dagsched.cost.timeline import Timeline
from dagsched.diagnostics import ScheduleError
from dagsched.plan.expressions import parse_condition, parse_expression
from dagsched.schedule.model import (
    AnyStep,
    Event,
    EventStep,
    FlagStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Schedule,
    Stream,
    SyncStep,
    WaitStreamStep,
)

CORE, DMA = Engine("core", "compute"), Engine("dma", "h2d")
COSTS = {
    "upload": OpCost(DMA, 2.0),
    "infer": OpCost(CORE, 3.0),
    "prepare": OpCost(Engine("host", "host"), 1.0),
    "guess": OpCost(CORE, 0.0, known=False),
}
FREE = Device("free", {"core": CORE, "dma": DMA})


def indexed(text: str) -> Indexed:
    name, _, index = text.partition("@")
    return Indexed(name, parse_expression(index) if index else None)


def op(stream: str, name: str, when: str = "") -> OpStep:
    return OpStep(indexed(stream), name, when=parse_condition(when) if when else ())


def record(stream: str | None, event: str) -> EventStep:
    return EventStep("record", indexed(event), indexed(stream) if stream else None)


def wait(stream: str | None, event: str) -> EventStep:
    return EventStep("wait", indexed(event), indexed(stream) if stream else None)


def loop(count: str, *steps: AnyStep) -> LoopStep:
    return LoopStep("i", parse_expression("0"), parse_expression(count), steps)


def double_buffer(depth: int) -> Schedule:
    """Op `upload@i` waits for `infer@(i - depth)`, which frees its slot."""
    steps = loop(
        "n",
        wait("copy", f"done@i-{depth}"),
        op("copy", "upload"),
        record("copy", "ready@i"),
        wait("compute", "ready@i"),
        op("compute", "infer"),
        record("compute", "done@i"),
    )
    events = {"ready": Event("ready", depth), "done": Event("done", depth)}
    return Schedule("x", (steps, SyncStep("stream", indexed("compute"))), params={"n": None}, events=events)


def starts(timeline: Timeline, name: str) -> list[float]:
    return [span.start for span in timeline.spans if span.op == name]


def stop(schedule: Schedule, **counts: int) -> list[str]:
    with pytest.raises(ScheduleError) as raised:
        simulate_costs(schedule, COSTS, FREE, counts)
    return [fault.code for fault in raised.value.diagnostics]


def test_one_buffer_is_serial_and_two_overlap() -> None:
    serial = simulate_costs(double_buffer(1), COSTS, FREE, {"n": 4})
    assert serial.makespan == 20
    overlapped = simulate_costs(double_buffer(2), COSTS, FREE, {"n": 4})
    assert overlapped.makespan == 14
    assert starts(overlapped, "infer") == [2, 5, 8, 11]
    assert starts(overlapped, "upload") == [0, 2, 5, 8]
    assert [span.iteration for span in overlapped.spans if span.op == "infer"] == [0, 1, 2, 3]
    assert {(span.stream, span.engine) for span in overlapped.spans} == {("copy", "dma"), ("compute", "core")}


def test_no_iterations_take_no_time() -> None:
    assert simulate_costs(double_buffer(2), COSTS, FREE, {"n": 0}).makespan == 0
    assert simulate_costs(double_buffer(2), COSTS, FREE, {"n": -3}).spans == ()


def test_a_wait_without_a_record_is_none() -> None:
    schedule = Schedule("x", (wait("s", "never"), op("s", "infer")))
    assert simulate_costs(schedule, COSTS, FREE).makespan == 3


def test_a_latch_binds_to_the_newest_record_issued_before() -> None:
    steps = (
        op("a", "upload"),
        record("a", "e"),
        wait("b", "e"),
        op("a", "upload"),
        record("a", "e"),
        op("b", "infer"),
        wait("c", "e"),
        op("c", "infer"),
    )
    assert starts(simulate_costs(Schedule("x", steps), COSTS, FREE), "infer") == [2, 5]


def test_a_flag_blocks_until_it_is_set() -> None:
    steps = (wait("b", "e"), op("b", "infer"), op("a", "upload"), record("a", "e"))
    flag = Schedule("x", steps, event_model="flag")
    assert starts(simulate_costs(flag, COSTS, FREE), "infer") == [2]
    assert starts(simulate_costs(Schedule("x", steps), COSTS, FREE), "infer") == [0]
    assert stop(Schedule("x", steps[:2], event_model="flag")) == ["D134"]
    late = (op("a", "upload"), record("a", "e"), EventStep("reset", indexed("e"), indexed("a")), *steps[:2])
    assert stop(Schedule("x", late, event_model="flag")) == ["D134"]


def test_calls_cost_host_time() -> None:
    device = Device("d", FREE.engines, CallCosts(issue=10, record=100, wait=1000))
    steps = (op("a", "upload"), record("a", "e"), wait("b", "e"), op("b", "infer"))
    timeline = simulate_costs(Schedule("x", steps), COSTS, device)
    assert starts(timeline, "upload") == [10]
    assert starts(timeline, "infer") == [1120]
    assert timeline.makespan == 1123


def test_the_issuing_thread_works_and_waits() -> None:
    steps = (
        op("a", "upload"),
        SyncStep("stream", indexed("a")),
        HostStep("prepare"),
        op("b", "infer"),
        record("b", "e"),
        wait(None, "e"),
        HostStep("prepare"),
        SyncStep("device"),
    )
    timeline = simulate_costs(Schedule("x", steps), COSTS, FREE)
    assert starts(timeline, "prepare") == [2, 6]
    assert starts(timeline, "infer") == [3]
    assert timeline.makespan == 7


def test_queue_depth_blocks_the_host() -> None:
    steps = (op("a", "upload"), op("a", "upload"), op("a", "upload"), op("b", "infer"))
    shallow = Device("d", FREE.engines, limits=Limits(queue_depth=1))
    assert starts(simulate_costs(Schedule("x", steps), COSTS, shallow), "infer") == [4]
    assert starts(simulate_costs(Schedule("x", steps), COSTS, FREE), "infer") == [0]


def test_pageable_memory_blocks_the_host() -> None:
    costs = COSTS | {"upload": OpCost(DMA, 2.0, blocks=True)}
    timeline = simulate_costs(Schedule("x", (op("a", "upload"), op("b", "infer"))), costs, FREE)
    assert starts(timeline, "infer") == [2]


def test_waiting_for_a_stream_and_counting_flags() -> None:
    steps = (op("a", "upload"), WaitStreamStep(indexed("b"), indexed("a")), op("b", "infer"), op("a", "upload"))
    assert starts(simulate_costs(Schedule("x", steps), COSTS, FREE), "infer") == [2]
    pair = (
        FlagStep("take", indexed("f"), indexed("b")),
        op("b", "infer"),
        op("a", "upload"),
        FlagStep("set", indexed("f"), indexed("a")),
    )
    assert starts(simulate_costs(Schedule("x", pair), COSTS, FREE), "infer") == [2]
    assert stop(Schedule("x", pair[:3])) == ["D134"]


def test_guards_and_indexed_streams() -> None:
    steps = loop("4", op("s@i%2", "infer", "i >= 1"))
    core = Engine("core", "compute", lanes=2)
    timeline = simulate_costs(Schedule("x", (steps,)), COSTS | {"infer": OpCost(core, 3.0)}, FREE)
    assert [(span.stream, span.start) for span in timeline.spans] == [("s@1", 0), ("s@0", 0), ("s@1", 3)]
    assert timeline.engines == {"core": 2}


def test_the_legacy_default_stream_is_a_barrier() -> None:
    steps = (op("a", "upload"), op("default", "infer"), op("a", "upload"), op("free", "upload"))
    streams = {"free": Stream("free", nonblocking=True)}
    legacy = simulate_costs(Schedule("x", steps, default_stream="legacy", streams=streams), COSTS, FREE)
    assert (starts(legacy, "infer"), starts(legacy, "upload")) == ([2], [0, 5, 2])
    plain = simulate_costs(Schedule("x", steps, streams=streams), COSTS, FREE)
    assert (starts(plain, "infer"), starts(plain, "upload")) == ([0], [0, 4, 2])


def test_priorities_of_streams() -> None:
    steps = (op("a", "infer"), op("b", "infer"), op("c", "infer"))
    streams = {"b": Stream("b", priority=3), "c": Stream("c", priority=1), "a": Stream("a", priority=0)}
    timeline = simulate_costs(Schedule("x", steps, streams=streams), COSTS, FREE)
    assert [span.start for span in timeline.spans] == [0, 6, 3]


def test_what_has_no_time_is_named() -> None:
    steps = (op("a", "guess"), op("a", "infer"), HostStep("think"))
    timeline = simulate_costs(Schedule("x", steps), COSTS, FREE)
    assert timeline.unknown == ("guess", "think")
    assert "a: infer" in str(timeline)


def test_what_cannot_be_simulated_is_said() -> None:
    assert stop(double_buffer(2)) == ["D130"]
    assert stop(Schedule("x", (op("a", "uplod"),))) == ["D131"]
    assert stop(Schedule("x", (op("a", "upload", "k > 0"),))) == ["D132"]
    assert stop(Schedule("x", (FlagStep("acquire", indexed("f"), indexed("a")),))) == ["D133"]
    assert stop(Schedule("x", (record("a", "e"),), event_model="reevaluate")) == ["D133"]
    stuck = (
        FlagStep("take", indexed("f"), indexed("a")),
        SyncStep("stream", indexed("a")),
        FlagStep("set", indexed("f")),
    )
    with pytest.raises(ScheduleError) as raised:
        simulate_costs(Schedule("x", stuck), COSTS, FREE)
    (fault,) = raised.value.diagnostics
    assert (fault.code, fault.notes) == ("D136", ("stuck: stream `a`",))


def test_a_huge_count_is_refused_before_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagsched.cost.program.MAX_COMMANDS", 100)
    with pytest.raises(ScheduleError) as raised:
        simulate_costs(double_buffer(2), COSTS, FREE, {"n": 10**12})
    assert raised.value.diagnostics[0].code == "D135"
