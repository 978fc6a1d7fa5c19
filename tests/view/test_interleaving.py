"""Interleavings as text: aligned, wrapped, escaped, with what goes wrong marked."""

from __future__ import annotations

from dagsched.proof.adversary_model import Failure, ShownStep
from dagsched.view.interleaving import MOST_STEPS, failure_text, steps_lines, timeline_lines


def failure(*steps: ShownStep) -> Failure:
    return Failure("race", "x", (("n", 1),), steps, ("copy", None, "run"))


TWO = failure(
    ShownStep("copy", "upload@0", "reads hin; writes din"),
    ShownStep("run", "infer@0", "reads din", "sees upload@1's din"),
)


def test_steps_and_timeline() -> None:
    assert failure_text(TWO) == (
        "1  copy  upload@0  reads hin; writes din\n"
        "2  run   infer@0   reads din\n"
        "         sees upload@1's din\n"
        "\n"
        "      1         2\n"
        "copy  upload@0  .\n"
        "host  .         .\n"
        "run   .         infer@0 !\n"
    )


def test_a_long_timeline_is_broken_into_blocks() -> None:
    long = failure(*[ShownStep("copy", f"upload@{number}") for number in range(30)])
    lines = timeline_lines(long, width=60)
    assert max(map(len, lines)) <= 60
    assert sum(line.startswith("copy") for line in lines) == sum(line.startswith("run") for line in lines) > 3
    shown = " ".join(line for line in lines if line.startswith("copy")).split()
    assert [word for word in shown if "@" in word] == [f"upload@{number}" for number in range(30)]


def test_only_the_last_steps_of_very_many() -> None:
    many = failure(*[ShownStep("copy", f"upload@{number}") for number in range(MOST_STEPS + 40)])
    lines = steps_lines(many)
    assert lines[0] == "... 40 steps before these"
    assert lines[1].startswith(" 41  copy") and len(lines) == MOST_STEPS + 1


def test_names_from_a_file_do_not_reach_the_terminal_raw() -> None:
    evil = Failure("race", "x", (), (ShownStep("s\x1b[2J", "op\x07", "reads \u202ex"),), ("s\x1b[2J",))
    text = failure_text(evil)
    assert text.isprintable() or not any(character in text for character in "\x1b\x07\u202e")
