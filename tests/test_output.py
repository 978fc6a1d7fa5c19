"""Files appear whole or not at all, and a set of files all or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagsched.diagnostics import UsageError
from dagsched.output import write_files


def test_files_are_written(tmp_path: Path) -> None:
    paths = write_files(tmp_path / "a" / "b", {"x": "1\n", "y": b"2"})
    assert [path.read_bytes() for path in paths] == [b"1\n", b"2"]
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == ["x", "y"]


def test_a_directory_in_the_way_leaves_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    (tmp_path / "y").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        write_files(tmp_path, {"x": "new", "y": "new"})
    assert (tmp_path / "x").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y"]


def test_a_rename_that_fails_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_text("old")
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if target.name == "z" and self.suffix == ".part":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(UsageError, match="no space left on device"):
        write_files(tmp_path, {"x": "new", "y": "new", "z": "new"})
    assert (tmp_path / "x").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_directories_made_in_vain_are_removed(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_files(tmp_path / "a" / "b", {"no/such/place": "1"})
    assert list(tmp_path.iterdir()) == []
