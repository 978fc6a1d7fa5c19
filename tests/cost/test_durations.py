"""Which engine runs an op, and for how long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dagsched.cost.devices import load_device
from dagsched.cost.durations import moved_bytes, op_cost, op_costs, op_seconds
from dagsched.cost.engines import engine_for
from dagsched.cost.model import Engine
from dagsched.diagnostics import PlanError, Source, Where
from dagsched.plan.model import Op, Plan
from dagsched.plan.reader import read_plan

ASCEND = load_device("ascend-910b")
LANES = load_device({"name": "lanes", "engines": {"core": {"kind": "compute", "lanes": 4}}})

TEXT = """\
dagsched: 1
params: {n: null, rows: null, known: 3}
buffers:
  h: {place: host, size: 1MB, input: true}
  h2: {place: host, size: 1MB, output: true}
  slow: {place: host, size: 1MB, pageable: true, output: true}
  d: {place: device, size: 1MB}
  d2: {place: device, size: 1MB}
  t: {place: device, shape: [10, 20, 5], dtype: float16, output: true}
  all: {place: host, shape: [1000, 8], dtype: float32, input: true}
  chunk: {place: device, shape: [32, 8], dtype: float32, ring: 2}
ops:
  - {name: upload, copy: {from: h, to: d}}
  - {name: inner, copy: {from: d, to: d2}}
  - {name: download, copy: {from: d2, to: h2}}
  - {name: slowly, copy: {from: d2, to: slow}}
  - {name: across, copy: {from: h, to: h2}}
  - {name: clear, fill: {to: t}}
  - {name: wipe, fill: {to: h2}}
  - {name: compute, compute: f, reads: [d], updates: [t], time: 3 ms}
  - {name: quarter, compute: f, reads: [d], updates: [t], time: 3 ms, cores: 5}
  - {name: unknown, compute: g, reads: [d], updates: [t]}
  - {name: on_dvpp, compute: g, reads: [d], updates: [t], engine: dvpp}
  - {name: host, host: look, reads: [h2], time: 1 us}
  - loop: i
    count: n
    ops:
      - {name: part, copy: {from: "all[i*32:min(i*32+32, rows)]", to: "chunk[0:min(32, rows-i*32)]"}}
      - {name: use, compute: f, reads: ["chunk[0:min(32, rows-i*32)]"], updates: [t]}
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return read_plan(Source("p.yaml", TEXT))


def find(plan: Plan, name: str) -> Op:
    return next(op for op in plan.ops() if op.name == name)


@pytest.mark.parametrize(
    ("op", "engine", "seconds", "share"),
    [
        ("upload", "h2d", 150e-9 + 1e6 / 25e9, 1),
        ("inner", "sdma", 100e-9 + 1e6 / 256e9, 1),
        ("download", "d2h", 150e-9 + 1e6 / 25e9, 1),
        ("clear", "sdma", 100e-9 + 2000 / 256e9, 1),
        ("compute", "ai-core", 3e-3, 20),
        ("quarter", "ai-core", 3e-3, 5),
        ("host", "host", 1e-6, 1),
        ("part", "h2d", 150e-9 + 32 * 8 * 4 / 25e9, 1),
    ],
)
def test_known_costs(plan: Plan, op: str, engine: str, seconds: float, share: int) -> None:
    cost = op_cost(find(plan, op), plan, ASCEND)
    assert (cost.engine.name, cost.share, cost.known) == (engine, share, True)
    assert cost.seconds == pytest.approx(seconds, rel=1e-12)
    assert op_seconds(find(plan, op), plan, ASCEND) == cost.seconds


@pytest.mark.parametrize(
    ("op", "engine"), [("unknown", "ai-core"), ("on_dvpp", "dvpp"), ("across", "host"), ("wipe", "host")]
)
def test_unknown_costs_are_zero_and_say_so(plan: Plan, op: str, engine: str) -> None:
    cost = op_cost(find(plan, op), plan, ASCEND)
    assert (cost.engine.name, cost.seconds, cost.known) == (engine, 0.0, False)


def test_only_pageable_copies_block(plan: Plan) -> None:
    assert [name for name, cost in op_costs(plan, ASCEND).items() if cost.blocks] == ["slowly"]


def test_a_device_that_lacks_engines_gets_implicit_ones(plan: Plan) -> None:
    assert engine_for(find(plan, "upload"), plan, LANES) == Engine("h2d", "h2d")
    assert engine_for(find(plan, "host"), plan, LANES) == Engine("host", "host")
    assert engine_for(find(plan, "inner"), plan, LANES) == Engine("d2d", "d2d")
    assert engine_for(find(plan, "clear"), plan, LANES).name == "core"
    assert not op_cost(find(plan, "upload"), plan, LANES).known
    assert op_cost(find(plan, "quarter"), plan, LANES).share == 1


def test_an_implicit_engine_takes_no_name_that_is_in_use(plan: Plan) -> None:
    device = load_device({"engines": {"h2d": {"kind": "compute"}}})
    assert engine_for(find(plan, "upload"), plan, device) == Engine("h2d-implicit", "h2d")


