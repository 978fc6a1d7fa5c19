"""What each diagnostic code means, in one line; ``dagsched explain`` prints it and SARIF carries it."""

from __future__ import annotations

CODES: dict[str, str] = {}


def explanation(code: str) -> str | None:
    """The line for a code, or None for an unknown one."""
    return CODES.get(code)
