"""One build of qjau for all its tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app_util.qjau import SOURCE, AppUtil, run


@pytest.fixture(scope="session")
def app() -> Iterator[AppUtil]:
    before = sorted(SOURCE.rglob("*"))
    with tempfile.TemporaryDirectory(prefix="qjau-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        result = run(["make", "-C", SOURCE, f"BUILD={folder}"])
        assert (result.returncode, result.stderr) == (0, "")
        assert sorted(SOURCE.rglob("*")) == before, "an out-of-tree build leaves the sources alone"
        yield AppUtil(folder)