def test_lanes_are_parts_of_the_cores(plan: Plan) -> None:
    device = load_device({"engines": {"core": {"kind": "compute", "lanes": 4, "cores": 24}}})
    assert op_cost(find(plan, "compute"), plan, device).share == 6


@pytest.mark.parametrize(
    ("op", "change", "code", "help_"),
    [
        ("compute", {"engine": "dvp"}, "D120", "write `engine: dvpp`"),
        ("compute", {"engine": "host"}, "D121", "write `engine: ai-core`"),
        ("host", {"engine": "ai-cpu"}, "D121", "write `engine: host`"),
        ("across", {"engine": "h2d"}, "D121", "write `engine: host`"),
        ("compute", {"cores": 21}, "D122", "write `cores: 20`"),
    ],
)
def test_ops_that_do_not_fit_the_device(plan: Plan, op: str, change: dict[str, Any], code: str, help_: str) -> None:
    wrong = replace(find(plan, op), **change)
    with pytest.raises(PlanError) as raised:
        op_cost(wrong, plan, ASCEND)
    (fault,) = raised.value.diagnostics
    assert (fault.code, fault.help, fault.where, fault.source) == (code, help_, wrong.where, plan.source)
    assert isinstance(fault.where, Where)


def test_moved_bytes(plan: Plan) -> None:
    part = find(plan, "part")
    assert [moved_bytes(access, plan) for access in part.accesses] == [1024, 1024]
    small = replace(plan, params={**plan.params, "rows": 7})
    assert [moved_bytes(access, small) for access in part.accesses] == [7 * 32, 7 * 32]


