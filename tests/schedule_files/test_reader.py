"""What is said of a wrong schedule: code, place, and a change that the user can type; everything at once."""

from __future__ import annotations

import pytest

from dagsched.diagnostics import DagschedError, Diagnostic, ScheduleError, Source
from dagsched.files import load_node, read_source
from dagsched.schedule.model import Schedule
from dagsched.schedule.reader import read_schedule, schedule_from_node

HEAD = """\
dagsched-schedule: 1
params: {n: null}
buffers: {image: {ring: 2}, t: {shape: [4, 8], dtype: float16}, b: {size: 64}}
steps:
"""


def read(text: str) -> Schedule:
    return read_schedule(Source("t.yaml", text))


def complaints(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ScheduleError) as caught:
        read(text)
    return caught.value.diagnostics


@pytest.mark.parametrize(
    ("step", "code", "place", "says", "help_"),
    [
        # the form of a step
        ("{stream: s, opp: x}", "S103", "opp", "a step needs one of", "write `op` for `opp`"),
        ("{stream: s, recrod: e}", "S103", "recrod", "a step needs one of", "write `record` for `recrod`"),
        ("{stream: s}", "S103", "{stream", "a step needs one of", "for example `{stream: s, op: infer}`"),
        ("{stream: s, op: a, wait: e}", "S103", "wait", "cannot be `op` and `wait` at once", "steps of their own"),
        ("{stream: s, op: a, reeds: [t]}", "S101", "reeds", "unknown key `reeds`", "write `reads`"),
        ("{stream: s, record: e, for: []}", "S101", "for", "unknown key `for`", "remove `for`"),
        ("{op: a}", "S102", "{op", "lacks the key `stream`", "add `stream: compute`"),
        ("{stream: s, op: 3}", "S103", "3}", "must be a text, not `3`", 'write "3" in quotes'),
        ("{stream: s, op: a, reads: t}", "S103", "t}", "must be a list", "write `reads: [t]`"),
        ("{stream: s, op: a, label: ''}", "S103", "''", "must not be empty", "for example `label: W1`"),
        ("[op, a]", "S103", "[op", "must be a mapping, not a list", "for example"),
        ("{host: fill, stream: s}", "S103", "stream", "a step `host` stands on no stream", "write `op` for `host`"),
        ("{stream: s, sync: device}", "S103", "stream", "a step `sync` stands on no stream", "write `wait` for `sync`"),
        ("{stream: s, free: b}", "S103", "stream", "a step `free` stands on no stream", "remove `stream`"),
        ("{sync: everything}", "S103", "everything", "a sync names one stream", "write `sync: {stream: NAME}`"),
        ("{sync: {strem: s}}", "S103", "{strem", "a sync names one stream", "write `stream`"),
        ("{sync: {stream: s, event: e}}", "S103", "{stream", "a sync names one stream", "or `sync: device`"),
        (
            "{stream: s, wait: e, for: [{before: a, after: b, kind: RAR}]}",
            "S103",
            "RAR",
            "must be `RAW`",
            "for example",
        ),
        ("{stream: s, wait: e, for: [{before: a@, after: b, kind: RAW}]}", "S105", "@", "must follow `@`", None),
        # names and expressions
        ("{stream: s, wait: e@}", "S105", "@", "an expression must follow `@`", "for example `e@n`"),
        ("{stream: s, wait: e@n+}", "S105", "}", "expected a number", None),
        ("{stream: s@m%2, op: a}", "S112", "m%2", "unknown name `m`", "declare it: `params: {m: null}`"),
        ("{stream: 'm m@m', op: a}", "S112", "m', op", "unknown name `m`", None),
        ("{stream: s, op: 'a@nn'}", "S112", "nn", "unknown name `nn`", "write `n`"),
        ("{stream: s, op: 'a@'}", "S105", "@", "an expression must follow `@`", None),
        ("{stream: s, wait: e, when: n}", "S105", "}", "expected a comparison", "for example `when: i >= 1`"),
        ("{stream: s, wait: e, when: 0 < k and n > 1}", "S112", "k and", "unknown name `k`", None),
        ("{stream: s, wait: e, when: " + "n+" * 50_000 + "n > 1}", "S105", "n+n", "more than 4,000 characters", None),
        ("{stream: s, wait: e, when: n > 1 and " + "n+" * 250 + "n > 1}", "S105", " n+n", "more than 400 char", None),
        ('{stream: s, wait: e, label: "a\\tb"}', "S105", '"a', "a label must be one line", None),
        ("{stream: s, record: " + "e" * 1_001 + "}", "S105", "ee", "more than 200 characters", None),
        # loops
        ("{loop: i, steps: []}", "S103", "loop", "neither a `count` nor a `range`", "for example `count: n`"),
        (
            "{loop: i, count: 2, range: [0, 2], steps: []}",
            "S103",
            "range",
            "both a `count` and a `range`",
            "remove one",
        ),
        ("{loop: i, range: [2], steps: []}", "S103", "[2]", "must be a list of at least 2", "for example"),
        ("{loop: i, range: [5, 2], steps: []}", "S117", "[5", "ends at 2, before its start", "write `range: [2, 5]`"),
        ("{loop: i, count: -1, steps: []}", "S117", "-1", "cannot run -1 times", "write a count from 0 up"),
        ("{loop: i, count: 9223372036854775808, steps: []}", "S117", "922", "does not fit into 64 bits", None),
        ("{loop: i, count: true, steps: []}", "S103", "true", "must be an integer or a text", None),
        ("{loop: i, count: i, steps: []}", "S112", "i, steps", "`i` has no value outside its loop", None),
        ("{loop: n, count: 1, steps: []}", "S115", "n, count", "hides the parameter", "for example `loop: i`"),
        ("{loop: max, count: 1, steps: []}", "S115", "max", "cannot name a loop index", "for example `loop: i`"),
        ("{loop: i, count: 2, steps: [{loop: i, count: 1, steps: []}]}", "S115", "i, count: 1", "hides", "`loop: j`"),
        ("{loop: i, count: 2, steps: []}\n- {stream: s@i, op: a}", "S112", "i, op", "outside its loop", None),
        # accesses
        ("{stream: s, op: a, reads: [imgae]}", "S110", "imgae", "`image` is", "write `image`, or declare"),
        ("{stream: s, op: a, reads: [IMAGE@n]}", "S110", "IMAGE", "`image` is", "write `image`, or declare"),
        ("{free: imag}", "S110", "imag", "unknown buffer `imag`", "write `image`"),
        ("{free: other}", "S110", "other", "unknown buffer `other`", "nothing touches it"),
        ("{stream: s, op: a, reads: [image@j]}", "S112", "j]", "unknown name `j`", None),
        ("{stream: s, op: a, reads: ['b[0:']}", "S105", "[0:'", "the region is not closed", "write `b[0:]`"),
        ("{stream: s, op: a, reads: ['image[4:4]']}", "S132", "[4:4]", "from 4 to 4 is empty", "write `4:5`"),
        ("{stream: s, op: a, reads: ['image[9:4]']}", "S132", "[9:4]", "from 9 to 4 is empty", "write `4:9`"),
        ("{stream: s, op: a, reads: ['image[-1:4]']}", "S130", "[-1:4]", "starts at -1", "write bounds from 0 up"),
        ("{stream: s, op: a, reads: ['b[0:65]']}", "S130", "[0:65]", "ends at 65", "write bounds from 0 to 64"),
        ("{stream: s, op: a, reads: ['b[64:]']}", "S132", "[64:]", "from 64 to 64 is empty", None),
        ("{stream: s, op: a, reads: ['b[0:1, 0:1]']}", "S131", "[0:1, 0:1]", "2 axes and `b` has 1 axis", None),
        ("{stream: s, op: a, reads: ['t[:, 0:9]']}", "S130", "[:, 0:9]", "ends at 9", "write bounds from 0 to 8"),
        ("{stream: s, op: a, reads: ['t[0:4B]']}", "S133", "4B", "count elements", "plain numbers of elements"),
    ],
)
def test_wrong_steps(step: str, code: str, place: str, says: str, help_: str | None) -> None:
    """``place`` is the text that the complaint points at."""
    text = f"{HEAD}- {step}\n"
    (found,) = complaints(text)
    assert found.where is not None
    offset = text.index(place, len(HEAD) + 2)
    before = text[:offset]
    expected = (before.count("\n") + 1, offset - before.rfind("\n"))
    assert (found.code, found.where.line, found.where.column) == (code, *expected)
    assert says in found.headline
    assert help_ is None or help_ in (found.help or "")


