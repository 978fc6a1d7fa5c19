"""The schemas are those of the models, are valid draft-07, and accept what the readers accept."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dagsched.files import load_node, read_source, to_data
from dagsched.schemas import SCHEMAS, schema_text

ROOT = Path(__file__).parents[2]
PLANS = sorted((ROOT / "examples").glob("*.yaml"))
SCHEDULES = sorted((ROOT / "examples" / "handwritten").glob("*.yaml"))
DEVICES = sorted((ROOT / "dagsched" / "devices").glob("*.yaml"))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_files_are_in_step(name: str) -> None:
    text = (ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert text == schema_text(SCHEMAS[name]()), "run `make schemas`"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_are_draft_7(name: str) -> None:
    schema = SCHEMAS[name]()
    jsonschema.Draft7Validator.check_schema(schema)
    assert "$defs" not in json.dumps(schema)


@pytest.mark.parametrize(
    ("name", "path"),
    [("plan", path) for path in PLANS]
    + [("schedule", path) for path in SCHEDULES]
    + [("device", path) for path in DEVICES],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_files_are_accepted(name: str, path: Path) -> None:
    data = to_data(load_node(read_source(path.read_text(encoding="utf-8"), path.name)))
    jsonschema.Draft7Validator(SCHEMAS[name]()).validate(data)


@pytest.mark.parametrize("text", ["{stream: s, opp: x}", "{stream: s}", "{sync: everything}", "{loop: i, count: 1}"])
def test_wrong_steps_are_refused(text: str) -> None:
    data = to_data(load_node(read_source(f"dagsched-schedule: 1\nsteps:\n- {text}\n", "t.yaml")))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMAS["schedule"]()).validate(data)


@pytest.mark.parametrize("path", [*PLANS, *SCHEDULES], ids=lambda path: path.name)
def test_editors_find_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    prefix = "# yaml-language-server: $schema="
    assert first.startswith(prefix)
    assert (path.parent / first.removeprefix(prefix)).resolve().is_file()
