"""Measured times: what traces say, whose they are, and that nothing but times changes in a plan's text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.calibrate.match import match_trace
from dagsched.calibrate.rewrite import write_times
from dagsched.calibrate.traces import Sample, Trace, read_trace
from dagsched.diagnostics import PlanError, Source, UsageError
from dagsched.plan.reader import read_plan
from dagsched.plan.writer import plan_text
from tests.cli.conftest import Cli, cli  # noqa: F401 - the fixture
from tests.plan.strategies import plans

EXAMPLES = Path(__file__).parents[2] / "examples"
CSV = (Path(__file__).parents[2] / "docs" / "samples" / "op_summary.csv").read_text(encoding="utf-8")

OWN = {
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "detector (run)"}},
        {"ph": "X", "name": "infer@0", "pid": 1, "tid": 3, "ts": 0, "dur": 5800.0, "args": {"op": "infer"}},
        {"ph": "X", "name": "infer@1", "pid": 1, "tid": 3, "ts": 9, "dur": 5900.0, "args": {"op": "infer"}},
        {"ph": "s", "name": "wait", "pid": 1, "tid": 3, "ts": 3, "id": 1},
    ]
}  # fmt: skip
TORCH = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "detector", "pid": 7, "tid": 7, "ts": 1.0, "dur": 40.0},
        {"ph": "X", "cat": "kernel", "name": "detector", "pid": 0, "tid": 7, "ts": 9.0, "dur": 5700.5},
        {"ph": "X", "cat": "kernel", "name": "elementwise", "pid": 0, "tid": 7, "ts": 6000.0, "dur": 3},
    ],
}
ASCEND = [
    {"ph": "M", "name": "process_name", "pid": 4, "tid": 0, "args": {"name": "Ascend Hardware"}},
    {"ph": "X", "name": "resize", "pid": 2, "tid": 5, "ts": "1699523453.125", "dur": "31.5", "args": {}},
    {"ph": "X", "name": "resize", "pid": 4, "tid": 7, "ts": "1699523460.500", "dur": 1190.25},
]  # fmt: skip
PAIRS = [
    {"ph": "B", "name": "decode", "pid": 1, "tid": 1, "ts": 10},
    {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 11},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 13},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 1510},
]


def times(trace: object, statistic: str = "median") -> dict[str, float]:
    plan = read_plan(Source("p.yaml", (EXAMPLES / "detector.yaml").read_text(encoding="utf-8")))
    text = trace if isinstance(trace, str) else json.dumps(trace)
    return {t.op: t.seconds for t in match_trace(plan, read_trace(text, "t").samples, statistic).timings}


def test_traces_of_all_kinds_are_read() -> None:
    assert times(OWN) == {"infer": 5.85e-3}
    assert times(OWN, "max") == {"infer": 5.9e-3}
    assert times(TORCH) == {"infer": 5.7e-3}  # by its function; the call that launched it does not count; four digits
    assert times(ASCEND) == {"resize": 1.19e-3}
    assert times(PAIRS) == {"decode": 1.5e-3}
    assert times(CSV) == {"resize": 1.185e-3}
    assert times("Name,Duration(us)\nresize,1200.0\nresize,N/A\nshort\n") == {"resize": 1.2e-3}
    assert times("kernel_name,task_time(us)\nresize,1200\n") == {"resize": 1.2e-3}


def test_a_pattern_says_whose_events_they_are() -> None:
    plan = read_plan(Source("p.yaml", (EXAMPLES / "detector.yaml").read_text(encoding="utf-8")))
    found = match_trace(plan, read_trace(CSV, "t").samples, "min", {"infer": "Detector*"})
    assert {t.op: (t.seconds, t.before, t.runs) for t in found.timings} == {
        "resize": (1.184e-3, 1.2e-3, 3), "infer": (5.804e-3, 5.7e-3, 3),
    }  # fmt: skip
    assert found.missing == ("load", "decode", "upload", "download", "draw")
    assert found.unused == ("TransData_7",)


def test_copies_of_an_unrolled_op_count_for_it() -> None:
    plan = read_plan(Source("p.yaml", (EXAMPLES / "heads.yaml").read_text(encoding="utf-8")))
    samples = [Sample(f"attention.{h}", f"attention.{h}", 60e-6 + h * 1e-6, True) for h in range(8)]
    (timing,) = match_trace(plan, samples).timings
    assert (timing.op, timing.runs, timing.seconds) == ("attention", 8, 63.5e-6)


@pytest.mark.parametrize(
    ("trace", "names", "code"),
    [
        ("{", {}, "K101"), ("{}", {}, "K101"), ("a,b\n1,2\n", {}, "K101"), ("", {}, "K101"), ("[]", {}, "K102"),
        ("[1, null, {\"ph\": \"X\"}]", {}, "K102"), ("[" * 100_000, {}, "K101"),
        (CSV, {"infre": "x"}, "K103"), (CSV, {"infer": "Detektor_1"}, "K104"),
        ("Name,Duration(us)\nx,1\n", {}, "K105"), ('[{"ph": "X", "name": "x", "dur": -1}]', {}, "K102"),
        ('[{"ph": "X", "name": "x", "dur": 1e999}]', {}, "K102"),
    ],
)  # fmt: skip
def test_what_is_no_use_is_refused(trace: str, names: dict[str, str], code: str) -> None:
    plan = read_plan(Source("p.yaml", (EXAMPLES / "detector.yaml").read_text(encoding="utf-8")))
    with pytest.raises(UsageError) as raised:
        match_trace(plan, read_trace(trace, "t").samples, "median", names)
    assert raised.value.diagnostics[0].code == code


STYLES = """\
# a plan in every style
dagsched: 1
buffers:
  d: {place: device, size: 8, output: true}   # kept
