"""The folder that goes into the machine: the same files are the same bytes, and nothing else goes."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from qjump_mn.errors import UsageError
from qjump_mn.mn import folder as folders


def names(packed: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return archive.getnames()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "sub").mkdir(parents=True)
    (folder / "my.py").write_text("print(1)\n")
    (folder / "sub/run.sh").write_text("#!/bin/sh\n")
    (folder / "sub/run.sh").chmod(0o755)
    return folder


def test_same_files_are_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    packed = folders.pack(folder)
    os.utime(folder / "my.py", (0, 0))
    (folder / "my.py").chmod(0o600)
    assert folders.pack(folder) == packed
    (folder / "my.py").write_text("print(2)\n")
    assert folders.pack(folder) != packed


def test_right_to_execute_goes_in(folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(folders.pack(folder))) as archive:
        modes = {member.name: member.mode for member in archive}
    assert modes == {"my.py": 0o644, "sub": 0o755, "sub/run.sh": 0o755}


def test_results_caches_and_histories_stay_behind(folder: Path) -> None:
    for name in ("results", ".git", "__pycache__", "node_modules"):
        (folder / name).mkdir()
        (folder / name / "file").write_text("x")
    assert names(folders.pack(folder, folder / "results")) == ["my.py", "sub", "sub/run.sh"]


def test_link_within_the_folder_goes_in(folder: Path) -> None:
    (folder / "sub/again").symlink_to("../my.py")
    assert "sub/again" in names(folders.pack(folder))


@pytest.mark.parametrize("target", ["../outside", "/etc/passwd"])
def test_link_that_leads_out_is_refused(folder: Path, target: str) -> None:
    (folder / "link").symlink_to(target)
    with pytest.raises(UsageError, match="not in the folder that goes into the machine"):
        folders.pack(folder)


def test_large_folder_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MAX_BYTES", 1 << 20)
    (folder / "large").write_bytes(bytes(1 << 20))
    with pytest.raises(UsageError, match="has more than 1 MB: put the script"):
        folders.pack(folder)
    (folder / "large").unlink()
    monkeypatch.setattr(folders, "MAX_FILES", 2)
    with pytest.raises(UsageError, match="has more than 2 files"):
        folders.pack(folder)


def test_no_folder_is_an_empty_one() -> None:
    assert names(folders.pack(None)) == []
