"""The import contracts of pyproject.toml hold."""

from __future__ import annotations

import logging
from pathlib import Path

from importlinter import cli

ROOT = Path(__file__).parent.parent


def test_import_contracts_hold() -> None:
    try:
        assert cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == cli.EXIT_STATUS_SUCCESS
    finally:  # it disables all loggers that there are, and tests that come later look at some
        for logger in logging.root.manager.loggerDict.values():
            if isinstance(logger, logging.Logger):
                logger.disabled = False
