"""Write files whole or not at all, and a set of files all or none.

All texts are first written beside their targets under temporary names; only when every one is there do they take their
places, each in one step. What stood there before is kept aside until the last one has, and put back where one fails.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dagsched.diagnostics import Diagnostic, UsageError


def write_files(directory: Path, texts: Mapping[str, str | bytes]) -> list[Path]:
    """Write each text (UTF-8, ``\\n`` line ends) under its name in a directory, which is made where it is missing.

    Returns the paths in the order given. Raises :class:`UsageError` (code U010) where a file cannot be written; then
    every file is as it was before.
    """
    made = _missing_parents(directory)
    temporary: list[tuple[Path, Path]] = []
    target = directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            target = directory / name
            if target.is_dir():
                raise IsADirectoryError(None, "is a directory", str(target))
            temporary.append((_write_beside(target, text), target))
        _replace_all(temporary)
    except OSError as error:
        for path, _ in temporary:
            path.unlink(missing_ok=True)
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()
        headline = f"`{target}` cannot be written: {(error.strerror or str(error)).lower()}"
        raise UsageError([Diagnostic("U010", headline, help="name another place")]) from error
    return [target for _, target in temporary]


def _missing_parents(directory: Path) -> list[Path]:
    """The directories that do not exist yet, innermost first."""
    return [path for path in (directory, *directory.parents) if not path.exists()]


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


def _keep(target: Path, kept: Path) -> None:
    """A second name for a file, or a copy where the file system has no hard links."""
    try:
        os.link(target, kept)
    except OSError:
        shutil.copy2(target, kept)


def _replace_all(temporary: list[tuple[Path, Path]]) -> None:
    """Let every temporary file take its place, or none."""
    aside: list[tuple[Path, Path | None]] = []
    try:
        for path, target in temporary:
            kept = None
            if target.exists():
                kept = path.with_suffix(".old")
                _keep(target, kept)
            aside.append((target, kept))
            path.replace(target)
    except OSError:
        for target, kept in aside:
            if kept is None:
                target.unlink(missing_ok=True)
            else:
                kept.replace(target)
        raise
    for _, kept in aside:
        if kept is not None:
            kept.unlink(missing_ok=True)
