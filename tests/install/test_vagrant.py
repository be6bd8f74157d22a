"""The Vagrantfile: valid, and its machine gets the checkout and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from qjump_mn.install import environment
from tests.support.processes import execute

LEFT = tuple(
    (
        "results/last/x qjump_mn/__pycache__/x.pyc .mypy_cache/x simulator/target/x native/a.o"
    ).split()
)
"""What runs and tools leave in a checkout."""


def test_its_machine_gets_the_checkout_and_nothing_else(tmp_path: Path) -> None:
    """A clone is copied as Vagrant copies it, by the Vagrantfile's own rules."""
    if not (environment.CHECKOUT / ".git").exists():
        pytest.skip("this is no clone")
    text = (environment.CHECKOUT / "Vagrantfile").read_text()
    rules = re.findall(r"rsync__(?:exclude|args): \[(.*?)\]", text)
    excludes, arguments = (re.findall(r'"([^"]+)"', rule) for rule in rules)
    clone, there = tmp_path / "clone", tmp_path / "there"
    subprocess.run(["git", "clone", "-q", environment.CHECKOUT, clone], check=True)
    tracked = subprocess.check_output(["git", "-C", clone, "ls-files"], text=True).split("\n")[:-1]
    for left in LEFT:
        (clone / left).parent.mkdir(parents=True, exist_ok=True)
        (clone / left).write_text("left")
    (clone / "qjump-mn-machine.tar.xz").write_text("travels, so that nothing must be built")
    options = [f"--exclude={pattern}" for pattern in (".vagrant/", *excludes)]
    argv = ["rsync", *arguments, *options, f"{clone}/", f"{there}/"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    copied = {str(path.relative_to(there)) for path in there.rglob("*") if not path.is_dir()}
    assert copied == {*tracked, "qjump-mn-machine.tar.xz"}


@pytest.mark.parametrize("provider", ["libvirt", "virtualbox"])
def test_vagrantfile_is_valid(provider: str, tmp_path: Path) -> None:
    vagrant = shutil.which("vagrant")
    if not vagrant:
        pytest.skip("vagrant is not installed")
    # Vagrant checks a provider's settings only where the provider is installed: VirtualBox, which
    # Debian has not, is played.
    played = tmp_path / "VBoxManage"
    played.write_text("#!/bin/sh\necho 7.0.10r158379\n")
    played.chmod(0o755)
    variables = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "VAGRANT_HOME": str(tmp_path / "home"),
        "VAGRANT_DOTFILE_PATH": str(tmp_path / "dot"),
    }
    argv = [vagrant, "validate"]
    done = execute(
        argv,
        cwd=environment.CHECKOUT,
        env={**os.environ, **variables, "VAGRANT_DEFAULT_PROVIDER": provider},
    )
    if provider == "libvirt" and "libvirt" in done.stderr and "could not be found" in done.stderr:
        pytest.skip("vagrant-libvirt is not installed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "Vagrantfile validated successfully.\n"
