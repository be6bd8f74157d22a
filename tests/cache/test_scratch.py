"""Where temporary files go when nobody may write where they usually do."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from qjump_mn.cache import scratch
from qjump_mn.process import temp_dirs


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QJUMP_MN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "cache"


@pytest.mark.parametrize("last_resort", ["the folder of the start", "none"])
def test_without_another_folder_they_are_in_the_cache(
    last_resort: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def candidate() -> str:
        if last_resort == "none":
            raise FileNotFoundError
        return os.getcwd()

    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "gettempdir", candidate)
        scratch.provide()
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(root / "tmp" / str(os.getuid()))
    with temp_dirs.folder() as folder:
        assert Path(folder).parent == Path(tempfile.gettempdir())


@pytest.mark.parametrize("named", [True, False])
def test_a_folder_that_can_be_written_stays(
    named: bool, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if named:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path if named else "/tmp")
    before = os.environ["TMPDIR"]
    scratch.provide()
    assert os.environ["TMPDIR"] == before and not root.exists()


def test_matplotlib_gets_a_folder_where_the_home_cannot_be_written(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    with ExitStack() as stack:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert scratch.for_matplotlib(stack) == {}
        monkeypatch.setenv("HOME", "/nowhere")
        in_cache = str(root / "tmp" / str(os.getuid()) / "matplotlib")
        assert scratch.for_matplotlib(stack) == {"MPLCONFIGDIR": in_cache}
        monkeypatch.setenv("QJUMP_MN_CACHE", "/dev/null/cache")
        folder = Path(scratch.for_matplotlib(stack)["MPLCONFIGDIR"])
        assert folder.is_dir()
        monkeypatch.setenv("MPLCONFIGDIR", "/elsewhere")
        assert scratch.for_matplotlib(stack) == {}
    assert not folder.exists()
