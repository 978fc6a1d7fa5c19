"""Where a command's words go: data on stdout, talk on stderr, colour and progress only for a terminal."""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from dagsched.diagnostics import Diagnostic, UsageError
from dagsched.view.glyphs import Glyphs, glyphs_for
from dagsched.view.terminal import Paint, clip, escape


@dataclass(frozen=True, slots=True)
class Console:
    """The three streams of one command, and how to paint on the two that are written."""

    stdin: TextIO | None
    stdout: TextIO
    stderr: TextIO
    paint: Paint
    talk: Paint
    width: int
    glyphs: Glyphs

    def write(self, text: str) -> None:
        """Data, to stdout; raises :class:`UsageError` (U010) where it takes none, a reader that left apart."""
        try:
            self.stdout.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise stdout_fault(error) from None

    def write_bytes(self, data: bytes) -> None:
        """Binary data, to stdout; raises as :meth:`write` does."""
        try:
            self.stdout.flush()
            raw: BinaryIO = self.stdout.buffer
            raw.write(data)
            raw.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise stdout_fault(error) from None

    def say(self, text: str) -> None:
        """Talk, to stderr, as one line; the caller has escaped what came from files."""
        self.stderr.write(f"{text}\n")

    def progress(self, text: str) -> None:
        """What is being done, on one line of a terminal that the next call overwrites; nothing anywhere else."""
        if self.stderr.isatty():
            self.stderr.write(f"\r\x1b[K{clip(escape(text), self.width - 1) if text else ''}")
            self.stderr.flush()

    def read_bytes(self) -> bytes:
        """All of stdin; raises :class:`OSError` where it is closed."""
        if self.stdin is None:
            raise OSError(errno.EBADF, "it is closed")
        return self.stdin.buffer.read()


def open_console() -> Console:
    """The process's own streams; characters that they cannot encode are written as escapes and never fail."""
    stdout: TextIO = sys.stdout or _Closed()  # None where the caller closed it: `>&-`
    stderr: TextIO = sys.stderr or io.StringIO()
    for stream in (stdout, stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return Console(
        stdin=sys.stdin,
        stdout=stdout,
        stderr=stderr,
        paint=Paint(_wants_colour(stdout)),
        talk=Paint(_wants_colour(stderr)),
        width=max(40, shutil.get_terminal_size((100, 24)).columns),
        glyphs=glyphs_for(stdout.encoding),
    )


def _wants_colour(stream: TextIO) -> bool:
    """https://no-color.org: any value that is not empty turns colour off."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


class _Closed(io.StringIO):
    """A stdout that its owner has closed: nothing can be written to it."""

    encoding = "utf-8"

    @property
    def buffer(self) -> BinaryIO:
        raise OSError(errno.EBADF, "it is closed")

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, "it is closed")


def stdout_fault(error: OSError) -> UsageError:
    """Why standard output took nothing."""
    reason = (error.strerror or str(error)).lower()
    headline = f"standard output cannot be written: {reason}"
    return UsageError(
        [Diagnostic("U010", headline, help="send it elsewhere: `> FILE`, or `-o FILE` where there is one")]
    )
