"""Where a command's words go: data on stdout, talk on stderr, colour and progress only for a terminal."""

from __future__ import annotations

import io
import os
import shutil
import sys
from dataclasses import dataclass
from typing import IO, TextIO

from dagsched.view.glyphs import Glyphs, glyphs_for
from dagsched.view.terminal import Paint, clip, escape


@dataclass(frozen=True, slots=True)
class Console:
    """The three streams of one command, and how to paint on the two that are written."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    paint: Paint
    talk: Paint
    width: int
    glyphs: Glyphs

    def write(self, text: str) -> None:
        """Data, to stdout."""
        self.stdout.write(text)

    def write_bytes(self, data: bytes) -> None:
        """Binary data, to stdout."""
        self.stdout.flush()
        raw: IO[bytes] = self.stdout.buffer
        raw.write(data)
        raw.flush()

    def say(self, text: str) -> None:
        """Talk, to stderr, as one line; the caller has escaped what came from files."""
        self.stderr.write(f"{text}\n")

    def progress(self, text: str) -> None:
        """What is being done, on one line of a terminal that the next call overwrites; nothing anywhere else."""
        if self.stderr.isatty():
            self.stderr.write(f"\r\x1b[K{clip(escape(text), self.width - 1) if text else ''}")
            self.stderr.flush()

    def read_bytes(self) -> bytes:
        """All of stdin."""
        return self.stdin.buffer.read()


def open_console() -> Console:
    """The process's own streams; characters that they cannot encode are written as escapes and never fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return Console(
        stdin=sys.stdin,
        stdout=sys.stdout,
        stderr=sys.stderr,
        paint=Paint(_wants_colour(sys.stdout)),
        talk=Paint(_wants_colour(sys.stderr)),
        width=max(40, shutil.get_terminal_size((100, 24)).columns),
        glyphs=glyphs_for(sys.stdout.encoding),
    )


def _wants_colour(stream: TextIO) -> bool:
    """https://no-color.org: any value that is not empty turns colour off."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()
