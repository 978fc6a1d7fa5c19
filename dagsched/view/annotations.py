"""Diagnostics for machines: plain data, GitHub workflow commands and SARIF 2.1.0.

The same facts as the text form; columns count characters from 1 in all of them. JSON is pure ASCII, so it is safe on
any terminal and in any encoding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from dagsched.diagnostics import Diagnostic, Severity, Source, Where
from dagsched.edits import Edit
from dagsched.nodes import Lines
from dagsched.view.codes import explanation

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_GITHUB: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}


def diagnostic_data(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic as plain data; absent facts are null or empty."""
    where = diagnostic.where
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "headline": diagnostic.headline,
        "file": diagnostic.source.name if diagnostic.source else None,
        "line": where.line if where else None,
        "column": where.column if where else None,
        "width": where.width if where else None,
        "labels": [
            {"line": label.where.line, "column": label.where.column, "width": label.where.width, "text": label.text}
            for label in diagnostic.labels
        ],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
    }


def github_commands(diagnostics: Iterable[Diagnostic]) -> str:
    """One workflow command a line (``::error file=...::...``); GitHub shows them beside the lines of a pull request."""
    return "".join(f"{_github_command(diagnostic)}\n" for diagnostic in diagnostics)


def _github_command(diagnostic: Diagnostic) -> str:
    fields = {}
    if diagnostic.source:
        fields["file"] = diagnostic.source.name
    if diagnostic.where:
        fields["line"] = str(diagnostic.where.line)
        fields["col"] = str(diagnostic.where.column)
        fields["endColumn"] = str(diagnostic.where.column + diagnostic.where.width)
    fields["title"] = f"dagsched {diagnostic.code}"
    properties = ",".join(f"{key}={_escape_property(value)}" for key, value in fields.items())
    return f"::{_GITHUB[diagnostic.severity]} {properties}::{_escape_data(_message(diagnostic))}"


def _message(diagnostic: Diagnostic) -> str:
    """Everything that is said, as lines."""
    lines = [diagnostic.headline]
    lines += [f"line {label.where.line}: {label.text}" for label in diagnostic.labels]
    lines += list(diagnostic.notes)
    lines += [f"help: {diagnostic.help}"] if diagnostic.help else []
    return "\n".join(lines)


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits of one file that repair all that is found in it; SARIF has them at the first finding of the file."""

    source: Source
    text: str
    edits: Sequence[Edit]


def sarif_log(diagnostics: Iterable[Diagnostic], version: str, fixes: Sequence[Fix] = ()) -> str:
    """A SARIF 2.1.0 log of one run; ``version`` is dagsched's."""
    every = tuple(diagnostics)
    codes = sorted({diagnostic.code for diagnostic in every})
    driver = {
        "name": "dagsched",
        "version": version,
        "rules": [{"id": code, "shortDescription": {"text": explanation(code) or code}} for code in codes],
    }
    results = [_sarif_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in every]
    for fix in fixes:
        first = next((at for at, found in enumerate(every) if found.source == fix.source), None)
        if first is not None:
            results[first]["fixes"] = [_sarif_fix(fix)]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _sarif_result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": _message(diagnostic)},
    }
    if diagnostic.source:
        name = diagnostic.source.name
        result["locations"] = [_sarif_location(name, diagnostic.where)]
        related = [
            {**_sarif_location(name, label.where), "id": number, "message": {"text": label.text}}
            for number, label in enumerate(diagnostic.labels)
        ]
        if related:
            result["relatedLocations"] = related
    return result


def _sarif_fix(fix: Fix) -> dict[str, Any]:
    lines = Lines(fix.source.text)
    replacements = []
    for edit in fix.edits:
        start, end = lines.where(edit.start, edit.start), lines.where(edit.end, edit.end)
        region = {
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end.column,
        }
        replacements.append({"deletedRegion": region, "insertedContent": {"text": edit.replacement}})
    change = {"artifactLocation": {"uri": _uri(fix.source.name)}, "replacements": replacements}
    return {"description": {"text": fix.text}, "artifactChanges": [change]}


def _sarif_location(name: str, where: Where | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(name)}}
    if where:
        physical["region"] = {
            "startLine": where.line,
            "startColumn": where.column,
            "endColumn": where.column + where.width,
        }
    return {"physicalLocation": physical}


def _uri(name: str) -> str:
    """A relative URI reference, or a ``file:`` URI for an absolute path."""
    path = quote(name.replace("\\", "/").encode("utf-8", "surrogateescape"))
    return f"file://{path}" if path.startswith("/") else path
