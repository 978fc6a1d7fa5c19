"""The summary says what is in the result, in text and as data."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dagsched.diagnostics import Diagnostic
from dagsched.proof.model import Problem, Proof
from dagsched.view.summary import memory_by_place, summary_data, summary_text
from dagsched.view.units import interval_text, rate_text, size_text, time_text
from tests.view.sample import detector, renamed


def test_text_of_the_detector() -> None:
    assert summary_text(detector()) == (
        "detector: 7 ops, 6 in loop i (count frames) on ascend-910b\n"
        "  streams    4, policy engine\n"
        "               h2d   h2d      load, upload\n"
        "               host  host     decode, draw\n"
        "               core  ai_core  resize, infer\n"
        "               d2h   d2h      download\n"
        "  waits      9 kept of 10 cross-stream hazards found\n"
        "  events     12 handles for 6 events, in rings of up to 2\n"
        "  rings      frame 2, image 2, tensor 2, boxes 2, result 2\n"
        "  memory     host 59.9 MiB, device 64.6 MiB\n"
        "  proof      holds for every count from 0 up: 12 hazards ordered, nothing blocks\n"
    )


def test_prediction_is_shown_where_there_is_one() -> None:
    sample = detector()

    def lines(predicted: dict[str, object]) -> list[str]:
        compiled = replace(sample, schedule=replace(sample.schedule, predicted=predicted))
        text = summary_text(compiled)
        return [row[13:] for row in text[text.index("  predicted") : text.index("  proof")].splitlines()]

    detector_ = {
        "initiation_interval": 6.9e-3,
        "serial": 9.05e-3,
        "bound": 6.9e-3,
        "binds": "core is busy",
    }
    assert lines(detector_) == [
        "6.90 ms/iteration, limit 6.90 ms (core is busy)",
        "145 iterations/s, one after another 110",
    ]
    assert lines({"makespan": 4.5e-3, "serial": 6e-3, "bound": 4.3e-3, "binds": "a -> b"}) == [
        "4.50 ms, limit 4.30 ms (a -> b)",
        "one after another 6.00 ms",
    ]
    assert lines({"initiation_interval": 2.0, "serial": 2.0, "bound": 1.0, "binds": "x", "held": "a@i -> a@i+1"}) == [
        "2.00 s/iteration, limit 1.00 s (x)",
        "0.5 iterations/s, one after another 0.5: nothing overlaps",
        "held up by a@i -> a@i+1",
    ]
    assert lines({"makespan": 1.0}) == ["1.00 s"]
    assert lines({"initiation_interval": 1e-3, "serial": 1.0005e-3, "bound": 1e-3, "binds": "x"})[1].endswith(" 1,000")
    assert lines({"makespan": 2e-5, "serial": 0.0, "bound": 2e-5, "binds": "x", "optimal": True, "unknown": ["a"]}) == [
        "20.0 us, limit 20.0 us (x), proved optimal",
        "no time is given for a: 0 is assumed",
    ]
    assert lines({"makespan": 0.0, "serial": 0.0, "bound": 0.0, "binds": "nothing"}) == ["nothing takes time"]


def test_memory_counts_every_slot() -> None:
    memory = memory_by_place(detector().resolved)
    assert memory == {
        "host": 2 * 6220800 + 2 * 40000 + (48 << 20),
        "device": 2 * 6220800 + 2 * 2457600 + (48 << 20) + 2 * 40000,
    }


def test_data_holds_the_same_and_is_json() -> None:
    compiled = replace(detector(), warnings=(Diagnostic("P230", "unread", severity="warning"),))
    data = json.loads(json.dumps(summary_data(compiled)))
    assert data["waits"] == {"found": 10, "kept": 9}
    assert data["handles"] == 12
    assert data["loops"] == [{"index": "i", "count": "frames", "ops": 6}]
    assert [stream["ops"] for stream in data["streams"]] == [
        ["load", "upload"], ["decode", "draw"], ["resize", "infer"], ["download"],
    ]  # fmt: skip
    assert data["memory"] == memory_by_place(compiled.resolved)
    assert data["rings"] == {"frame": 2, "image": 2, "tensor": 2, "boxes": 2, "result": 2}
    assert data["warnings"][0]["code"] == "P230"


def test_a_proof_that_fails_does_not_look_like_one_that_holds() -> None:
    failed = replace(detector(), proof=Proof((Problem("V103", "no"),), "every count from 0 up", 12, {}))
    assert "FAILS" in summary_text(failed)
    assert summary_data(failed)["proof"]["holds"] is False


def test_names_are_escaped() -> None:
    text = summary_text(renamed(detector(), {"decode": "\x1b[31mred", "detector": "a\nb", "image": "\u202e"}))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "a\\x0ab: 7 ops" in text


def test_long_lists_are_wrapped() -> None:
    text = summary_text(detector(), width=44)
    assert all(len(line) <= 60 for line in text.splitlines()[1:-1])
    assert "frame 2, image 2, tensor 2,\n" in text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (6220800, "5.93 MiB"), (48 << 20, "48 MiB"), (10**14, "90.9 TiB"),
     (2000 << 40, "2000 TiB")],
)  # fmt: skip
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 ns"), (1.5e-7, "150 ns"), (5.7e-3, "5.7 ms"), (2e-6, "2 us"), (90.0, "90 s")]
)
def test_times(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(6.9e-3, "6.90 ms"), (1e-3, "1.00 ms"), (9.999e-4, "1.00 ms"), (9.994e-6, "9.99 us"), (9.996e-6, "10.0 us"),
     (99.96e-6, "100 us"), (1.5e-9, "1.50 ns"), (0.0, "0.00 ns"), (90.0, "90.0 s"), (12345.0, "12345 s")],
)  # fmt: skip
def test_intervals_have_three_digits(seconds: float, text: str) -> None:
    assert interval_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(6.9e-3, "145"), (1.68e-4, "5,950"), (2.0, "0.5"), (1e-6, "1,000,000"), (0.0, "any number of")],
)
def test_rates(seconds: float, text: str) -> None:
    assert rate_text(seconds) == text
