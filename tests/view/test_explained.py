"""Pictures of why one op precedes another, and of two that nothing orders."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.diagnostics import Source
from dagsched.proof.check_clock import is_before
from dagsched.proof.check_expand import WORK
from dagsched.proof.check_paths import find_chain, orders
from dagsched.proof.check_relate import relate
from dagsched.proof.check_run import run_schedule
from dagsched.schedule.model import Schedule
from dagsched.schedule.reader import read_schedule
from dagsched.view.chain import chain_picture
from dagsched.view.collision import collision_picture
from dagsched.view.glyphs import ASCII, UNICODE, glyphs_for
from dagsched.view.relation_graph import relation_dot
from dagsched.view.render import render_graph
from dagsched.view.terminal import escape, width_of
from tests.check.strategies import schedules

PIPELINE = """
dagsched-schedule: 1
name: pipeline
params: {n: null}
buffers: {x: {place: device, ring: 2}, y: {place: device, ring: 2}}
steps:
  - loop: i
    count: n
    steps:
      - {stream: copy, op: upload, writes: [x@i]}
      - {stream: copy, record: ready@i}
      - {stream: compute, wait: ready@i}
      - {stream: compute, op: infer, reads: [x@i], writes: [y@i]}
      - {stream: compute, record: done@i}
      - {stream: copy, wait: done@i}
      - {stream: copy, op: download, reads: [y@i]}
      - {stream: other, wait: ready@i}
      - {stream: other, op: peek, reads: [x@i]}
"""


@pytest.fixture(scope="module")
def pipeline() -> Schedule:
    return read_schedule(Source("pipeline.yaml", PIPELINE))


def test_a_chain_goes_down_and_up_again(pipeline: Schedule) -> None:
    chain = orders(pipeline, "upload@0", "download@0")
    assert chain is not None
    # The shortest chain is stream order alone.
    assert chain_picture(chain) == "  copy  upload@0 ── download@0\n"
    chain = orders(pipeline, "infer@0", "peek@1")
    assert chain is not None
    assert chain_picture(chain) == (
        "  compute  infer@0 ──● done@0\n"
        "                     │\n"
        "  copy               ╰▶ download@0 ── upload@1 ──● ready@1\n"
        "                                                 │\n"
        "  other                                          ╰▶ peek@1\n"
    )


def test_a_chain_that_is_too_wide_goes_on_below(pipeline: Schedule) -> None:
    chain = orders(pipeline, "infer@0", "peek@1")
    assert chain is not None
    text = chain_picture(chain, 46, ASCII)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 46
    assert text.count("upload@1") == 2


@given(schedules(), st.integers(40, 100))
def test_every_chain_is_drawn_from_its_first_op_to_its_last(schedule: Schedule, width: int) -> None:
    run = run_schedule(schedule, {})
    work = [node for node in run.program.nodes if node.action in WORK]
    for a, b in permutations(work, 2):
        if run.order.clocks[b.index] is not None and is_before(run.program, run.order, a.index, b.index):
            chain = find_chain(run, a, b)
            text = chain_picture(chain, width)
            for link in chain:
                if "@" in link.text and " " not in link.text:
                    assert link.text in text
            assert chain[0].text in text and chain[-1].text in text
            assert not any(line != line.rstrip() for line in text.splitlines())


def test_a_collision(pipeline: Schedule) -> None:
    relation = relate(pipeline, "peek@0", "upload@2")
    assert relation.collision is not None
    assert collision_picture(relation.collision) == (
        "  copy     ├ upload@0 ┤           ├ download@0 ┤├ upload@1 ┤           ├ download@1 ┤┣ upload@2 ┫\n"
        "  compute              ├ infer@0 ┤                          ├ infer@1 ┤\n"
        "  other                                                                              ┣ peek@0 ━━┫\n"
    )
    narrow = collision_picture(relation.collision, 60, ASCII)
    assert narrow == (
        "  copy     ...           [ download@1 ][ upload@2 ]\n"
        "  compute  ...[ infer@1 ]\n"
        "  other                                [ peek@0 ==]\n"
    )


@given(schedules(), st.integers(40, 100))
def test_a_collision_is_as_wide_as_it_may(schedule: Schedule, width: int) -> None:
    run = run_schedule(schedule, {})
    names = [node.step.op for node in run.program.nodes if node.action == "op"]  # type: ignore[union-attr]
    for a, b in list(permutations(dict.fromkeys(names), 2))[:6]:
        relation = relate(schedule, a, b)
        if relation.collision is not None and relation.collision.runs:
            text = collision_picture(relation.collision, width)
            assert all(width_of(line) <= width for line in text.splitlines())
            assert relation.first in text and relation.second in text


def test_glyphs_follow_the_encoding() -> None:
    assert glyphs_for("utf-8") is UNICODE
    assert glyphs_for("latin-1") is glyphs_for(None) is glyphs_for("nonsense") is ASCII


@pytest.mark.parametrize("name", ["<script>", "a b", '";evil="', "\\N", "名前", "-->", "&amp;"])
def test_names_stay_text_in_pictures_of_relations(name: str) -> None:
    """A chain and a collision, drawn: each box has its name as text, and nothing else is added."""
    text = json.dumps({
        "dagsched-schedule": 1,
        "steps": [
            {"stream": name, "op": name, "writes": ["x"]},
            {"stream": name, "record": "e"},
            {"stream": "t", "wait": "e"},
            {"stream": "t", "op": "second", "reads": ["x"]},
            {"stream": "u", "op": "third", "reads": ["x"]},
        ],
    })  # fmt: skip
    schedule = read_schedule(Source("p.json", text))
    for other in ("second", "third"):
        picture = ET.fromstring(render_graph(relation_dot(relate(schedule, name, other), f"{name} and {other}"), "svg"))
        texts = ["".join(element.itertext()) for element in picture.iter("{http://www.w3.org/2000/svg}text")]
        assert {escape(name), other} <= {text.strip() for text in texts}
        assert not list(picture.iter("{http://www.w3.org/2000/svg}script"))
