"""Which loops can be captured, and why not; how expressions move with an index, against brute force."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError, Source
from dagsched.emit.acl_graph import emit_acl_graph
from dagsched.emit.calls import CallList, Record, Repeat, Wait
from dagsched.emit.captures import FIRST, Capture, CaptureError, find_capture
from dagsched.emit.cuda_graph import emit_cuda_graph
from dagsched.emit.lower import list_calls
from dagsched.emit.periods import movement_of, repeat_after
from dagsched.plan.expressions import Expr, ExpressionError, evaluate, holds, parse_condition, parse_expression
from dagsched.plan.reader import read_plan
from tests.emit.random_plans import random_pipelines
from tests.emit.test_layout import EXPRESSIONS


@given(EXPRESSIONS, st.integers(0, 40), st.integers(0, 9))
def test_movements_are_true(expr: Expr, i: int, n: int) -> None:
    movement = movement_of(expr, "i")
    assume(movement is not None)
    assert movement is not None
    period, growth = movement
    assume(period < 10**6)
    try:
        assert evaluate(expr, {"i": i + period, "n": n}) == evaluate(expr, {"i": i, "n": n}) + growth
    except ExpressionError:
        assume(False)


@given(EXPRESSIONS, st.integers(1, 6), st.integers(0, 20), st.integers(0, 9))
def test_repeats_are_true(expr: Expr, modulus: int, i: int, n: int) -> None:
    period = repeat_after(expr, "i", modulus)
    assume(period is not None and period < 10**6)
    assert period is not None
    try:
        later, now = evaluate(expr, {"i": i + period, "n": n}), evaluate(expr, {"i": i, "n": n})
    except ExpressionError:
        assume(False)
        raise
    assert later % modulus == now % modulus


@pytest.mark.parametrize(
    ("text", "movement"),
    [("i", (1, 1)), ("3*i + 2", (1, 3)), ("i // 4", (4, 1)), ("i % 3", (3, 0)), ("(2*i) % 6 + n", (3, 0)),
     ("i * n", None), ("min(i, 5)", None), ("max(i, i + 2)", (1, 1)), ("(i - 1) // -2", (2, -1))],
)  # fmt: skip
def test_movements(text: str, movement: tuple[int, int] | None) -> None:
    assert movement_of(parse_expression(text), "i") == movement


def _loop(calls: CallList) -> Repeat:
    return next(call for call in calls.body if isinstance(call, Repeat))


def _capture(when: str, lo: str = "0") -> Capture:
    """A loop of two ops on two streams, with a guard on the first wait."""
    calls = list_calls(compile_plan(read_plan(Source("plan.yaml", _plan()))))
    loop = _loop(calls)
    guard = parse_condition(when)
    body = tuple(dataclasses.replace(call, when=guard) if isinstance(call, Record) else call for call in loop.body)
    changed = dataclasses.replace(loop, body=body, lo=parse_expression(lo))
    return find_capture(calls, changed, host_calls=True)


def _plan(ops: list[dict[str, Any]] | None = None, **buffers: dict[str, Any]) -> str:
    document = {
        "dagsched": 1,
        "name": "p",
        "params": {"n": None},
        "streams": {"policy": "engine"},
        "buffers": {
            "x": {"place": "device", "size": 16, "ring": 2},
            "y": {"place": "host", "size": 16, "ring": 3, "output": True},
            **buffers,
        },
        "ops": [
            {
                "loop": "i",
                "count": "n",
                "ops": [
                    {"name": "make", "compute": "make", "writes": ["x"], "time": "5 us"},
                    {"name": "bring", "copy": {"from": "x", "to": "y"}},
                    *(ops or []),
                ],
            }
        ],
    }
    return yaml.safe_dump(document, sort_keys=False)


@pytest.mark.parametrize(
    ("when", "first", "tail"),
    [("i >= 0", 1, 0), ("i == 2", 3, 0), ("i >= 3", 4, 0), ("i != 5", 6, 0), ("2*i > 7", 4, 0), ("i == n - 1", 0, 1),
     ("i < n - 2", 0, 2), ("i >= 1 and i < n - 3", 2, 3), ("n - i > 4", 0, 4)],
)  # fmt: skip
def test_guards_settle(when: str, first: int, tail: int) -> None:
    """Between the first iterations and the last, a guard is always what the capture takes it for."""
    capture = _capture(when)
    assert capture.first == parse_expression(str(first))
    assert capture.tail == tail
    made = any(isinstance(call, Record) for call in capture.steady)
    for n in range(first + tail + 1, first + tail + 12):
        for i in range(first, n - tail):
            assert holds(parse_condition(when), {"i": i, "n": n}) == made


def test_guards_that_never_settle() -> None:
    with pytest.raises(CaptureError, match=r"`when i%2 == 0` of `make` never settles"):
        _capture("i % 2 == 0")
    with pytest.raises(CaptureError, match=r"depends on a parameter"):
        _capture("n > 3")


def test_loops_that_begin_elsewhere() -> None:
    assert _capture("i >= 0", lo="4").first == parse_expression("4")
    assert _capture("i >= 6", lo="n // 2").first == parse_expression("max(n // 2, 7)")


def test_windows_keep_what_binds_inside() -> None:
    """With two slots, iteration i waits for i-2: never in a window of 1, 2; in all but two of a longer one."""
    calls = list_calls(compile_plan(read_plan(Source("plan.yaml", _plan()))))
    capture = find_capture(calls, _loop(calls), host_calls=False)
    assert capture.period == 6
    waits = [call for call in capture.window(6) if isinstance(call, Wait)]
    env = {FIRST.name: 10}
    phases = {
        (wait.protects[0].before, wait.protects[0].after): [
            p for p in range(6) if holds(wait.when, {**env, "i": 10 + p})
        ]
        for wait in waits
    }
    assert phases == {("bring@i-2", "make@i"): [2, 3, 4, 5], ("make@i", "bring@i"): [0, 1, 2, 3, 4, 5]}


REASONS: list[tuple[list[dict[str, Any]], dict[str, dict[str, Any]], str]] = [
    ([{"name": "put", "copy": {"from": "x", "to": "all[i*16:i*16+16]"}}],
     {"all": {"place": "host", "size": 1600, "output": True}}, "moves with the iteration"),
    ([{"name": "put", "copy": {"from": "x", "to": "z"}}],
     {"z": {"place": "host", "size": 16, "pageable": True, "output": True}}, "`put` copies pageable memory, `z`"),
    ([{"name": "put", "compute": "put", "reads": ["x"], "writes": ["z"], "time": "1 us"}],
     {"z": {"place": "device", "size": 16, "dynamic": True, "output": True}}, "the size of `z`, which `put` uses"),
    ([{"name": "put", "compute": "put", "reads": ["x"], "writes": ["z"], "time": "1 us"}],
     {"z": {"place": "device", "size": 16, "ring": 13, "output": True}}, "repeats only after 78 iterations"),
]  # fmt: skip


@pytest.mark.parametrize(("ops", "buffers", "reason"), REASONS)
def test_reasons(ops: list[dict[str, Any]], buffers: dict[str, dict[str, Any]], reason: str) -> None:
    compiled = compile_plan(read_plan(Source("plan.yaml", _plan(ops, **buffers))))
    for emit, plain in ((emit_acl_graph, "acl-cpp"), (emit_cuda_graph, "cuda-cpp")):
        with pytest.raises(PlanError) as caught:
            emit(compiled)
        (fault,) = caught.value.diagnostics
        assert fault.code == "E106"
        assert reason in fault.notes[0]
        assert fault.notes[0].startswith("loop `i`: ")
        assert fault.help == f"emit `--target {plain}`, which issues every call"


def test_host_functions_are_captured_where_they_may_be() -> None:
    ops = [{"name": "look", "host": "look", "reads": ["y"], "time": "1 us"}]
    compiled = compile_plan(read_plan(Source("plan.yaml", _plan(ops))))
    assert "p_cuda_graph.hpp" in emit_cuda_graph(compiled)
    with pytest.raises(PlanError) as caught:
        emit_acl_graph(compiled)
    assert "`look` runs on the host" in caught.value.diagnostics[0].notes[0]


def test_random_loops_replay_what_they_issue() -> None:
    """In every window of a random plan, each call is the same as one period later, modulo the rings."""
    captured = 0
    for pipeline in random_pipelines(first=20000, count=15):
        calls = pipeline.emitted.calls
        depths = {buffer.name: buffer.ring.depth or 1 for buffer in calls.buffers}
        for loop in calls.body:
            if not isinstance(loop, Repeat):
                continue
            try:
                capture = find_capture(calls, loop, host_calls=True)
            except CaptureError:
                continue
            captured += 1
            env = dict.fromkeys(calls.params, 50)
            for call in capture.steady:
                for block in getattr(call, "arguments", ()):
                    now, later = (
                        evaluate(block.version, {**env, loop.index: i}) % depths[block.buffer]
                        for i in (20, 20 + capture.period)
                    )
                    assert now == later
    assert captured >= 5
