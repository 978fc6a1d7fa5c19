"""Each command on good files: what it prints and writes, its exit status, its formats."""

from __future__ import annotations

import csv
import json
import re
from importlib import import_module
from pathlib import Path

import pytest

import dagsched
from dagsched.cli.main import COMMANDS
from dagsched.view.advice import ADVICE
from dagsched.view.codes import CODES
from tests.cli.conftest import Cli
from tests.cli.plans import GOOD, RACING, STUCK

PACKAGE = Path(dagsched.__file__).parent


@pytest.fixture
def good(tmp_path: Path) -> str:
    (tmp_path / "good.yaml").write_text(GOOD)
    return "good.yaml"


@pytest.fixture
def racing(tmp_path: Path) -> str:
    (tmp_path / "racing.yaml").write_text(RACING)
    return "racing.yaml"


# compile


def test_compile_writes_into_build_name(cli: Cli, good: str, tmp_path: Path) -> None:
    result = cli("compile", good)
    assert (result.status, result.err) == (0, "")
    names = {path.name for path in (tmp_path / "build" / "batches").iterdir()}
    assert names == {"batches.schedule.json", "batches.hpp", "batches_main.cpp", "proof.json", "report.html"}
    assert "proof" in result.out
    assert all(name in result.out for name in names)


