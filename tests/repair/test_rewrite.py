"""A repair in the file's own text: only the lines that change are touched, in every style that a file may have."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from dagsched.diagnostics import Source
from dagsched.edits import Edit, EditError, apply_edits
from dagsched.proof.check import check_schedule
from dagsched.repair.places import family_of
from dagsched.repair.repair import repair_schedule
from dagsched.repair.rewrite import Rewritten, rewrite_source
from dagsched.schedule.reader import read_schedule
from tests.check.strategies import open_loops, schedules
from tests.repair.styles import typed

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_any_style(data: st.DataObject) -> None:
    schedule = data.draw(st.one_of(schedules(longest=7), open_loops()))
    name, text = data.draw(typed(schedule))
    source = Source(name, text)
    repair = repair_schedule(read_schedule(source))
    assume(repair.draft)
    new = rewrite_source(source, repair.draft)
    assert read_schedule(Source(name, new.text)) == repair.schedule
    assert new.edits is not None, new.reason
    assert apply_edits(text, new.edits) == new.text
    assert ("\r" in new.text) == ("\r" in text)
    assert "\r" not in text or "\n" not in new.text.replace("\r\n", "")
    sizes = family_of(repair.draft.original).sizes
    gone = sum(sizes[number] for number in repair.draft.drops) + len(repair.draft.changed)
    kept = re.findall(r"# comment \d+|# the end", new.text)
    before = re.findall(r"# comment \d+|# the end", text)
    event(f"{name}, {'comments' if before else 'no comments'}")
    assert len(set(before) - set(kept)) <= 4 * gone  # those on the lines of a step that goes
    lines = SequenceMatcher(None, text.splitlines(), new.text.splitlines(), autojunk=False)
    removed = sum(end - start for tag, start, end, _, _ in lines.get_opcodes() if tag in ("delete", "replace"))
    if "\n" in text.strip():
        most = (25 if name == "x.json" else 8) * (gone + len(repair.draft.rings) + len(repair.draft.retired)) + 3
        assert removed <= most, (removed, most)


@given(st.text(alphabet="abc\n", max_size=20), st.data())
def test_edits_replace_what_they_span_and_nothing_else(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits = [Edit(start, end, data.draw(st.text(alphabet="XY", max_size=3))) for start, end in spans]
    expected = text
    for edit in reversed(edits):
        expected = expected[: edit.start] + edit.replacement + expected[edit.end :]
    assert apply_edits(text, edits) == expected


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(EditError, match="same characters"):
        apply_edits("abcdef", [Edit(0, 3, ""), Edit(2, 4, "")])
    with pytest.raises(EditError, match="beyond the end"):
        apply_edits("abc", [Edit(2, 4, "")])
    with pytest.raises(ValueError, match="cannot span"):
        Edit(3, 2, "")


def rewritten(text: str, name: str = "x.yaml") -> Rewritten:
    source = Source(name, text)
    repair = repair_schedule(read_schedule(source))
    assert repair.is_right
    new = rewrite_source(source, repair.draft)
    assert check_schedule(read_schedule(Source(name, new.text))).verdict == "ok"
    return new


RACE = """\
dagsched-schedule: 1
# what it touches
buffers: {x: {place: device}}   # one block
steps:
  # fills x
  - stream: a
    op: put      # quick
    writes: [x]
  # empties it

  - stream: b
    op: get
    reads: [x]
"""


def test_new_steps_stand_between_the_comments() -> None:
    assert rewritten(RACE).text == RACE.replace(
        "    writes: [x]\n", "    writes: [x]\n  - {stream: a, record: put_done}\n"
    ).replace("  - stream: b\n", "  - {stream: b, wait: put_done}\n  - stream: b\n")


def test_block_style_is_kept_where_waits_have_it() -> None:
    text = RACE + "  - stream: a\n    wait: never\n"
    assert "  - stream: b\n    wait: put_done\n  - stream: b\n    op: get\n" in rewritten(text).text


def test_a_label_and_a_comment_stay_with_a_wait_that_is_corrected() -> None:
    text = RACE.replace(
        "  - stream: b\n", "  - {stream: b, wait_stream: aa, label: W1}  # W1 is for x\n  - stream: b\n", 1
    )
    assert "  - {stream: b, wait_stream: a, label: W1}  # W1 is for x\n" in rewritten(text).text


def test_steps_that_an_alias_shares_are_written_out() -> None:
    text = """\
dagsched-schedule: 1
buffers: {x: {place: device}}
steps:
  - &put {stream: a, op: put, writes: [x]}
  - {stream: b, op: get, reads: [x]}
  - *put
"""
    new = rewritten(text)
    assert new.edits is None
    assert new.reason == "an alias stands for more than one step"
    assert "&" not in new.text


def test_what_is_said_of_the_old_schedule_goes() -> None:
    text = RACE.replace("steps:\n", "predicted: {makespan: 1.0, bound: 1.0, binds: x}\nsteps:\n")
    assert "predicted" not in rewritten(text).text


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ("", "events: {take_done: {ring: 2}}\n"),
        ("events: {}\n", "events: {take_done: {ring: 2}}\n"),
        ("events: {e: {ring: 3}}  # handles\n", "events: {e: {ring: 3}, take_done: {ring: 2}}  # handles\n"),
        ("events:\n  e: {ring: 3}  # handles\n", "events:\n  e: {ring: 3}  # handles\n  take_done: {ring: 2}\n"),
        ("events:\n    e:\n        ring: 3\n", "events:\n    e:\n        ring: 3\n    take_done: {ring: 2}\n"),
    ],
)
def test_a_ring_is_declared_where_the_others_are(events: str, wanted: str) -> None:
    text = f"""\
dagsched-schedule: 1
buffers: {{x: {{place: host, ring: 2}}}}
{events}steps:
  - loop: i
    count: 9
    steps:
      - {{host: fill, writes: [x@i]}}
      - {{stream: s, op: take, reads: [x@i]}}
      - {{stream: s, op: use}}
  - {{stream: s, record: e}}
  - {{sync: {{event: e}}}}
"""
    assert wanted in rewritten(text).text
