"""Target ``pyacl``: a Python module with one class that owns a pipeline and runs it, and a program that uses it.

``NAME_pyacl.py`` holds the hooks that the user fills in and the class ``Pipeline``; ``NAME_pyacl_main.py`` initialises
AscendCL and runs it with hooks that do nothing yet. The text depends on the compiled plan alone.
"""

from __future__ import annotations

from importlib import resources

from dagsched.compiled import Compiled
from dagsched.emit.acl_errors import ERROR_NAMES
from dagsched.emit.calls import CallList
from dagsched.emit.cpp_names import Names
from dagsched.emit.lower import list_calls
from dagsched.emit.names import printable
from dagsched.emit.py_main import write_py_main
from dagsched.emit.py_names import name_python
from dagsched.emit.py_pipeline import write_py_hooks, write_py_pipeline
from dagsched.emit.py_text import py_doc, wrap

IMPORTS = (
    "import contextlib",
    "import ctypes",
    "import threading",
    "import time",
    "from collections.abc import Callable, Iterator",
    "from dataclasses import dataclass",
    "from math import prod",
    "from typing import Any",
    "",
    "import acl",
)


def emit_pyacl(compiled: Compiled) -> dict[str, str]:
    """File names and texts; raises :class:`PlanError` for what pyACL cannot express."""
    calls = list_calls(compiled)
    names = name_python(calls, "pyacl")
    return {
        f"{names.stem}.py": write_module(calls, names),
        f"{names.stem}_main.py": write_py_main(calls, names),
    }


def write_module(calls: CallList, names: Names) -> str:
    """The text of the module."""
    rule = f"# {'-' * 118}"
    lines = [
        *_banner(calls),
        "",
        "from __future__ import annotations",
        "",
        *IMPORTS,
        "",
        *_support(),
        "",
        "",
        rule,
        *wrap(printable(f"The pipeline of {calls.name}"), "# "),
        rule,
        "",
        "",
        *write_py_hooks(calls, names),
        "",
        "",
        *write_py_pipeline(calls, names),
    ]
    return "\n".join(lines) + "\n"


def _banner(calls: CallList) -> list[str]:
    stamp = f"Written by dagsched {calls.version}; the plan's digest is {calls.digest or 'unknown'}."
    return [
        py_doc(f"The plan {calls.name} as a pyACL program.", 0)[0].removesuffix('"""'),
        "",
        *wrap(printable(stamp), ""),
        "Change the plan and compile it again rather than this file.",
        '"""',
    ]


def _support() -> list[str]:
    codes = "\n".join(f'    {code}: "{name}",' for code, name in ERROR_NAMES.items())
    text = resources.files("dagsched.emit").joinpath("pyacl_support.py.txt").read_text(encoding="utf-8")
    return text.replace("@ERROR_NAMES@", codes).rstrip("\n").split("\n")
