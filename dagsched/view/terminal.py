"""Text that is safe and straight on a terminal: escaping, display width, padding, clipping and colour.

Names and source lines come from files that anybody may have written, so whatever could move the cursor, change
colours, retitle the window or reverse the reading direction is shown as an escape (``\\x1b``, ``\\u202e``) instead of
being sent. Widths are in terminal cells: an East Asian wide character takes two, a combining mark none.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

TAB = 4
"""Cells that a tab of a source line is shown as, wherever it stands."""

_RESET = "\x1b[0m"
_CODES = {
    "red": "1;31", "yellow": "1;33", "blue": "1;34", "cyan": "36", "green": "32", "bold": "1", "dim": "2",
}  # fmt: skip


def escape_character(character: str) -> str:
    """One character as it may be printed: itself, or an escape where a terminal would act on it."""
    if " " <= character <= "~":
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"):
        code = ord(character)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return character


def escape(text: str) -> str:
    """A text on one line, with every control and format character as an escape; tabs and line ends are escaped too."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(escape_character, text))


def escape_lines(text: str) -> str:
    """Like :func:`escape`, but line ends stay."""
    return "\n".join(map(escape, text.split("\n")))


def width_of(text: str) -> int:
    """Cells that an escaped text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def pad(text: str, width: int, *, right: bool = False) -> str:
    """A text filled up with spaces to ``width`` cells; ``right`` puts the text at the right edge."""
    fill = " " * (width - width_of(text))
    return fill + text if right else text + fill


def clip(text: str, width: int) -> str:
    """A text of at most ``width`` cells (at least 1); what was cut off shows as ``…``."""
    if width_of(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += _cells(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def wrap_names(names: list[str], width: int, indent: int) -> str:
    """Names joined by commas, broken between names to lines of ``width`` cells; further lines are indented."""
    lines, line = [], ""
    for number, name in enumerate(names):
        piece = name + ("," if number + 1 < len(names) else "")
        if line and indent + width_of(line) + 1 + width_of(piece) > width:
            lines.append(line)
            line = piece
        else:
            line = f"{line} {piece}" if line else piece
    return f"\n{' ' * indent}".join([*lines, line])


@dataclass(frozen=True, slots=True)
class Paint:
    """Adds colour where ``on``; the text must be escaped already, and says everything without colour too."""

    on: bool = False

    def __call__(self, text: str, colour: str) -> str:
        return f"\x1b[{_CODES[colour]}m{text}{_RESET}" if self.on and text else text


PLAIN = Paint(on=False)
