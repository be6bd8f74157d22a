"""One build of qjau for all its tests, the network that they send over, and programs in Go."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.app_util import network as networks
from tests.native.app_util.network import Network
from tests.native.app_util.qjau import PROGRAMS, SOURCE, AppUtil, Words, run


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


@pytest.fixture
def network() -> Iterator[Network]:
    with networks.made() as made:
        yield made


@pytest.fixture(scope="session")
def go(app: AppUtil) -> dict[str, Path]:
    """talk.go, linked by itself, without a build id, and with the C library, which makes it
    dynamic."""
    if not shutil.which("go"):
        pytest.skip("there is no Go compiler: install golang-go")
    plain, c = {"CGO_ENABLED": "0"}, {"CGO_ENABLED": "1"}
    made = {}
    bare = "-ldflags=-linkmode=external -B none -buildid= -s -w"
    for name, options, environment in (
        ("static", ["-ldflags=-buildid="], plain),
        ("dynamic", ["-ldflags=-linkmode=external"], c),
        ("bare", [bare], c),
    ):
        made[name] = app.folder / f"talk-{name}"
        argv: Words = ["go", "build", "-o", made[name], *options, PROGRAMS / "talk.go"]
        own = {"GOCACHE": f"{app.folder}/gocache", "GOFLAGS": "-trimpath", "GO111MODULE": "off"}
        subprocess.run(argv, env={**os.environ, **own, **environment}, check=True)
    return made
