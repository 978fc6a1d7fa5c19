"""Build the emulator's libraries from the C++ in this package, once for each compiler, and keep them in a cache.

Invariant: what the cache holds under a digest of sources, flags and compiler is whole; a build takes its place in one
step, so that one that is killed, or meets another, does no harm. Processes that need the same library at the same time
wait for the first. The libraries are never instrumented: see ``source/sync.hpp``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dagsched.diagnostics import Diagnostic, UsageError
from dagsched.emulator.compilers import call_compiler, describe_compiler, find_compiler

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
SOURCE = HERE / "source"
FLAGS = ("-std=c++17", "-O1", "-g", "-fPIC", "-Wall", "-Wextra", "-pthread")
SHARED_PARTS = ("schedule", "events", "memory", "reports", "trace", "graphs", "extras")
LIBRARIES: dict[str, tuple[str, ...]] = {
    "ascendcl": ("acl_base", "acl_streams", "acl_events", "acl_signals", "acl_memory", "acl_launch", "acl_graphs"),
    "cudart": ("cuda_streams", "cuda_memory", "cuda_graphs"),
}
"""What stands before the core in each library."""

NEWER = "set `CXX` to g++ 9 or clang++ 10, or newer"
"""The help where a compiler fails."""

ELSEWHERE = "set `XDG_CACHE_HOME` to a directory that can be written"
"""The help where there is no place for a library."""

UNUSED_DAYS = 30
"""A library that nobody has asked for as long goes when another is built."""

ABANDONED_HOURS = 6
"""What a build that was killed has left goes then."""


@dataclass(frozen=True, slots=True)
class Emulator:
    """A built emulator: what to give to ``-I`` and ``-L``, the library's name for ``-l``, and the compiler."""

    include: Path
    folder: Path
    library: str
    compiler: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The shared library itself."""
        return self.folder / f"lib{self.library}.so"

    def flags(self) -> list[str]:
        """What a program needs on its compiler's command line, behind its own sources."""
        # Not `-Wl,-rpath,...`: a comma in the path would end it.
        rpath = ["-Xlinker", "-rpath", "-Xlinker", str(self.folder)]
        return [f"-I{self.include}", f"-L{self.folder}", f"-l{self.library}", *rpath, "-pthread"]


def build_emulator(library: str = "ascendcl") -> Emulator:
    """The library of a runtime's face, built where the cache does not have it.

    Raises :class:`UsageError`: R301 without a compiler, R302 where the build fails, U010 where the cache cannot be
    written.
    """
    if not sys.platform.startswith("linux"):
        headline = f"the emulator builds on Linux only, and this is {sys.platform}"
        raise UsageError([Diagnostic("R302", headline, help="run it in a Linux container")])
    compiler = find_compiler()
    parts = (*LIBRARIES[library], *SHARED_PARTS)
    folder = cache_folder() / f"emulator-{_digest(library, parts, compiler)}"
    found = Emulator(INCLUDE, folder, library, compiler)
    if found.path.is_file():
        with suppress(OSError):  # it may be somebody else's cache, to be read only
            os.utime(folder)
        return found
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(folder.with_suffix(".lock")):
            if not found.path.is_file():  # else another process has built it meanwhile
                _tidy(folder.parent)
                _build_into(folder, library, compiler)
    except OSError as error:
        headline = f"`{folder.parent}` cannot be written: {(error.strerror or str(error)).lower()}"
        raise UsageError([Diagnostic("U010", headline, help=ELSEWHERE)]) from error
    return found


def cache_folder() -> Path:
    """Where builds are kept: ``$XDG_CACHE_HOME/dagsched``, or ``~/.cache/dagsched``; raises :class:`UsageError`."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base).resolve() if base else Path.home() / ".cache") / "dagsched"
    except RuntimeError as error:  # no $HOME, and the user is unknown to the system
        headline = "there is no home directory for the emulator's library"
        raise UsageError([Diagnostic("U010", headline, help=ELSEWHERE)]) from error


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Holds a lock that ends with the process; a file system without locks lets everybody build."""
    import fcntl

    with path.open("w") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _tidy(cache: Path) -> None:
    """Remove what killed builds have left, and libraries that nobody has used for long."""
    now = time.time()
    for path in cache.iterdir():
        hours = ABANDONED_HOURS if path.name.startswith(".build-") else 24 * UNUSED_DAYS
        if not path.name.startswith((".build-", "emulator-")):
            continue
        with suppress(OSError):  # another process tidies, too
            if now - path.stat().st_mtime > 3600 * hours:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _build_into(folder: Path, library: str, compiler: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder.parent, ignore_cleanup_errors=True) as scratch:
        built = Path(scratch) / "whole"
        built.mkdir()
        _build(library, compiler, Path(scratch), built)
        shutil.rmtree(folder, ignore_errors=True)  # it may be there without its library
        try:
            built.rename(folder)
        except OSError:
            if not (folder / f"lib{library}.so").is_file():  # else another build was faster
                raise


def _digest(library: str, parts: tuple[str, ...], compiler: tuple[str, ...]) -> str:
    """Names a build by everything that goes into it."""
    digest = hashlib.sha256()
    version = describe_compiler(compiler)
    for part in (library, *parts, *compiler, *FLAGS):
        digest.update(part.encode() + b"\0")
    digest.update(version)
    for path in sorted((*SOURCE.iterdir(), *INCLUDE.rglob("*.h"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _build(library: str, compiler: tuple[str, ...], scratch: Path, built: Path) -> None:
    """Compile the face and the core, each as one unit (most of a part's time goes into what all include), and link."""
    includes = [f"-I{INCLUDE}", f"-I{SOURCE}"]

    def compile_unit(name: str, members: tuple[str, ...]) -> str:
        unit, target = scratch / f"{name}.cpp", scratch / f"{name}.o"
        unit.write_text("".join(f'#include "{part}.cpp"\n' for part in members), encoding="utf-8")
        _call([*compiler, *FLAGS, *includes, "-c", str(unit), "-o", str(target)])
        return str(target)

    units = {"face": LIBRARIES[library], "core": SHARED_PARTS}
    with ThreadPoolExecutor(len(units)) as pool:
        objects = list(pool.map(compile_unit, units, units.values()))
    name = f"lib{library}.so"
    link = ["-Xlinker", f"--version-script={SOURCE / 'exports.map'}", "-Xlinker", f"-soname={name}"]
    _call([*compiler, "-shared", "-pthread", *objects, *link, "-o", str(built / name)])


def _call(command: list[str]) -> None:
    said = call_compiler(command)
    if said is not None:
        raise UsageError([Diagnostic("R302", f"`{command[0]}` cannot build the emulator", notes=(said,), help=NEWER)])
