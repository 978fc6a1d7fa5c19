"""Large and hopeless plans: what is refused is refused before it is gone through."""

from __future__ import annotations

import time

import pytest

from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError, Source
from dagsched.plan.model import Loop
from dagsched.plan.reader import read_plan
from dagsched.plan.unroll import MAX_OPS, unroll_loops

HEAD = """
dagsched: 1
params: {n: null}
buffers:
  m: {place: device, size: 40GB, input: true, output: true}
  y: {place: device, size: 64, input: true, output: true, ring: RING}
ops:
"""


def loop(ops: str, ring: str = "1") -> str:
    return HEAD.replace("RING", ring) + f"  - loop: i\n    count: n\n    ops:\n{ops}"


def updates(access: str) -> str:
    return f'      - {{name: x, compute: f, updates: ["{access}"], time: 1 us}}\n'


def inner(count: int, ops: str = "          - {name: x, compute: f, updates: [y], time: 1 us}\n") -> str:
    return f"      - loop: j\n        count: {count}\n        ops:\n{ops}"


def eight_loops() -> str:
    text = HEAD.replace("RING", "1").replace("n: null", ", ".join(f"n{k}: null" for k in range(8)))
    op = "{{name: x{k}, compute: f, updates: [y], time: 1 us}}"
    return text + "".join(f"  - {{loop: i, count: n{k}, ops: [{op.format(k=k)}]}}\n" for k in range(8))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("P202", loop(inner(10**9))),
        ("P202", loop(updates("y").replace("x", "z") + inner(MAX_OPS))),
        ("P202", loop("".join(inner(MAX_OPS // 2).replace("name: x", f"name: x{k}") for k in range(3)))),
        ("P240", loop(updates("m[i*i:i*i+1]"))),
        ("P240", loop(updates("m[39999999999-i:40000000000-i]"))),
        ("P240", loop(updates("m[i%1000003:i%1000003+1]"))),
        ("P240", loop(updates("y"), "5000")),
        ("P241", eight_loops()),
    ],
)
def test_what_cannot_be_compiled_is_refused_early(code: str, text: str) -> None:
    start = time.process_time()
    with pytest.raises(PlanError) as raised:
        compile_plan(read_plan(Source("p.yaml", text)))
    assert [diagnostic.code for diagnostic in raised.value.diagnostics] == [code]
    assert time.process_time() - start < 10  # a few seconds at the most; minutes where all is gone through


def test_an_inner_loop_around_nothing_is_nothing() -> None:
    empty = "          - {loop: k, count: 0, ops: [{name: x, compute: f, updates: [y], time: 1 us}]}\n"
    compiled = compile_plan(read_plan(Source("p.yaml", loop(inner(10**9, empty) + updates("y").replace("x", "z")))))
    assert list(compiled.streams) == ["z"]


def test_copies_come_after_the_copies_that_they_mean() -> None:
    """``after:`` within an inner loop means the same value of its index, by an index over thousands of copies, too."""
    ops = "          - {name: x, compute: f, updates: [y], time: 1 us}\n"
    ops += "          - {name: z, compute: f, reads: [m], after: [x], time: 1 us}\n"
    (whole,) = unroll_loops(read_plan(Source("p.yaml", loop(inner(3000, ops))))).items
    assert isinstance(whole, Loop)
    after = {op.name: [edge.op for edge in op.after] for op in whole.body if not isinstance(op, Loop)}
    assert after == {f"x.{j}": [] for j in range(3000)} | {f"z.{j}": [f"x.{j}"] for j in range(3000)}


def test_two_streams_that_move_through_a_huge_buffer_have_a_pattern() -> None:
    ops = updates("m[i*32:i*32+32]") + "      - {name: z, host: g, reads: ['m[i*32:i*32+32]'], time: 1 us}\n"
    text = loop(ops).replace("params:", "streams: {policy: engine}\nparams:")
    compiled = compile_plan(read_plan(Source("p.yaml", text)))
    assert compiled.proof.complete
    assert compiled.waits_kept == 1
