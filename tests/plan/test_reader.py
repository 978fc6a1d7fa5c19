"""What a plan file means, and every mistake with its code, line and column."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagsched.diagnostics import Diagnostic, PlanError
from dagsched.files import read_source
from dagsched.plan.expressions import Binary, Int, Name
from dagsched.plan.model import Access, After, Loop, Mode, Op, OpKind, Plan, Ring, Slice, StreamOptions
from dagsched.plan.reader import default_name, read_plan, read_plan_with_warnings
from dagsched.plan.writer import plan_text

NUMBER = "write a number there, or compute the whole outside and make it a parameter"
HEAD = """\
dagsched: 1
params: {n: null, m: 4}
buffers:
  a: {place: host, size: 8}
  b: {place: device, size: 8}
  t: {place: device, shape: [2, 4], dtype: float16}
  d: {place: device, size: 64, dynamic: true}
ops:
"""
FIRST = HEAD.count("\n")  # an op on the first line after the head is on line FIRST + 1


def read(text: str, name: str = "x.yaml") -> Plan:
    return read_plan(read_source(text, name))


def faults(text: str) -> list[Diagnostic]:
    with pytest.raises(PlanError) as caught:
        read(text)
    assert all(fault.source is not None and fault.where is not None for fault in caught.value.diagnostics)
    return list(caught.value.diagnostics)


def places(text: str) -> list[tuple[str, int, int]]:
    return [(fault.code, fault.where.line, fault.where.column) for fault in faults(text) if fault.where]


def op(line: str) -> Op:
    (item,) = read(HEAD + line).items
    assert isinstance(item, Op)
    return item


def in_loop(*lines: str) -> str:
    return HEAD + "  - loop: i\n    count: n\n    ops:\n" + "".join(f"      - {line}\n" for line in lines)


# what is right


def test_the_whole_language() -> None:
    plan = read(
        """\
# yaml-language-server: $schema=../schemas/plan.schema.json
dagsched: 1
device: {name: lanes, engines: {core: {kind: compute, lanes: 4}}}
params: {frames: null, chunk: 4}
streams: {max: 6, policy: concurrent}
buffers:
  frame: {place: host, size: 8 KiB, ring: auto, pageable: true, input: true}
  tensor: {place: device, shape: [1, 3, 640], dtype: float16, ring: {min: 1, max: 4}, output: true, dynamic: true}
  state: {place: device, size: 16, ring: 3}
ops:
  - {name: clear, fill: {to: state, value: 255}, engine: core}
  - loop: i
    count: frames * 2
    ops:
      - loop: j
        count: 3
        ops:
          - {name: step, compute: f, reads: ["state@i-1[j*4:j*4+4]", tensor], writes: [tensor], after: [step@j-1],
             args: {x: state}, cores: 2, time: 5.7us, priority: 1, stream: main}
      - {host: show, reads: ["tensor[0, :, 8:]"], accumulates: [state], after: [show@i-2, clear]}
