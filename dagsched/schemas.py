"""JSON schemas (draft-07, which editors know) of the languages, from the pydantic models that read the files.

``python -m dagsched.schemas [DIR]`` rewrites them in ``schemas/``; a test holds them in step with the models.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

DRAFT = "http://json-schema.org/draft-07/schema#"


def plan_schema() -> dict[str, Any]:
    """The schema of plan files."""
    from dagsched.plan.plan_file import PlanFile
    from dagsched.schedule.schedule_file import ACCESS_PATTERN, INDEXED_PATTERN

    patterns = dict.fromkeys(("reads", "writes", "updates", "accumulates", "from", "to"), ACCESS_PATTERN)
    return _with_patterns(_draft7(PlanFile, "dagsched plan"), {**patterns, "after": INDEXED_PATTERN})


def schedule_schema() -> dict[str, Any]:
    """The schema of schedule files."""
    from dagsched.schedule.schedule_file import ScheduleFile

    return _draft7(ScheduleFile, "dagsched schedule")


def device_schema() -> dict[str, Any]:
    """The schema of device profiles."""
    from dagsched.cost.device_file import DeviceFile

    return _draft7(DeviceFile, "dagsched device profile")


def schema_text(schema: dict[str, Any]) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


SCHEMAS = {"plan": plan_schema, "schedule": schedule_schema, "device": device_schema}


def _draft7(model: type[BaseModel], title: str) -> dict[str, Any]:
    generated = _rename(model.model_json_schema(by_alias=True, ref_template="#/definitions/{model}"))
    assert isinstance(generated, dict)
    definitions = generated.pop("definitions", {})
    generated.pop("title", None)
    return {"$schema": DRAFT, "title": title, **generated, "definitions": definitions}


def _with_patterns(schema: dict[str, Any], patterns: Mapping[str, str]) -> dict[str, Any]:
    """The schema with a pattern on each text, or on each text of a list, that stands under one of some keys."""
    for definition in schema["definitions"].values():
        for key, pattern in patterns.items():
            entry = definition.get("properties", {}).get(key)
            if entry is not None:
                (entry["items"] if entry["type"] == "array" else entry)["pattern"] = pattern
    return schema


def _rename(value: Any) -> Any:
    """From 2020-12, which pydantic speaks; the two differ, as far as these models go, in where definitions stand.

    The titles that pydantic makes of keys say nothing that the keys do not, and hide the descriptions in editors.
    """
    if isinstance(value, dict):
        for entry in value["properties"].values() if isinstance(value.get("properties"), dict) else ():
            entry.pop("title", None)
        renamed = {("definitions" if key == "$defs" else key): _rename(item) for key, item in value.items()}
        if isinstance(renamed.get("default"), dict):  # keys that are left out by default cannot be null
            renamed["default"] = {key: item for key, item in renamed["default"].items() if item is not None}
        if "$ref" in renamed and len(renamed) > 1:  # draft-07 ignores what stands beside a reference
            reference = {"$ref": renamed.pop("$ref")}
            return {"allOf": [reference], **renamed}
        return renamed
    return [_rename(item) for item in value] if isinstance(value, list) else value


def write_schemas(directory: Path) -> None:
    """Write all schemas into a directory."""
    from dagsched.output import write_files

    write_files(directory, {f"{name}.schema.json": schema_text(make()) for name, make in SCHEMAS.items()})


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("schemas"))
