"""Device profiles: the built-in ones are sound, and whoever writes one is told what is wrong with it, and where."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dagsched.cost.device_file import DeviceFile, device_schema
from dagsched.cost.devices import device_names, load_device, profile_text
from dagsched.cost.model import CallCosts, Device, Engine, Limits
from dagsched.cost.quantities import parse_bandwidth
from dagsched.diagnostics import DagschedError, Diagnostic, PlanError, Source, UsageError, Where
from dagsched.files import load_node, to_data
from dagsched.plan.model import Memory
from dagsched.plan.reader import read_plan
from dagsched.plan.units import UnitError

FILES = Path(__file__).parent.parent.parent / "dagsched" / "devices"
CORE = {"core": {"kind": "compute", "lanes": 4}}


def faults(spec: Any, base: Path | None = None, source: Source | None = None) -> tuple[Diagnostic, ...]:
    with pytest.raises(DagschedError) as raised:
        load_device(spec, base, source)
    return raised.value.diagnostics


@pytest.mark.parametrize("name", device_names())
def test_built_in_profiles_are_valid(name: str) -> None:
    text = (FILES / f"{name}.yaml").read_text()
    data = to_data(load_node(Source(f"{name}.yaml", text)))
    assert DeviceFile.model_validate(data).name == name
    jsonschema.validate(data, device_schema())
    device = load_device(name)
    assert device == load_device(str(FILES / f"{name}.yaml"))
    assert {engine.kind for engine in device.engines.values()} == {"h2d", "d2h", "d2d", "compute", "host"}
    assert all(e.bandwidth for e in device.engines.values() if e.kind in ("h2d", "d2h", "d2d"))


def test_the_default_profile_says_what_the_documents_say() -> None:
    device = load_device("ascend-910b")
    assert device.limits == Limits(streams=1984, events=65536, queue_depth=2013)
    assert device.default_engine("compute") == Engine("ai-core", "compute", cores=20)
    assert device.default_engine("h2d") == Engine("h2d", "h2d", bandwidth=25e9, latency=150e-9)
    assert device.calls == CallCosts(5e-6, 2e-6, 2e-6)


def test_a_built_in_profile_is_read_without_pydantic() -> None:
    code = "import sys, dagsched.cost.devices as d; d.load_device('host'); print('pydantic' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=FILES.parent.parent
    )
    assert ran.stdout == "False\n"


def test_an_inline_profile() -> None:
    device = load_device({"name": "lanes", "engines": CORE})
    assert device == Device("lanes", {"core": Engine("core", "compute", lanes=4)})
    assert load_device({"engines": CORE}).name == "inline"


def test_a_profile_in_a_file_lies_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "big.device.yaml").write_text("engines:\n  core: {kind: compute, cores: 8, lanes: 2}\n")
    plan = Source(str(tmp_path / "plan.yaml"), "device: big.device.yaml\n")
    for device in (load_device("big.device.yaml", tmp_path), load_device("big.device.yaml", source=plan)):
        assert (device.name, device.engines["core"].cores) == ("big", 8)


def test_an_unknown_name() -> None:
    source = Source("p.yaml", "dagsched: 1\ndevice: ascend910b\n")
    (fault,) = faults("ascend910b", source=source)
    assert (fault.code, fault.where, fault.help) == ("D101", Where(2, 9, 10), "write `device: ascend-910b`")
    assert "`cuda-generic`" in fault.notes[0]
    assert faults("xyz")[0].help == "`dagsched devices` lists them"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (fault,) = faults("none.yaml", tmp_path)
    assert fault.code == "D102" and "no such file" in fault.headline
    assert faults("./", tmp_path)[0].code == "D102"
    assert faults("a\0.yaml", tmp_path)[0].code == "D102"
    with pytest.raises(UsageError):
        load_device("none.yaml", tmp_path)


def test_all_faults_of_a_file_have_places(tmp_path: Path) -> None:
    text = """\
dagsched-device: 1
engins: {}
engines:
  core: {kind: computer, lanes: 0}
  dma: {kind: h2d, bandwidth: 25GB, latency: 3}
  odd: {kind: compute, lanes: 3, cores: 20}
  a@b: {kind: host}
