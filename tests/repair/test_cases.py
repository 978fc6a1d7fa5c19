"""What is proposed for each schedule of ``tests/check/cases``, as people see it; read it in review."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dagsched.cli.console import open_console
from dagsched.cli.repairs import findings_of, patch_of, propose
from dagsched.diagnostics import Source
from dagsched.schedule.reader import read_schedule
from dagsched.view.diagnostics import diagnostics_text

CASES = Path(__file__).parent.parent / "check" / "cases"


def test_proposals(golden: Callable[[str, str], None]) -> None:
    parts = []
    console = open_console()
    for path in sorted(CASES.glob("*.schedule.yaml")):
        source = Source(path.name, path.read_text("utf-8"))
        proposal = propose(read_schedule(source), console)
        if proposal.changes:
            parts.append(patch_of(proposal, console, talk=False))
        elif not proposal.repair.is_right:
            parts.append(diagnostics_text(findings_of(proposal)))
    golden("repairs.txt", "\n".join(parts))
