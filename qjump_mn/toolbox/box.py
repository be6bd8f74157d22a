"""Make the machine as a whole computer: a bootable Debian 12 with the checkout and all it needs.

It is a Vagrant box for libvirt, and its `box.img` boots in any QEMU. It comes from the packages of
the lock `box`, has the Python environment and the machine file, and needs no network. Its ssh key
is public, as in every box; each computer makes its sshd keys at its first boot.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError
from qjump_mn.install import environment, installation
from qjump_mn.toolbox import checkout, disk
from qjump_mn.toolbox.tree import Tree

LOCK = "box"
"""The lock of its Debian packages."""

HOME = "opt/qjump-mn"
"""Where the checkout lies in it."""

IMAGE, KEY = "box.img", "key"
"""What its members are called: the disk, and the key to it."""

GIB = 20
"""The disk, of which a tenth is used."""

FIRST = ("fig3a", "--preset", "smoke", "--arms", "idle")
"""What is run in it once, so that it is known to work."""

_NEEDS_BYTES = 8 << 30
_VAGRANTFILE = """\
Vagrant.configure("2") do |config|
  config.ssh.private_key_path = File.join(__dir__, "key")
  config.vm.synced_folder ".", "/vagrant", disabled: true
  config.vm.provider :libvirt do |libvirt|
    libvirt.cpus = 2
    libvirt.memory = 4096
    libvirt.driver = "qemu" unless File.writable?("/dev/kvm")
  end
end
"""
_TRY = f"""
set -eu
/{HOME}/bootstrap {shlex.join(FIRST)} --out /tmp/first
rm -r /tmp/first
"""


def made(machine: Callable[[Path], None], progress: Callable[[str], None]) -> Path:
    """Return the box's file, made now if there is none; ``machine`` writes the machine file.

    Raises MachineError if it cannot be made.
    """
    tree = toolbox.made(LOCK, progress)
    sources = (f"{name} {cache.hash_of_file(path)}" for name, path in checkout.files().items())
    key = cache.hash_of(tree.packages_sha256, *sources)

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            _write(tree, machine, Path(scratch), folder / "qjump-mn.box", progress)

    folder = cache.artefact("box", key, fill, needs_bytes=_NEEDS_BYTES, progress=progress)
    cache.prune("box", 1)
    return folder / "qjump-mn.box"


def _write(
    tree: Tree,
    machine: Callable[[Path], None],
    scratch: Path,
    target: Path,
    progress: Callable[[str], None],
) -> None:
    root, home = scratch / "root", scratch / "root" / HOME
    subprocess.run(["cp", "-a", tree.root, root], check=True)
    system = Tree(root)
    checkout.copy(home)
    machine(home / "qjump-mn-machine.tar.xz")
    progress("takes the Python packages of Debian 12's Python")
    _download(tree, home / installation.WHEELS)
    tree.output(
        "usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(scratch / KEY)
    )
    progress("installs the box")
    disk.install(system, "qjump-mn", scratch.joinpath(f"{KEY}.pub").read_text())
    progress("runs one arm in it, a minute")
    system.run(["sh", "-c", _TRY], root / "build")
    progress("writes its disk, a minute")
    disk.write(tree, system, scratch / IMAGE, GIB)
    shutil.rmtree(root)
    pack(scratch, _VAGRANTFILE, GIB, target, KEY)


def pack(folder: Path, vagrantfile: str, size_gib: int, target: Path, *more: str) -> None:
    """Write a libvirt box from the disk in the folder and ``more`` files there."""
    facts = {"provider": "libvirt", "format": "qcow2", "virtual_size": size_gib}
    (folder / "metadata.json").write_text(json.dumps(facts))
    (folder / "Vagrantfile").write_text(vagrantfile)
    with tarfile.open(target, "w") as archive:
        for name in ("metadata.json", "Vagrantfile", *more, IMAGE):
            archive.add(folder / name, name, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _download(tree: Tree, folder: Path) -> None:
    """Download the wheels for the tree's Python with its own pip and this host's pip settings.

    Raises MachineError if one is not available.
    """
    (pip,) = (tree.root / "usr/share/python-wheels").glob("pip-*.whl")
    (python,) = (tree.root / "usr/bin").glob("python3.[0-9][0-9]")
    argv = tree.program(f"usr/bin/{python.name}", str(pip / "pip"))
    argv += [*installation.QUIET, "download", "--dest", str(folder), *installation.LOCKED]
    done = subprocess.run(
        [*argv, str(environment.LOCK)],
        env={**os.environ, "PYTHONHOME": str(tree.root / "usr")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise MachineError(f"the wheels cannot be had: {done.stderr.strip()[-500:]}")
