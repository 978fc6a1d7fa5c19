"""The lines of a picture are those that the schedule makes."""

from __future__ import annotations

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from dagsched.plan.expressions import Int, Name, parse_condition, parse_expression
from dagsched.schedule.model import (
    AnyStep,
    Event,
    EventModel,
    EventStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Protected,
    Schedule,
    WaitStreamStep,
)
from dagsched.view.edges import edges_of, groups_of
from tests.view.sample import detector


def op(name: str, stream: str) -> OpStep:
    return OpStep(stream=Indexed(stream), op=name)


def record(event: str, stream: str, when: str = "") -> EventStep:
    return _event("record", event, stream, (), when)


def wait(event: str, stream: str, protects: tuple[Protected, ...] = (), when: str = "") -> EventStep:
    return _event("wait", event, stream, protects, when)


def _event(
    action: Literal["record", "wait"], event: str, stream: str, protects: tuple[Protected, ...], when: str
) -> EventStep:
    name, _, index = event.partition("@")
    return EventStep(
        action=action,
        event=Indexed(name, parse_expression(index) if index else None),
        stream=Indexed(stream),
        protects=protects,
        when=parse_condition(when) if when else (),
    )


def loop(*steps: AnyStep) -> LoopStep:
    return LoopStep(index="i", lo=Int(0), hi=Name("n"), steps=steps)


def waits(*steps: AnyStep, events: tuple[Event, ...] = (), model: EventModel = "latch") -> set[tuple[str, str, int]]:
    schedule = Schedule("x", steps, model, params={"n": None}, events={event.name: event for event in events})
    return {(edge.before, edge.after, edge.distance) for edge in edges_of(schedule) if edge.kind == "wait"}


def test_detector_has_its_nine_waits() -> None:
    compiled = detector()
    edges = edges_of(compiled.schedule, compiled.hazards)
    assert {(e.before, e.after, e.distance) for e in edges if e.kind == "wait"} == {
        ("upload", "decode", 2), ("decode", "upload", 0), ("resize", "upload", 2), ("upload", "resize", 0),
        ("download", "infer", 2), ("infer", "download", 0), ("draw", "download", 2), ("download", "draw", 0),
    }  # fmt: skip
    assert {(e.before, e.after) for e in edges if e.kind == "order"} == {
        ("load", "upload"), ("decode", "draw"), ("resize", "infer"),
    }  # fmt: skip
    assert [(e.before, e.after, e.texts) for e in edges if e.kind == "implied"] == [("load", "infer", ("RAW weights",))]
    assert next(e for e in edges if (e.before, e.after) == ("resize", "upload")).texts == ("WAR image",)


@given(st.integers(1, 6), st.integers(0, 8), st.booleans())
def test_distance_follows_from_ring_and_latch(ring: int, delay: int, record_first: bool) -> None:
    """The oracle: the latest earlier record with the same handle, counted back by hand."""
    sides: list[AnyStep] = [op("a", "s"), record("e@i", "s")]
    other: list[AnyStep] = [wait(f"e@i-{delay}", "t"), op("b", "t")]
    body = [*sides, *other] if record_first else [*other, *sides]
    nearest = next(d for d in range(0 if record_first else 1, 20) if (d - delay) % ring == 0)
    assert waits(loop(*body), events=(Event("e", ring),)) == {("a", "b", nearest)}


@given(st.integers(0, 30))
def test_an_event_without_a_ring_is_taken_at_its_word(delay: int) -> None:
    body = (op("a", "s"), record("e@i", "s"), wait(f"e@i-{delay}", "t"), op("b", "t"))
    assert waits(loop(*body)) == {("a", "b", delay)}


def test_one_handle_shared_by_two_records_binds_to_the_newest() -> None:
    body = (
        op("a", "s"), record("e", "s"), wait("e", "t"), op("b", "t"), op("c", "u"), record("e", "u"), wait("e", "v"),
        op("d", "v"),
    )  # fmt: skip
    assert waits(loop(*body), events=(Event("e", 1),)) == {("a", "b", 0), ("c", "d", 0)}


def test_a_wait_before_a_loop_orders_what_it_protects() -> None:
    protects = (Protected("load", "infer@i", "weights", "RAW"),)
    steps = (op("load", "s"), record("e", "s"), wait("e", "t", protects), loop(op("resize", "t"), op("infer", "t")))
    assert waits(*steps) == {("load", "infer", 0)}
    assert waits(op("load", "s"), record("e", "s"), wait("e", "t"), loop(op("resize", "t"))) == {("load", "resize", 0)}


def test_guards_count() -> None:
    body = (wait("e", "t", when="i == 0"), op("b", "t"))
    assert waits(op("a", "s"), record("e", "s"), loop(*body)) == {("a", "b", 0)}
    assert waits(op("a", "s"), record("e", "s", when="n < 0"), loop(*body)) == set()


def test_a_wait_that_comes_before_its_record_depends_on_the_model() -> None:
    steps = (wait("e", "t"), op("b", "t"), op("a", "s"), record("e", "s"))
    assert waits(*steps) == set()
    assert waits(wait("e", "t"), op("a", "s"), record("e", "s"), op("b", "t"), model="flag") == {("a", "b", 0)}


def test_wait_stream_and_the_issuing_thread() -> None:
    step = WaitStreamStep(stream=Indexed("t"), target=Indexed("s"))
    assert waits(op("a", "s"), step, op("b", "t")) == {("a", "b", 0)}
    schedule = Schedule("x", (HostStep(host="fill"), op("a", "s"), HostStep(host="use")))
    assert [(e.before, e.after) for e in edges_of(schedule)] == [("fill", "use")]


def test_groups_follow_the_loops() -> None:
    groups = groups_of(detector().schedule)
    assert [(group.loop.index if group.loop else None, len(group.ops)) for group in groups] == [(None, 1), ("i", 6)]
    assert groups[0].ops == (("load", "h2d"),)


def test_expressions_without_a_value_do_not_fail() -> None:
    assert waits(loop(op("a", "s"), record("e@q", "s"), wait("e@q", "t"), op("b", "t"))) == {("a", "b", 0)}