@pytest.mark.parametrize(
    ("buffers", "code", "says", "help_"),
    [
        ("x: {alias: y}", "S121", "unknown buffer `y`", "declare it"),
        ("image: {}\n  x: {alias: imgae}", "S121", "unknown buffer `imgae`", "write `image`"),
        ("x: {alias: x}", "S122", "`x` -> `x`", "remove one `alias`"),
        ("x: {alias: y}\n  y: {alias: z}\n  z: {alias: y}\n  w: {}", "S122", "`y` -> `z` -> `y`", "remove one"),
        ("x: {}\n  y: {alias: x, at: [0, 4]}", "S121", "both an `alias` and a place", "remove `at`"),
        ("x: {place: host}\n  y: {alias: x, place: device}", "S121", "`device`, and its storage is", "remove `place`"),
        ("x: {space: ub, at: [4, 4]}", "S120", "an empty range", "write `at: [4, 4100]`"),
        ("x: {at: [8, 0]}", "S120", "an empty range", "write `at: [0, 8]`"),
        ("x: {at: [0, 10], ring: 3}", "S120", "cannot be split evenly into the 3 slots", "write `at: [0, 12]`"),
        ("x: {at: [8, 64], size: 32, ring: 2}", "S120", "2 slots of 32 bytes do not fit", "write `at: [8, 72]`"),
        ("x: {ring: 0}", "S103", "must be at least 1", "for example `ring: 2`"),
        ("x: {ring: 2.0}", "S103", "must be an integer", "for example `ring: 2`"),
        ("x: {place: hots}", "S103", "must be `host` or `device`", "write `host`"),
        ("x: {size: 0}", "S104", "at least one byte", None),
        ("x: {size: 4 KB}", "S104", "unknown unit `KB`", "write `4kB`"),
        ("x: {shape: [2], dtype: float61}", "S123", "unknown dtype `float61`", "write `float64`"),
        ("x: {dtype: float16}", "S123", "a `dtype` and no `shape`", "add `shape: [...]`"),
        ("x: {shape: [2], dtype: int8, size: 3}", "S123", "its shape and dtype give 2", "write `size: 2`"),
        ("x: {shape: [9223372036854775807], dtype: int64}", "S104", "does not fit into 64 bits", None),
        ("'a@b': {}", "S105", "a buffer's name must not contain `@`", None),
        ("x: {rings: 2}", "S101", "unknown key `rings`", "write `ring`"),
    ],
)
def test_wrong_buffers(buffers: str, code: str, says: str, help_: str | None) -> None:
    (found,) = complaints(f"dagsched-schedule: 1\nsteps: []\nbuffers:\n  {buffers}\n")
    assert found.code == code
    assert says in found.headline
    assert help_ is None or help_ in (found.help or "")
    assert found.where is not None
    assert 4 <= found.where.line <= 4 + buffers.count("\n")


