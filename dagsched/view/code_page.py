"""A diagnostic code for somebody who asks what it means: its line, its page, its examples, and what to do."""

from __future__ import annotations

import textwrap
from typing import Any

from dagsched.view.advice import ADVICE
from dagsched.view.codes import CODES
from dagsched.view.pages import DEFAULT_FILE, Example, page_of
from dagsched.view.terminal import PLAIN, Paint

_DEFAULT = (f"dagsched check {DEFAULT_FILE}",)
_WIDEST = 100


def page_text(code: str, *, paint: Paint = PLAIN, width: int = 100) -> str:
    """The page as text: paragraphs wrapped, files and commands indented."""
    parts = [f"{paint(code, 'bold')}  {CODES[code]}"]
    page = page_of(code)
    if page is not None:
        parts += [
            textwrap.fill(" ".join(paragraph.split()), min(width, _WIDEST), initial_indent="  ", subsequent_indent="  ")
            for paragraph in page.text.split("\n\n")
        ]
        parts += [_example_text(name, example, paint) for name, example in _examples(page.wrong, page.right)]
    if code in ADVICE:
        parts.append(f"  {paint('help', 'blue')}: {ADVICE[code]}")
    return "\n\n".join(parts) + "\n"


def page_data(code: str) -> dict[str, Any]:
    """The page as plain data."""
    page = page_of(code)
    return {
        "meaning": CODES[code],
        "advice": ADVICE.get(code),
        "text": None if page is None else page.text,
        "wrong": page.wrong.as_data() if page and page.wrong else None,
        "right": page.right.as_data() if page and page.right else None,
    }


def _examples(wrong: Example | None, right: Example | None) -> list[tuple[str, Example]]:
    return [(name, example) for name, example in (("wrong", wrong), ("right", right)) if example is not None]


def _example_text(name: str, example: Example, paint: Paint) -> str:
    lines = [f"  {paint(name, 'red' if name == 'wrong' else 'green')}:"]
    several = len(example.files) > 1
    for file, text in example.files.items():
        lines += ["", *([f"    {file}"] if several or file != DEFAULT_FILE else [])]
        lines += [f"      {line}".rstrip() for line in text.splitlines()]
    if example.commands and example.commands != _DEFAULT:
        lines += ["", *(f"      $ {command}" for command in example.commands)]
    if example.script is not None:
        lines += ["", "    in Python", *(f"      {line}".rstrip() for line in example.script.splitlines())]
    return "\n".join(lines)
