"""Find and read device profiles: built in, in a file, or inline in a plan.

Built-in profiles are trusted (a test validates each), so that reading one does not import pydantic. All others are
checked against the models of ``device_file``, and every complaint names its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagsched.cost.model import CallCosts, Device, Engine, Limits
from dagsched.cost.quantities import parse_bandwidth, parse_flops
from dagsched.diagnostics import Diagnostic, PlanError, Source, UsageError, Where, closest
from dagsched.nodes import to_data
from dagsched.plan.model import Memory
from dagsched.plan.units import parse_size, parse_time
from dagsched.yaml_nodes import compose_yaml

if TYPE_CHECKING:
    from dagsched.nodes import Node

_DIRECTORY = Path(__file__).parent.parent / "devices"
_SUFFIXES = (".yaml", ".yml", ".json")


def device_names() -> tuple[str, ...]:
    """The built-in profiles, in alphabetical order."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.yaml")))


def load_device(spec: str | Mapping[str, Any], base: Path | None = None, source: Source | None = None) -> Device:
    """The device that ``spec`` says: a built-in name, a path to a profile, or an inline profile as plain data.

    ``base`` is the directory that a relative path starts from; ``source`` is the plan's file, so that complaints about
    its ``device:`` have a place (and a relative path starts from its directory where ``base`` is None). What contains
    ``/`` or ends in ``.yaml``, ``.yml`` or ``.json`` is a path.
    Raises :class:`PlanError` for an unknown name (D101) and a malformed profile (D103 to D106), :class:`UsageError`
    for a file that cannot be read (D102).
    """
    if not isinstance(spec, str):
        return _checked(dict(spec), lambda: _own_node(spec, source), "inline")
    if "/" in spec or "\\" in spec or spec.lower().endswith(_SUFFIXES):
        return _from_file(spec, base, source)
    if spec in device_names():
        return _built_in(spec)
    near = closest(spec, device_names())
    known = ", ".join(f"`{name}`" for name in device_names())
    headline = f"there is no device profile `{spec}`"
    notes = (f"built in: {known}; a path to a profile ends in `.yaml`",)
    help_ = f"write `device: {near}`" if near else "`dagsched devices` lists them"
    raise PlanError([Diagnostic("D101", headline, _place(source), source, notes=notes, help=help_)])


def profile_text(spec: str) -> str:
    """The text of a profile that is built in or in a file, comments and all; raises as :func:`load_device` does."""
    load_device(spec)
    if spec in device_names():
        text = (_DIRECTORY / f"{spec}.yaml").read_text(encoding="utf-8")
        return re.sub(r"\A# yaml-language-server:.*\n", "", text)  # where the schema lies is known to the file only
    from dagsched.files import decode_source

    return decode_source(Path(spec).read_bytes(), spec).text


def device_from_data(data: Mapping[str, Any], name: str) -> Device:
    """A device from a profile's data, which must be valid; ``name`` serves where the data has none."""
    engines = {
        key: Engine(
            name=key,
            kind=entry["kind"],
            lanes=entry.get("lanes", 1),
            bandwidth=parse_bandwidth(entry["bandwidth"]) if "bandwidth" in entry else None,
            latency=parse_time(entry["latency"]) if "latency" in entry else 0.0,
            cores=entry.get("cores"),
            flops=_peaks(entry.get("flops", {})),
            memory_bandwidth=parse_bandwidth(entry["memory_bandwidth"]) if "memory_bandwidth" in entry else None,
        )
        for key, entry in data["engines"].items()
    }
    return Device(
        name=data.get("name", name),
        engines=engines,
        calls=CallCosts(**{key: parse_time(text) for key, text in data.get("calls", {}).items()}),
        limits=Limits(**data.get("limits", {})),
        memory=Memory(**{place: parse_size(size) for place, size in data.get("memory", {}).items()}),
        description=data.get("description", ""),
        sources=tuple(data.get("sources", ())),
    )


def _peaks(entry: str | Mapping[str, str]) -> dict[str, float]:
    by_dtype = {"": entry} if isinstance(entry, str) else entry
    return {dtype: parse_flops(text) for dtype, text in by_dtype.items()}


@cache
def _built_in(name: str) -> Device:
    source = Source(f"{name}.yaml", (_DIRECTORY / f"{name}.yaml").read_text(encoding="utf-8"))
    node, findings = compose_yaml(source)
    assert node is not None and not findings
    return device_from_data(to_data(node), name)


def _from_file(spec: str, base: Path | None, plan: Source | None) -> Device:
    from dagsched.files import decode_source, load_node

    if base is None and plan is not None:
        base = Path(plan.name).parent
    path = (base or Path()) / spec
    try:
        data = path.read_bytes()
    except OSError as error:
        headline = f"cannot read the device profile `{path}`: {(error.strerror or str(error)).lower()}"
        raise UsageError([Diagnostic("D102", headline, _place(plan), plan)]) from None
    except ValueError:
        raise UsageError([Diagnostic("D102", f"`{spec!r}` is not a path", _place(plan), plan)]) from None
    source = decode_source(data, str(path))
    node = load_node(source)
    return _checked(to_data(node), lambda: (node, source), re.sub(r"\.(dagsched|device)\Z", "", path.stem))


def _checked(data: Any, find: Callable[[], tuple[Node | None, Source | None]], name: str) -> Device:
    """Validate and convert; where ``find`` has no node, the data itself stands as the file, so that messages show it.

    A plan is read again only to say where something is wrong: a large one takes seconds.
    """
    from pydantic import ValidationError

    from dagsched.cost.device_file import DeviceFile
    from dagsched.file_models import FormCodes, diagnostics_from

    try:
        DeviceFile.model_validate(data)
    except ValidationError as error:
        node, source = find()
        if node is None or source is None:
            source = _as_source(data)
            node, _ = compose_yaml(source)
        if node is None:
            raise PlanError([Diagnostic("D105", "a device profile must be a mapping")]) from None
        codes = FormCodes(unknown_key="D103", missing_key="D104", wrong_value="D105")
        raise PlanError(diagnostics_from(error, node, source, codes)) from None
    return device_from_data(data, name)


def _as_source(data: Any) -> Source:
    """Data that came from Python as the YAML that it would be in a file (what YAML cannot say, as its ``repr``)."""
    import json

    return Source("<device>", json.dumps(data, indent=2, ensure_ascii=False, default=repr))


def _own_node(spec: Mapping[str, Any], source: Source | None) -> tuple[Node | None, Source | None]:
    """Where a plan's file says ``spec``; nothing where it says something else."""
    node = _node_in_plan(source)
    if node is None or node.kind != "mapping" or repr(to_data(node)) != repr(dict(spec)):  # `.nan` is not itself
        return None, None
    return node, source


def _node_in_plan(source: Source | None) -> Node | None:
    """The value of ``device:`` in a plan's file, read again; None where there is none."""
    if source is None:
        return None
    node, _ = compose_yaml(source)
    return node.get("device") if node is not None and node.kind == "mapping" else None


def _place(source: Source | None) -> Where | None:
    node = _node_in_plan(source)
    return None if node is None else node.where
