"""Every code has its line, in the house's style."""

from __future__ import annotations

import re

from dagsched.view.codes import CODES, explanation


def test_lines_are_short_and_of_one_style() -> None:
    for code, line in CODES.items():
        assert re.fullmatch(r"[CDEKPRSUV]\d{3}", code)
        assert 10 < len(line) <= 112, code
        assert not line.endswith("."), code
        assert line[0].islower() or line.startswith(("`", "YAML", "ThreadSanitizer")), code


def test_unknown_code() -> None:
    assert explanation("P101") == CODES["P101"]
    assert explanation("X999") is None