TOP = "dagsched-schedule: 1\nsteps: []\n"


@pytest.mark.parametrize(
    ("text", "code", "says", "help_"),
    [
        (
            "dagsched: 1\nname: t\nbuffers: {}\nops: []\n",
            "S100",
            "this is a plan",
            "starts with `dagsched-schedule: 1`",
        ),
        ("dagsched-schedule: 2\nsteps: []\n", "S103", "this version", "write `dagsched-schedule: 1`"),
        ("steps: []\n", "S102", "lacks the key `dagsched-schedule`", "add `dagsched-schedule: 1`"),
        ("dagsched-schedule: 1\n", "S102", "lacks the key `steps`", "add `steps: "),
        ("dagsched-schedule: 1\nstep: []\n", "S101", "unknown key `step`", "write `steps`"),
        (f"{TOP}event_model: lacth\n", "S103", "must be `latch`", "write `latch`"),
        (f"{TOP}default_stream: legcy\n", "S103", "must be `none` or", "write `legacy`"),
        (f"{TOP}params: {{min: 1}}\n", "S115", "cannot name a parameter", "are reserved"),
        (f"{TOP}params: {{n: 9223372036854775808}}\n", "S103", "64 bits", "smaller"),
        (f"{TOP}device: {{x: [.inf]}}\n", "S103", "no finite number", "write a number"),
        (f'{TOP}name: "a\\nb"\n', "S105", "a schedule's name must not contain", None),
        (f"{TOP}events: {{e: {{ring: 0}}}}\n", "S103", "must be at least 1", None),
        (f"{TOP}streams: {{s: {{nonblock: true}}}}\n", "S101", "unknown key", "`nonblocking`"),
        (f"{TOP}streams: {{s: {{nonblocking: yes}}}}\n", "S103", "`true` or", "write `true`"),
        (f"{TOP}streams: {{'s@1': {{}}}}\n", "S105", "a stream's name must not", None),
        (f"{TOP}plan: {{name: p}}\n", "S102", "lacks the key `digest`", None),
        (f"{TOP}predicted: {{makespan: -1}}\n", "S103", "must be at least 0", None),
        ("[]", "S103", "the file must be a mapping", None),
        (f"{TOP}steps: []\n", "P004", "the key `steps` stands twice", None),
        ("", "P002", "the file is empty", None),
        ("dagsched-schedule: 1\nsteps: [{op: a, reads: [x[0:4]]}]\n", "P011", "needs quotes", 'write "x[0:4]"'),
        ("dagsched-schedule: 1\nsteps: " + "[" * 100_000, "P008", "nest deeper than 100", None),
    ],
)
def test_wrong_files(text: str, code: str, says: str, help_: str | None) -> None:
    (found,) = complaints(text)
    assert found.code == code
    assert says in found.headline
    assert help_ is None or help_ in (found.help or "")
    assert found.where is not None
    assert found.source is not None


