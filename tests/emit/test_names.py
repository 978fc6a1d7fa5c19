"""Whatever a name holds, it is an identifier, a literal, a comment or a file name, and nothing more."""

from __future__ import annotations

import ast
import keyword
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.emit.names import (
    KEYWORDS,
    PYTHON,
    cpp_comment,
    cpp_string,
    file_stem,
    identifiers,
    is_safe_identifier,
)
from dagsched.emit.py_text import py_comment, py_doc, py_string

NASTY = [
    "class", "int", "a b", "a_b", "a-b", "a.b", "x*/y", "x/*y", "名前", "<script>", "", " ", "_x", "__x", "x__y", "9",
    "std", "EOF", "NULL", "aclInit", "aclrtStream", "M_PI", "linux", "é", "e", "E", "I", "x" * 200, "x" * 201, "class_",
    "a_b_2", "a_b_3", "\ud800", "\u202e", "\x00", "\n", "\\", "a\\", "??/", "%s", "main", "int64_t", "İ", "ﬁ", "fi",
    "Ａ", "A", "①", "²", "_", "__", "co_await", "errno", "DAGSCHED_TRY", "EXIT_FAILURE", "HUGE_VAL", "INT64_MAX",
]  # fmt: skip
TEXT = st.one_of(st.text(max_size=12), st.sampled_from(NASTY), st.text(alphabet="ab_ -./*\\?\n\"'", max_size=8))


@given(st.lists(TEXT, max_size=30), st.frozensets(st.sampled_from(["run", "a_b", "x", "View", "class_"])))
def test_identifiers_are_distinct_safe_and_deterministic(texts: list[str], reserved: frozenset[str]) -> None:
    names = identifiers(texts, reserved)
    assert list(names) == list(dict.fromkeys(texts))
    assert len(set(names.values())) == len(names)
    for text, name in names.items():
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,79}", name)
        assert "__" not in name
        assert name not in KEYWORDS | reserved
        if is_safe_identifier(text, reserved):
            assert name == text
    assert identifiers(texts, reserved) == names


@given(st.lists(TEXT, min_size=1, max_size=20))
def test_a_text_that_is_an_identifier_keeps_its_name_in_any_order(texts: list[str]) -> None:
    for names in (identifiers(texts), identifiers(list(reversed(texts)))):
        assert all(names[text] == text for text in texts if is_safe_identifier(text))


@given(st.lists(TEXT, max_size=30))
def test_python_identifiers_are_distinct_and_no_keywords(texts: list[str]) -> None:
    names = identifiers(texts, ("run",), PYTHON)
    assert len(set(names.values())) == len(names)
    for name in names.values():
        assert name.isidentifier()
        assert not keyword.iskeyword(name)
        assert name not in ("run", "min", "max", "range", "self", "acl")


@given(TEXT)
def test_python_literals_and_comments_hold_the_text(text: str) -> None:
    literal = py_string(text)
    assert literal.isascii()
    assert ast.literal_eval(literal) == text
    assert all(line.startswith("# ") or line == "#" for line in py_comment(text, 0))
    lines = py_doc(f"{text}.", 4)
    module = ast.parse("\n".join(["def f():", *lines]))
    assert ast.get_docstring(module.body[0]) is not None  # type: ignore[arg-type]


@given(TEXT)
def test_string_literals_hold_the_text(text: str) -> None:
    literal = cpp_string(text)
    assert re.fullmatch(r'"([ !#-\[\]-~]|\\["\\?]|\\[0-7]{3})*"', literal)
    assert "??" not in literal
    body = literal[1:-1]
    undone = re.sub(r"\\([0-7]{3}|.)", lambda m: chr(int(m[1], 8)) if len(m[1]) == 3 else m[1], body)
    assert undone.encode("latin-1") == text.encode("utf-8", "backslashreplace")


@given(TEXT)
def test_comments_stay_comments(text: str) -> None:
    comment = cpp_comment(text)
    assert comment.isprintable()
    assert "*/" not in comment
    assert "/*" not in comment
    assert not comment.rstrip().endswith("\\")
    assert "??/" not in comment
    comment.encode("utf-8")


@given(TEXT)
def test_file_stems_are_plain_names(text: str) -> None:
    stem = file_stem(text)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", stem)
    assert ".." not in stem or "/" not in stem
    assert file_stem(stem) == stem
    if re.fullmatch(r"[a-z][a-z0-9-]{0,20}", text) and text not in ("con", "prn", "aux", "nul"):
        assert stem == text.rstrip("-")


@pytest.mark.parametrize(
    "text", ["../../etc/passwd", "/etc/passwd", "-rf", ".hidden", "con", "a\\b", "NUL.txt", "a\0b"]
)
def test_hostile_file_names(text: str) -> None:
    stem = file_stem(text)
    assert not set(stem) & set("/\\\0")
    assert stem[0] not in "-."
    assert stem.lower() not in ("con", "nul.txt")


def test_a_compiler_takes_all_of_them(tmp_path: Path) -> None:
    """Members, parameters, functions, literals and comments of every nasty name, under the strictest warnings."""
    names = identifiers([*NASTY, *sorted(KEYWORDS)])
    lines = ["#include <cstdint>", "#include <cstdio>", "#include <cstdlib>", "#include <cmath>", "#include <complex>"]
    lines += [
        "namespace plan {",
        "struct Members {",
        *(f"  int {name} = 0;  // {cpp_comment(t)}" for t, name in names.items()),
    ]
    lines += [
        "};",
        "struct Hooks {",
        *(f"  int {name}(int64_t {name}_) {{ return static_cast<int>({name}_); }}" for name in names.values()),
    ]
    lines += [
        "};",
        *(f"/* {cpp_comment(text)} */" for text in names),
        "}",
        "int main() {",
        "  plan::Hooks hooks;",
        "  plan::Members members;",
    ]
    for text, name in names.items():
        lines.append(f'  std::printf("%s\\n", {cpp_string(text)}); hooks.{name}(members.{name});')
    lines.append("}")
    (tmp_path / "names.cpp").write_text("\n".join(lines), encoding="utf-8")
    for standard in ("c++17", "gnu++17", "c++20"):
        command = [
            "g++",
            f"-std={standard}",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            str(tmp_path / "names.cpp"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
