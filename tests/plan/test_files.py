"""Bytes to nodes: YAML 1.2 scalars, places, and everything hostile or broken refused with its place."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.diagnostics import DagschedError, Diagnostic, ScheduleError, UsageError
from dagsched.files import MAX_BYTES, Node, decode_source, load_node, place_of, read_source, to_data
from dagsched.plan.writer import flow_text


def load(text: str, name: str = "x.yaml") -> Node:
    return load_node(read_source(text, name))


def faults(text: str, name: str = "x.yaml") -> list[Diagnostic]:
    with pytest.raises(DagschedError) as caught:
        load(text, name)
    return list(caught.value.diagnostics)


def places(text: str, name: str = "x.yaml") -> list[tuple[str, int, int]]:
    return [(d.code, d.where.line, d.where.column) for d in faults(text, name) if d.where]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"), ("no", "no"), ("Yes", "Yes"), ("y", "y"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01"),
        ("010", 10), ("0o17", 15), ("0x1f", 31), ("-7", -7), ("+7", 7), ("1_000", "1_000"), ("0b1", "0b1"),
        ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("1.", 1.0), ("1e", "1e"), (".", "."), ("+", "+"), ("--", "--"),
        ("true", True), ("FALSE", False), ("tRue", "tRue"), ("~", None), ("null", None), ("Null", None),
        (".inf", float("inf")), ("-.INF", float("-inf")), ("'1'", "1"), ('"true"', "true"), ("", None),
        ("1.4 ms", "1.4 ms"), ("٣", "٣"), ("state@i-1", "state@i-1"),
    ],
)  # fmt: skip
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    found = to_data(load(f"- {text}\n"))
    assert found == [value]
    assert type(found[0]) is type(value)


def test_nan_is_a_float() -> None:
    (value,) = to_data(load("- .nan"))
    assert value != value


def test_places_count_characters() -> None:
    node = load("名: {b: [x, 'yy']}\r\nc:\r\n  - d\r\n  - |\r\n    text\r\n")
    assert place_of(node, ("名", "b", 1)).line == 1
    assert (place_of(node, ("名", "b", 1)).column, place_of(node, ("名", "b", 1)).width) == (12, 4)
    assert (place_of(node, ("c", 0)).line, place_of(node, ("c", 0)).column) == (3, 5)
    assert place_of(node, ("c", 1)).line == 4
    assert node.key("c") is not None
    assert node.by_key["c"][0].where.line == 2
    second = node.by_key["名"][1].by_key["b"][1].items[1]
    assert second.within(1).column == 14


def test_a_byte_order_mark_is_dropped() -> None:
    source = decode_source(b"\xef\xbb\xbfa: 1\n", "x.yaml")
    assert to_data(load_node(source)) == {"a": 1}
    assert load_node(source).by_key["a"][0].where.column == 1


def test_an_alias_is_its_anchor() -> None:
    assert to_data(load("a: &x [1, 2]\nb: *x\n")) == {"a": [1, 2], "b": [1, 2]}


def test_error_class_is_the_callers() -> None:
    with pytest.raises(ScheduleError):
        load_node(read_source("", "x.yaml"), ScheduleError)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("P002", 1, 1)]),
        ("# only a comment\n", [("P002", 1, 1)]),
        ("---\n", [("P002", 1, 1)]),
        ("a: 1\nb: 2\na: 3\n", [("P004", 3, 1)]),
        ('a: 1\n"a": 3\n', [("P004", 2, 1)]),
        ("a: !!str 1\nb: !mine {c: 1}\n", [("P005", 1, 4), ("P005", 2, 4)]),
        ("a: &x [*x]\n", [("P006", 1, 8)]),
        ("a: *nothing\n", [("P006", 1, 4)]),
        ("--- 1\n--- 2\n", [("P007", 2, 1)]),
        ("? [a]\n: 1\n", [("P010", 1, 3)]),
        ("{{ a }}: 1\n", [("P010", 1, 2), ("P010", 1, 1)]),
        ("a: 1\n<<: 2\n", [("P010", 2, 1)]),
        ("a: " + "9" * 5000, [("P013", 1, 4)]),
        ("a:\n\t- b\n", [("P003", 2, 1)]),
        ("a: b: c\n", [("P003", 1, 5)]),
        ("a: @x\n", [("P003", 1, 4)]),
        ("a: 'x\n", [("P003", 2, 1)]),
        ("a: [1,\n", [("P003", 2, 1)]),
        ("reads: [qkv[0:64]]\n", [("P011", 1, 9)]),
        ("reads: [a, my qkv[0:64, 1:2], b]\n", [("P011", 1, 12)]),
        ("copy: {from: all[i*32:i*32+32], to: x}\n", [("P011", 1, 14)]),
        ("ops:\n  - {writes: [state@i-1[0:4KiB]]}\n", [("P011", 2, 15)]),
    ],
)
def test_faults_have_their_place(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert sorted(places(text)) == sorted(expected)


def test_the_unquoted_access_is_quoted_in_the_help() -> None:
    (fault,) = faults("ops:\n  - {name: x, writes: [state@i-1[0:4KiB]]}\n")
    assert fault.help == 'write "state@i-1[0:4KiB]"'


def test_both_places_of_a_duplicate_key_are_named() -> None:
    (fault,) = faults("a: 1\nb: 2\na: 3\n")
    assert [(label.where.line, label.where.column) for label in fault.labels] == [(1, 1)]


def test_everything_wrong_is_said_at_once() -> None:
    text = "a: 1\na: 2\nb: !t 3\nc: *d\n"
    assert [code for code, _, _ in places(text)] == ["P004", "P005", "P006"]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 1_000_000, "P008"),
        ("- " * 500_000, "P008"),
        ("{a: " * 250_000, "P008"),
        ("{" * 1_000_000, "P008"),
        ("? " * 300_000, "P008"),
        ('{"a":' * 200_000, "P008"),
        (BOMB, "P006"),
        ("".join(f"a{n}: &a{n} [*a{n - 1}]\n" if n else "a0: &a0 [1]\n" for n in range(2_000)), "P008"),
    ],
)
@pytest.mark.parametrize("name", ["x.yaml", "x.json"])
def test_hostile_files_end_quickly(text: str, code: str, name: str) -> None:
    start = time.process_time()
    (fault,) = faults(text, name)
    assert time.process_time() - start < 5
    assert fault.code == (code if name == "x.yaml" or text[0] == "[" or '"' in text else "P012")


@pytest.mark.parametrize(
    ("data", "headline", "place"),
    [
        (b"a\0b", "this is a binary file, not a text", None),
        (b"\x89PNG\r\n\x1a\n\0\0", "this is a binary file, not a text", None),
        (b"\xff\xfea\0", "the file is encoded in UTF-16, not in UTF-8", None),
        (b"a: 1\nb: \xe9t\xe9\n", "the byte 0xe9 is not UTF-8", (2, 4)),
        (b"a: \x1b[31m\n", "the control character U+001B is not allowed", (1, 4)),
        (b"a: \xed\xa0\x80\n", "the byte 0xed is not UTF-8", (1, 4)),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, headline: str, place: tuple[int, int] | None) -> None:
    with pytest.raises(UsageError) as caught:
        decode_source(data, "x.yaml")
    (fault,) = caught.value.diagnostics
    assert (fault.code, fault.headline) == ("P001", headline)
    assert (fault.where and (fault.where.line, fault.where.column)) == place


def test_huge_files_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        decode_source(b" " * (MAX_BYTES + 1), "x.yaml")
    assert caught.value.diagnostics[0].code == "P009"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2}', ("P004", 1, 10)),
        ('{"a": 1,\n "b": }', ("P012", 2, 7)),
        ('{"a": 1,}', ("P012", 1, 8)),
        ('{"a" 1}', ("P012", 1, 6)),
        ("[1, 2", ("P012", 1, 6)),
        ("[1 2]", ("P012", 1, 4)),
        ("[01]", ("P012", 1, 2)),
        ("[NaN]", ("P012", 1, 2)),
        ("[+1]", ("P012", 1, 2)),
        ('["\\ud800"]', ("P012", 1, 2)),
        ('["a', ("P012", 1, 2)),
        ("[1] x", ("P012", 1, 5)),
        ("{a: 1}", ("P012", 1, 2)),
        ("[" + "9" * 5000 + "]", ("P013", 1, 2)),
        ("", ("P002", 1, 1)),
    ],
)
def test_json_faults_have_their_place(text: str, expected: tuple[str, int, int]) -> None:
    assert places(text, "x.json") == [expected]


def values(characters: st.SearchStrategy[str], infinite: bool) -> st.SearchStrategy[object]:
    texts = st.text(characters)
    numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=infinite)
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=12,
    )


@given(values(st.characters(categories=("L", "M", "N", "P", "S", "Z")), infinite=False), st.booleans())
def test_json_reads_what_json_writes(value: object, ascii_only: bool) -> None:
    text = json.dumps({"a": value}, ensure_ascii=ascii_only, indent=1)
    assert to_data(load(text, "x.json")) == {"a": value}


@given(values(st.characters(exclude_categories=["Cs"]), infinite=True))
def test_yaml_reads_what_the_writer_writes(value: object) -> None:
    assert to_data(load("a: " + flow_text(value) + "\n")) == {"a": value}


@given(st.binary(max_size=60) | st.text("[]{}:,-?&*!|>'\"%@`#\n\t ab0", max_size=60).map(str.encode))
def test_any_bytes_give_a_tree_or_an_error(data: bytes) -> None:
    for name in ("x.yaml", "x.json"):
        try:
            source = decode_source(data, name)
            root = load_node(source)
        except DagschedError as error:
            lines = data.decode("utf-8", "replace").count("\n") + data.count(b"\r") + 1
            assert error.diagnostics
            assert all(d.where is None or 1 <= d.where.line <= lines + 1 for d in error.diagnostics)
        else:
            to_data(root)
