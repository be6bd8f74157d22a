"""The box debian/bookworm64, as far as Vagrant can tell: a plain Debian 12 on a disk of 20 GB, made without loop
devices and mounts.

It differs from the public one in what a computer's own mirrors need: their addresses, the authorities that it
trusts beside Debian's, and pip's index.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache
from qjump_mn.toolbox import box, disk, mirrors
from qjump_mn.toolbox.tree import Tree
from tests.support.processes import execute
from tests.vagrant import trees

NAME = "debian/bookworm64"
FILE = "bookworm64.box"
_GIB = 20
_AUTHORITIES = Path("/usr/local/share/ca-certificates")
_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_PIP = ("index-url", "extra-index-url", "trusted-host", "cert", "timeout")
_NEEDS_BYTES = 4 << 30

# The public box asks for KVM, so that a Vagrantfile must ask for something else where there is none.
_VAGRANTFILE = """\
Vagrant.configure("2") do |config|
  config.vm.provider :libvirt do |libvirt|
    libvirt.driver = "kvm"
  end
end
"""


def made(host: Tree, progress: Callable[[str], None]) -> Path:
    """The box's file, by the programs of the tree ``host``. Raises MachineError where it cannot be made."""
    guest = trees.newest("vagrant-guest", disk.PACKAGES, progress)
    authorities = sorted(_AUTHORITIES.glob("*.crt"))
    key = cache.hash_of(
        *(
            guest.packages_sha256,
            host.packages_sha256,
            cache.hash_of_code(Path(__file__)),
            pip_settings(),
        ),
        *mirrors.lines(trees.SUITE),
        *(path.read_bytes() for path in authorities),
    )

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            progress("making the box")
            write(host, guest, Path(scratch), folder / FILE)

    return (
        cache.artefact("vagrant-box", key, fill, needs_bytes=_NEEDS_BYTES, progress=progress) / FILE
    )


def pip_settings() -> str:
    """What a pip.conf must say for pip to find what this machine's pip does."""
    argv = ["pip", "config", "list"]
    said = execute(argv).stdout if shutil.which("pip") else ""
    found = {}
    for line in said.splitlines():
        setting, _, value = line.partition("=")
        name = setting.rpartition(".")[2]
        if name in _PIP:
            # The authorities have another place in the box.
            found[name] = _BUNDLE if name == "cert" else " ".join(ast.literal_eval(value).split())
    return "".join(
        ["[global]\n", *(f"{name} = {value}\n" for name, value in sorted(found.items()))]
    )


def write(host: Tree, guest: Tree, scratch: Path, target: Path) -> None:
    """Write the box of the system ``guest``, of which there is a copy in ``scratch`` for that time."""
    root = scratch / "root"
    subprocess.run(["cp", "-a", guest.root, root], check=True)
    system = Tree(root)
    (key,) = host.root.glob("usr/share/rubygems-integration/all/gems/vagrant-*/keys/vagrant.pub")
    disk.install(system, "bookworm", key.read_text())
    files = {"etc/pip.conf": pip_settings()}
    if lines := mirrors.lines(trees.SUITE):
        files["etc/apt/sources.list"] = "".join(f"{line}\n" for line in lines)
    disk.put(system, files)
    for path in _AUTHORITIES.glob("*.crt"):
        shutil.copy(path, root / _AUTHORITIES.relative_to("/"))
    system.run(["update-ca-certificates"], root / "build")
    disk.write(host, system, scratch / box.IMAGE, _GIB)
    shutil.rmtree(root)
    box.pack(scratch, _VAGRANTFILE, _GIB, target)
