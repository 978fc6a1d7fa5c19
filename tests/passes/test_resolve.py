"""Rings keep the plan's meaning; wrong plans are told what is wrong, and where."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dagsched.compiler import compile_plan
from dagsched.diagnostics import PlanError, Source
from dagsched.plan.expressions import expression_text
from dagsched.plan.model import Plan, Ring
from dagsched.plan.reader import read_plan
from dagsched.plan.resolve import find_warnings, resolve_plan
from tests.emit.random_plans import random_plan

HEAD = "dagsched: 1\nname: t\nparams: {n: null}\nbuffers:\n"
BODY = "ops:\n"


def plan_of(buffers: str, ops: str) -> Plan:
    """A plan from the lines of its buffers and ops."""
    return read_plan(Source("t.yaml", f"{HEAD}{_indent(buffers)}{BODY}{_indent(ops)}"))


def _indent(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.strip("\n").split("\n"))


def depths(plan: Plan) -> dict[str, int | None]:
    return {name: buffer.ring.depth for name, buffer in resolve_plan(plan).buffers.items()}


def versions(plan: Plan) -> dict[str, list[str]]:
    """Each op's accesses as ``buffer@version``."""
    return {
        op.name: [
            f"{a.buffer}@{expression_text(a.version)}" if a.version is not None else a.buffer for a in op.accesses
        ]
        for op in resolve_plan(plan).ops()
    }


def fault(buffers: str, ops: str) -> tuple[str, str]:
    """The code of the only error, and the text of its line up to its column."""
    plan = plan_of(buffers, ops)
    with pytest.raises(PlanError) as caught:
        resolve_plan(plan)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.where is not None
    assert plan.source is not None
    assert diagnostic.help
    line = plan.source.text.split("\n")[diagnostic.where.line - 1]
    return diagnostic.code, line[: diagnostic.where.column - 1].strip()


LOOP = "- loop: i\n  count: n\n  ops:\n"
X = "x: {place: device, size: 64, ring: auto}\nout: {place: host, size: 64, output: true}"


def test_a_buffer_written_before_it_is_read_gets_two_slots() -> None:
    plan = plan_of(
        X,
        LOOP + "  - {name: w, compute: f, writes: [x]}\n  - {name: r, compute: f, reads: [x]}",
    )
    assert depths(plan)["x"] == 2
    assert versions(plan) == {"w": ["x@i"], "r": ["x@i"]}


def test_a_buffer_that_carries_its_contents_keeps_one_slot() -> None:
    ops = (
        "- {name: z, fill: {to: x}}\n"
        + LOOP
        + "  - {name: a, compute: f, updates: [x]}\n- {name: d, copy: {from: x, to: out}}"
    )
    assert depths(plan_of(X, ops))["x"] == 1


def test_a_read_before_the_write_of_the_same_iteration_keeps_one_slot() -> None:
    ops = (
        "- {name: z, fill: {to: x}}\n" + LOOP + "  - {name: r, compute: f, reads: [x]}\n"
        "  - {name: w, compute: f, writes: [x]}"
    )
    assert depths(plan_of(X, ops))["x"] == 1


def test_half_written_buffers_are_not_renamed() -> None:
    ops = (
        "- {name: z, fill: {to: x}}\n" + LOOP + "  - {name: w, compute: f, writes: ['x[0:32]']}\n"
        "  - {name: r, compute: f, reads: [x]}"
    )
    assert depths(plan_of(X, ops))["x"] == 1


@pytest.mark.parametrize(("back", "depth"), [(1, 2), (2, 3), (3, 4), (7, 8)])
def test_old_versions_are_kept_as_long_as_they_are_read(back: int, depth: int) -> None:
    first = "\n".join(f"- {{name: z{k}, fill: {{to: x@-{k}}}}}" for k in range(1, back + 1))
    ops = f"{first}\n{LOOP}  - {{name: s, compute: f, reads: [x@i-{back}], writes: [x]}}"
    assert depths(plan_of(X, ops))["x"] == depth


def test_behind_a_loop_the_name_means_the_newest_version() -> None:
    ops = (
        "- {name: z, fill: {to: x}}\n" + LOOP + "  - {name: w, compute: f, writes: [x]}\n"
        "  - {name: r, compute: f, reads: [x]}\n- {name: d, copy: {from: x, to: out}}"
    )
    assert versions(plan_of(X, ops)) == {"z": ["x@-1"], "w": ["x@i"], "r": ["x@i"], "d": ["x@n-1", "out"]}


