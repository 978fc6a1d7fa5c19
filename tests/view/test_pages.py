"""Every code has a page whose examples are run: the wrong one yields that code and no other, the right one none."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dagsched.diagnostics import DagschedError
from dagsched.view.codes import CODES
from dagsched.view.pages import Example, Page, family_of, page_of
from tests.cli.conftest import Cli, Result, cli  # noqa: F401 - a fixture

WITHOUT: dict[str, str] = {
    "C120": "takes an installation without OR-tools",
    "C111": "no plan is known for which the compiler makes a schedule that it cannot prove",
    "C101": "policies stay within the device's streams, and pins beyond them are P250",
    "D130": "raised for library users only: `dagsched timeline` picks a count itself",
    "E105": "a plan whose arithmetic overflows is proved for a long time before it is emitted",
    "D135": "takes a run of millions of commands",
    "E104": "the shipped targets can express everything that a plan compiles to",
    "K106": "no text is known that the change does not understand",
    "R303": "takes a compiler that lacks a sanitizer's library",
    "S100": "of the commands only `fix` takes schedules only",
    "S203": "takes a file with millions of racing pairs",
    "S302": "takes a file with more interleavings than can be gone through",
    "S409": "takes a file with more waits than can be tried",
    "S420": "said in the formats for programs; a terminal gets a diff",
    "S421": "stands beside the finding that has no repair",
    "U004": "takes a machine without a renderer",
    "U006": "takes a terminal",
    "V111": "the compiler checks the limits before the verifier does",
    **dict.fromkeys(("R133", "R140", "R150", "R151", "R153"), "takes a device, or an environment without one"),
    **dict.fromkeys(
        ("V100", "V101", "V102", "V103", "V104", "V105", "V106", "V107", "V108", "V110", "V201"),
        "says that dagsched has made a wrong schedule",
    ),
    **dict.fromkeys(("R304", "R306", "R307", "R308", "R309"), "says that dagsched has made a wrong program"),
}
"""Codes without examples, and why."""

ASSIGNMENT = re.compile(r"[A-Z_]+=")
DONE: dict[str, Result] = {}
SAID = re.compile(r"^(?:error|warning|note)\[([A-Z]\d{3})\]", re.MULTILINE)


def page(code: str) -> Page:
    found = page_of(code)
    assert found is not None, f"{code} has no page: add `## {code}` to dagsched/view/pages/{family_of(code)}.md"
    return found


def run_example(example: Example, folder: Path, run: Cli) -> Result:
    """The result of the last command, or of the script; other commands than dagsched's own are left to a shell."""
    for name, text in example.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    result = Result(0, "", "")
    for command in example.commands:
        words = shlex.split(command)
        with pytest.MonkeyPatch.context() as patch:
            while ASSIGNMENT.match(words[0]):
                name, _, value = words.pop(0).partition("=")
                patch.setenv(name, value)
            if words[0] == "dagsched":
                result = run(*words[1:])
            else:
                subprocess.run(["sh", "-c", command], cwd=folder, check=True, timeout=60)
    return result if example.script is None else run_script(example.script)


def run_script(text: str) -> Result:
    """What a script printed, and what it raised."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(text, "script", "exec"), {"__name__": "__main__"})
        except DagschedError as error:
            said = "\n".join(f"{d.severity}[{d.code}]: {d.headline}" for d in error.diagnostics)
            return Result(error.exit_status, printed.getvalue(), said)
    return Result(0, printed.getvalue(), "")


def result_of(example: Example, folder: Path, run: Cli) -> Result:
    """Run among files of its own. What is built with a compiler takes seconds, so equal examples are run once."""
    key = repr(example)
    if key not in DONE:
        folder.mkdir()
        known = set(sys.modules)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            DONE[key] = run_example(example, folder, run)
        for name in {Path(file).stem for file in example.files} - known:
            sys.modules.pop(name, None)
    return DONE[key]


@pytest.mark.parametrize("code", sorted(CODES))
def test_page(code: str, cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    found = page(code)
    assert len(found.text) > 60, "a page says more than the code's line"
    assert not [line for line in found.text.splitlines() if len(line) > 120]
    if code in WITHOUT:
        assert found.wrong is None and found.right is None, f"{code} has examples: take it off the list"
        return
    assert found.wrong is not None and found.right is not None, f"the page of {code} lacks an example"
    if any("--backend emulated" in command for command in found.wrong.commands) and not shutil.which("g++"):
        pytest.skip("needs a C++ compiler")
    for name, example in (("wrong", found.wrong), ("right", found.right)):
        result = result_of(example, tmp_path / name, cli)
        said = set(SAID.findall(result.out + result.err))
        if name == "wrong":
            assert said == {code}, result.out + result.err
        else:
            assert (said, result.status) == (set(), 0), result.out + result.err


def test_no_page_is_left_over() -> None:
    for family in {family_of(code) for code in CODES}:
        text = (Path("dagsched/view/pages") / f"{family}.md").read_text(encoding="utf-8")
        codes = re.findall(r"^## (\S+)$", text, re.MULTILINE)
        assert codes == sorted(set(codes)), f"{family}.md: in order, each once"
        assert set(codes) <= set(CODES)
    assert set(WITHOUT) <= set(CODES)


def test_explain_shows_the_page(cli: Cli) -> None:  # noqa: F811
    shown = cli("explain", "s201").out
    found = page("S201")
    assert found.wrong is not None
    assert textwrap.indent(found.wrong.files["file.yaml"].rstrip(), "      ") in shown
    assert all(word in shown for word in found.text.split()[:12])


def test_explain_shows_scripts_and_modules(cli: Cli) -> None:  # noqa: F811
    shown = cli("explain", "R131").out
    assert "    in Python\n      import dagsched\n" in shown and "executor.stream(n=3)" in shown
    assert "$" not in shown
    module = cli("explain", "R120").out
    assert "    functions.py\n      def g(y):\n" in module
    assert "      $ dagsched run file.yaml --functions functions.py\n" in module
