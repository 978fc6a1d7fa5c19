"""Write steps in YAML's flow style as people type them: ``s@i%2`` without the quotes that it does not need."""

from __future__ import annotations

import re
from typing import Any

from dagsched.plan.writer import scalar_text

_PLAIN = re.compile(r"[A-Za-z_][\w.]*(?:@| [=!<>]=? | [<>] )[\w+*/%()<>= -]*[\w)]\Z", re.ASCII)
"""Indexed names and conditions that no YAML takes for anything but text."""


def plain_text(value: Any) -> str:
    """Plain data in YAML's flow style; indexed names, such as ``s@i%2``, without the quotes that they do not need."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {plain_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(plain_text, value)) + "]"
    return value if isinstance(value, str) and _PLAIN.match(value) else scalar_text(value)
