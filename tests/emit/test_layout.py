"""Bytes of regions and copies between them, against brute force; and the arithmetic behind them."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dagsched.emit.blocks import Block, lay_out
from dagsched.emit.cpp_text import cpp_expression
from dagsched.emit.nests import Nest, nest_of
from dagsched.emit.ranges import fits, plus, range_of, scale, subtract
from dagsched.plan.expressions import Binary, Call, Expr, ExpressionError, Int, Name, evaluate, parse_expression
from dagsched.plan.model import Access, Buffer, Mode, Place, Slice

LEAVES = st.one_of(st.integers(-20, 20).map(Int), st.sampled_from([Name("i"), Name("n")]))


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = st.builds(Binary, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner)
    call = st.builds(Call, st.sampled_from(["min", "max"]), st.lists(inner, min_size=1, max_size=3).map(tuple))
    return st.one_of(binary, call)


EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(LEAVES, _grow, max_leaves=8)
VALUES = st.fixed_dictionaries({"i": st.integers(-5, 30), "n": st.integers(0, 30)})


def _value(expr: Expr, env: dict[str, int]) -> int:
    try:
        return evaluate(expr, env)
    except ExpressionError:
        assume(False)
        raise


@given(EXPRESSIONS, EXPRESSIONS, VALUES, st.integers(-9, 9))
def test_arithmetic_keeps_values(a: Expr, b: Expr, env: dict[str, int], factor: int) -> None:
    left, right = _value(a, env), _value(b, env)
    assert evaluate(subtract(a, b), env) == left - right
    assert evaluate(plus(a, b), env) == left + right
    assert evaluate(scale(a, factor), env) == left * factor
    assert subtract(a, a) == Int(0)


@given(EXPRESSIONS, st.tuples(st.integers(-5, 5), st.integers(0, 9)), st.tuples(st.integers(-5, 5), st.integers(0, 9)))
def test_ranges_hold_every_value(expr: Expr, i: tuple[int, int], n: tuple[int, int]) -> None:
    names = {"i": (i[0], i[0] + i[1]), "n": (n[0], n[0] + n[1])}
    try:
        low, high = range_of(expr, names)
    except ZeroDivisionError:
        return
    for a, b in product(range(names["i"][0], names["i"][1] + 1), range(names["n"][0], names["n"][1] + 1)):
        assert low <= evaluate(expr, {"i": a, "n": b}) <= high


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("i*32 + 32", "i*32", "32"),
        ("min(i*32 + 32, 100)", "i*32", "min(32, 100 - i*32)"),
        ("n - max(i, 3)", "n", "-max(i, 3)"),
        ("(i + 1) * 4 - i", "0", "i*3 + 4"),
    ],
)
def test_differences_are_in_lowest_terms(left: str, right: str, result: str) -> None:
    assert subtract(parse_expression(left), parse_expression(right)) == parse_expression(result)


def test_fits_sees_every_step() -> None:
    names = {"i": (0, 2**40)}
    assert fits(parse_expression("i * 1048576"), names)
    assert not fits(parse_expression("i * 16777216 * 2 // 33554432"), names)


def test_cpp_expressions_round_towards_minus_infinity() -> None:
    names = {"i": "i", "class": "class_"}
    assert cpp_expression(parse_expression("(i - 3) // 4 % 2"), names) == "floor_mod(floor_div(i - 3, 4), 2)"
    assert cpp_expression(parse_expression("2 * (i - (i + 1))"), names) == "2 * (i - (i + 1))"
    assert cpp_expression(parse_expression("-i + min(i, 3)"), names) == "(-i) + std::min<int64_t>({i, 3})"
    assert cpp_expression(Name("class"), names) == "class_"


@st.composite
def regions(draw: st.DrawFn) -> tuple[Buffer, Access]:
    """A buffer of up to three axes and a region of it."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    item = draw(st.sampled_from([1, 2, 4]))
    region = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        lo = draw(st.integers(0, extent - 1))
        hi = draw(st.integers(lo + 1, extent))
        region.append(Slice(Int(lo) if draw(st.booleans()) or lo else None, Int(hi)))
    dtype = {1: "uint8", 2: "int16", 4: "int32"}[item]
    buffer = Buffer("x", Place.DEVICE, prod(shape) * item, shape, dtype)
    return buffer, Access("x", Mode.READ, None, tuple(region))


