"""The Python of docs/executor.md runs: the example, and the service."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import blocks

PAGE = Path(__file__).parents[2] / "docs" / "executor.md"


def test_the_examples_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    example, service = blocks(PAGE, "python")
    scope: dict[str, Any] = {}
    exec(compile(example, "example", "exec"), scope)
    text = capsys.readouterr().out
    assert text.startswith("scores on cpu\n  run        3 iterations in ")
    assert text.endswith("dd 200.0\ne 101.0\n")
    exec(compile(service, "service", "exec"), scope)
    assert capsys.readouterr().out == f"{sum(b'hello'):.1f}\n"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("dagsched:")]


def test_the_service_tells_its_callers_what_failed() -> None:
    example, service = blocks(PAGE, "python")
    scope: dict[str, Any] = {"print": lambda *_: None}
    exec(compile(example, "example", "exec"), scope)
    exec(compile(service.partition("service = ")[0], "service", "exec"), scope)
    running = scope["Scores"]()
    assert running.rate("a") == 97
    with pytest.raises(Exception, match=r"R201.*`receive@1`"):
        running.rate("too long" * 10)
    with pytest.raises(Exception, match=r"R201"):
        running.rate("later")
    running.close()
