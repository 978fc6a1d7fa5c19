"""The schemas are those of the models, are valid draft-07, and take and refuse what the readers take and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dagsched.diagnostics import Source
from dagsched.files import load_node, read_source, to_data
from dagsched.schedule.reader import read_schedule
from dagsched.schemas import SCHEMAS, schema_text, write_schemas

ROOT = Path(__file__).parents[2]
FILES = {
    "plan": sorted((ROOT / "examples").glob("*.yaml")),
    "schedule": [
        *sorted((ROOT / "examples" / "handwritten").glob("*.yaml")),
        *sorted((ROOT / "tests" / "check" / "cases").glob("*.schedule.yaml")),
        *sorted((ROOT / "tests" / "golden").glob("*.schedule.json")),
    ],
    "device": sorted((ROOT / "dagsched" / "devices").glob("*.yaml")),
}
VALIDATORS = {name: jsonschema.Draft7Validator(make()) for name, make in SCHEMAS.items()}


def data_of(text: str, name: str = "t.yaml") -> Any:
    return to_data(load_node(read_source(text, name)))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_files_are_in_step(name: str) -> None:
    text = (ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert text == schema_text(SCHEMAS[name]()), "run `make schemas`"


def test_all_are_written(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.schema.json" for name in SCHEMAS)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_are_draft_7(name: str) -> None:
    """Nothing of later drafts, no reference into nowhere, and a description for every key."""
    schema = SCHEMAS[name]()
    jsonschema.Draft7Validator.check_schema(schema)
    text = json.dumps(schema)
    for word in ("$defs", "prefixItems", "unevaluatedProperties", "dependentRequired"):
        assert word not in text
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema["title"].startswith("dagsched ")
    assert schema["description"]
    for holder in (schema, *schema["definitions"].values()):
        assert holder["additionalProperties"] is False
        for key, entry in holder["properties"].items():
            target = entry["allOf"][0]["$ref"].rpartition("/")[2] if "allOf" in entry else ""
            assert entry.get("description") or schema["definitions"][target]["description"], key
            default = entry.get("default")
            assert not isinstance(default, dict) or None not in default.values()
    references = {part.split('"')[0] for part in text.split('"$ref": "#/definitions/')[1:]}
    assert references == set(schema["definitions"])


@pytest.mark.parametrize(
    ("name", "path"),
    [(name, path) for name, paths in FILES.items() for path in paths],
    ids=lambda value: str(value)[-40:],
)
def test_files_are_accepted(name: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    VALIDATORS[name].validate(data_of(text, path.name))
    if name == "schedule":
        read_schedule(Source(path.name, text))


def test_there_are_files_of_each_language() -> None:
    assert min(len(paths) for paths in FILES.values()) > 0
    assert len(FILES["schedule"]) > 40


@pytest.mark.parametrize(
    "step",
    [
        "{stream: s, opp: x}", "{stream: s}", "{sync: everything}", "{loop: i, count: 1}", "{op: a}",
        "{loop: i, steps: []}", "{loop: i, count: 1, range: [0, 1], steps: []}", "{stream: s, op: a, wait: e}",
        "{stream: s, op: a, reads: ['x[']}", "{stream: s, op: a, reads: ['x@']}", "{stream: s@, op: a}",
        "{stream: s, op: a, reads: x}", "{host: a, stream: s}", "{sync: {stream: s, event: e}}", "{stream: s, op: 1}",
        "{stream: s, wait: e, for: [{before: a, after: b, kind: RAR}]}", "{stream: s, record: e, for: []}",
    ],
)  # fmt: skip
def test_wrong_steps_are_refused(step: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATORS["schedule"].validate(data_of(f"dagsched-schedule: 1\nsteps:\n- {step}\n"))


@pytest.mark.parametrize(
    ("key", "value"),
    [("size", "48 MIB"), ("size", 0), ("ring", 0), ("ring", None), ("at", [0]), ("place", "hots"), ("dtype", "half"),
     ("alias", ""), ("shape", []), ("rings", 2)],
)  # fmt: skip
def test_wrong_buffers_are_refused(key: str, value: object) -> None:
    entry = {"shape": [2]} if key == "dtype" else {}
    data = {"dagsched-schedule": 1, "buffers": {"x": {**entry, key: value}}, "steps": []}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATORS["schedule"].validate(data)


@pytest.mark.parametrize(
    "op",
    ["{compute: f, reads: ['x[']}", "{compute: f, writes: ['@i']}", "{name: c, copy: {from: 'x[0:4', to: y}}",
     "{compute: f, after: [c@]}", "{compute: f, time: 3}", "{compute: f, host: g}"],
)  # fmt: skip
def test_wrong_ops_are_refused(op: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATORS["plan"].validate(data_of(f"dagsched: 1\nbuffers: {{}}\nops:\n- {op}\n"))


@pytest.mark.parametrize("path", [*FILES["plan"], FILES["schedule"][0]], ids=lambda path: path.name)
def test_editors_find_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    prefix = "# yaml-language-server: $schema="
    assert first.startswith(prefix)
    assert (path.parent / first.removeprefix(prefix)).resolve().is_file()
