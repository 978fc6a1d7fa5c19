"""DOT text to a picture: with the system's ``dot`` if there is one, else with the wheel ``graphviz-pure``.

The text goes through a pipe and never through a shell or a file name.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from dataclasses import dataclass

from dagsched.diagnostics import Diagnostic, UsageError

FORMATS = ("svg", "png", "dot")
_BUILT_IN = "graphviz-pure"
_FONT_ENDS = 0x0530
"""graphviz-pure carries fonts for Latin, Greek and Cyrillic, which end here; it draws boxes for other letters."""


@dataclass(frozen=True, slots=True)
class Picture:
    """``data`` as it goes into a file; ``notes`` say what a user may miss in it."""

    data: bytes
    notes: tuple[str, ...] = ()


def render_graph(dot: str, format: str) -> bytes:
    """The picture as the bytes of a file; ``format`` is ``svg``, ``png`` or ``dot``.

    Raises :class:`UsageError` where no renderer is installed or it fails.
    """
    return draw_picture(dot, format).data


def draw_picture(dot: str, format: str) -> Picture:
    """Like :func:`render_graph`, with notes on what the renderer could not do."""
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}, not one of {', '.join(FORMATS)}")
    if format == "dot":
        return Picture(dot.encode())
    renderer = find_renderer()
    if renderer is None:
        raise UsageError([
            Diagnostic(
                "U004",
                f"nothing here can draw {format}: neither Graphviz's `dot` nor `graphviz-pure` is installed",
                help="pip install graphviz-pure, or write DOT text with `-o x.dot`",
            )
        ])  # fmt: skip
    options = [f"-T{format}", *(["-Gdpi=144"] if format == "png" else [])]  # sharp on screens of high resolution
    done = subprocess.run([renderer, *options], input=dot.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError([
            Diagnostic(
                "U004",
                f"`{renderer}` could not draw the graph (status {done.returncode})",
                notes=tuple(said[:2]),
                help="write DOT text with `-o x.dot` and render it elsewhere",
            )
        ])  # fmt: skip
    lacking = sorted({c for c in dot if ord(c) >= _FONT_ENDS and c.isalpha()}) if format == "png" else []
    if lacking and _BUILT_IN in renderer:
        text = "".join(lacking[:8])
        return Picture(done.stdout, (f"graphviz-pure has no glyphs for {text}; draw svg, or install Graphviz",))
    return Picture(done.stdout)


def find_renderer() -> str | None:
    """The path of a program that takes ``dot``'s options, or None; graphviz-pure may lie beside Python and off PATH."""
    return shutil.which("dot") or shutil.which(_BUILT_IN) or shutil.which(_BUILT_IN, path=sysconfig.get_path("scripts"))
