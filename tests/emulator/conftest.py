"""Build the emulator's libraries before tests that run short programs with a time limit."""

from __future__ import annotations

import pytest

from dagsched.emulator.build import LIBRARIES, build_emulator


@pytest.fixture(scope="session", autouse=True)
def built_emulators() -> None:
    """Both faces, from the cache or anew."""
    for library in LIBRARIES:
        build_emulator(library)
