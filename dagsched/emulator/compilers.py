"""Find the user's C++ compiler and call it, and say in one line what went wrong.

Invariant: nothing that stands in ``$CXX``, and nothing that a compiler says, leads to anything but a message.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dagsched.diagnostics import Diagnostic, UsageError

LONGEST = 300
"""Characters of what a compiler said that are repeated."""


def find_compiler() -> tuple[str, ...]:
    """``$CXX``, a program with or without arguments, else g++, else clang++; raises :class:`UsageError` (R301)."""
    text = os.environ.get("CXX", "").strip()
    if text:
        wanted = _split(text)
        if shutil.which(wanted[0]):
            return wanted
        headline = f"`{wanted[0]}`, which `CXX` names, is no program on the path"
        raise UsageError([Diagnostic("R301", headline, help="set `CXX` to a C++17 compiler")])
    for name in ("g++", "clang++"):
        if shutil.which(name):
            return (name,)
    headline = "there is no C++ compiler: neither `g++` nor `clang++` is on the path"
    raise UsageError([Diagnostic("R301", headline, help="install g++ (Debian: `apt install g++`), or set `CXX`")])


def _split(text: str) -> tuple[str, ...]:
    """As a shell would; but a path with spaces needs no quotes."""
    if Path(text).is_file():
        return (text,)
    try:
        return tuple(shlex.split(text)) or (text,)
    except ValueError:
        headline = f"`CXX` has a quote that does not end: `{text}`"
        raise UsageError([Diagnostic("R301", headline, help="set `CXX` to a C++17 compiler")]) from None


def describe_compiler(compiler: Sequence[str]) -> bytes:
    """What it says about itself, which changes where the compiler does; raises :class:`UsageError` (R301)."""
    try:
        return subprocess.run([*compiler, "--version"], capture_output=True, check=False).stdout
    except OSError as error:
        headline = f"`{compiler[0]}` cannot be started: {(error.strerror or str(error)).lower()}"
        raise UsageError([Diagnostic("R301", headline, help="set `CXX` to a C++17 compiler")]) from error


def call_compiler(command: Sequence[str]) -> str | None:
    """Run it; ``None`` where it succeeds, else the gist of what it said."""
    done = subprocess.run(
        command,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return None if done.returncode == 0 else _gist(done)


def _gist(done: subprocess.CompletedProcess[str]) -> str:
    """The first error that it reports, else the end of what it said, else how it ended."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
    if first:
        return first if len(first) <= LONGEST else first[: LONGEST - 1] + "…"
    return f"it ended with status {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode} ended it"
