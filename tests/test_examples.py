"""Every example compiles and proves; what the compiler yields for it stands in golden files, read in review.

Beyond the golden files, each example is held to what its comments say of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import dagsched
from dagsched.files import load_node, read_source, to_data
from dagsched.proof.check import check_schedule
from dagsched.schedule.reader import read_schedule
from dagsched.sources import read_file

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PLANS = sorted(EXAMPLES.glob("*.yaml"))
SCHEDULES = sorted(EXAMPLES.glob("handwritten/*.schedule.yaml"))
MODELINE = "# yaml-language-server: $schema="


def compile_example(name: str) -> dagsched.Schedule:
    return dagsched.compile(EXAMPLES / f"{name}.yaml")


def wait_texts(schedule: dagsched.Schedule) -> list[str]:
    """``stream waits event`` for every wait of a schedule, from its JSON form."""
    found: list[str] = []

    def walk(steps: list[dict[str, object]]) -> None:
        for step in steps:
            if "wait" in step:
                found.append(f"{step['stream']} waits {step['wait']}")
            inner = step.get("steps")
            if isinstance(inner, list):
                walk(inner)

    walk(json.loads(schedule.to_json())["steps"])
    return found


def test_there_are_examples() -> None:
    """An empty folder must not pass for a tested one."""
    assert {path.stem for path in PLANS} == {
        "add_one", "batches", "chunks", "denoise", "detector", "dynamic_shape", "heads", "video",
    }  # fmt: skip
    assert [path.name for path in SCHEDULES] == ["batches.schedule.yaml", "detector.schedule.yaml"]


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_example_matches_golden_files(path: Path, golden: Callable[[str, str], None]) -> None:
    schedule = dagsched.compile(path)
    assert schedule.compiled.proof.holds
    assert schedule.warnings == ()
    golden(f"{path.stem}.schedule.json", schedule.to_json())
    golden(f"{path.stem}.schedule.txt", schedule.to_text())


@pytest.mark.parametrize("path", [*PLANS, *SCHEDULES], ids=lambda path: path.name)
def test_modeline_names_the_schema_that_fits(path: Path) -> None:
    """The first line leads, from where the file lies, to the schema of its language, which accepts the file."""
    text = path.read_text(encoding="utf-8")
    first = text.splitlines()[0]
    assert first.startswith(MODELINE)
    schema_path = (path.parent / first.removeprefix(MODELINE)).resolve()
    kind = "schedule" if path in SCHEDULES else "plan"
    assert schema_path == ROOT / "schemas" / f"{kind}.schema.json"
    schema = json.loads(schema_path.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(to_data(load_node(read_source(text, path.name))))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_example_survives_a_round_trip(path: Path) -> None:
    """The plan that ``to_yaml`` writes compiles to the same bytes."""
    plan = dagsched.load(path)
    again = dagsched.loads(plan.to_yaml(), path.name)
    assert dagsched.compile(again).to_json() == dagsched.compile(plan).to_json()


def test_add_one_takes_two_streams_and_one_event() -> None:
    schedule = compile_example("add_one")
    assert sorted(schedule.model.streams) == ["compute", "copy"]
    assert schedule.compiled.handles == 1
    assert schedule.compiled.waits_kept == 1


def test_batches_waits_in_both_directions() -> None:
    schedule = compile_example("batches")
    upload, accumulate = schedule.streams["upload"], schedule.streams["accumulate"]
    assert upload != accumulate
    assert sorted(wait_texts(schedule)) == sorted(
        [f"{upload} waits accumulate.done@i-2", f"{accumulate} waits upload.done@i"]
    )


def test_detector_puts_each_engine_on_its_own_stream() -> None:
    schedule = compile_example("detector")
    streams = schedule.streams
    assert streams["resize"] == streams["infer"]
    assert len({streams[op] for op in ("decode", "upload", "infer", "download", "draw")}) == 5
    rings = {name: buffer.ring.depth for name, buffer in schedule.compiled.resolved.buffers.items()}
    assert set(rings.values()) == {1}  # the AI Cores alone are busy; tests/cost/test_depths.py searches all depths


def test_heads_are_independent() -> None:
    """No hazard joins two heads of one layer, and no two heads share a stream."""
    schedule = compile_example("heads")
    heads = {f"attention.{h}" for h in range(8)}
    between = [
        hazard
        for hazard in schedule.compiled.hazards.entries
        if hazard.before in heads and hazard.after in heads and hazard.before != hazard.after
    ]
    assert between == []
    assert len({schedule.streams[head] for head in heads}) == 8


def test_video_queues_hold_eight() -> None:
    """Each producer waits for the consumer of eight frames ago, and for nothing newer."""
    waits = wait_texts(compile_example("video"))
    assert "reader waits decode.done@i-8" in waits
    assert "decoder waits draw.done@i-8" in waits


def test_chunks_touch_disjoint_parts_of_the_arrays() -> None:
    """Moving regions do not conflict: only the two device buffers give hazards."""
    schedule = compile_example("chunks")
    assert {hazard.buffer for hazard in schedule.compiled.hazards.entries} == {"chunk", "scaled"}


def test_chunks_with_a_bound_off_by_one_is_refused() -> None:
    text = (EXAMPLES / "chunks.yaml").read_text(encoding="utf-8")
    wrong = text.replace("from: input[i*4194304:min(i*4194304+4194304, 100000000)]",
                         "from: input[i*4194304:min(i*4194304+4194304, 100000001)]")  # fmt: skip
    assert wrong != text
    with pytest.raises(dagsched.PlanError) as caught:
        dagsched.compile(dagsched.loads(wrong))
    assert any("input" in diagnostic.headline for diagnostic in caught.value.diagnostics)


def test_dynamic_buffers_keep_their_capacity() -> None:
    compiled = compile_example("dynamic_shape").compiled
    assert all(buffer.dynamic for buffer in compiled.resolved.buffers.values())
    assert compiled.resolved.buffers["hidden"].size == 8 * 512 * 768 * 2


def test_handwritten_wait_can_go_and_forbids_all_overlap() -> None:
    """W1 is removable: nothing races without it, while with it no copy ever overlaps a computation. W2 is needed."""
    path = EXAMPLES / "handwritten" / "batches.schedule.yaml"
    text = path.read_text(encoding="utf-8")
    verdict = check_schedule(read_schedule(read_file(path)))
    assert verdict.verdict == "ok"
    assert verdict.waits.total == 2
    assert verdict.waits.redundant == ()
    [wait] = verdict.waits.removable
    assert wait.label == "W1"
    assert wait.streams is not None
    assert set(wait.streams) == {"copy", "compute"}

    lines = text.splitlines(keepends=True)
    for label, expected in (("W1", "ok"), ("W2", "race")):
        without = "".join(line for line in lines if f"label: {label}" not in line)
        assert check_schedule(read_schedule(read_source(without, path.name))).verdict == expected