def test_behind_two_loops_it_is_the_second_ones_where_that_ran() -> None:
    loop = "- loop: i\n  count: {n}\n  ops:\n  - {{name: w{n}, compute: f, writes: [x]}}\n"
    ops = (
        "- {name: z, fill: {to: x}}\n" + loop.format(n=3) + loop.format(n="n") + "- {name: d, copy: {from: x, to: out}}"
    )
    assert versions(plan_of(X, ops))["d"][0] == "x@min(n, 1)*(n-1)+(1-min(n, 1))*2"


IN = "in: {place: device, size: 64, input: true}\n"


@pytest.mark.parametrize(
    ("buffers", "ops", "expected"),
    [
        (X, "- {name: r, compute: f, reads: [x]}", ("P210", "- {name: r, compute: f, reads: [")),
        (
            X,
            "- {name: w, compute: f, writes: ['x[0:32]']}\n- {name: r, compute: f, reads: [x]}",
            ("P210", "- {name: r, compute: f, reads: ["),
        ),
        (
            X,
            LOOP + "  - {name: w, compute: f, writes: [x]}\n- {name: d, copy: {from: x, to: out}}",
            ("P210", "- {name: d, copy: {from:"),
        ),
        (
            X.replace("auto", "2"),
            LOOP + "  - {name: w, compute: f, writes: [x]}\n  - {name: v, compute: f, writes: [x@i+2]}\n"
            "  - {name: r, compute: f, reads: [x]}",
            ("P211", "- {name: r, compute: f, reads: ["),
        ),
        (
            X.replace("ring: auto", "ring: 1"),
            "- {name: z, fill: {to: x@-1}}\n" + LOOP + "  - {name: s, compute: f, reads: [x@i-1], writes: [x]}",
            ("P213", "- {name: s, compute: f, reads: [x@i-1], writes: ["),
        ),
        (
            IN + X,
            "- {name: a, compute: f, reads: [in], writes: [x], after: [b]}\n- {name: b, compute: f, reads: [x]}",
            ("P220", "- {name: a, compute: f, reads: [in], writes: [x], after: ["),
        ),
        (
            IN + X,
            (
                "- {name: a, compute: f, reads: [in], after: [b], stream: s}\n"
                "- {name: b, compute: f, reads: [in], stream: s}"
            ),
            ("P221", "- {name: a, compute: f, reads: [in], after: ["),
        ),
    ],
)
def test_wrong_plans(buffers: str, ops: str, expected: tuple[str, str]) -> None:
    assert fault(buffers, ops) == expected


def test_an_op_moves_behind_the_one_that_it_comes_after() -> None:
    plan = plan_of(
        IN + X, "- {name: a, compute: f, reads: [in], after: [b]}\n- {name: b, compute: f, reads: [in], writes: [x]}"
    )
    assert [op.name for op in resolve_plan(plan).ops()] == ["b", "a"]


def test_inner_loops_become_their_ops() -> None:
    ops = (
        LOOP + "  - {name: w, compute: f, writes: [x]}\n  - loop: j\n    count: 2\n    ops:\n"
        "    - {name: r, compute: f, reads: ['x[j*32:j*32+32]']}\n    - {name: s, compute: f, reads: [in], after: [r]}"
        "\n"
        "  - {name: e, compute: f, reads: [in], after: [s]}"
    )
    plan = resolve_plan(plan_of(IN + X, ops))
    assert [op.name for op in plan.ops()] == ["w", "r.0", "s.0", "r.1", "s.1", "e"]
    after = {op.name: [edge.op for edge in op.after] for op in plan.ops()}
    assert after["s.1"] == ["r.1"]
    assert after["e"] == ["s.0", "s.1"]


def test_a_buffer_that_nobody_reads_is_warned_of() -> None:
    plan = resolve_plan(plan_of(X, "- {name: w, compute: f, writes: [x]}"))
    assert [(warning.code, warning.severity) for warning in find_warnings(plan)] == [("P230", "warning")]


def test_a_bare_name_in_a_second_loop_is_explained() -> None:
    """``x`` in the second loop means ``x@i``, which the first one may have written too few times."""
    ops = (
        "- {name: p, fill: {to: x}}\n" + LOOP + "  - {name: w, compute: f, writes: [x]}\n"
        "- loop: j\n  count: 3\n  ops:\n  - {name: r, compute: f, reads: [x]}"
    )
    with pytest.raises(PlanError) as caught:
        resolve_plan(plan_of(X.replace("auto", "2"), ops))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "P210"
    assert diagnostic.help == (
        "`x` means `x@j` here: write that version in this loop, or name the one that is to be read"
    )


