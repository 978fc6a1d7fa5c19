"""Pictures: every op and line is in them, and no name breaks out."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagsched.diagnostics import UsageError
from dagsched.hazards.model import Hazard, Hazards
from dagsched.schedule.model import Indexed, OpStep, Schedule
from dagsched.view import render
from dagsched.view.graph import graph_dot, schedule_dot
from dagsched.view.render import draw_picture, find_renderer, render_graph
from dagsched.view.terminal import clip, escape
from tests.view.sample import detector, renamed

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "class", "a b", "x*/y", "名前", "<script>alert(1)</script>", '"];evil[label="', "\\N", "\\", "]]>", "-->", "&amp;",
    "a\x1b[31m",
    "a\nb", "<b>", "{x|y}", "%s", "'", "=", "node", "<", "a->b", "\u202eabc",
]  # fmt: skip


def texts(svg: ET.Element) -> str:
    return "\n".join("".join(element.itertext()) for element in svg.iter(f"{SVG}text"))


def parse(dot: str) -> ET.Element:
    return ET.fromstring(render_graph(dot, "svg"))


def nodes_and_edges(svg: ET.Element) -> tuple[int, int]:
    kinds = [element.get("class") for element in svg.iter(f"{SVG}g")]
    return kinds.count("node"), kinds.count("edge")


def test_detector_shows_ops_streams_loop_and_lines() -> None:
    svg = parse(graph_dot(detector()))
    assert nodes_and_edges(svg) == (7, 8 + 3 + 1)
    shown = texts(svg)
    for text in (
        "decode",
        "weights_file → weights",
        "detector · 5.7 ms",
        "loop i",
        "ai_core",
        "WAR image",
        "stream order",
    ):
        assert text in shown


def test_styles_tell_the_lines_apart() -> None:
    edges = [line for line in graph_dot(detector()).splitlines() if "->" in line]
    assert sum("style=dotted" in line for line in edges) == 3
    carried = [line for line in edges if "@2" in line]
    assert len(carried) == 4
    assert all("constraint=false" in line for line in carried)
    assert sum('"#b8c0ca"' in line for line in edges) == 1


def test_same_schedule_same_text() -> None:
    assert graph_dot(detector()) == graph_dot(detector())


NAMES = st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=12)


@settings(max_examples=25)
@given(st.lists(NAMES, min_size=9, max_size=9, unique=True))
def test_names_never_break_out_of_dot_or_svg(names: list[str]) -> None:
    old = ["decode", "upload", "resize", "infer", "download", "draw", "load", "image", "detector"]
    svg = parse(graph_dot(renamed(detector(), dict(zip(old, names, strict=True)))))
    assert nodes_and_edges(svg) == (7, 12)
    allowed = {f"{SVG}{tag}" for tag in ("svg", "g", "title", "polygon", "polyline", "path", "text", "a", "ellipse")}
    for element in svg.iter():
        assert element.tag in allowed
        assert not [name for name in element.attrib if name.startswith("on") or name.endswith("href")]
    shown = re.sub(r"\s+", "", texts(svg))
    for name in names[:7]:
        assert re.sub(r"\s+", "", clip(escape(name), 32)) in shown


def test_schedule_without_a_plan_is_drawn() -> None:
    svg = parse(schedule_dot(Schedule("empty", ())))
    assert nodes_and_edges(svg) == (0, 0)
    svg = parse(schedule_dot(Schedule("one", (OpStep(stream=Indexed("s"), op="a"),))))
    assert nodes_and_edges(svg) == (1, 0)


def test_a_flood_of_implied_hazards_is_counted_and_not_drawn() -> None:
    names = [f"op{n}" for n in range(30)]
    schedule = Schedule("many", tuple(OpStep(stream=Indexed(name), op=name) for name in names))
    pairs = [Hazard(a, b, "x", "RAW", 0) for a in names for b in names if a < b]
    svg = parse(schedule_dot(schedule, Hazards(tuple(names), tuple(pairs))))
    assert nodes_and_edges(svg) == (30, 0)
    assert f"{len(pairs)} implied hazards are not drawn" in texts(svg)


def test_png_is_a_picture() -> None:
    data = render_graph(graph_dot(detector()), "png")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert width > 1_000
    assert height > 300


def test_png_with_letters_that_the_built_in_fonts_lack_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    dot = graph_dot(renamed(detector(), {"decode": "名前"}))
    monkeypatch.setattr("shutil.which", _only("graphviz-pure"))
    assert find_renderer() is not None
    assert "前名" in draw_picture(dot, "png").notes[0] or "名前" in draw_picture(dot, "png").notes[0]
    assert draw_picture(dot, "svg").notes == ()


def _only(program: str):  # type: ignore[no-untyped-def]
    import shutil

    real = shutil.which
    return lambda name, path=None: real(name, path=path) if name == program else None


def test_system_dot_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"/usr/bin/{name}")
    assert find_renderer() == "/usr/bin/dot"


def test_the_wheel_is_found_beside_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A venv's scripts are not on PATH when its python is called by its path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_renderer() is not None


def test_no_renderer_is_said_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "find_renderer", lambda: None)
    with pytest.raises(UsageError) as caught:
        render_graph("digraph {}", "svg")
    assert "pip install graphviz-pure" in str(caught.value.diagnostics[0].help)
    assert render_graph("digraph {}", "dot") == b"digraph {}"


def test_a_renderer_that_fails_is_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        render_graph("digraph { a -> }", "svg")
    assert caught.value.diagnostics[0].code == "U004"


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="gif"):
        render_graph("digraph {}", "gif")


def test_guarded_copy_of_the_sample_is_not_the_sample() -> None:
    """``renamed`` must really rename, or the tests above would prove nothing."""
    assert "名前" in graph_dot(renamed(detector(), {"decode": "名前"}))
    assert replace(detector(), policy="single") != detector()
