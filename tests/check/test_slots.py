"""The note on races of a buffer that has one slot, although its accesses name different versions."""

from __future__ import annotations

import pytest

from dagsched.diagnostics import Source
from dagsched.proof.check import check_schedule
from dagsched.schedule.reader import read_schedule

LOOP = """\
dagsched-schedule: 1
params: {{n: null}}
buffers: {buffers}
steps:
- loop: i
  count: n
  steps:
  - {{stream: copy, op: upload, writes: [{write}]}}
  - {{stream: copy, record: up@i}}
  - {{stream: compute, wait: up@i}}
  - {{stream: compute, op: {op}, reads: [{read}]}}
"""

ONE = "`hin` has one slot, so {} are the same memory; declare `hin: {{ring: {}}}` under `buffers`"


def _notes(text: str) -> list[str]:
    """The notes on slots, one for each race that has one."""
    source = Source("x.schedule.yaml", text)
    verdict = check_schedule(read_schedule(source))
    found = [finding for finding in verdict.diagnostics(source) if finding.code == "S201"]
    assert found
    return [note for finding in found for note in finding.notes if "one slot" in note]


@pytest.mark.parametrize("buffers", ["{}", "{hin: {place: device}}", "{hin: {place: device, ring: 1}}"])
@pytest.mark.parametrize(
    ("write", "read", "op", "names", "ring"),
    [
        ("hin@i", "hin@i", "infer", "`hin@i` and `hin@i+1`", 2),
        ("hin@i+3", "hin@i+3", "infer", "`hin@i+3` and `hin@i+4`", 2),
        ("hin@i+1", "hin@i", "infer", "`hin@i` and `hin@i+2`", 3),
        ("hin@2*i", "hin@2*i", "infer", "`hin@0` and `hin@2`", 3),
        ("hin@i", "hin@i-1", "infer@i-1", "`hin@i` and `hin@i+2`", 3),
    ],
)
def test_versions_that_are_one_slot(buffers: str, write: str, read: str, op: str, names: str, ring: int) -> None:
    (note,) = _notes(LOOP.format(buffers=buffers, write=write, read=read, op=op))
    assert note.startswith(ONE.format(names, ring))
    deep = LOOP.format(buffers=f"{{hin: {{place: device, ring: {ring}}}}}", write=write, read=read, op=op)
    assert not _notes(deep)


@pytest.mark.parametrize(
    ("write", "read", "buffers"),
    [
        ("hin", "hin", "{}"),  # no versions at all
        ("hin@i", "hin", "{}"),
        ("hin@0", "hin@0", "{}"),  # one version
        ("hin@i", "hin@i", "{hin: {place: device, ring: 3}}"),  # slots there are, too few of them
        ("'hin@i'", "hin@i, other@i", "{hin: {place: device, ring: 2}, other: {place: device}}"),
    ],
)
def test_other_races_say_nothing_of_slots(write: str, read: str, buffers: str) -> None:
    assert not _notes(LOOP.format(buffers=buffers, write=write, read=read, op="infer"))


def test_outside_loops_versions_are_numbers() -> None:
    text = "dagsched-schedule: 1\nsteps:\n- {stream: a, op: one, writes: [hin@0]}\n"
    (note,) = _notes(f"{text}- {{stream: b, op: two, reads: [hin@1]}}\n")
    assert note.startswith(ONE.format("`hin@0` and `hin@1`", 2))
    assert not _notes(f"{text}- {{stream: b, op: two, reads: [hin@0]}}\n")


def test_a_race_on_one_version_stays_one() -> None:
    """The op reads an older version too: with slots the race on the newer one would be left."""
    text = "dagsched-schedule: 1\nsteps:\n- {stream: a, op: one, writes: [hin@1]}\n"
    assert not _notes(f"{text}- {{stream: b, op: two, reads: [hin@0, hin@1]}}\n")
