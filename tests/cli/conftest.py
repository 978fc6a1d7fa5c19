"""Run command lines in this process, in an empty directory, with streams that hold bytes as real ones do."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dagsched.cli.main import main


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


Cli = Callable[..., Result]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """``cli("check", "x.yaml", stdin="...")``: status, stdout and stderr of one command line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSCHED_DEBUG", raising=False)

    def run(*words: str, stdin: str | bytes = "") -> Result:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for name in ("stdout", "stderr")}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            status = main(words)
        texts = []
        for stream in streams.values():
            stream.flush()
            assert isinstance(stream.buffer, io.BytesIO)
            texts.append(stream.buffer.getvalue().decode())
        return Result(status, *texts)

    return run