""",
        "dir/demo.dagsched.yaml",
    )
    assert plan.name == "demo"
    assert plan.device == {"name": "lanes", "engines": {"core": {"kind": "compute", "lanes": 4}}}
    assert plan.params == {"frames": None, "chunk": 4}
    assert plan.streams == StreamOptions(6, "concurrent")
    frame, tensor, state = plan.buffers.values()
    assert (frame.size, frame.ring, frame.pageable, frame.input, frame.output) == (8192, Ring(None), True, True, False)
    assert (tensor.size, tensor.shape, tensor.dtype, tensor.ring) == (3840, (1, 3, 640), "float16", Ring(None, 1, 4))
    assert (tensor.output, tensor.dynamic, tensor.itemsize, state.ring) == (True, True, 2, Ring(3))
    clear, loop = plan.items
    assert isinstance(clear, Op)
    assert isinstance(loop, Loop)
    assert (clear.kind, clear.value, clear.engine) == (OpKind.FILL, 255, "core")
    assert clear.accesses == (Access("state", Mode.WRITE),)
    assert (loop.index, loop.count) == ("i", Binary("*", Name("frames"), Int(2)))
    inner, show = loop.body
    assert isinstance(inner, Loop)
    assert isinstance(show, Op)
    (step,) = inner.body
    assert isinstance(step, Op)
    at = Binary("*", Name("j"), Int(4))
    region = (Slice(at, Binary("+", at, Int(4))),)
    assert step.accesses == (
        Access("state", Mode.READ, Binary("-", Name("i"), Int(1)), region),
        Access("tensor", Mode.UPDATE),
    )
    assert (step.function, step.args, step.cores, step.time, step.priority) == ("f", (("x", "state"),), 2, 5.7e-6, 1)
    assert (step.stream, step.after) == ("main", (After("step", 1),))
    assert (show.name, show.kind, show.function) == ("show", OpKind.HOST, "show")
    assert show.after == (After("show", 2), After("clear", 0))
    assert show.accesses[0].region == (Slice(Int(0), Int(1)), Slice(), Slice(Int(8), None))
    assert show.accesses[1].mode is Mode.ACCUMULATE


def test_places_are_kept() -> None:
    plan = read(
        HEAD + "  - {name: up, copy: {from: a, to: b}, after: []}\n  - loop: i\n    count: 2\n    ops: [{compute: f}]\n"
    )
    up, loop = plan.items
    assert isinstance(up, Op)
    assert isinstance(loop, Loop)
    found = [up.where, up.accesses[0].where, up.accesses[1].where, loop.where, plan.buffers["t"].where]
    assert [(w.line, w.column) for w in found if w] == [(9, 12), (9, 29), (9, 36), (10, 11), (6, 3)]


def test_json_is_read_as_well() -> None:
    text = (
        '{"dagsched": 1, "buffers": {"a": {"place": "host", "size": 8}},\n "ops": [{"compute": "f", "reads": ["a"]}]}'
    )
    assert read(text, "x.json") == read(text, "x.yaml")
    with pytest.raises(PlanError) as caught:
        read(text.replace('["a"]', '["aa"]'), "x.json")
    (fault,) = caught.value.diagnostics
    assert (fault.code, fault.where and (fault.where.line, fault.where.column)) == ("P110", (2, 38))


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/b/detector.dagsched.yaml", "detector"), ("detector.YML", "detector"), ("x.json", "x"), ("-", "plan"),
     ("<stdin>", "plan"), (".yaml", "plan"),
     ("C:\\x\\y.yaml", "y"), ("a[0].yaml", "a0"), ("<script>.yaml", "<script>")],
)  # fmt: skip
def test_the_file_names_the_plan(path: str, name: str) -> None:
    assert default_name(path) == name


@pytest.mark.parametrize("name", ["class", "int", "a b", "x*/y", "名前", "<script>", "no", "1", "null", "a, b", "a:b"])
def test_names_are_any_text(name: str) -> None:
    quoted = f"'{name}'"
    text = (
        f"dagsched: 1\nbuffers:\n  {quoted}: {{place: host, size: 8}}\nops:\n  - name: {quoted}\n    host: {quoted}\n"
    )
    (item,) = read(f"{text}    writes: ['{name}[0:4]']\n").items
    assert isinstance(item, Op)
    assert (item.name, item.function, item.accesses[0].buffer) == (name, name, name)


def test_a_key_is_text_whatever_it_looks_like() -> None:
    buffers = "buffers:\n  1: {place: host, size: 8}\n  on: {place: host, size: 8}\n"
    plan = read(f"dagsched: 1\n{buffers}ops:\n  - {{host: f, reads: ['1', on]}}\n")
    assert list(plan.buffers) == ["1", "on"]


def test_a_read_and_a_write_of_the_same_bytes_are_an_update() -> None:
    assert op("  - {compute: f, reads: [b], writes: [b]}").accesses == (Access("b", Mode.UPDATE),)
    versions = in_loop("{compute: f, reads: [b@i-1], writes: [b]}")
    (loop,) = read(versions).items
    assert isinstance(loop, Loop)
    (item,) = loop.body
    assert isinstance(item, Op)
    assert [access.mode for access in item.accesses] == [Mode.READ, Mode.WRITE]


def test_copies_may_differ_in_size_where_sizes_are_dynamic() -> None:
    assert op("  - {name: u, copy: {from: a, to: d}}").kind is OpKind.COPY


def test_copies_of_moving_regions_are_compared() -> None:
    read(in_loop("{name: u, copy: {from: 'b[i*4:i*4+4]', to: 'a[4:8]'}}"))
    assert [fault.code for fault in faults(in_loop("{name: u, copy: {from: 'b[i*4:i*4+4]', to: 'a[3:8]'}}"))] == [
        "P140"
    ]
    read(in_loop("{name: u, copy: {from: 'b[i*4:min(i*4+4,8)]', to: 'a[3:8]'}}"))  # the last one may be shorter


# what is wrong


@pytest.mark.parametrize(
    ("line", "expected", "help_"),
    [
        ("{name: up, copy: {from: a, too: b}}", [("P101", 32)], "write `to`"),
        ("{name: up, copy: {from: a}}", [("P102", 16)], "add `to: image`"),
        ("{name: up, coppy: {from: a, to: b}}", [("P103", 16)], "write `copy` for `coppy`"),
        ("{nam: up, compute: f}", [("P101", 6)], "write `name`"),
        ("{copy: {from: a, to: b}}", [("P102", 6)], "add `name: upload`"),
        ("{fill: {to: b}}", [("P102", 6)], "add `name: clear`"),
        ("{name: f, fill: {to: b, value: 256}}", [("P103", 36)], "for example `value: 0`"),
        ("{name: f, fill: {to: b}, reads: [a]}", [("P101", 30)], "remove `reads`"),
        ("{compute: f, host: g}", [("P103", 18)], "make them ops of their own"),
        ("{compute: f, reads: b}", [("P103", 25)], "write `reads: [b]`"),
        ("{compute: f, reads: [b, 1]}", [("P103", 29)], 'write "1" in quotes if this text is meant'),
        ("{compute: f, reads: ['']}", [("P103", 26)], "for example `reads: [image]`"),
        ("{compute: f, reads: [[b]]}", [("P103", 26)], "for example `reads: [image]`"),
        ("{compute: f, time: 5}", [("P103", 24)], "write `5 ms` (or `s`, `us`, `ns`)"),
        ("{compute: f, time: 5 msec}", [("P104", 26)], "write `5 ms`"),
        ("{compute: f, time: -5 ms}", [("P104", 24)], "write `5 ms`"),
        ("{compute: f, cores: 0}", [("P103", 25)], "for example `cores: 8`"),
        ("{compute: f, cores: .inf}", [("P103", 25)], "for example `cores: 8`"),
        ("{compute: f, engine: ~}", [("P103", 26)], "for example `engine: core`"),
        ("{compute: f, stream: ''}", [("P105", 26)], None),
        ("{compute: f, stream: s@1}", [("P105", 27)], None),
        ("{name: 'a[0]', compute: f}", [("P105", 14)], None),
        ("{compute: f, reads: [B]}", [("P110", 26)], "write `b`"),
        ("{compute: f, reads: [' zz[0:4]']}", [("P110", 28)], None),
        ("{compute: f, reads: ['b[0:9]']}", [("P130", 28)], "write bounds from 0 to 8"),
        ("{compute: f, reads: ['b[8:]']}", [("P130", 28)], "write bounds from 0 to 8"),
        ("{compute: f, reads: ['b[-1:3]']}", [("P130", 28)], "write bounds from 0 to 8"),
        ("{compute: f, reads: ['b[8]']}", [("P130", 28)], "write bounds from 0 to 8"),
        ("{compute: f, reads: ['b[4:4]']}", [("P132", 28)], "write bounds from 0 to 8"),
        ("{compute: f, reads: ['b[n:n]']}", [("P132", 28)], "write bounds from 0 to 8"),
        ("{compute: f, reads: ['t[0:2, 0:5]']}", [("P130", 28)], "write bounds from 0 to 4"),
        ("{compute: f, reads: ['t[0, 0, 0]']}", [("P131", 28)], None),
        ("{compute: f, reads: ['b[0, 0]']}", [("P131", 28)],
         "give the buffer a `shape` and a `dtype`, or write one pair of bounds"),
        ("{compute: f, reads: ['t[0:1B]']}", [("P133", 31)], "write plain numbers of elements"),
        ("{compute: f, reads: ['b[0:4 KB]']}", [("P105", 33)], "write `4kB`"),
        ("{compute: f, reads: ['b[0:4']}", [("P105", 28)], "write `b[0:4]`"),
        ("{compute: f, reads: [b@i]}", [("P112", 28)], "declare it: `params: {i: null}`"),
        ("{compute: f, reads: ['b[nn:8]']}", [("P112", 29)], "write `n`"),
        ("{compute: f, reads: [b, b]}", [("P142", 29)], "drop one of them"),
        ("{compute: f, updates: [b], writes: [b]}", [("P142", 28)], "keep it in `updates` only"),
        ("{compute: f, accumulates: [b], writes: ['b[0:4]']}", [("P142", 32)],
         "use `updates` if the order matters, else `accumulates` only"),
        ("{name: u, copy: {from: a, to: t}}", [("P140", 35)],
         "make both the same size, or mark a buffer `dynamic: true` if its size differs by iteration"),
        ("{name: u, copy: {from: 'a[0:4]', to: b}}", [("P140", 42)], 'write "b[0:4]"'),
        ("{name: u, copy: {from: a, to: a}}", [("P141", 35)], "copy between regions that do not overlap"),
        ("{name: u, copy: {from: 'a[0:5]', to: 'a[3:8]'}}", [("P141", 42)], "copy between regions that do not overlap"),
        ("{compute: f, reads: [b], args: {x: c}}", [("P110", 40)], None),
        ("{compute: f, reads: [b], args: {x: a}}", [("P150", 40)], "add `a` to `reads` or `writes`"),
        ("{compute: f, reads: [b], args: {x: b@0}}", [("P150", 40)], "write `b`"),
        ("{compute: f, after: [g]}", [("P111", 26)], None),
        ("{compute: fun, after: [fum]}", [("P111", 28)], "write `fun`"),
        ("{compute: f, after: [f]}", [("P118", 26)], "write `f@i-1` for the iteration before"),
        ("{compute: f, after: [f@i-1]}", [("P118", 27)], "write `f`"),
        ("x", [("P103", 5)], "for example `ops: [{compute: resize}]`"),
        ("{loop: i, count: 3}", [("P102", 5)], "add `ops: [{compute: resize}]`"),
        ("{loop: i, ops: [{compute: f}]}", [("P102", 5)], "add `count: frames`"),
        ("{loop: i, count: 3, ops: []}", [("P116", 25)], "add ops, or drop the loop"),
        ("{loop: i, count: -1, ops: [{compute: f}]}", [("P117", 22)], "write a count from 0 up"),
        ("{loop: i, count: m-5, ops: [{compute: f}]}", [("P117", 22)], "write a count from 0 up"),
        ("{loop: i, count: 1//0, ops: [{compute: f}]}", [("P105", 25)], "for example `count: frames` or `count: 8`"),
        ("{loop: i, count: 8 % m, ops: [{compute: f}]}", [("P105", 26)], NUMBER),
        ("{loop: i, count: 8 // (m + 1), ops: [{compute: f}]}", [("P105", 22)], NUMBER),
        ("{loop: i, count: 'min(9, 4 % (m+1))', ops: [{compute: f}]}", [("P105", 35)], NUMBER),
        ("{loop: i, count: 2.5, ops: [{compute: f}]}", [("P103", 22)], "for example `count: frames`"),
        ("{loop: i, count: frames, ops: [{compute: f}]}", [("P112", 22)], "declare it: `params: {frames: null}`"),
        ("{loop: i, count: 99999999999999999999, ops: [{compute: f}]}", [("P117", 22)], None),
        ("{loop: min, count: 3, ops: [{compute: f}]}", [("P115", 12)], "for example `loop: i`"),
        ("{loop: 'i j', count: 3, ops: [{compute: f}]}", [("P115", 12)], "for example `loop: i`"),
        ("{loop: n, count: 3, ops: [{compute: f}]}", [("P115", 12)], "rename one of them"),
    ],
)  # fmt: skip
def test_mistakes_in_an_op(line: str, expected: list[tuple[str, int]], help_: str | None) -> None:
    found = faults(f"{HEAD}  - {line}\n")
    assert [(f.code, f.where and f.where.line, f.where and f.where.column) for f in found] == [
        (code, FIRST + 1, column) for code, column in expected
    ]
    assert found[0].help == help_
    assert found[0].headline[0] in "`" or found[0].headline[0].islower()
    assert not found[0].headline.endswith(".")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("{compute: f, after: [f@i+1]}",), [("P118", 4, 32)]),
        (("{compute: f, after: [f@3]}",), [("P118", 4, 32)]),
        (("{compute: f, after: [f@2*i-2]}",), [("P118", 4, 32)]),
        (("{loop: i, count: 2, ops: [{compute: f}]}",), [("P115", 4, 16)]),
        (("{loop: j, count: n, ops: [{compute: f}]}",), [("P201", 4, 26)]),
        (("{loop: j, count: i, ops: [{compute: f}]}",), [("P201", 4, 26)]),
        (("{loop: j, count: 2, ops: [{compute: f}]}", "{compute: f.0}"), [("P113", 5, 19)]),
        (("{loop: j, count: 2, ops: [{compute: f}]}", "{compute: g, reads: [b@j]}"), [("P112", 5, 32)]),
        (("{loop: j, count: 2, ops: [{compute: f}]}", "{compute: g, after: [f@j-1]}"), [("P118", 5, 32)]),
        (("{compute: f}", "{compute: f}"), [("P113", 5, 19)]),
        (("{name: f, compute: g}", "{name: f, compute: h}"), [("P113", 5, 16)]),
    ],
)
def test_mistakes_in_a_loop(lines: tuple[str, ...], expected: list[tuple[str, int, int]]) -> None:
    assert places(in_loop(*lines)) == [(code, FIRST + line, column) for code, line, column in expected]


@pytest.mark.parametrize(
    ("entry", "code", "column", "help_"),
    [
        ("{place: hots, size: 8}", "P103", 14, "write `host`"),
        ("{size: 8}", "P102", 3, "add `place: device`"),
        ("{place: host}", "P120", 3, "add `size: 48MiB`, or `shape` and `dtype`"),
        ("{place: host, size: 0}", "P104", 26, "for example `48MiB`"),
        ("{place: host, size: -8}", "P104", 26, "for example `48MiB`"),
        ("{place: host, size: 4 KB}", "P104", 28, "write `4kB`"),
        ("{place: host, size: 1.5}", "P103", 26, "for example `size: 48MiB`"),
        ("{place: host, size: null}", "P103", 26, "for example `size: 48MiB`"),
        ("{place: host, size: 99999999999999999999}", "P104", 26, None),
        ("{place: host, shape: [2]}", "P121", 20, "add `dtype: float16`"),
        ("{place: host, shape: [], dtype: int8}", "P103", 27, "for example `shape: [1, 3, 640, 640]`"),
        ("{place: host, shape: [2, 0], dtype: int8}", "P103", 31, "for example `shape: [1, 3, 640, 640]`"),
        ("{place: host, shape: [9999999999, 9999999999], dtype: int8}", "P104", 20, None),
        ("{place: host, shape: [2], dtype: fp16}", "P122", 39, "write `float16`"),
        ("{place: host, shape: [2], dtype: float15}", "P122", 39, "write `float16`"),
        ("{place: host, shape: [2], dtype: int8, size: 2}", "P121", 45,
         "drop one of them; `shape` and `dtype` give the size"),
        ("{place: host, size: 2, dtype: int8}", "P121", 29, "add `shape: [...]`, or drop `dtype`"),
        ("{place: host, size: 2, ring: 0}", "P103", 35, "for example `ring: auto`"),
        ("{place: host, size: 2, ring: fast}", "P103", 35, "write `ring: auto`, `ring: 2` or `ring: {min: 1, max: 4}`"),
        ("{place: host, size: 2, ring: {}}", "P103", 35, "write `ring: auto` or `ring: {min: 1, max: 4}`"),
        ("{place: host, size: 2, ring: {mim: 1}}", "P101", 36, "write `min`"),
        ("{place: host, size: 2, ring: {min: 0}}", "P103", 41, "for example `min: 1`"),
        ("{place: host, size: 2, ring: {min: 3, max: 2}}", "P123", 35, "write `ring: {min: 2, max: 3}`"),
        ("{place: device, size: 2, pageable: true}", "P124", 31, "drop `pageable`, or write `place: host`"),
        ("{place: host, size: 2, input: yes}", "P103", 36, "write `true`"),
        ("", "P103", 3, "for example `x: {place: device, size: 6MB}`"),
    ],
)  # fmt: skip
def test_mistakes_in_a_buffer(entry: str, code: str, column: int, help_: str | None) -> None:
    (fault,) = faults(f"dagsched: 1\nbuffers:\n  x: {entry}\nops: [{{host: f, reads: [x]}}]\n")
    assert (fault.code, fault.where and (fault.where.line, fault.where.column)) == (code, (3, column))
    assert fault.help == help_


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [("P103", 1, 1)]),
        ("[]", [("P103", 1, 1)]),
        ("dagsched: 2\nbuffers: {}\nops: []\n", [("P103", 1, 11)]),
        ("dagsched: true\nbuffers: {}\nops: []\n", [("P103", 1, 11)]),
        ("buffers: {}\nops: []\n", [("P102", 1, 1)]),
        ("dagsched-schedule: 1\nsteps: []\n", [("P100", 1, 1)]),
        ("dagsched: 1\nbuffer: {}\nop: []\n", [("P101", 2, 1), ("P101", 3, 1)]),
        ("dagsched: 1\nname: 1\nbuffers: {}\nops:\n", [("P103", 2, 7), ("P103", 4, 1)]),
        ("dagsched: 1\nname: a/b\nbuffers: {}\nops: []\n", [("P106", 2, 7)]),
        ("dagsched: 1\nname: ..\nbuffers: {}\nops: []\n", [("P106", 2, 7)]),
        ("dagsched: 1\ndevice: ''\nbuffers: {}\nops: []\n", [("P103", 2, 9)]),
        ("dagsched: 1\ndevice: 3\nbuffers: {}\nops: []\n", [("P103", 2, 9)]),
        ("dagsched: 1\nparams: {min: 1, x y: 2, z: 1.5}\nbuffers: {}\nops: []\n", [("P103", 2, 29)]),
        ("dagsched: 1\nparams: {min: 1, x y: 2}\nbuffers: {}\nops: []\n", [("P115", 2, 10), ("P115", 2, 18)]),
        ("dagsched: 1\nstreams: {max: 0, policy: sinle}\nbuffers: {}\nops: []\n", [("P103", 2, 16), ("P103", 2, 27)]),
        ("dagsched: 1\nbuffers: {'x@y': {place: host, size: 1}}\nops: []\n", [("P105", 2, 13)]),
        ("dagsched: 1\nmemory: {host: 1 gb, disk: 3}\nbuffers: {}\nops: []\n", [("P101", 2, 22)]),
        ("dagsched: 1\nmemory: {host: 1 gb, device: 0}\nbuffers: {}\nops: []\n", [("P104", 2, 18), ("P104", 2, 30)]),
    ],
)  # fmt: skip
def test_mistakes_in_the_header(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert places(text) == expected


def test_all_mistakes_of_a_stage_are_said_at_once() -> None:
    text = HEAD.replace("size: 8}", "size: 8 KB}", 1) + "  - {compute: f, reads: [q], time: 5 mss, after: [g]}\n"
    assert [code for code, _, _ in places(text)] == ["P104", "P110", "P104", "P111"]


def test_a_broken_buffer_is_reported_once() -> None:
    text = HEAD.replace("size: 8}", "size: 0}", 1) + "  - {name: u, copy: {from: 'a[0:100]', to: b}}\n"
    assert [code for code, _, _ in places(text)] == ["P104"]


def test_the_second_of_two_ops_points_at_the_first() -> None:
    (fault,) = faults(HEAD + "  - {compute: f}\n  - {compute: f}\n")
    assert [(label.where.line, label.text) for label in fault.labels] == [(FIRST + 1, "the first one")]


def test_a_block_style_access_that_became_a_mapping_is_explained() -> None:
    (fault,) = faults(HEAD + "  - compute: f\n    reads:\n      - b[0: 4]\n")
    assert (fault.code, fault.help) == ("P103", "put quotes around an access that holds `: `")


def test_unused_buffers_and_parameters_are_warned_of() -> None:
    _, warnings = read_plan_with_warnings(read_source(HEAD + "  - {compute: f, reads: ['b[0:m]']}\n", "x.yaml"))
    found = [(w.code, w.where and w.where.line, w.severity) for w in warnings]
    assert found == [("P171", 2, "warning"), ("P170", 4, "warning"), ("P170", 6, "warning"), ("P170", 7, "warning")]


def test_an_empty_program_is_a_plan() -> None:
    assert read("dagsched: 1\nbuffers: {}\nops: []\n").items == ()


def test_deep_loops_are_read() -> None:
    lines = ["dagsched: 1\nbuffers: {}\nops:\n"]
    for depth in range(30):
        pad = "  " * (2 * depth + 1)
        lines.append(f"{pad}- loop: i{depth}\n{pad}  count: 1\n{pad}  ops:\n")
    text = "".join(lines) + "  " * 61 + "- {compute: f}\n"
    assert [item.name for item in read(text).ops()] == ["f"]


def test_long_expressions_end_in_an_error() -> None:
    assert places(in_loop("{compute: f, reads: ['b@" + "i+" * 5_000 + "1']}")) == [("P105", FIRST + 4, 33)]


def test_a_plan_of_2000_ops_is_read_quickly() -> None:
    ops = [
        f"  - {{name: op{n}, compute: f, reads: ['b[0:{n % 7 + 1}]'], writes: [d], time: 5 us}}\n" for n in range(2_000)
    ]
    start = time.process_time()
    assert len(read(HEAD + "".join(ops)).items) == 2_000
    assert time.process_time() - start < 3  # CPU seconds: 0.4 s, and minutes where each op goes through all others


SEEDS = HEAD + (
    "  - {name: up, copy: {from: 'a[0:4]', to: 'b[4:8]'}, time: 5 us}\n"
    "  - loop: i\n    count: n*2\n    ops:\n"
    "      - {compute: f, reads: ['t[0, i:i+1]', b@i-1], updates: [d], args: {x: d}, after: [f@i-1, up], priority: 1}\n"
    "      - {name: z, fill: {to: d, value: 3}}\n"
)
PIECES = [
    "null",
    "1",
    "-1",
    "1.5",
    "true",
    "''",
    "[]",
    "{}",
    "[x]",
    "{x: 1}",
    "x@i",
    "a[0:",
    "*x",
    "&x ",
    "!t ",
    "i",
    "n",
    "@",
]


@given(st.data())
def test_any_change_of_a_plan_gives_a_plan_or_diagnostics(data: st.DataObject) -> None:
    text = SEEDS
    for _ in range(data.draw(st.integers(1, 3))):
        words = list(re.finditer(r"[^\s{}\[\],:]+|[{}\[\],:]", text))
        word = data.draw(st.sampled_from(words))
        others = [other.group() for other in words] + PIECES
        text = text[: word.start()] + data.draw(st.sampled_from(others)) + text[word.end() :]
    try:
        plan = read(text)
    except PlanError as error:
        lines = text.splitlines()
        for fault in error.diagnostics:
            assert fault.where is not None
            assert fault.where.column <= len([*lines, ""][fault.where.line - 1]) + 1
    else:
        assert read(plan_text(plan)) == plan
