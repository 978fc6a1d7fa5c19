"""The pages of the diagnostic codes: what each means, why it matters, an example that is wrong and one that is right.

The pages are Markdown files of this package, a family of codes each, so that they read well in a browser too: a heading
a code, a text, then under ``Wrong:`` and ``Right:`` files (``yaml`` blocks; a first line ``# NAME.yaml`` names the
file, else it is ``file.yaml``; a ``python`` block with a first line ``# NAME.py``), and what is done with them:
commands (an ``sh`` block), or a script (any other ``python`` block); else ``dagsched check file.yaml``. A test runs
each example: the wrong one yields its code and no other, the right one nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

FAMILIES = {
    "P": "plan", "S": "schedule", "D": "device", "C": "compiler", "E": "compiler", "V": "compiler", "U": "usage",
    "R": "run", "K": "calibration",
}  # fmt: skip
"""The file that holds the codes of a letter; a letter that is not here has a file of its own name in small letters."""

DEFAULT_FILE = "file.yaml"
_SECTION = re.compile(r"^## (?P<code>[A-Z]\d{3})\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# (?P<name>[\w.-]+\.(?:yaml|json|py))\n")


@dataclass(frozen=True, slots=True)
class Example:
    """Files by name, and what is done among them: command lines, of which the last one is what the example is about,
    or a Python ``script``."""

    files: dict[str, str]
    commands: tuple[str, ...]
    script: str | None = None

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"files": self.files, "commands": list(self.commands), "script": self.script}


@dataclass(frozen=True, slots=True)
class Page:
    """The page of one code; ``text`` holds paragraphs. A code that no file of a user shows has no examples."""

    code: str
    text: str
    wrong: Example | None = None
    right: Example | None = None


def page_of(code: str) -> Page | None:
    """The page of a code, None where there is none."""
    return _pages(family_of(code)).get(code)


def family_of(code: str) -> str:
    """The name of the file, without ``.md``, that holds a code's page."""
    return FAMILIES.get(code[:1], code[:1].lower())


@cache
def _pages(family: str) -> dict[str, Page]:
    path = files(__name__) / f"{family}.md"
    if not path.is_file():
        return {}
    return {match["code"]: _read_page(match["code"], match["body"]) for match in _SECTION.finditer(_text(family))}


def _text(family: str) -> str:
    return (files(__name__) / f"{family}.md").read_text(encoding="utf-8")


def _read_page(code: str, body: str) -> Page:
    text, _, rest = body.partition("\nWrong:\n")
    wrong, _, right = rest.partition("\nRight:\n")
    return Page(code, text.strip(), _read_example(wrong), _read_example(right))


def _read_example(text: str) -> Example | None:
    found: dict[str, str] = {}
    commands: list[str] = []
    script: str | None = None
    for match in _BLOCK.finditer(text):
        if match["language"] == "sh":
            commands += match["text"].splitlines()
            continue
        name = _NAME.match(match["text"])
        if match["language"] == "python" and name is None:
            script = match["text"]
            continue
        found[name["name"] if name else DEFAULT_FILE] = match["text"][name.end() if name else 0 :]
    if not found and not commands and script is None:
        return None
    if not commands and script is None:
        commands.append(f"dagsched check {DEFAULT_FILE}")
    return Example(found, tuple(commands), script)