calls: {isue: 1 us}
limits: {streams: many}
"""
    (tmp_path / "d.yaml").write_text(text)
    found = {(f.where.line, f.where.column): f for f in faults("d.yaml", tmp_path) if f.where}
    assert {place: fault.code for place, fault in found.items()} == {
        (2, 1): "D103",
        (4, 16): "D105",
        (4, 33): "D105",
        (5, 31): "D105",
        (5, 46): "D105",
        (6, 34): "D106",
        (8, 9): "D103",
        (9, 19): "D105",
    }
    assert found[4, 16].help == "write `compute`"
    assert found[5, 31].help == "write `25GB/s`"
    assert found[6, 34].help == "write `cores: 21`"
    assert found[8, 9].help == "write `issue`"


def test_an_engine_must_have_a_name_that_streams_can_bear() -> None:
    (fault,) = faults({"engines": {"a@b": {"kind": "host"}}})
    assert fault.headline == "an engine's name must not contain `@`"


def test_an_inline_fault_points_into_the_plan() -> None:
    source = Source("p.yaml", "dagsched: 1\ndevice: {engines: {core: {kind: compute, lanes: 0}}}\n")
    (fault,) = faults({"engines": {"core": {"kind": "compute", "lanes": 0}}}, source=source)
    assert (fault.source, fault.where) == (source, Where(2, 49, 1))


@pytest.mark.parametrize(
    "spec", [{}, {"engines": {}}, {"engines": None}, {"engines": [1]}, {"engines": CORE, "x": object()}]
)
def test_malformed_data_from_python(spec: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        load_device(spec)


def test_memory_is_read() -> None:
    device = load_device({"engines": CORE, "memory": {"host": "8GiB", "device": 1000}})
    assert device.memory == Memory(8 << 30, 1000)
    with pytest.raises(PlanError, match=r"D105.*unknown unit `gib`"):
        load_device({"engines": CORE, "memory": {"host": "8gib"}})


@pytest.mark.parametrize("text", ["3", "[1, 2]", "null", "a: [", ""])
def test_malformed_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.yaml").write_text(text)
    assert faults("d.yaml", tmp_path)


@pytest.mark.parametrize(
    ("text", "value"), [("25 GB/s", 25e9), ("1.5GiB/s", 1.5 * 2**30), ("100 MB / s", 1e8), ("7 B/s", 7.0)]
)
def test_bandwidths(text: str, value: float) -> None:
    assert parse_bandwidth(text) == value


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("25 GB", "write `25 GB/s`"),
        ("25/s", "write `25 GB/s`"),
        ("25 gb/s", "write `25GB/s`"),
        ("25 GB/h", None),
        ("fast", None),
        ("0 GB/s", None),
        ("-3 GB/s", None),
        ("1e999 GB/s", None),
        ("", None),
    ],
)
def test_wrong_bandwidths(text: str, remedy: str | None) -> None:
    with pytest.raises(UnitError) as raised:
        parse_bandwidth(text)
    assert remedy is None or raised.value.remedy == remedy


def test_a_profile_as_the_beginning_of_ones_own(tmp_path: Path) -> None:
    """The text of a shipped profile is one of a file, and means the same there."""
    for name in device_names():
        path = tmp_path / f"{name}.yaml"
        path.write_text(profile_text(name), encoding="utf-8")
        assert load_device(str(path)) == load_device(name)
        assert profile_text(str(path)) == profile_text(name)
        assert "$schema" not in profile_text(name)


@pytest.mark.parametrize(
    ("key", "value", "help_"),
    [
        ("latency", ".nan", "for example `5 us`"),
        ("latency", "-1 us", "write `1 us`"),
        ("bandwidth", ".inf", "for example `25 GB/s`"),
        ("bandwidth", "0.1 B/s", "write `1 B/s`"),
        ("flops", ".nan", "for example `256 TFLOP/s`"),
    ],
)
def test_figures_that_are_none(key: str, value: str, help_: str) -> None:
    """With a place in the plan, and a remedy that is right when typed."""
    text = f"dagsched: 1\ndevice: {{engines: {{c: {{kind: compute, {key}: {value}}}}}}}\nbuffers: {{}}\nops: []\n"
    plan = read_plan(Source("p.yaml", text))
    with pytest.raises(PlanError) as raised:
        load_device(plan.device, source=plan.source)
    (found,) = raised.value.diagnostics
    assert (found.code, found.help, found.source) == ("D105", help_, plan.source)
    assert found.where is not None and found.where.line == 2
