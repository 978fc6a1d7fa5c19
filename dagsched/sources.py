"""Open a file that a user named: the one place where the library and the command line do so."""

from __future__ import annotations

import os
from pathlib import Path

from dagsched.diagnostics import Diagnostic, Source, UsageError, closest
from dagsched.files import decode_source


def read_file(path: str | os.PathLike[str]) -> Source:
    """A file's text; raises :class:`UsageError` (U001) where it cannot be read, and where it is not text."""
    name = os.fspath(path)
    try:
        data = Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError([Diagnostic("U001", f"`{name}` cannot be read: {reason}", help=_help_for(name))]) from None
    return decode_source(data, name)


def _help_for(name: str) -> str | None:
    """The file in the same directory whose name is closest."""
    path = Path(name)
    try:
        near = closest(path.name, [entry.name for entry in path.parent.iterdir()]) if not path.exists() else None
    except (OSError, ValueError):
        return None
    return f"did you mean `{path.parent / near}`?" if near else None