ops:
  - {name: flow, compute: f, writes: [d] }  # no time
  - {name: timed, compute: f, updates: [d], time:   3 ms,  priority: 1 }
  - { "name": "quoted", "compute": f, "updates": ["d"], }
  - name: block     # its name
    compute: f
    updates:
      - d

  - compute: worked
    work:
      flop: 12
      bytes: 4KiB   # so many
    updates: [d]
  - loop: i
    count: 3
    ops:
    - updates: [d]
      compute: inner
      time: 1 us  # old
  - name: last
    updates: [d]
    compute: f"""
EXPECTED = STYLES.replace("writes: [d] }", "writes: [d], time: 7 us }").replace("time:   3 ms", "time:   8 us").replace(
    '"updates": ["d"], }', '"updates": ["d"], "time": "9 us", }').replace(
    "name: block     # its name\n", "name: block     # its name\n    time: 10 us\n").replace(
    "work:\n      flop: 12\n      bytes: 4KiB ", "time: 11 us ").replace(
    "time: 1 us  # old", "time: 12 us  # old").replace("name: last\n", "name: last\n    time: 13 us\n")  # fmt: skip


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_only_times_change(ends: str) -> None:
    names = ["flow", "timed", "quoted", "block", "worked", "inner", "last"]
    text = write_times(
        Source("p.yaml", STYLES.replace("\n", ends)), {name: (7 + n) / 1e6 for n, name in enumerate(names)}
    )
    assert text == EXPECTED.replace("\n", ends)


@given(st.data())
def test_any_plan_reads_back_with_its_times(data: st.DataObject) -> None:
    """``write_times`` itself compares what it wrote with what was meant."""
    plan = data.draw(plans())
    names = [op.name for op in plan.ops()]
    chosen = (
        data.draw(st.dictionaries(st.sampled_from(names), st.floats(1e-9, 1e3) | st.just(0.0), max_size=4))
        if names
        else {}
    )
    text = write_times(Source("p.yaml", plan_text(plan)), chosen)
    again = {op.name: op.time for op in read_plan(Source("p.yaml", text)).ops()}
    assert all(again[name] == seconds for name, seconds in chosen.items())


def test_json_plans_stay_json() -> None:
    buffers = '{"d": {"place": "device", "size": 8, "output": true}}'
    text = '{"dagsched": 1, "buffers": ' + buffers + ',\n "ops": [{"compute": "f", "writes": ["d"]}]}'
    changed = write_times(Source("p.json", text), {"f": 1e-3})
    assert json.loads(changed)["ops"] == [{"compute": "f", "writes": ["d"], "time": "1 ms"}]


def test_the_command(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "plan.yaml").write_text((EXAMPLES / "detector.yaml").read_text(encoding="utf-8"))
    (tmp_path / "trace.csv").write_text(CSV)
    result = cli("calibrate", "plan.yaml", "--trace", "trace.csv", "--map", "infer=Detector*", "-o", "new.yaml")
    assert (result.status, result.err) == (0, "")
    assert "infer   5.812 ms, was 5.700 ms (3 runs, 5.804 ms to 5.820 ms)" in result.out
    assert "no run of: load, decode, upload, download, draw" in result.out
    assert (tmp_path / "new.yaml").read_text() == (tmp_path / "plan.yaml").read_text().replace(
        "time: 1.2 ms", "time: 1.185 ms").replace("time: 5.7 ms", "time: 5.812 ms")  # fmt: skip
    piped = cli("calibrate", "plan.yaml", "--trace", "trace.csv")
    assert piped.out.startswith("# yaml-language-server")
    assert "1 ops" not in piped.out and "resize" in piped.err
    data = json.loads(cli("calibrate", "plan.yaml", "--trace", "trace.csv", "-o", "x.yaml", "--format", "json").out)
    assert data["times"][0]["op"] == "resize"
    assert cli("calibrate", "plan.yaml", "--trace", "none.csv").status == 2
    assert "U002" in cli("calibrate", "plan.yaml", "--trace", "trace.csv", "--map", "infer").err


@pytest.mark.parametrize(
    ("measured", "first", "second", "third"),
    [
        ("a", "&t 5 ms", "1 ms", "1 ms"),
        ("b", "&t 1 ms", "5 ms", "*t"),
        ("abc", "&t 5 ms", "5 ms", "5 ms"),
    ],
)
def test_shared_times_come_apart(measured: str, first: str, second: str, third: str) -> None:
    """An anchor stays where it is; an alias is written out where it would no longer mean the same."""

    def text(*times: str) -> str:
        ops = "".join(
            f"  - {{compute: {n}, writes: [x], time: {time}}}  # {n}\n" for n, time in zip("abc", times, strict=True)
        )
        return f"dagsched: 1\nname: shared\nbuffers: {{x: {{place: device, size: 8, output: true}}}}\nops:\n{ops}"

    written = write_times(Source("p.yaml", text("&t 1 ms", "*t", "*t")), dict.fromkeys(measured, 0.005))
    assert written == text(first, second, third)


def test_packed_traces(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    """The torch profiler writes `.json.gz`; half of such a file is no trace."""
    trace = {"traceEvents": [{"ph": "X", "name": "infer", "cat": "kernel", "ts": 0, "dur": 5000}]}
    packed = gzip.compress(json.dumps(trace).encode())
    (tmp_path / "t.json.gz").write_bytes(packed)
    (tmp_path / "half.json.gz").write_bytes(packed[: len(packed) // 2])
    plan = str(Path(__file__).parents[2] / "examples" / "detector.yaml")
    assert "time: 5 ms" in cli("calibrate", plan, "--trace", str(tmp_path / "t.json.gz")).out
    bad = cli("calibrate", plan, "--trace", str(tmp_path / "half.json.gz"))
    assert bad.status == 2
    assert "gzip" in bad.err


def read(trace: object) -> Trace:
    return read_trace(trace if isinstance(trace, str) else json.dumps(trace), "t")


@pytest.mark.parametrize(
    "text",
    [
        'Op Name,Task Duration(us)\nresize,"1,185.5"\n',  # from a spreadsheet
        "Op Name;Task Duration(us)\nresize;1185.5\n",
        "Op Name\tTask Duration(us)\r\n\r\nresize\t1185.5\r\n",
        '\n"Name","Duration(us)"\n"resize"," 1185.5 "\n',
    ],
)
def test_durations_as_people_write_them(text: str) -> None:
    assert times(text) == {"resize": float(f"{1185.5e-6:.4g}")}


def test_what_is_not_read_is_told_of() -> None:
    text = 'Name,Duration(us)\nresize,"1,18,5"\ninfer,N/A\nresize,1185,5\ninfer\nresize,-4\nresize,inf\nresize,7\n'
    trace = read(text)
    assert [sample.seconds for sample in trace.samples] == [1.185e-3, 7e-6]
    assert trace.unread == (
        "line 2: `resize` has the duration `1,18,5`",
        "line 3: `infer` has the duration `N/A`",
        "line 5: `infer` has the duration nothing",
        "line 6: `resize` has the duration `-4`",
        "line 7: `resize` has the duration `inf`",
    )
    events = [
        {"ph": "X", "name": "a"}, {"ph": "X", "name": "b", "dur": "soon"}, {"ph": "X", "name": "c", "dur": 1},
        {"ph": "B", "name": "d", "ts": 1}, {"ph": "E", "name": "e", "ts": 2}, {"ph": "B", "name": "f"},
    ]  # fmt: skip
    assert read(events).unread == (
        "event 1: `a` has the duration nothing", "event 2: `b` has the duration `soon`",
        "event 4: `d` begins and does not end", "event 6: `f` begins and does not end",
    )  # fmt: skip
    with pytest.raises(UsageError) as raised:
        read([{"ph": "X", "name": "a"}])
    assert raised.value.diagnostics[0].notes == ("event 1: `a` has the duration nothing",)


def test_beginnings_and_ends() -> None:
    """Out of order, crossing by name, in threads of their own, from 0 on, to the nanosecond decades after 1970."""
    events = [
        {"ph": "E", "name": "a", "tid": 1, "ts": 30}, {"ph": "B", "name": "a", "tid": 1, "ts": 0},
        {"ph": "B", "name": "b", "tid": 1, "ts": 10}, {"ph": "E", "name": "b", "tid": 1, "ts": 40},
        {"ph": "B", "name": "c", "tid": 2, "ts": "1699523453123456.125"}, {"ph": "B", "name": "a", "tid": 2, "ts": 5},
        {"ph": "E", "tid": 2, "ts": "1699523453123456.250"}, {"ph": "E", "name": "", "tid": 2, "ts": 7},
    ]  # fmt: skip
    found = sorted((sample.name, sample.seconds) for sample in read(events).samples)
    assert found == [("a", 2e-6), ("a", 30e-6), ("b", 30e-6), ("c", 0.125e-6)]
    text = '[{"ph": "B", "name": "c", "ts": 1699523453123456.125}, {"ph": "E", "ts": 1699523453123456.250}, '
    assert read(text).samples[0].seconds == 0.125e-6  # numbers with a point, and a list whose end is missing


def test_time_is_in_microseconds_whatever_is_displayed() -> None:
    for unit in ("ns", "ms"):
        assert times({"displayTimeUnit": unit, "traceEvents": TORCH["traceEvents"]}) == {"infer": 5.7e-3}


def test_names_that_may_be_an_ops_are_proposed() -> None:
    """Profilers put numbers, types and words around names; what is proposed is right when typed."""
    events = [
        {"ph": "X", "name": name, "dur": 5}
        for name in ("void resize<float>(float*, int[2])", "detector_12", "detector_7", "unsized", "draw")
    ]
    plan = read_plan(Source("p.yaml", (EXAMPLES / "detector.yaml").read_text(encoding="utf-8")))
    samples = read(events).samples
    found = match_trace(plan, samples)
    assert [timing.op for timing in found.timings] == ["draw"]
    assert found.likely == (("resize", "void resize<float>(float*, int[2])"), ("infer", "detector*"))
    mapped = match_trace(plan, samples, "median", dict(found.likely))
    assert {timing.op: timing.runs for timing in mapped.timings} == {"resize": 1, "infer": 2, "draw": 1}
    assert mapped.unused == ("unsized",)


def test_our_own_traces_give_back_their_times(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    """The predicted run as a trace names every op, and no event of it is of none."""
    plan = str(EXAMPLES / "detector.yaml")
    assert cli("timeline", plan, "-o", str(tmp_path / "t.json"), "--count", "4").status == 0
    result = cli("calibrate", plan, "--trace", str(tmp_path / "t.json"), "-o", str(tmp_path / "new.yaml"))
    assert "no run of" not in result.out and "of no op" not in result.out
    again = {op.name: op.time for op in read_plan(Source("p", (tmp_path / "new.yaml").read_text())).ops()}
    stated = {op.name: op.time for op in read_plan(Source("p", Path(plan).read_text())).ops()}
    assert all(again[name] == time for name, time in stated.items() if time is not None)


def test_the_command_says_what_it_could_not_use(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "t.csv").write_text("Name,Duration(us)\nresize,1200\nresize,N/A\ndetector_3,5\n")
    plan = str(EXAMPLES / "detector.yaml")
    result = cli("calibrate", plan, "--trace", "t.csv", "-o", "new.yaml")
    assert "  of no op: detector_3\n  of infer, maybe: --map infer=detector_3\n" in result.out
    assert "  not read: 1 of 3\n    line 3: `resize` has the duration `N/A`\n" in result.out
    data = json.loads(cli("calibrate", plan, "--trace", "t.csv", "-o", "new.yaml", "--format", "json").out)
    assert data["unread"] == ["line 3: `resize` has the duration `N/A`"]
    assert data["likely"] == [{"op": "infer", "event": "detector_3"}]


HEAD = "dagsched: 1\nbuffers: {x: {place: device, size: 8, output: true}}\nops:\n"


TWO = "  - {name: NAME, compute: f, work: &w {flop: 12}, writes: [x]}\n"
TWO += "  - {name: OTHER, compute: f, work: *w, updates: [x]}\n"


@pytest.mark.parametrize(
    ("ops", "changes"),
    [
        ("  - {name: a, compute: f, writes: [x]} \t# tab\there\n", {"[x]}": "[x], time: 7 us}"}),
        ("  - {name: a,   # n\n     writes: [x],\n     compute: f  # w\n     }\n", {"f  #": "f, time: 7 us  #"}),
        ("  - name: a\n    time: >-\n      1 ms\n    compute: f\n    writes: [x]\n", {">-\n      1 ms": "7 us"}),
        ("  - name: a\n    compute: f\n    writes: [x]\n    ? time\n    : 1 ms", {"1 ms": "7 us"}),
        (TWO.replace("NAME", "a").replace("OTHER", "b"), {"work: &w {flop: 12}": "time: 7 us", "*w": "{flop: 12}"}),
        (TWO.replace("NAME", "b").replace("OTHER", "a"), {"work: *w": "time: 7 us"}),
        (
            "- loop: i\n  count: 2\n  ops:\n  - loop: j\n    count: 2\n    ops:\n    - compute: a\n      writes: [x]\n",
            {"compute: a\n": "compute: a\n      time: 7 us\n"},
        ),
    ],
)
def test_unusual_styles(ops: str, changes: dict[str, str]) -> None:
    expected = ops
    for old, new in changes.items():
        expected = expected.replace(old, new)
    assert write_times(Source("p.yaml", HEAD + ops), {"a": 7e-6}) == HEAD + expected


QUESTION = "  - ? name\n    : a\n    compute: f\n    writes: [x]\n"
SHARED = "  - name: a\n    compute: f\n    work: &w\n      flop: 12\n    writes: [x]\n"
SHARED += "  - {name: b, compute: f, work: *w, updates: [x]}\n"


@pytest.mark.parametrize("ops", [QUESTION, SHARED])
def test_a_style_that_cannot_be_kept_is_said(ops: str) -> None:
    """Not as a complaint about a text that nobody wrote."""
    with pytest.raises(PlanError) as raised:
        write_times(Source("p.yaml", HEAD + ops), {"a": 7e-6})
    assert [found.code for found in raised.value.diagnostics] == ["K106"]
