"""The image of the Containerfile: buildah makes it of a plain Debian 13 and the two files, and an
ordinary user without a capability runs an arm in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from qjump_mn.toolbox import checkout
from tests.install.test_anywhere import ONE_TRIAL
from tests.support import chroots

pytestmark = [pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(3600)]

_BASE, _IMAGE = "localhost/qjump-mn-base", "localhost/qjump-mn"


class Buildah:
    """buildah with everything that it keeps in one folder; without mounts, a daemon or a
    registry."""

    def __init__(self, folder: Path) -> None:
        if not shutil.which("buildah"):
            pytest.skip("buildah is not installed")
        self._kept = [
            "--storage-driver",
            "vfs",
            "--root",
            str(folder / "kept"),
            "--runroot",
            str(folder / "run"),
        ]
        self._env = {**os.environ, "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(folder)}

    def __call__(self, *arguments: str) -> str:
        """What it said."""
        done = subprocess.run(
            ["buildah", *self._kept, *arguments],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()


def _base(buildah: Buildah, root: Path) -> None:
    """The image of a plain system."""
    shutil.rmtree(root / "srv")
    container = buildah("from", "scratch").splitlines()[-1]
    buildah("add", "--quiet", container, str(root), "/")
    buildah("commit", "--quiet", container, _BASE)
    buildah("rm", container)


def _container(buildah: Buildah, folder: Path, *files: Path) -> str:
    """A container of the image that is built of the checkout with these files beside it."""
    context = folder / "context"
    context.mkdir()
    checkout.copy(context)
    for file in files:
        shutil.copyfile(file, context / "qjump-mn-machine.tar.xz")
    with chroots.made(chroots.SYSTEMS["debian13"]) as chroot:
        shutil.copytree(chroots.downloaded_wheels(chroot), context / "qjump-mn-wheels")
        _base(buildah, chroot.root)
    buildah("build", "--pull-never", "--build-arg", f"BASE={_BASE}", "--tag", _IMAGE, str(context))
    return buildah("from", "--pull-never", _IMAGE).splitlines()[-1]


def test_image_of_a_fresh_clone_says_how_to_get_the_machine(tmp_path: Path) -> None:
    buildah = Buildah(tmp_path)
    container = _container(buildah, tmp_path)
    script = "/opt/qjump-mn/bootstrap fig3a --preset smoke; echo status $?"
    said = buildah("run", "--cap-drop", "all", container, "--", "sh", "-c", script)
    assert "or get a machine file (docs/machine.md)" in said
    assert said.endswith("status 3")


def test_containerfiles_image_has_the_reference_results(machine: Path, tmp_path: Path) -> None:
    buildah = Buildah(tmp_path)
    container = _container(buildah, tmp_path, machine)

    def run(*arguments: str) -> str:
        return buildah(
            "run", "--cap-drop", "all", container, "--", "/opt/qjump-mn/bootstrap", *arguments
        )

    assert run("doctor")
    said = run(
        "fig3a", "--preset", "smoke", "-v", "--arms", "idle", "--out", "/home/student/results"
    )
    assert re.search(rf"^Reference: .*{ONE_TRIAL}", said, re.M), said
    who = buildah(
        "run",
        "--cap-drop",
        "all",
        container,
        "--",
        "sh",
        "-c",
        "id -un; grep CapEff /proc/self/status",
    )
    assert re.fullmatch(r"student\s+CapEff:\s+0+", who)
