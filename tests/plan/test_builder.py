"""Plans built in Python: the reader's checks, with places in the Python file."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.plan.builder import Plan
from dagsched.plan.model import Loop, Op


def start() -> Plan:
    plan = Plan("p", params={"n": None})
    plan.buffer("a", place="host", size=8)
    plan.buffer("b", place="device", size=8)
    return plan


def faults(plan: Plan) -> list[Diagnostic]:
    with pytest.raises(PlanError) as caught:
        _ = plan.model
    return list(caught.value.diagnostics)


def test_a_mistake_stands_at_the_line_of_its_call() -> None:
    plan = start()
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno + 2
    with plan.loop("i", "n"):
        plan.compute("f", reads=["bb"], writes=["b@j"])
    found = faults(plan)
    assert [(d.code, d.where and d.where.line) for d in found] == [("P110", line), ("P112", line)]
    source = found[0].source
    assert source is not None
    assert source.name == __file__
    assert 'reads=["bb"]' in source.text.splitlines()[line - 1]
    assert found[0].help == "write `b`"


@pytest.mark.parametrize(
    ("add", "code"),
    [
        (lambda plan: plan.copy("u", "a", "b[0:4]"), "P140"),
        (lambda plan: plan.copy("u", "a", "q"), "P110"),
        (lambda plan: plan.fill("u", "b", 256), "P103"),
        (lambda plan: plan.fill("u", "b[9:]"), "P130"),
        (lambda plan: plan.compute("u", time=-1.0), "P104"),
        (lambda plan: plan.compute("u", time=float("nan")), "P104"),
        (lambda plan: plan.compute("u", time="5 msec"), "P104"),
        (lambda plan: plan.compute("u", after="v"), "P111"),
        (lambda plan: plan.compute("u", args={"x": "a"}), "P150"),
        (lambda plan: plan.compute("u", cores=0), "P103"),
        (lambda plan: plan.compute(""), "P105"),
        (lambda plan: plan.compute(3), "P103"),
        (lambda plan: plan.compute("u", reads=object()), "P103"),
        (lambda plan: plan.compute("u", color="red"), "P101"),
        (lambda plan: plan.buffer("c", place="hots", size=1), "P103"),
        (lambda plan: plan.buffer("c", place="host", size=0), "P104"),
        (lambda plan: plan.buffer("c", place="host", size=1.5), "P103"),
        (lambda plan: plan.buffer("c", place="host", size=8, ring=0), "P103"),
        (lambda plan: plan.buffer("a", place="host", size=8), "P004"),
        (lambda plan: plan.param("n", 3), "P004"),
        (lambda plan: plan.param("m", "x"), "P103"),
    ],
)
def test_mistakes_have_the_codes_of_the_reader(add: Callable[[Plan], object], code: str) -> None:
    plan = start()
    add(plan)
    (fault,) = faults(plan)
    assert (fault.code, fault.where is not None) == (code, True)


def test_a_plan_can_grow_after_it_was_looked_at() -> None:
    plan = start()
    plan.copy("u", "a", "b")
    assert len(plan.model.items) == 1
    plan.compute("f", reads="b")
    assert [op.name for op in plan.model.ops()] == ["u", "f"]


def test_loops_nest() -> None:
    plan = start()
    with plan.loop("i", "n"):
        with plan.loop("j", 3):
            plan.compute("f", writes="b[j:j+1]", after="f@j-1")
        plan.host("g", reads=["b"])
    (outer,) = plan.model.items
    assert isinstance(outer, Loop)
    inner, g = outer.body
    assert isinstance(inner, Loop)
    assert isinstance(g, Op)
    assert (inner.index, g.function) == ("j", "g")


def test_a_failed_loop_leaves_nothing_behind() -> None:
    plan = start()
    with pytest.raises(ZeroDivisionError), plan.loop("i", "n"):
        plan.compute("f", reads=[str(1 // 0)])
    assert plan.model.items == ()


def test_the_model_is_asked_for_outside_loops() -> None:
    plan = start()
    with plan.loop("i", "n"):
        plan.compute("f", reads="b")
        with pytest.raises(RuntimeError, match="leave the loop first"):
            _ = plan.model


def test_warnings_are_kept() -> None:
    assert [warning.code for warning in start().warnings] == ["P171", "P170", "P170"]


def test_integers_of_other_libraries_are_integers() -> None:
    numpy = pytest.importorskip("numpy")
    plan = Plan("p")
    plan.buffer("a", place="host", size=numpy.int64(8), ring=numpy.int32(2))
    plan.compute("f", reads=["a"], time=numpy.float64(0.5))
    assert (plan.model.buffers["a"].size, plan.model.buffers["a"].ring.depth) == (8, 2)
    assert next(plan.model.ops()).time == 0.5
