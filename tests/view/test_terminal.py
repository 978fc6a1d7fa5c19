"""Escaping, widths, padding and clipping hold for every text."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from dagsched.view.terminal import clip, escape, escape_lines, pad, width_of, wrap_names

NAMES = st.text(st.characters(), max_size=30)


@given(NAMES)
def test_escaped_text_holds_nothing_that_a_terminal_acts_on(text: str) -> None:
    shown = escape(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert escape(shown) == shown


@given(st.text(st.characters(categories=["L", "N"]), max_size=30))
def test_letters_stay_as_they_are(text: str) -> None:
    assert escape(text) == text


def test_escapes_name_the_character() -> None:
    assert escape("\x1b[31mred\x07\n\u202e\u2066\x9b") == "\\x1b[31mred\\x07\\x0a\\u202e\\u2066\\x9b"
    assert escape_lines("a\nb\r") == "a\nb\\x0d"
    assert escape("名前 é x*/y") == "名前 é x*/y"


@given(NAMES, st.integers(1, 40))
def test_clipped_text_fits_and_is_a_beginning(text: str, width: int) -> None:
    shown = clip(escape(text), width)
    assert width_of(shown) <= width
    if width_of(escape(text)) > width:
        assert shown.endswith("…")
        assert escape(text).startswith(shown[:-1])
    else:
        assert shown == escape(text)


@given(NAMES, st.integers(0, 60), st.booleans())
def test_padded_text_has_the_width(text: str, width: int, right: bool) -> None:
    shown = escape(text)
    assert width_of(pad(shown, width, right=right)) == max(width, width_of(shown))


def test_wide_and_combining_characters_count_as_terminals_count_them() -> None:
    assert width_of("名前") == 4
    assert width_of("e\u0301") == 1
    assert width_of("ｱ") == 1  # half-width katakana
    assert width_of("Ａ") == 2  # full-width latin


@given(st.lists(st.text("abcdef", min_size=1, max_size=12), min_size=1, max_size=20), st.integers(20, 60))
def test_wrapped_names_are_all_there_and_fit(names: list[str], width: int) -> None:
    text = wrap_names(names, width, 4)
    assert text.replace("\n", " ").replace(",", " ").split() == names
    first, *rest = text.split("\n")
    assert 4 + len(first) <= width
    assert all(line.startswith("    ") and len(line) <= width for line in rest)
