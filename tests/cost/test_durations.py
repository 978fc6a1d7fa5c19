"""Which engine runs an op, and for how long."""

from __future__ import annotations

from dataclasses import replace
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
