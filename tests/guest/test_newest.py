"""A mirror that has moved on: of what it has now another machine is made, and every run on it says
so.

The mirror is one of ours, of the locked packages; one of them is a newer version there. Its ping is
a byte longer, so that it is another image as well.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qjump_mn import toolbox
from qjump_mn.errors import MachineError
from qjump_mn.results import directory
from qjump_mn.toolbox import lock as locks
from tests.support import moved

pytestmark = [pytest.mark.guest, pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(3600)]

PACKAGE, FILE = "iputils-ping", "usr/bin/ping"
RUN = ["-m", "qjump_mn.run", "run", "fig3a", "--preset", "smoke", "--arms", "idle", "--verbose"]


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the only mirror, which has moved on; the cache is empty."""
    folder = tmp_path_factory.mktemp("moved")
    try:
        mirror = moved.mirror(locks.read(toolbox.NAME), folder, print)
    except MachineError as error:
        pytest.skip(str(error))
    moved.replace_by_newer(mirror, PACKAGE, FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QJUMP_MN_MIRROR", f"deb [trusted=yes] copy://{mirror} ./")
        patch.setenv("QJUMP_MN_ARCHIVE", "")
        patch.setenv("QJUMP_MN_CACHE", str(folder / "cache"))
        patch.delenv("QJUMP_MN_MACHINE", raising=False)
        yield mirror


def called(*argv: str) -> str:
    """What a command says, as a user sees it."""
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(
        [sys.executable, *argv], stdout=pipe, stderr=both, text=True, cwd=moved.CHECKOUT
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_run_on_another_machine_says_so_first_and_last(mirror: Path, tmp_path: Path) -> None:
    version = locks.versions(locks.read(toolbox.NAME))[PACKAGE]
    other = f"{PACKAGE} is {version}.1, the reference has {version}"
    first, again = (called(*RUN, "--out", str(tmp_path)) for _ in range(2))
    moved_on = "takes what the mirror has now, which is another machine"
    assert f"such as {PACKAGE} {version}: {moved_on}" in first
    images = rf"\(ours .*, the reference's .*; {re.escape(other)}\)"
    for said in (first, again):
        assert f"not the machine of the reference runs: {other}" in said
        assert re.search(rf"^Reference: .* another (one|image) {images}", said, re.M)
        assert "identical to the reference run" not in said
    assert directory.existing(tmp_path / "last").manifest.machine["differences"] == other
    listed = called("-m", "qjump_mn.run", "machine")
    assert listed.endswith(f"\n           other packages:\n             {other}\n")
    locked = toolbox._key(locks.read(toolbox.NAME))
    assert not (mirror.parent / "cache/toolbox" / locked).exists(), "under the reference's key"


def test_tests_that_compare_with_reference_runs_skip_with_that_reason(mirror: Path) -> None:
    argv = ["-m", "pytest", "-q", "-n", "0", "--all", "tests/guest/test_smoke.py", "-k", "orphan"]
    said = called(*argv)
    reason = "its results are not compared, for the guest is not of the locked packages"
    assert "skipped: 2, by reason:" in said and f"    1  {reason}: {PACKAGE} is " in said