def positions(buffer: Buffer, access: Access) -> list[int]:
    """Every byte of a region in row-major order, one by one."""
    ranges = []
    for axis, extent in enumerate(buffer.extents):
        part = access.region[axis] if axis < len(access.region) else Slice()
        ranges.append(range(evaluate(part.lo or Int(0), {}), evaluate(part.hi or Int(extent), {})))
    found: list[int] = []
    for point in product(*ranges):
        at = 0
        for place, extent in zip(point, buffer.extents, strict=True):
            at = at * extent + place
        found += range(at * buffer.itemsize, (at + 1) * buffer.itemsize)
    return found


def _known(expr: Expr) -> int:
    assert isinstance(expr, Int)
    return expr.value


def block_positions(block: Block) -> list[int]:
    """Every byte that a block's runs visit, in order."""
    starts = [_known(block.offset)]
    for axis in block.axes:
        starts = [start + n * axis.stride for start in starts for n in range(_known(axis.count))]
    return [start + n for start in starts for n in range(_known(block.run))]


@given(regions())
def test_blocks_visit_exactly_the_region(case: tuple[Buffer, Access]) -> None:
    buffer, access = case
    block = lay_out(access, buffer, {})
    assert block_positions(block) == positions(buffer, access)
    assert not block.checks
    assert block.bytes == len(positions(buffer, access))
    assert block.whole == (len(positions(buffer, access)) == buffer.size)
    assert all(_known(axis.count) > 1 for axis in block.axes)


def nest_pairs(nest: Nest, source: Block, target: Block) -> list[tuple[int, int]]:
    """The bytes that a copy moves: (from, to)."""
    pairs = [(_known(source.offset), _known(target.offset))]
    for level in nest.levels:
        pairs = [
            (a + n * _known(level.source), b + n * _known(level.target))
            for a, b in pairs
            for n in range(_known(level.count))
        ]
    return [(a + n, b + n) for a, b in pairs for n in range(_known(nest.run))]


@given(regions(), regions())
def test_copies_move_each_byte_to_its_place(one: tuple[Buffer, Access], other: tuple[Buffer, Access]) -> None:
    source, target = lay_out(one[1], one[0], {}), lay_out(other[1], other[0], {})
    nest = nest_of(source, target)
    if source.axes or target.axes:
        assume(source.bytes == target.bytes or nest is None)
    if nest is None:
        assert source.axes or target.axes
        return
    if source.bytes == target.bytes:
        moved = nest_pairs(nest, source, target)
        assert moved == list(zip(positions(*one), positions(*other), strict=True))


@given(regions(), st.integers(1, 3))
def test_copies_between_a_region_and_a_block_are_always_expressible(case: tuple[Buffer, Access], _: int) -> None:
    region = lay_out(case[1], case[0], {})
    size = region.bytes or 0
    packed = lay_out(Access("y", Mode.WRITE), Buffer("y", Place.HOST, size), {})
    for source, target in ((region, packed), (packed, region)):
        nest = nest_of(source, target)
        assert nest is not None
        assert len(nest_pairs(nest, source, target)) == size


@given(regions(), st.integers(0, 3), st.integers(1, 3))
def test_moving_regions_are_checked_unless_they_are_known_to_fit(
    case: tuple[Buffer, Access], step: int, count: int
) -> None:
    """A region that moves along the first axis: its bytes are right, and bounds are checked wherever they may break."""
    buffer, _ = case
    extent = buffer.extents[0]
    access = Access("x", Mode.READ, None, (Slice(parse_expression(f"i*{step}"), parse_expression(f"i*{step} + 1")),))
    block = lay_out(access, buffer, {"i": (0, count - 1)})
    fits_always = (count - 1) * step + 1 <= extent
    assert bool(block.checks) != fits_always
    for i in range(count):
        env = {"i": i}
        inside = 0 <= i * step < i * step + 1 <= extent
        held = all(0 <= evaluate(c.lo, env) < evaluate(c.hi, env) <= c.extent for c in block.checks)
        assert held == inside or not block.checks
        row = buffer.size // extent
        if inside:
            assert evaluate(block.offset, env) == i * step * row
