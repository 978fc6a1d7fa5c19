"""What changes in a text, line by line, as ``diff -u`` and ``git diff`` show it."""

from __future__ import annotations

from difflib import unified_diff

from dagsched.view.terminal import PLAIN, Paint, escape

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def patch_text(old: str, new: str, name: str, *, paint: Paint = PLAIN, context: int = 3) -> str:
    """The unified diff between two texts of one file; empty where they are equal."""
    lines = unified_diff(old.splitlines(), new.splitlines(), name, f"{name}, repaired", n=context, lineterm="")
    return "".join(f"{_painted(line, paint)}\n" for line in lines)


def _painted(line: str, paint: Paint) -> str:
    shown = escape(line)
    if line.startswith(("---", "+++")):
        return paint(shown, "bold")
    return paint(shown, _COLOURS[line[0]]) if line[:1] in _COLOURS else shown
