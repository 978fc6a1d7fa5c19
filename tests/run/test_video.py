"""The video example: decoded, detected and drawn on streams, its frames are those of a plain loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dagsched
from dagsched.run.modules import load_module

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_frames_equal_those_of_a_plain_loop() -> None:
    video = load_module(str(EXAMPLES / "video.py")).functions
    wanted = list(video.plain_loop(6))
    with dagsched.compile(EXAMPLES / "video.yaml").executor(video) as executor:
        seen = 0
        for number, frame in enumerate(executor.stream(frames=6)):
            assert np.array_equal(frame, wanted[number])
            seen += 1
    assert seen == 6
    assert not np.array_equal(wanted[0], wanted[5])