WORKED = """\
dagsched: 1
device:
  name: card
  engines:
    core: {kind: compute, cores: 20, latency: 1 us, flops: {float16: 200 TFLOP/s, float32: 50 TFLOP/s}, memory_bandwidth: 1 TB/s}
    old: {kind: compute, lanes: 2, flops: 1 TFLOP/s}
buffers:
  d: {place: device, size: 1MB, input: true}
  t: {place: device, size: 1MB, output: true}
ops:
  - {name: op, compute: f, reads: [d], writes: [t], WORK}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        ("work: {flop: 2 GFLOP, dtype: float16}", 1e-6 + 2e9 / 200e12),
        ("work: {flop: 2.0e9, dtype: float32}", 1e-6 + 2e9 / 50e12),
        ("work: {flop: 2 GFLOP, dtype: float32}, cores: 5", 1e-6 + 2e9 / 50e12 * 4),
        ("work: {flop: 2 GFLOP, bytes: 400MB, dtype: float16}", 1e-6 + 400e6 / 1e12),
        ("work: {bytes: 400MB}, cores: 1", 1e-6 + 400e6 / 1e12),
        ("work: {flop: 3000000, dtype: int8}, engine: old", 3e6 / 0.5e12),  # a lane is half of it
        ("work: {flop: 0, bytes: 1MB}", 1e-6 + 1e-6),
    ],
)
def test_work_takes_what_the_roofline_says(work: str, seconds: float) -> None:
    plan = read_plan(Source("p.yaml", WORKED.replace("WORK", work)))
    cost = op_cost(find(plan, "op"), plan, load_device(plan.device))
    assert cost.seconds == pytest.approx(seconds, rel=1e-12)
    assert cost.known


@pytest.mark.parametrize(
    ("work", "headline", "help_"),
    [
        ("work: {flop: 1 GFLOP}", "depends on the dtype", "write `work: {dtype: float16, ...}`"),
        ("work: {flop: 1, dtype: int8}", "has no peak for `int8` under `flops`", "add `flops: {int8: ... TFLOP/s}` to"),
        ("work: {bytes: 1MB}, engine: old", "has no `memory_bandwidth`", "add `memory_bandwidth: ... GB/s` to `old`"),
    ],
)
def test_a_peak_that_is_missing_is_named(work: str, headline: str, help_: str) -> None:
    plan = read_plan(Source("p.yaml", WORKED.replace("WORK", work)))
    with pytest.raises(PlanError) as raised:
        op_cost(find(plan, "op"), plan, load_device(plan.device))
    (found,) = raised.value.diagnostics
    assert found.code == "D123"
    assert headline in found.headline
    assert found.help is not None and help_ in found.help
    assert found.where is not None and found.where.line == 11


def test_shipped_profiles_have_no_peaks_and_say_so() -> None:
    plan = read_plan(Source("p.yaml", WORKED.replace("WORK", "work: {flop: 1 GFLOP}")))
    with pytest.raises(PlanError, match="engine `ai-core` of `ascend-910b` has no `flops`"):
        op_cost(find(plan, "op"), plan, ASCEND)


@pytest.mark.parametrize(
    ("device", "help_"),
    [
        ("{name: card, engines: {core: {kind: compute}}}", "to `core` under `device:`, or give the op a `time`"),
        ("DIR/my-card.yaml", "to `core` in `DIR/my-card.yaml`, or give the op a `time`"),
    ],
)
def test_a_peak_that_a_profile_of_ones_own_lacks_belongs_there(device: str, help_: str, tmp_path: Path) -> None:
    """The name in the profile may be that of a shipped one, of which it is a copy."""
    (tmp_path / "my-card.yaml").write_text(
        "dagsched-device: 1\nname: ascend-910b\nengines: {core: {kind: compute}}\n", encoding="utf-8"
    )
    device, help_ = (text.replace("DIR", tmp_path.as_posix()) for text in (device, help_))
    text = f"dagsched: 1\ndevice: {device}\nbuffers: {{x: {{place: device, size: 8, output: true}}}}\nops:\n"
    plan = read_plan(Source("p.yaml", f"{text}  - {{compute: f, writes: [x], work: {{flop: 1 GFLOP}}}}\n"))
    with pytest.raises(PlanError) as raised:
        op_costs(plan, load_device(plan.device))
    (found,) = raised.value.diagnostics
    assert found.help == f"add `flops: ... TFLOP/s` {help_}"


def test_work_on_a_shipped_profile_leads_to_one_of_ones_own() -> None:
    """All that is missing at once, and commands that end at a plan that compiles."""
    text = "dagsched: 1\ndevice: ascend-910b\nbuffers: {x: {place: device, size: 8, output: true}}\nops:\n"
    plan = read_plan(Source("p.yaml", f"{text}  - {{compute: f, writes: [x], work: {{flop: 1 GFLOP, bytes: 1MB}}}}\n"))
    with pytest.raises(PlanError) as raised:
        op_costs(plan, ASCEND)
    (found,) = raised.value.diagnostics
    assert found.headline.endswith("has no `flops` and no `memory_bandwidth`")
    assert found.notes == ("a profile of your own: `dagsched devices ascend-910b --format yaml > my-card.yaml`",)
    assert found.help is not None
    assert found.help.startswith("add `flops: ... TFLOP/s` and `memory_bandwidth: ... GB/s` to `ai-core` there")
    assert found.help.endswith("write `device: ./my-card.yaml`, or give the op a `time`")


@pytest.mark.parametrize(
    ("work", "code", "column"),
    [
        ("work: {flop: 1 GFLOP}, time: 1 ms", "P151", 53),
        ("work: {flop: 1 gflop}", "P104", 68),
        ("work: {flop: -1}", "P104", 66),
        ("work: {bytes: 0}", "P104", 67),
        ("work: {dtype: half}", "P103", 59),
        ("work: {flop: 1, dtype: half}", "P122", 76),
        ("work: {flops: 1}", "P101", 60),
        ("work: fast", "P103", 59),
    ],
)
def test_mistakes_in_work(work: str, code: str, column: int) -> None:
    with pytest.raises(PlanError) as raised:
        read_plan(Source("p.yaml", WORKED.replace("WORK", work)))
    (found,) = raised.value.diagnostics
    assert (found.code, found.where and found.where.column) == (code, column)


@pytest.mark.parametrize(
    ("flops", "help_"),
    [
        ("3", "write `3 TFLOP/s`"),
        ("300 TFLOPS", "write `300 TFLOP/s`"),
        ("300 TFLOP", "for example `256 TFLOP/s`"),
        ("0 TFLOP/s", "leave it out"),
        ("{half: 1 TFLOP/s}", "write `float16`"),
    ],
)
def test_mistakes_in_peaks(flops: str, help_: str) -> None:
    text = WORKED.replace("flops: 1 TFLOP/s", f"flops: {flops}").replace("WORK", "time: 1 ms")
    plan = read_plan(Source("p.yaml", text))
    with pytest.raises(PlanError) as raised:
        load_device(plan.device, source=plan.source)
    (found,) = raised.value.diagnostics
    assert found.code == "D105"
    assert found.help is not None and help_ in found.help


def test_all_wrong_engines_are_told_at_once() -> None:
    text = """
dagsched: 1
buffers: {x: {place: device, size: 64, output: true}}
ops:
  - {name: a, compute: f, writes: [x], engine: nowhere}
  - {name: b, compute: f, updates: [x], engine: host}
  - {name: c, compute: f, updates: [x], cores: 1000000}
"""
    plan = read_plan(Source("wrong.yaml", text))
    with pytest.raises(PlanError) as caught:
        op_costs(plan, load_device("ascend-910b"))
    assert [finding.code for finding in caught.value.diagnostics] == ["D120", "D121", "D122"]


def test_unrolled_copies_of_an_op_are_told_of_once() -> None:
    """Six copies share a line and a fault; the op on the line below has one of its own."""
    text = """\
dagsched: 1
buffers:
  d: {place: device, size: 8kB, input: true, output: true}
ops:
  - loop: i
    count: 2
    ops:
      - loop: k
        count: 6
        ops:
          - {name: a, compute: f, reads: [d], work: {flop: 12}}
          - {name: b, compute: f, reads: [d], engine: nope}
"""
    from dagsched.plan.resolve import resolve_plan

    with pytest.raises(PlanError) as caught:
        op_costs(resolve_plan(read_plan(Source("p.yaml", text))), ASCEND)
    found = caught.value.diagnostics
    assert [(f.code, f.where and f.where.line) for f in found] == [("D123", 11), ("D120", 12)]
    assert all("5 more like it" in f.notes[-1] for f in found)
