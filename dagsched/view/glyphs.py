"""The characters of pictures on a terminal: box drawing, or ASCII where the terminal's encoding lacks it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Lines, corners (named by where they lead from and to), ends, and the fill of a span."""

    line: str = "─"
    bar: str = "│"
    cross: str = "┼"
    down_right: str = "╰"
    up_right: str = "╭"
    record: str = "●"
    arrow: str = "▶"
    left: str = "├"
    right: str = "┤"
    dots: str = "…"
    heavy_left: str = "┣"
    heavy: str = "━"
    heavy_right: str = "┫"


UNICODE = Glyphs()
ASCII = Glyphs("-", "|", "+", "`", ",", "o", ">", "[", "]", "...", "[", "=", "]")


def glyphs_for(encoding: str | None) -> Glyphs:
    """The characters that an encoding can write."""
    try:
        "".join(getattr(UNICODE, name) for name in Glyphs.__slots__).encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return UNICODE