def test_compile_gives_the_same_bytes_twice(cli: Cli, good: str, tmp_path: Path) -> None:
    first, second = (cli("compile", good, "-o", name) for name in ("one", "two"))
    assert first.out.replace("one/", "") == second.out.replace("two/", "")
    files = [{p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert files[0] == files[1]


def test_compile_json_is_one_object(cli: Cli, good: str, tmp_path: Path) -> None:
    result = cli("compile", good, "-o", "out", "--format", "json")
    data = json.loads(result.out)
    assert data["waits"]["kept"] <= data["waits"]["found"]
    assert all((tmp_path / name).is_file() for name in data["files"])


def test_compile_refuses_an_unknown_target_and_writes_nothing(cli: Cli, good: str, tmp_path: Path) -> None:
    result = cli("compile", good, "-o", "out", "--target", "acl-cp")
    assert result.status in (1, 2)
    assert "acl-cpp" in result.err
    assert not (tmp_path / "out").exists()


def test_compile_to_a_place_that_is_no_directory(cli: Cli, good: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    result = cli("compile", good, "-o", "file")
    assert (result.status, result.out) == (2, "")
    assert "U010" in result.err
    assert (tmp_path / "file").read_text() == "mine"


def test_compile_replaces_no_file_where_one_cannot_be_written(cli: Cli, good: str, tmp_path: Path) -> None:
    (tmp_path / "out" / "proof.json").mkdir(parents=True)
    (tmp_path / "out" / "proof.json" / "inside").touch()
    result = cli("compile", good, "-o", "out")
    assert result.status == 2
    assert "proof.json` cannot be written: is a directory" in result.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["proof.json"]


def test_warnings_are_talk(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(GOOD.replace("  y:", "  unused: {place: device, size: 1}\n  y:"))
    result = cli("compile", "p.yaml")
    assert result.status == 0
    assert "warning[P170]" in result.err
    assert "P170" not in result.out


def test_a_plan_from_stdin(cli: Cli, tmp_path: Path) -> None:
    assert cli("compile", "-", "-o", "out", stdin=GOOD).status == 0
    assert (tmp_path / "out" / "batches.schedule.json").is_file()
    assert cli("check", "-", stdin=GOOD).out.startswith("<stdin>: ok")


def test_too_many_events_for_the_device(cli: Cli, tmp_path: Path) -> None:
    device = (
        "device: {name: tiny, engines: {up: {kind: h2d}, down: {kind: d2h}, core: {kind: compute}}, "
        "limits: {events: 1}}\n"
    )
    (tmp_path / "p.yaml").write_text(GOOD.replace("params:", device + "streams: {policy: engine}\nparams:"))
    result = cli("compile", "p.yaml", "-o", "out")
    assert result.status == 2, result
    assert "C102" in result.err
    assert not (tmp_path / "out").exists()
    (tmp_path / "p.yaml").write_text(GOOD.replace("params:", device + "params:"))
    assert "policy single" in cli("compile", "p.yaml", "-o", "out").out  # the one that needs no event


# check


def test_check_of_what_compile_wrote(cli: Cli, good: str) -> None:
    cli("compile", good, "-o", "out")
    result = cli("check", good, "out/batches.schedule.json")
    assert result.status == 0
    assert [line.split(":")[1] for line in result.out.splitlines()] == [" ok", " ok"]


def test_check_finds_the_race_in_a_compiled_schedule_without_one_of_its_waits(cli: Cli, good: str) -> None:
    cli("compile", good, "-o", "out")
    data = json.loads(Path("out/batches.schedule.json").read_text())

    def waits(steps: list[dict[str, object]]) -> list[tuple[list[dict[str, object]], int]]:
        found = []
        for number, step in enumerate(steps):
            if "wait" in step:
                found.append((steps, number))
            inner = step.get("steps")
            if isinstance(inner, list):
                found += waits(inner)
        return found

    places = waits(data["steps"])
    assert places
    for steps, number in places:
        wait = steps.pop(number)
        Path("less.json").write_text(json.dumps(data))
        steps.insert(number, wait)
        result = cli("check", "--format", "json", "less.json")
        answer = json.loads(result.out)
        assert (result.status, answer["verdict"]) == (1, "race"), wait
        assert {race["buffer"] for race in answer["races"]} & {entry["buffer"] for entry in wait["for"]}  # type: ignore[attr-defined]


def test_check_json_of_a_race(cli: Cli, racing: str) -> None:
    result = cli("check", "--format", "json", racing)
    assert (result.status, result.err) == (1, "")
    assert json.loads(result.out) == {
        "dagsched": "check/1",
        "file": racing,
        "verdict": "race",
        "races": [
            {
                "buffer": "x",
                "kinds": ["WAR"],
                "distance": 2,
                "first": {"op": "infer", "stream": "compute", "line": 12},
                "second": {"op": "upload", "stream": "copy", "line": 9},
                "fix": {"record_after": "infer@i", "wait_before": "upload@i+2"},
            }
        ],
        "deadlock": None,
        "waits": {"total": 1, "redundant": [], "removable": []},
    }


def test_the_fix_that_check_names_is_right(cli: Cli, racing: str, tmp_path: Path) -> None:
    steps = "      - {stream: compute, record: done@i}\n"
    wait = "      - {stream: copy, wait: done@i-2}\n"
    text = RACING.replace("      - {stream: copy, op:", wait + "      - {stream: copy, op:") + steps
    (tmp_path / "fixed.yaml").write_text(text)
    result = cli("check", racing, "fixed.yaml")
    assert result.status == 1
    assert "fixed.yaml: ok" in result.out


def test_check_of_a_schedule_that_hangs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "stuck.yaml").write_text(STUCK)
    result = cli("check", "--format", "json", "stuck.yaml")
    data = json.loads(result.out)
    assert (result.status, data["verdict"]) == (1, "deadlock")
    assert {head["stream"] for head in data["deadlock"]} >= {"a"}


def test_check_prints_one_object_a_file_in_order(cli: Cli, good: str, racing: str) -> None:
    result = cli("check", "--format", "json", racing, good, "missing.yaml")
    answers = [json.loads(line) for line in result.out.splitlines()]
    assert [(a["file"], a["verdict"]) for a in answers] == [
        (racing, "race"), (good, "ok"), ("missing.yaml", "invalid"),
    ]  # fmt: skip
    assert result.status == 2
    keys = ["dagsched", "file", "verdict", "races", "deadlock", "waits"]
    assert all(list(answer)[:6] == keys for answer in answers)


def test_check_sarif_and_github_name_the_race(cli: Cli, racing: str) -> None:
    sarif = json.loads(cli("check", "--format", "sarif", racing).out)
    (found,) = sarif["runs"][0]["results"]
    assert (found["ruleId"], found["level"]) == ("S201", "error")
    assert cli("check", "--format", "github", racing).out.startswith(f"::error file={racing},line=9,")


# matrix, graph, diff, explain


def test_matrix_in_three_formats(cli: Cli, good: str) -> None:
    text, table, data = (cli("matrix", good, "--format", name) for name in ("text", "csv", "json"))
    assert "RAW" in text.out
    rows = list(csv.reader(table.out.splitlines()))
    assert rows[0][1:] == [row[0] for row in rows[1:]] == json.loads(data.out)["ops"]
    assert {"before": "upload", "after": "work", "buffer": "x", "kind": "RAW", "distance": 0} in json.loads(data.out)[
        "hazards"
    ]


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("dot", b"digraph")])
def test_graph_of_a_plan(cli: Cli, good: str, tmp_path: Path, ending: str, start: bytes) -> None:
    result = cli("graph", good, "-o", f"x.{ending}")
    assert (result.status, result.out) == (0, "")
    assert (tmp_path / f"x.{ending}").read_bytes().lstrip().startswith(start)


def test_graph_of_a_schedule_goes_to_stdout(cli: Cli, racing: str) -> None:
    assert cli("graph", racing).out.startswith("digraph")


def test_graph_with_an_unknown_ending(cli: Cli, good: str) -> None:
    result = cli("graph", good, "-o", "x.jpeg")
    assert result.status == 2
    assert "x.svg" in result.err


def test_diff_of_a_plan_with_itself_and_with_one_stream(cli: Cli, good: str, tmp_path: Path) -> None:
    (tmp_path / "single.yaml").write_text(GOOD.replace("buffers:", "streams: {policy: single}\nbuffers:"))
    cli("compile", good, "-o", "out")
    same = cli("diff", good, "out/batches.schedule.json", "--format", "json")
    assert json.loads(same.out)["same"] is True
    other = cli("diff", good, "single.yaml", "--format", "json")
    data = json.loads(other.out)
    assert data["same"] is False
    assert data["moved"]
    assert data["waits"]["removed"] and not data["waits"]["added"]
    back = json.loads(cli("diff", "single.yaml", good, "--format", "json").out)
    assert back["waits"]["added"] == data["waits"]["removed"]
    assert "moved" in cli("diff", good, "single.yaml").out


def test_explain_says_why(cli: Cli, racing: str) -> None:
    result = cli("explain", racing, "upload@3", "infer@3", "--format", "json")
    data = json.loads(result.out)
    assert data["ordered"] is True
    assert [step["line"] for step in data["path"]] == [9, 10, 11, 12]
    text = cli("explain", racing, "upload@i", "infer@i")
    assert text.out.startswith("upload@i comes before infer@i (asked for i = 0 to 5")


def test_explain_says_that_nothing_orders_two(cli: Cli, racing: str) -> None:
    data = json.loads(cli("explain", racing, "infer@i-2", "upload@i", "--format", "json").out)
    assert (data["ordered"], data["path"], data["first"], data["second"]) == (False, [], "infer@0", "upload@2")
    assert cli("explain", racing, "infer@i-2", "upload@i").out.startswith("nothing orders infer@0 and upload@2")
    assert "upload@i" not in cli("explain", racing, "infer@i", "upload@i").out
    assert "upload@0 comes first" in cli("explain", racing, "infer@i", "upload@i").out


@pytest.mark.parametrize("output", ["", "-"])
def test_compile_writes_into_directories_only(cli: Cli, good: str, tmp_path: Path, output: str) -> None:
    before = sorted(tmp_path.iterdir())
    result = cli("compile", good, "-o", output)
    assert (result.status, "U002" in result.err) == (2, True)
    assert sorted(tmp_path.iterdir()) == before


def test_explain_takes_a_parameter_as_waits_are_printed(cli: Cli, good: str, racing: str) -> None:
    """``download@n-1`` is the last iteration of each of several counts."""
    text = cli("explain", good, "upload@n-1", "work@n-1").out
    assert text.startswith("upload@n-1 comes before work@n-1 (asked for n = 1 to 6; the chain is that of the first)")
    data = json.loads(cli("explain", racing, "infer@n-3", "upload@n-1", "--format", "json").out)
    assert (data["ordered"], data["first"], data["second"]) == (False, "infer@0", "upload@2")
    assert "cannot both vary" in cli("explain", good, "upload@i", "work@n-1").err
    assert "`work`" in cli("explain", good, "upload@n-1", "wrong").err


@pytest.mark.parametrize("ending", ["svg", "png", "dot"])
def test_explain_draws_its_answer(cli: Cli, racing: str, tmp_path: Path, ending: str) -> None:
    """The text stays on stdout; a chain, a collision and the two orders of an op and another have a picture each."""
    heads = {"svg": b"<?xml", "png": b"\x89PNG", "dot": b"digraph"}
    for number, pair in enumerate((("upload@1", "infer@1"), ("infer@i", "upload@i+2"), ("upload", "infer"))):
        picture = tmp_path / f"deep/{number}.{ending}"
        result = cli("explain", racing, *pair, "-o", str(picture))
        assert (result.status, result.err) == (0, f"wrote {picture}\n")
        assert result.out == cli("explain", racing, *pair).out
        assert picture.read_bytes().startswith(heads[ending])
    assert cli("explain", "P101", "-o", str(tmp_path / "x.svg")).status == 2
    for wrong in (".", "..", "x.txt", "-"):
        assert "U005" in cli("explain", racing, "upload@1", "infer@1", "-o", wrong).err


def test_explain_of_an_op_that_is_not_there(cli: Cli, racing: str) -> None:
    result = cli("explain", racing, "uplaod@1", "infer@1")
    assert result.status == 1
    assert "`upload`" in result.err
    assert cli("explain", racing, "upload@k", "infer").status == 2
    assert cli("explain", racing).status == 2


def test_explain_knows_every_code_that_the_code_uses(cli: Cli) -> None:
    own = {PACKAGE / "view" / "codes.py", PACKAGE / "view" / "advice.py"}
    used = {
        code
        for path in PACKAGE.rglob("*.py")
        if path not in own
        for code in re.findall(r'"([CDEKPRSUV]\d{3})"', path.read_text(encoding="utf-8"))
    }
    assert used == CODES.keys() == ADVICE.keys()
    listed = cli("explain").out
    assert all(re.search(rf"^{code}\b", listed, re.MULTILINE) for code in used)


def test_explain_takes_small_letters_and_corrects(cli: Cli) -> None:
    lines = cli("explain", "p101").out.splitlines()
    assert (lines[0], lines[-1]) == (f"P101  {CODES['P101']}", f"  help: {ADVICE['P101']}")
    wrong = cli("explain", "S999")
    assert wrong.status == 2
    assert "U007" in wrong.err


# init, schema, devices


def test_init_writes_a_plan_that_compiles_and_never_overwrites(cli: Cli, tmp_path: Path) -> None:
    first = cli("init")
    assert first.status == 0
    (path,) = tmp_path.iterdir()
    assert cli("check", path.name).status == 0
    assert "warning" not in cli("check", path.name).out
    assert cli("compile", path.name).status == 0
    text = path.read_bytes()
    again = cli("init")
    assert again.status == 2
    assert "U008" in again.err
    assert path.read_bytes() == text


def test_init_to_stdout(cli: Cli, tmp_path: Path) -> None:
    text = cli("init", "-").out
    assert cli("check", "-", stdin=text).status == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["mine.yaml", "sub/mine.yaml", "名前.yaml", 'a "b".yaml', "no.yaml"])
