"""Write files whole or not at all.

All texts are first written beside their targets under temporary names; only when every one is there are they
renamed, which replaces a file in one step. A failure before that removes the temporary files and leaves the targets
as they were.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dagsched.diagnostics import Diagnostic, UsageError


def write_files(directory: Path, texts: Mapping[str, str | bytes]) -> list[Path]:
    """Write each text (UTF-8, ``\\n`` line ends) under its name in a directory, which is made where it is missing.

    Returns the paths in the order given. Raises :class:`UsageError` (code U010) where a file cannot be written.
    """
    written: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            written.append((_write_beside(directory / name, text), directory / name))
        for temporary, target in written:
            temporary.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        headline = f"`{error.filename or directory}` cannot be written: {reason.lower()}"
        raise UsageError([Diagnostic("U010", headline, help="name another place with `-o DIR`")]) from error
    finally:
        for temporary, _ in written:
            with contextlib.suppress(OSError):
                temporary.unlink()
    return [target for _, target in written]


def _write_beside(target: Path, text: str | bytes) -> Path:
    data = text.encode("utf-8") if isinstance(text, str) else text
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)
