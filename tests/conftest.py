"""What all tests share: hypothesis profiles, and golden files that one flag rewrites."""

from __future__ import annotations

import difflib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a shell's job in the background, and of its children
    signal.signal(signal.SIGINT, signal.default_int_handler)

GOLDEN = Path(__file__).parent / "golden"

# On a busy machine one example may take long: no deadlines. CI repeats the same examples, so that it fails for what a
# change did and not for luck; locally and at night they are new ones each time.
_slow = [HealthCheck.too_slow]
settings.register_profile(
    "small",
    max_examples=60,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=_slow,
)
settings.register_profile("nightly", max_examples=5_000, deadline=None, print_blob=True, suppress_health_check=_slow)
settings.load_profile("small")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--rewrite-golden``: write what the code yields now into the golden files, to be read in review."""
    parser.addoption("--rewrite-golden", action="store_true", help="rewrite the files under tests/golden")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is marked ``nightly`` takes long and is run by ``make nightly``."""
    if config.getoption("--hypothesis-profile") == "nightly":
        return
    late = [item for item in items if item.get_closest_marker("nightly")]
    if late:
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: the text must equal the file ``tests/golden/name``."""
    rewrite = bool(request.config.getoption("--rewrite-golden"))

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        if not path.exists():
            pytest.fail(f"there is no golden file {path}; make it with: pytest --rewrite-golden")
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), str(path), "what the code yields", lineterm=""
            )
            pytest.fail("\n".join([*lines, "", "if this is meant: pytest --rewrite-golden"]), pytrace=False)

    return check