def test_init_takes_a_file_name(cli: Cli, tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    assert cli("init", name).status == 0
    assert cli("check", name).status == 0


@pytest.mark.parametrize("language", ["plan", "schedule", "device"])
def test_schema_is_draft_7(cli: Cli, language: str) -> None:
    jsonschema = import_module("jsonschema")
    result = cli("schema", language)
    assert result.status == 0
    jsonschema.Draft7Validator.check_schema(json.loads(result.out))


def test_devices(cli: Cli) -> None:
    listed = cli("devices").out
    assert "ascend-910b" in listed
    assert "h2d" in cli("devices", "ascend-910b").out
    assert json.loads(cli("devices", "host", "--format", "json").out)["name"] == "host"
    assert cli("devices", "host", "--format", "yaml").out.startswith("dagsched-device: 1\nname: host\n")
    assert "devices ascend-910b --format yaml" in cli("devices", "--format", "yaml").err
    wrong = cli("devices", "ascend-910c")
    assert wrong.status in (1, 2)
    assert "ascend-910b" in wrong.err


# the command line itself


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out == f"dagsched {dagsched.__version__}\n"
    assert all(name in cli("--help").out for name in COMMANDS)
    assert (cli().status, cli().out) == (2, "")
    for name in COMMANDS:
        result = cli(name, "--help")
        assert (result.status, result.err) == (0, "")
        assert f"dagsched {name}" in result.out
        assert COMMANDS[name][1:] in " ".join(result.out.split())


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["chekc", "x"], "dagsched check"),
        (["check", "--fromat", "json", "x"], "--format"),
        (["check", "--format", "jsn", "x"], "json"),
        (["compile", "--traget", "acl-cpp", "x"], "--target"),
        (["compile"], "PLAN"),
        (["schema", "plna"], "plan"),
        (["compile", "a", "b"], "`b`"),
        (["diff", "a"], "NEW"),
        (["diff", "-", "-"], "stdin"),
        (["check", "-", "-"], "stdin"),
        (["--vresion"], "--version"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_says_what_is_meant(cli: Cli, words: list[str], meant: str) -> None:
    result = cli(*words)
    assert (result.status, result.out) == (2, "")
    assert meant in result.err
    assert "Traceback" not in result.err


def test_unreadable_files(cli: Cli, good: str, tmp_path: Path) -> None:
    near = cli("compile", "god.yaml")
    assert near.status == 2
    assert "did you mean `good.yaml`" in near.err
    assert cli("compile", ".").status == 2
    assert cli("compile", "a\0b").status == 2
    (tmp_path / "latin.yaml").write_bytes("name: Größe".encode("latin-1"))
    assert "UTF-8" in cli("compile", "latin.yaml").err


def test_names_from_a_file_cannot_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    evil = "a\\e[2Jb\\u202e"
    (tmp_path / "p.yaml").write_text(GOOD.replace("name: upload", f'name: "{evil}"'))
    for words in (["compile", "p.yaml"], ["check", "p.yaml"], ["matrix", "p.yaml"], ["explain", "p.yaml", "x", "y"]):
        result = cli(*words)
        assert "\x1b" not in result.out + result.err
        assert "\u202e" not in result.out + result.err


def test_a_bug_is_called_one(cli: Cli, good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("dagsched.compiler.compile_plan", fail)
    result = cli("compile", good)
    assert (result.status, result.out) == (3, "")
    assert "a bug in dagsched" in result.err.lower()
    assert "boom" in result.err and "Traceback" not in result.err
    monkeypatch.setenv("DAGSCHED_DEBUG", "1")
    assert "Traceback" in cli("compile", good).err


def test_an_interrupt_ends_quietly(cli: Cli, good: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dagsched.compiler.compile_plan", stop)
    result = cli("compile", good)
    assert (result.status, result.out) == (130, "")
    assert "Traceback" not in result.err
    assert not (tmp_path / "build").exists()