@pytest.mark.parametrize(("ring", "expected"), [("3", "P211"), ("{min: 3}", "P212")])
def test_an_output_is_no_ring_whose_newest_slot_lacks_a_part(ring: str, expected: str) -> None:
    buffers = f"b: {{place: host, shape: [8], dtype: uint8, ring: {ring}, input: true, output: true}}"
    ops = "- loop: i\n  count: 4\n  ops:\n  - {name: a, host: f, accumulates: ['b[i*2:i*2+2]']}"
    assert fault(buffers, ops)[0] == expected
    auto = plan_of(buffers.replace(f"ring: {ring}", "ring: auto"), ops)
    assert depths(auto) == {"b": 1}


def test_an_output_is_judged_at_every_end_that_a_count_can_have() -> None:
    """Only where `n` ends in the slot that the first op wrote to is something left that the newest version lacks."""
    buffers = "b: {place: device, shape: [4, 6], dtype: uint8, ring: %s, input: true, output: true}"
    ops = (
        "- {name: z, fill: {to: 'b@0[1:3]'}}\n"
        "- loop: i\n  count: n\n  ops:\n  - {name: w, compute: f, writes: ['b[:, 0:2]']}"
    )
    assert fault(buffers % 5, ops)[0] == "P211"
    whole = ops.replace("b[:, 0:2]", "b")
    assert depths(plan_of(buffers % 5, whole)) == {"b": 5}


@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_output_whose_newest_version_was_there_before_the_loop_is_judged(count: int) -> None:
    """`b@i-2` is written last: where the count is 1, that is version -2."""
    buffers = "b: {place: host, size: 12, ring: 2, input: true, output: true}"
    ops = f"- loop: i\n  count: {count}\n  ops:\n  - {{name: w, host: f, writes: [b]}}\n"
    ops += '  - {name: old, host: f, writes: ["b@i-2[0:6]"]}'
    assert fault(buffers, ops)[0] == "P211"


CACHE = "c: {place: device, shape: [8, 4], dtype: float16, input: true, output: true}"


@pytest.mark.parametrize(
    ("region", "params", "expected"),
    [
        ("c[0:i]", "null", ("P132", "iteration 0")),
        ("c[i-1:i+1]", "null", ("P215", "in iteration 0")),
        ("c[0:i, 0:4]", "5", ("P132", "iteration 0")),
        ("c[i:i+1]", "9", ("P215", "in iteration 8 of 9")),
        ("c[0:i+1]", "100", ("P215", "in iteration 8 of 100")),
        ("c[i:i+1]", "8", None),
        ("c[0:i+1]", "0", None),
        ("c[0:i+1]", "null", None),
    ],
)
def test_a_region_that_moves_fits_at_first_and_as_often_as_the_default_says(
    region: str, params: str, expected: tuple[str, str] | None
) -> None:
    """Else a proof would hold of no iteration at all, and every run would be refused."""
    head = HEAD.replace("null", params)
    ops = LOOP + f"  - {{name: work, compute: f, updates: ['{region}']}}"
    plan = read_plan(Source("t.yaml", f"{head}{_indent(CACHE)}{BODY}{_indent(ops)}"))
    if expected is None:
        resolve_plan(plan)
        return
    with pytest.raises(PlanError) as caught:
        resolve_plan(plan)
    (found,) = caught.value.diagnostics
    assert (found.code, found.where and found.where.line) == (expected[0], 10)
    assert expected[1] in found.headline


@given(st.integers(0, 10_000), st.data())
def test_least_depths_are_kept_or_refused(seed: int, data: st.DataObject) -> None:
    """`ring: {min: n}` on any buffer: the schedule is proved, or the plan is refused with a reason."""
    try:
        plan = random_plan(seed)
    except PlanError:
        assume(False)
    least = {name: data.draw(st.integers(1, 4)) for name in plan.buffers}
    buffers = {name: replace(b, ring=Ring(None, least[name])) for name, b in plan.buffers.items()}
    try:
        compiled = compile_plan(replace(plan, buffers=buffers))  # a `ProofError` is a fault of the passes
    except PlanError as error:
        assert {diagnostic.code for diagnostic in error.diagnostics} <= {"P210", "P212", "P213"}
        return
    assert all((compiled.resolved.buffers[name].ring.depth or 0) >= depth for name, depth in least.items())


def test_a_least_depth_beyond_what_auto_looks_at() -> None:
    reader = "- {name: r, compute: f, reads: [x, x@i]}"
    ops = f"- loop: i\n  count: 9\n  ops:\n  - {{name: w, compute: f, writes: [x]}}\n  {reader}"
    assert depths(plan_of(X.replace("auto", "{min: 100}"), ops))["x"] == 100
