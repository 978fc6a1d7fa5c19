"""Get the real AscendCL headers, to compile emitted code against: they are in the torch-npu wheel on PyPI.

Their licence allows use with Huawei processors only, so they live in the user's cache and never in this repository.
``python tests/emit/headers.py`` fetches them (44 MB, once) and prints the folder; it exits with 1 where they cannot be
had. Tests use them where they are, or where ``DAGSCHED_FETCH_HEADERS`` is set, and say so where they are not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "torch-npu==2.14.0"
INSIDE = "torch_npu/include/acl/"


def cache_folder() -> Path:
    """Where the headers are kept, whether they are there or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "dagsched-tests" / WHEEL.replace("==", "-")


def find_headers() -> Path | None:
    """The folder to give to ``-I``, where the headers have been fetched."""
    folder = cache_folder()
    return folder if (folder / "acl" / "acl.h").is_file() else None


def fetch_headers() -> Path:
    """Download the wheel with pip and unpack its AscendCL headers; raises OSError where that fails."""
    found = find_headers()
    if found:
        return found
    target = cache_folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        # The wheel is only unpacked, never imported: any Python's and any Linux's will do.
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--only-binary", ":all:"]
        command += ["--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", WHEEL, "-d", scratch]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            raise OSError(f"pip could not download {WHEEL}: {done.stderr.strip()[-500:]}")
        unpacked = Path(scratch) / "include"
        with zipfile.ZipFile(wheels[0]) as wheel:
            for member in wheel.namelist():
                if member.startswith(INSIDE) and member.endswith(".h"):
                    path = unpacked / "acl" / member.removeprefix(INSIDE)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(wheel.read(member))
        if not target.exists():  # another process may have been faster
            unpacked.rename(target)
    return target


def main() -> int:
    """Fetch, print the folder, and say what went wrong."""
    try:
        sys.stdout.write(f"{fetch_headers()}\n")
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
