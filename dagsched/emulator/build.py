"""Build the emulator's libraries from the C++ in this package, once for each compiler, and keep them in a cache.

Invariant: what the cache holds under a digest of sources, flags and compiler is whole; a build takes its place in one
step, so that builds at the same time do not meet. The libraries are never instrumented: see ``source/sync.hpp``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dagsched.diagnostics import Diagnostic, UsageError

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
SOURCE = HERE / "source"
FLAGS = ("-std=c++17", "-O1", "-g", "-fPIC", "-Wall", "-Wextra", "-pthread")
SHARED_PARTS = ("schedule", "events", "memory", "reports", "trace", "graphs", "extras")
LIBRARIES: dict[str, tuple[str, ...]] = {
    "ascendcl": ("acl_base", "acl_streams", "acl_events", "acl_memory", "acl_launch", "acl_graphs"),
    "cudart": ("cuda_streams", "cuda_memory"),
}
"""What stands before the core in each library."""

NEWER = "set `CXX` to g++ 9 or clang++ 10, or newer"
"""The help where a compiler fails."""


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
        return [f"-I{self.include}", f"-L{self.folder}", f"-l{self.library}", f"-Wl,-rpath,{self.folder}", "-pthread"]


def find_compiler() -> tuple[str, ...]:
    """``$CXX``, else g++, else clang++; raises :class:`UsageError` (R301) where there is none."""
    wanted = os.environ.get("CXX", "").split()
    if wanted:
        if shutil.which(wanted[0]):
            return tuple(wanted)
        headline = f"`{wanted[0]}`, which `CXX` names, is no program on the path"
        raise UsageError([Diagnostic("R301", headline, help="set `CXX` to a C++17 compiler")])
    for name in ("g++", "clang++"):
        if shutil.which(name):
            return (name,)
    headline = "there is no C++ compiler: neither `g++` nor `clang++` is on the path"
    raise UsageError([Diagnostic("R301", headline, help="install g++ (Debian: `apt install g++`), or set `CXX`")])


def build_emulator(library: str = "ascendcl") -> Emulator:
    """The library of a runtime's face, built where the cache does not have it.

    Raises :class:`UsageError`: R301 without a compiler, R302 where the build fails, U010 where the cache cannot be
    written.
    """
    compiler = find_compiler()
    parts = (*LIBRARIES[library], *SHARED_PARTS)
    folder = cache_folder() / f"emulator-{_digest(library, parts, compiler)}"
    found = Emulator(INCLUDE, folder, library, compiler)
    if found.path.is_file():
        return found
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=folder.parent) as scratch:
            built = Path(scratch) / "whole"
            built.mkdir()
            _build(library, compiler, Path(scratch), built)
            try:
                built.rename(folder)
            except OSError:
                if not found.path.is_file():  # else another build was faster
                    raise
    except OSError as error:
        headline = f"`{folder.parent}` cannot be written: {(error.strerror or str(error)).lower()}"
        raise UsageError([Diagnostic("U010", headline, help="set `XDG_CACHE_HOME` to a directory")]) from error
    return found


def cache_folder() -> Path:
    """Where builds are kept: ``$XDG_CACHE_HOME/dagsched``, or ``~/.cache/dagsched``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dagsched"


def _digest(library: str, parts: tuple[str, ...], compiler: tuple[str, ...]) -> str:
    """Names a build by everything that goes into it."""
    digest = hashlib.sha256()
    version = subprocess.run([*compiler, "--version"], capture_output=True, check=False).stdout
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
    exports = f"-Wl,--version-script={SOURCE / 'exports.map'}"
    _call([*compiler, "-shared", "-pthread", *objects, exports, f"-Wl,-soname,{name}", "-o", str(built / name)])


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-300:])
    headline = f"`{command[0]}` cannot build the emulator"
    raise UsageError([Diagnostic("R302", headline, notes=(said,) if said else (), help=NEWER)])
