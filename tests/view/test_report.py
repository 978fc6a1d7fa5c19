"""The report: what it says, that names stay text in it, and that a browser shows it without complaint at any width."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.plan.reader import read_plan_with_warnings
from dagsched.view.predicted import predict_timeline
from dagsched.view.report_page import report_html
from dagsched.view.timeline_html import timeline_html
from tests.cli.plans import GOOD
from tests.proof.mutations import waits_of

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def compiled(text: str) -> Compiled:
    return compile_plan(read_plan_with_warnings(Source("plan.yaml", text))[0])


def example(name: str) -> Compiled:
    return compiled((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))


class _Text(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_says_what_came_of_it() -> None:
    made = example("detector")
    page = report_html(made)
    assert page == report_html(example("detector"))
    text = _Text(page).text
    assert "holds for every count frames from 0 up: 16 hazards ordered" in text
    assert "ai-core is busy all the time" in text and "6.90 ms an iteration" in text
    assert page.count("comes before") == sum(len(wait.protects) for wait in waits_of(made.schedule))
    flat = re.sub(r"\s+", " ", text)
    for wait in waits_of(made.schedule):
        for entry in wait.protects:
            assert f"{entry.before} comes before {entry.after} ({entry.kind} on {entry.buffer})" in flat
    hazards = made.hazards.entries
    assert sum(text.count(kind) for kind in ("RAW", "WAR", "WAW")) >= len(hazards)
    assert page.count("<svg") == 2


def test_it_loads_nothing() -> None:
    page = _Text(report_html(example("detector")))
    assert not {key for key, _ in page.attributes} & {"src", "href", "srcset"}
    assert not {"link", "img", "iframe", "object"} & set(page.tags)


def test_names_stay_text() -> None:
    evil = "</title></svg><script>alert(1)</script>"
    pages = []
    for name in (evil, "harmless"):
        text = GOOD.replace("name: upload", f"name: '{name}'").replace("name: work", f"name: '{name}2'")
        pages.append(_Text(report_html(compiled(text))))
    assert pages[0].tags == pages[1].tags


def test_without_a_renderer_the_graph_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled(GOOD)
    monkeypatch.setattr("dagsched.view.render.find_renderer", lambda: None)
    page = report_html(made)
    assert "nothing here can draw svg" in page and page.count("<svg") == 1


def test_large_plans_leave_out_what_nobody_can_read() -> None:
    ops = "".join(f"  - {{name: w{k}, compute: f, updates: [x], time: 1 us}}\n" for k in range(70))
    page = report_html(
        compiled(f"dagsched: 1\nbuffers: {{x: {{place: device, size: 8, input: true, output: true}}}}\nops:\n{ops}")
    )
    assert "70 ops make no readable picture" in page and "70 ops make no readable table" in page
    long = report_html(compiled(GOOD.replace("params: {n: null}\n", "").replace("count: n", "count: 1000000")))
    assert "the first 12 of 1,000,000 iterations of loop i" in long


WRAPPER = """<!DOCTYPE html><html><head><title>none</title></head><body style="margin:0">
<script>var errors = [];</script>
<iframe id="page" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>
<script>
page.onload = () => {{
  const inner = page.contentDocument, root = inner.documentElement;
  const before = root.scrollWidth;
  const bar = inner.querySelector('.span rect').getBoundingClientRect().width;
  const buttons = [...inner.querySelectorAll('button')];
  buttons[0].click(); buttons[0].click();
  const zoomed = inner.querySelector('.span rect').getBoundingClientRect().width;
  const after = root.scrollWidth;
  buttons[2].click();
  const back = inner.querySelector('.span rect').getBoundingClientRect().width;
  document.title = JSON.stringify({{
    errors, before, after, bar, zoomed, back, colour: page.contentWindow.getComputedStyle(inner.body).backgroundColor,
  }});
}};
</script></body></html>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: pages are not looked at in a browser")
@pytest.mark.parametrize(
    ("kind", "width", "dark"),
    [("report", 1280, False), ("report", 1280, True), ("report", 400, False), ("report", 400, True),
     ("timeline", 400, True)],
)  # fmt: skip
def test_a_browser_shows_it(kind: str, width: int, dark: bool, tmp_path: Path) -> None:
    made = example("detector")
    if kind == "report":
        page = report_html(made)
    else:
        page = timeline_html(predict_timeline(made.schedule, made.resolved, made.device))
    listen = "<script>window.onerror = (text) => { parent.errors.push(text); };</script>"
    page = page.replace("<head>", f"<head>{listen}", 1)
    (tmp_path / "wrapper.html").write_text(WRAPPER.format(width=width, page=escape(page)), encoding="utf-8")
    assert BROWSER is not None
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom",
            "--window-size=1400,1000", "--virtual-time-budget=3000", f"--user-data-dir={tmp_path / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}", (tmp_path / "wrapper.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True, encoding="utf-8",
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None
    seen = json.loads(unescape(title[1]))
    assert seen["errors"] == [] and "CONSOLE" not in done.stderr
    assert seen["before"] <= width and seen["after"] <= width, "the page is wider than its window"
    assert seen["zoomed"] == pytest.approx(4 * seen["bar"], rel=0.05)
    assert seen["back"] == pytest.approx(seen["bar"], rel=0.05)
    light = sum(map(int, re.findall(r"\d+", seen["colour"])[:3])) > 600
    assert light != dark
