"""Accesses: read, print, and say where a wrong one goes wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.plan.access import (
    AccessError,
    access_text,
    check_name,
    exact_text,
    parse_access,
    split_indexed,
    unit_offset,
)
from dagsched.plan.expressions import Binary, Call, Expr, Int, Name, parse_expression
from dagsched.plan.model import Access, Mode, Slice

I_ = Name("i")


@pytest.mark.parametrize(
    ("text", "name", "version", "region"),
    [
        ("x", "x", None, ()),
        ("state@i-1", "state", Binary("-", I_, Int(1)), ()),
        ("qkv[0:64]", "qkv", None, (Slice(Int(0), Int(64)),)),
        ("qkv[:]", "qkv", None, (Slice(),)),
        ("qkv[5]", "qkv", None, (Slice(Int(5), Int(6)),)),
        ("qkv[i]", "qkv", None, (Slice(I_, Binary("+", I_, Int(1))),)),
        ("qkv[0:4KiB]", "qkv", None, (Slice(Int(0), Int(4096)),)),
        ("qkv[0 : 1.5kB]", "qkv", None, (Slice(Int(0), Int(1500)),)),
        ("x[i*4KiB:]", "x", None, (Slice(Binary("*", I_, Int(4096)), None),)),
        ("x[min(i,3):max(4, 5), :2]", "x", None,
         (Slice(Call("min", (I_, Int(3))), Call("max", (Int(4), Int(5)))), Slice(None, Int(2)))),
        ("state@i-1[0:4KiB]", "state", Binary("-", I_, Int(1)), (Slice(Int(0), Int(4096)),)),
        ("a b", "a b", None, ()),
        ("x*/y", "x*/y", None, ()),
        ("名前@0", "名前", Int(0), ()),
        ("<script>", "<script>", None, ()),
        ("a: b, c#d", "a: b, c#d", None, ()),
        (" x [0:1] ", "x", None, (Slice(Int(0), Int(1)),)),
    ],
)  # fmt: skip
def test_accesses_read(text: str, name: str, version: Expr | None, region: tuple[Slice, ...]) -> None:
    assert parse_access(text, Mode.READ) == Access(name, Mode.READ, version, region)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("", 0), ("@i", 0), ("x@", 1), ("x@i-", 4), ("x@[0:1]", 1), ("x[0:1", 1), ("x[]", 1), ("x[0:1]@i", 6),
     ("x[0:1][2]", 6),
     ("x[0:1:2]", 5), ("x[0:1, ]", 6), ("x[0:4 KB]", 6), ("x[0:1.3B]", 4), ("x[0:(1]", 6), ("x]", 1), ("x\ny", 1),
     ("x[4KiB*$]", 7), ("n" * 201, 0), ("x[0:" + "1+" * 300 + "1]", 4), ("x@" + "(" * 70, 66)],
)  # fmt: skip
def test_faults_are_located(text: str, offset: int) -> None:
    with pytest.raises(AccessError) as caught:
        parse_access(text, Mode.READ)
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    "name", ["a@b", "a[b", "a]b", "", "a\x00b", "a\u2028b", "a\x9bb", " a", "a ", "n" * 201, "\ufeff"]
)
def test_names_that_no_text_can_carry_are_refused(name: str) -> None:
    with pytest.raises(AccessError):
        check_name(name)


def test_units_in_bounds_are_found() -> None:
    assert unit_offset("x4KiB[0:64]") is None
    assert unit_offset("x[0:4KiB]") == 4


def test_an_order_has_an_index() -> None:
    assert split_indexed("op.0 x@i-1") == ("op.0 x", Binary("-", I_, Int(1)))


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(
    lambda text: text == text.strip() and not set(text) & set("@[]\u2028\u2029\ufeff\ufffe\uffff")
)
EXPRESSIONS = st.recursive(
    st.integers(0, 10**6).map(str) | st.sampled_from(["i", "n", "k_2"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(1, 9).map(str)).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"min({pair[0]}, {pair[1]})"),
        inner.map(lambda text: f"-({text})"),
        inner.map(lambda text: f"({text})"),
    ),
    max_leaves=6,
).map(parse_expression)
SLICES = st.builds(Slice, st.none() | EXPRESSIONS, st.none() | EXPRESSIONS)


@given(EXPRESSIONS)
def test_printed_expressions_read_back(expr: Expr) -> None:
    assert parse_expression(exact_text(expr)) == expr


@given(NAMES, st.none() | EXPRESSIONS, st.lists(SLICES, max_size=3).map(tuple))
def test_printed_accesses_read_back(name: str, version: Expr | None, region: tuple[Slice, ...]) -> None:
    access = Access(name, Mode.UPDATE, version, region)
    assert parse_access(access_text(access), Mode.UPDATE) == access


@given(st.text("ab@[]:,+-*/%()019 KiB", max_size=24))
def test_any_text_is_an_access_or_an_error_inside_it(text: str) -> None:
    try:
        access = parse_access(text, Mode.READ)
    except AccessError as error:
        assert 0 <= error.offset <= len(text)
    else:
        assert parse_access(access_text(access), Mode.READ) == access