def test_all_errors_of_a_stage_are_told_at_once() -> None:
    form = complaints(HEAD + "- {stream: s, opp: a}\n- {stream: 1, op: a}\n- {op: a}\n- {sync: all}\n")
    assert [(found.code, found.where and found.where.line) for found in form] == [
        ("S103", 5), ("S103", 6), ("S102", 7), ("S103", 8),
    ]  # fmt: skip
    steps = "- {free: imag}\n- {stream: s@k, wait: e@k, when: k > 1}\n- {loop: n, count: q, steps: []}\n"
    assert [(found.code, found.where and found.where.line) for found in complaints(HEAD + steps)] == [
        ("S110", 5), ("S112", 6), ("S112", 6), ("S112", 6), ("S115", 7), ("S112", 7),
    ]  # fmt: skip


def test_streams_events_and_buffers_need_no_declaration() -> None:
    steps = "- {stream: s, op: a, reads: [out, image2, tt], writes: [x1]}\n- {free: out}\n- {record: e@n}\n"
    schedule = read(HEAD + steps)
    assert (schedule.streams, schedule.events, list(schedule.buffers)) == ({}, {}, ["image", "t", "b"])


def test_names_that_differ_in_digits_only_are_no_slips() -> None:
    text = "dagsched-schedule: 1\nbuffers: {{image1: {{}}}}\nsteps:\n- {{stream: s, op: a, reads: [{}]}}\n"
    assert read(text.format("image2"))
    assert [found.code for found in complaints(text.format("imagee1"))] == ["S110"]


def test_many_undeclared_buffers_are_read_in_time() -> None:
    declared = ", ".join(f"declared_{k}x: {{}}" for k in range(1_000))
    steps = "".join(f"- {{stream: s, op: a, reads: [used_{k}y]}}\n" for k in range(1_000))
    assert len(read(f"dagsched-schedule: 1\nbuffers: {{{declared}}}\nsteps:\n{steps}").steps) == 1_000


def test_a_tree_of_nodes_can_be_read_again() -> None:
    source = read_source(HEAD + "- {stream: s, op: a}\n", "t.yaml")
    assert schedule_from_node(load_node(source), source) == read_schedule(source)


def test_long_names_of_compiled_schedules_are_read() -> None:
    """Ops of unrolled loops and events are named after ops, whose names can have 200 characters."""
    op = "o" * 200
    schedule = read(HEAD + f"- {{stream: s, op: {op}.0.1}}\n- {{stream: s, record: {op}+{op}+{op}.done@n}}\n")
    assert len(schedule.steps) == 2


def test_errors_do_not_depend_on_the_form() -> None:
    """The same text says the same at the same place, whether it is read as JSON or as YAML."""
    text = '{"dagsched-schedule": 1, "steps": [{"stream": "s@k", "op": "a", "reads": ["x[2:1]"]}]}'
    found = []
    for name in ("t.json", "t.yaml"):
        with pytest.raises(DagschedError) as caught:
            read_schedule(Source(name, text))
        found.append([(one.code, one.where, one.headline, one.help) for one in caught.value.diagnostics])
    assert found[0] == found[1]
    assert len(found[0]) == 2
