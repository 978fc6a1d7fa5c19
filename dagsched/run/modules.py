"""The user's module for ``dagsched run --functions``: imported, which runs its code, and asked for what a run needs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dagsched.run.errors import refuse

_OURS = (__file__, importlib.__file__)


@dataclass(frozen=True, slots=True)
class UserModule:
    """``functions`` is the module itself, whose attributes are found by name."""

    functions: ModuleType

    def inputs(self) -> dict[str, Any]:
        """What its ``inputs`` says: a mapping, or a function that returns one; raises :class:`UsageError` (R116)."""
        return self._mapping("inputs")

    def sources(self) -> dict[str, Any]:
        """What its ``sources`` says, by parameter."""
        return self._mapping("sources")

    def _mapping(self, name: str) -> dict[str, Any]:
        value = getattr(self.functions, name, {})
        if callable(value):
            try:
                value = value()
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
                raise refuse("R116", f"`{name}` of `{self.functions.__name__}` raised {said}") from error
        if not isinstance(value, Mapping):
            kind = type(value).__name__
            headline = f"`{name}` of module `{self.functions.__name__}` is of type `{kind}`, and a mapping is needed"
            raise refuse("R116", headline, help=f'write `{name} = {{"NAME": ...}}`, or a function that returns this')
        return dict(value)


def load_module(name: str) -> UserModule:
    """Import a module by name (the current directory is searched, too) or by its path, which ends in ``.py``.

    Raises :class:`UsageError` (R115) with what its import raised.
    """
    try:
        if name.endswith(".py"):
            return UserModule(_load_path(Path(name)))
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        return UserModule(importlib.import_module(name))
    except (Exception, SystemExit) as error:
        reason = str(error).strip().splitlines()
        said = f": {reason[0]}" if reason else ""
        headline = f"module `{name}` cannot be imported: {type(error).__name__}{said}"
        raise refuse("R115", headline, notes=_place(error), help=_how_to_try(name)) from error


def _place(error: BaseException) -> tuple[str, ...]:
    """Where the user's code raised: nothing where the module was not even found."""
    if isinstance(error, SyntaxError) and error.filename:
        return (f"in {error.filename}:{error.lineno}",)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in _OURS]
    frames = [frame for frame in frames if not frame.filename.startswith("<")]  # the import machinery
    return (f"raised in {frames[-1].filename}:{frames[-1].lineno}",) if frames else ()


def _how_to_try(name: str) -> str:
    if name.endswith(".py"):
        path = Path(name)
        return f"try `python {name}`" if path.is_file() else f"there is no file `{name}`: correct the path"
    return f"try `python -c 'import {name}'`"


def _load_path(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent.resolve()))
    return module
