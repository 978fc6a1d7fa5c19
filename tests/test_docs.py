"""The documents say what is so: links lead somewhere, examples in them are read, the list of codes is complete."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def page_id(path: Path) -> str:
    return path.name


def anchors(path: Path) -> set[str]:
    """The anchors that a page's headings give, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def blocks(path: Path, language: str) -> Iterator[str]:
    yield from re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_whole_files_in_pages_are_read(page: Path) -> None:
    """A YAML block that is a whole plan or schedule is one that the reader takes."""
    from dagsched.diagnostics import Source
    from dagsched.plan.reader import read_plan
    from dagsched.schedule.reader import read_schedule

    for block in blocks(page, "yaml"):
        if re.search(r"^dagsched: 1$", block, re.MULTILINE):
            read_plan(Source(page.name, block))
        elif re.search(r"^dagsched-schedule: 1$", block, re.MULTILINE):
            read_schedule(Source(page.name, block))


def run_command(line: str, folder: Path) -> str:
    """What a terminal shows for a command, without colour."""
    words = shlex.split(line)
    assert words[0] == "dagsched", f"only dagsched's own commands are run: {line}"
    done = subprocess.run(
        [sys.executable, "-m", "dagsched", *words[1:]],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip().splitlines())


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "console"))], ids=page_id)
def test_terminal_sessions_are_real(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each ``console`` block is one command and what it prints; ``--rewrite-golden`` brings the pages up to date."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "docs" / "samples", tmp_path / "docs" / "samples")
    text = page.read_text(encoding="utf-8")
    new = text
    for block in blocks(page, "console"):
        command, _, _ = block.partition("\n")
        assert command.startswith("$ "), f"{page.name}: a console block starts with its command"
        new = new.replace(block, f"{command}\n{run_command(command[2:], tmp_path)}")
    if request.config.getoption("--rewrite-golden"):
        page.write_text(new, encoding="utf-8", newline="\n")
    else:
        assert text == new


def test_readme_shows_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan in the README is the detector example without its comments."""
    import dagsched

    monkeypatch.chdir(ROOT)
    [plan] = [block for block in blocks(ROOT / "README.md", "yaml") if block.startswith("dagsched: 1")]
    assert dagsched.compile(dagsched.loads(plan)).to_json() == dagsched.compile("examples/detector.yaml").to_json()


def test_flow_shows_what_the_compiler_writes(tmp_path: Path) -> None:
    """The schedule and the piece of C++ in docs/flow.md are those of the detector example."""
    import dagsched

    schedule = dagsched.compile(ROOT / "examples" / "detector.yaml")
    schedule.write(tmp_path, targets=["acl-cpp"])
    page = ROOT / "docs" / "flow.md"
    [steps] = blocks(page, "text")
    assert schedule.to_text().endswith(steps)
    [code] = blocks(page, "cpp")
    written = (tmp_path / "detector.hpp").read_text(encoding="utf-8").splitlines()
    wanted = code.splitlines()
    start = next(n for n, line in enumerate(written) if line.strip() == wanted[0])
    assert textwrap.dedent("\n".join(written[start : start + len(wanted)])) == "\n".join(wanted)


def test_diagnostics_page_lists_every_code(request: pytest.FixtureRequest) -> None:
    """The page ends with one row per code, in the registry's own words; ``--rewrite-golden`` writes it anew."""
    from dagsched.view.codes import CODES
    from dagsched.view.pages import family_of

    assert CODES
    page = ROOT / "docs" / "diagnostics.md"
    head = "| code | means |\n|---|---|\n"
    before, _, table = page.read_text(encoding="utf-8").partition(head)
    wanted = "".join(
        f"| [`{code}`](../dagsched/view/pages/{family_of(code)}.md#{code.lower()}) "
        f"| {CODES[code].replace('|', chr(92) + '|')} |\n"
        for code in sorted(CODES)
    )
    if request.config.getoption("--rewrite-golden"):
        page.write_text(before + head + wanted, encoding="utf-8", newline="\n")
    else:
        assert table == wanted
