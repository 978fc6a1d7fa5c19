"""Timelines: what is predicted is what the simulator says, and no name in a picture is more than text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.simulator import simulate_schedule
from dagsched.diagnostics import Source
from dagsched.plan.reader import read_plan
from dagsched.timeline import Flow, Span, Timeline
from dagsched.view.issue import wait_pairs
from dagsched.view.predicted import predict_timeline
from dagsched.view.terminal import width_of
from dagsched.view.timeline_svg import ticks
from dagsched.view.timelines import draw_timeline
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.cli.plans import GOOD, RACING
from tests.view.test_trace import timelines

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SVG = "{http://www.w3.org/2000/svg}"


def compiled(name: str) -> Compiled:
    path = EXAMPLES / f"{name}.yaml"
    return compile_plan(read_plan(Source(str(path), path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("name", ["detector", "heads", "chunks"])
def test_a_prediction_is_the_simulators(name: str) -> None:
    made = compiled(name)
    counts = {param: 6 for param, value in made.schedule.params.items() if value is None}
    timeline = predict_timeline(made.schedule, made.resolved, made.device, counts)
    run = simulate_schedule(made.schedule, made.resolved, made.device, counts)
    assert [(s.track, s.name, s.iteration, s.start, s.end) for s in timeline.spans] == [
        (s.stream or "host", s.op, s.iteration, s.start, s.end) for s in run.spans
    ]
    assert timeline.makespan == run.makespan
    for flow in timeline.flows:
        before, after = timeline.spans[flow.before], timeline.spans[flow.after]
        assert before.end <= after.start and before.track != after.track
        assert flow.binds == (before.end == after.start)


@pytest.mark.parametrize("name", ["detector", "heads"])
def test_arrows_are_the_waits(name: str) -> None:
    made = compiled(name)
    timeline = predict_timeline(made.schedule, made.resolved, made.device, {"frames": 9} if name == "detector" else {})
    drawn = set()
    for flow in timeline.flows:
        before, after = timeline.spans[flow.before], timeline.spans[flow.after]
        distance = after.iteration - before.iteration if None not in (after.iteration, before.iteration) else 0  # type: ignore[operator]
        drawn.add((before.name, after.name, distance))
        assert flow.event
    assert drawn == {(pair.before, pair.after, pair.distance) for pair in wait_pairs(made.schedule)}


def test_causes_say_why() -> None:
    made = compiled("detector")
    timeline = predict_timeline(made.schedule, made.resolved, made.device, {"frames": 4})
    causes = {span.text: span.causes for span in timeline.spans}
    assert causes["infer@0"] == ("after resize@0 on its stream",)
    assert any("waited for infer@2" in cause for cause in causes["download@2"])
    assert all(causes[f"decode@{i}"] for i in range(4))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


EVIL = ["</text><script>alert(1)</script>", '" onload="x', "]]>", "<!--", "a&b", "\x1b[2J", "\u202e", "</style>", "'"]


def hostile(name: str) -> Timeline:
    spans = (Span(name, name, 0.0, 1.0, 3, name, causes=(name,)), Span("t", name, 0.5, 1.5))
    return Timeline(name, (name, "t"), spans, (Flow(0, 1, name, True),), 2.0, name, (name,))


@pytest.mark.parametrize("name", EVIL)
def test_names_stay_text(name: str) -> None:
    plain = hostile("plain")
    root = ElementTree.fromstring(draw_timeline(hostile(name), "svg").encode())
    wanted = ElementTree.fromstring(draw_timeline(plain, "svg").encode())
    assert [e.tag for e in root.iter()] == [e.tag for e in wanted.iter()]
    assert [sorted(e.attrib) for e in root.iter()] == [sorted(e.attrib) for e in wanted.iter()]
    pages = [_Tags(), _Tags()]
    for page, timeline in zip(pages, (hostile(name), plain), strict=True):
        page.feed(draw_timeline(timeline, "html"))
    assert pages[0].tags == pages[1].tags
    assert [key for key, _ in pages[0].attributes] == [key for key, _ in pages[1].attributes]
    text = draw_timeline(hostile(name), "text")
    assert "\x1b" not in text and "\u202e" not in text


@given(timelines(), st.integers(40, 160))
def test_every_form_holds_every_span(timeline: Timeline, width: int) -> None:
    root = ElementTree.fromstring(draw_timeline(timeline, "svg").encode())
    bars = [group for group in root.iter(f"{SVG}g") if group.get("class") == "span"]
    assert len(bars) == len(timeline.spans)
    for bar, span in zip(bars, timeline.spans, strict=True):
        assert float(bar.get("data-a", "")) == pytest.approx(span.start / (timeline.makespan or 1.0), abs=1e-6)
    for format in ("svg", "html", "text", "json"):
        assert draw_timeline(timeline, format) == draw_timeline(timeline, format)
    lines = draw_timeline(timeline, "text", width=width).splitlines()
    rows = lines[lines.index("") + 1 : lines.index("") + 1 + len(timeline.tracks)]
    assert len(rows) == len(timeline.tracks) and all(width_of(row) <= width for row in rows)


def test_a_picture_brings_its_background() -> None:
    svg = draw_timeline(compiled_timeline(), "svg")
    assert svg.count('class="back"') == 1
    assert 'class="back"' not in draw_timeline(compiled_timeline(), "html")


def compiled_timeline() -> Timeline:
    made = compiled("detector")
    return predict_timeline(made.schedule, made.resolved, made.device, {"frames": 2})


def test_a_page_loads_nothing() -> None:
    page = _Tags()
    text = draw_timeline(hostile("x"), "html")
    page.feed(text)
    assert not {key for key, _ in page.attributes} & {"src", "href", "srcset", "action"}
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert not re.search(r"url\(|@import|fetch\(", text)


@given(st.floats(1e-12, 1e6))
def test_ticks_are_round_and_few(length: float) -> None:
    found = ticks(length)
    assert 2 <= len(found) <= 11
    assert found[0] == 0 and found[-1] <= length * (1 + 1e-9)


def test_long_runs_say_what_is_left_out() -> None:
    spans = tuple(Span("s", "op", float(n), n + 1.0, n) for n in range(4_100))
    text = draw_timeline(Timeline("long", ("s",), spans, tuple(Flow(n, n + 1) for n in range(4_000))), "svg")
    assert "100 more ops are not drawn; waits are not drawn" in text
    assert len(json.loads(draw_timeline(Timeline("long", ("s",), spans), "json"))["traceEvents"]) == 4_103


# the command


def test_timeline_command(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "racing.yaml").write_text(RACING)
    shown = cli("timeline", "good.yaml", "--count", "3")
    assert (shown.status, shown.err) == (0, "")
    assert "n = 3" in shown.out and "a upload, b work, c download" in shown.out
    assert "every op takes 1 ms" in cli("timeline", "racing.yaml").out
    for ending, start in (("svg", "<?xml"), ("html", "<!DOCTYPE html>"), ("json", "{"), ("txt", "batches:")):
        assert cli("timeline", "good.yaml", "-o", f"x.{ending}").err == f"wrote x.{ending}\n"
        assert (tmp_path / f"x.{ending}").read_text().startswith(start)
    cli("compile", "good.yaml", "-o", "out")
    same = cli("timeline", "out/batches.schedule.json", "--plan", "good.yaml", "--format", "svg")
    assert same.out == cli("timeline", "good.yaml", "--format", "svg").out


@pytest.mark.parametrize(
    ("words", "code", "meant"),
    [
        (["good.yaml", "-o", "x.jpeg"], "U005", "x.svg"),
        (["good.yaml", "--count", "m=3"], "U002", "`n`"),
        (["good.yaml", "--count", "few"], "U002", "--count 4"),
        (["good.yaml", "--plan", "good.yaml"], "U002", "drop `--plan`"),
        (["racing.yaml", "--plan", "good.yaml"], "D131", "`infer`"),
    ],
)
def test_timeline_usage(cli: Cli, tmp_path: Path, words: list[str], code: str, meant: str) -> None:  # noqa: F811
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "racing.yaml").write_text(RACING)
    result = cli("timeline", *words)
    assert result.status in (1, 2)
    assert code in result.err and meant in result.err


@pytest.mark.parametrize(
    ("params", "words", "meant"),
    [
        ("n: 5", ["--count", "n=70"], "n = 70"),
        ("n: 5", ["--count", "70"], "n = 70"),
        ("n: 5", ["--count", "70", "--count", "n=3"], "n = 3"),
        ("n: 5, m: null", ["--count", "70"], "n = 5; m = 70"),
        ("n: 5, m: 6", ["--count", "70"], "U002"),
        ("n: 5, m: 6", ["--count", "70", "--count", "n=3"], "write `--count n=70`"),
        ("m: 5", ["--count", "70"], "m = 70"),
        ("", ["--count", "70"], "the file has none"),
    ],
)
def test_a_count_is_used_or_refused(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    params: str,
    words: list[str],
    meant: str,
) -> None:
    count = params[:1] or "5"
    text = GOOD.replace("params: {n: null}", f"params: {{{params}}}").replace("count: n", f"count: {count}")
    if "m:" in params and count == "n":
        text += "  - loop: k\n    count: m\n    ops:\n      - {name: more, compute: f, reads: [file], writes: [z]}\n"
        text = text.replace("ops:\n  - loop: i", "  z: {place: device, size: 8, output: true}\nops:\n  - loop: i")
    (tmp_path / "plan.yaml").write_text(text)
    result = cli("timeline", "plan.yaml", *words)
    refused = params in ("n: 5, m: 6", "")
    assert result.status == (2 if refused else 0)
    assert meant in (result.err if refused else result.out)
    if not refused and count == "n" and "n = 70" in meant:
        assert len(json.loads(cli("timeline", "plan.yaml", *words, "--format", "json").out)["traceEvents"]) > 3 * 70
