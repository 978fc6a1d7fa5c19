"""Print diagnostics in the format that the user asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dagsched import __version__
from dagsched.cli.console import Console
from dagsched.diagnostics import DagschedError, Diagnostic

if TYPE_CHECKING:
    from dagsched.view.annotations import Fix


def print_diagnostics(
    console: Console,
    diagnostics: Iterable[Diagnostic],
    format: str,
    *,
    talk: bool = True,
    fixes: Sequence[Fix] = (),
) -> None:
    """Text goes to stderr where it is ``talk`` beside a command's data, else to stdout, where the other forms go;
    ``fixes`` go into SARIF."""
    if format == "github":
        from dagsched.view.annotations import github_commands

        console.write(github_commands(diagnostics))
    elif format == "sarif":
        from dagsched.view.annotations import sarif_log

        console.write(sarif_log(diagnostics, __version__, fixes))
    else:
        from dagsched.view.diagnostics import diagnostics_text

        paint = console.talk if talk else console.paint
        text = diagnostics_text(diagnostics, paint=paint, width=max(60, console.width))
        if talk:
            console.stderr.write(text)
        else:
            console.write(text)


def print_json(console: Console, data: Mapping[str, Any]) -> None:
    """One JSON object on one line, pure ASCII."""
    console.write(json.dumps(data) + "\n")


def print_failure(console: Console, error: DagschedError, format: str) -> None:
    """Why a command ended early."""
    if format == "json":
        from dagsched.view.annotations import diagnostic_data

        print_json(
            console,
            {
                "dagsched": "failure/1",
                "exit": error.exit_status,
                "diagnostics": [diagnostic_data(diagnostic) for diagnostic in error.diagnostics],
            },
        )
    else:
        print_diagnostics(console, error.diagnostics, format)
