"""The library's front: what it takes and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

import dagsched


@pytest.mark.parametrize("wrong", [None, 3, {"dagsched": 1}, b"detector.yaml"])
def test_compile_says_what_it_takes(wrong: Any) -> None:
    with pytest.raises(TypeError, match="takes a plan or the path of a plan file, not"):
        dagsched.compile(wrong)
