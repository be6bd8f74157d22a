"""The box debian/bookworm64, as far as Vagrant can tell: a plain Debian 12 on a disk of 20 GB, made without loop
devices and mounts.

It differs from the public one in what a computer's own mirrors need: their addresses, the authorities that it
trusts beside Debian's, and pip's index.
"""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import struct
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache
from qjump_mn.toolbox import mirrors
from qjump_mn.toolbox.tree import Tree
from tests.vagrant import trees

NAME = "debian/bookworm64"
FILE = "bookworm64.box"
PACKAGES = (
    *("linux-image-amd64", "systemd-sysv", "udev", "dbus", "libpam-systemd", "kmod"),
    *("openssh-server", "sudo", "rsync", "python3", "ca-certificates"),
    *("ifupdown", "isc-dhcp-client", "iproute2"),
)
"""Of the public box's, those that Vagrant, a network and our bootstrap meet."""

_GB = 20
_MIB = 1 << 20
_SECTOR_BYTES = 512
_AUTHORITIES = Path("/usr/local/share/ca-certificates")
_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_PIP = ("index-url", "extra-index-url", "trusted-host", "cert", "timeout")
_GRUB = "usr/lib/grub/i386-pc"
_GRUB_MODULES = ("biosdisk", "part_msdos", "ext2", "normal", "linux", "configfile")
_NEEDS_BYTES = 4 << 30

# The public box asks for KVM, so that a Vagrantfile must ask for something else where there is none.
_VAGRANTFILE = """\
Vagrant.configure("2") do |config|
  config.vm.provider :libvirt do |libvirt|
    libvirt.driver = "kvm"
  end
end
"""
_INTERFACES = """\
auto lo
iface lo inet loopback
allow-hotplug eth0
iface eth0 inet dhcp
"""
# The tree's keys of sshd may be read by everybody, as all that the cache keeps: sshd takes none of these.
_CONFIGURE = """
set -eu
rm -f /etc/ssh/ssh_host_*
ssh-keygen -q -A
useradd --shell /bin/bash vagrant
chmod 440 /etc/sudoers.d/vagrant
chown -R vagrant: /home/vagrant
chmod 700 /home/vagrant/.ssh
chmod 600 /home/vagrant/.ssh/authorized_keys
update-ca-certificates
update-initramfs -c -k all
"""


def made(host: Tree, progress: Callable[[str], None]) -> Path:
    """The box's file, by the programs of the tree ``host``. Raises MachineError where it cannot be made."""
    guest = trees.newest("vagrant-guest", PACKAGES, progress)
    authorities = sorted(_AUTHORITIES.glob("*.crt"))
    key = cache.hash_of(
        *(guest.packages_sha256, host.packages_sha256, cache.hash_of_code(Path(__file__)), pip_settings()),
        *mirrors.lines(trees.SUITE),
        *(path.read_bytes() for path in authorities),
    )

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            progress("making the box")
            write(host, guest, Path(scratch), folder / FILE)

    return cache.artefact("vagrant-box", key, fill, needs_bytes=_NEEDS_BYTES, progress=progress) / FILE


def pip_settings() -> str:
    """What a pip.conf must say for pip to find what this machine's pip does."""
    argv = ["pip", "config", "list"]
    said = subprocess.run(argv, capture_output=True, text=True).stdout if shutil.which("pip") else ""
    found = {}
    for line in said.splitlines():
        setting, _, value = line.partition("=")
        name = setting.rpartition(".")[2]
        if name in _PIP:
            # The authorities have another place in the box.
            found[name] = _BUNDLE if name == "cert" else " ".join(ast.literal_eval(value).split())
    return "".join(["[global]\n", *(f"{name} = {value}\n" for name, value in sorted(found.items()))])


def write(host: Tree, guest: Tree, scratch: Path, target: Path) -> None:
    """Write the box of the system ``guest``, of which there is a copy in ``scratch`` for that time."""
    root, disk, image = scratch / "root", scratch / "disk", scratch / "box.img"
    subprocess.run(["cp", "-a", guest.root, root], check=True)
    _configure(host, Tree(root))
    _write_disk(host, Tree(root), disk)
    shutil.rmtree(root)
    host.output("usr/bin/qemu-img", "convert", "-O", "qcow2", str(disk), str(image))
    disk.unlink()
    facts = {"provider": "libvirt", "format": "qcow2", "virtual_size": _GB}
    (scratch / "metadata.json").write_text(json.dumps(facts))
    (scratch / "Vagrantfile").write_text(_VAGRANTFILE)
    with tarfile.open(target, "w") as archive:
        for name in ("metadata.json", "Vagrantfile", "box.img"):
            archive.add(scratch / name, name)


def _configure(host: Tree, guest: Tree) -> None:
    """What an installed system has and a tree has not: a user, a network, a boot loader."""
    root, release = guest.root, guest.kernel_release
    (key,) = host.root.glob("usr/share/rubygems-integration/all/gems/vagrant-*/keys/vagrant.pub")
    files = {
        "etc/hostname": "bookworm\n",
        "etc/hosts": "127.0.0.1 localhost\n127.0.1.1 bookworm\n",
        "etc/fstab": "/dev/vda1 / ext4 errors=remount-ro 0 1\n",
        "etc/resolv.conf": "",
        "etc/pip.conf": pip_settings(),
        "etc/network/interfaces": _INTERFACES,
        "etc/sudoers.d/vagrant": "vagrant ALL=(ALL) NOPASSWD: ALL\n",
        "etc/ssh/sshd_config.d/vagrant.conf": "UseDNS no\n",
        "home/vagrant/.ssh/authorized_keys": key.read_text(),
        "boot/grub/grub.cfg": (
            f"linux /boot/vmlinuz-{release} root=/dev/vda1 ro net.ifnames=0 console=ttyS0\n"
            f"initrd /boot/initrd.img-{release}\n"
            "boot\n"
        ),
    }
    if lines := mirrors.lines(trees.SUITE):
        files["etc/apt/sources.list"] = "".join(f"{line}\n" for line in lines)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).unlink(missing_ok=True)  # it may be a link into this machine
        (root / name).write_text(text)
    for path in _AUTHORITIES.glob("*.crt"):
        shutil.copy(path, root / _AUTHORITIES.relative_to("/"))
    guest.run(["sh", "-c", _CONFIGURE], root / "build")
    shutil.copytree(host.root / _GRUB, root / "boot/grub/i386-pc")


def _write_disk(host: Tree, guest: Tree, disk: Path) -> None:
    """A disk whose only partition begins at its second MiB; GRUB lies before it."""
    grub = host.root / _GRUB
    with disk.open("wb") as file:
        file.truncate(_GB << 30)
    partition_mib = (_GB << 10) - 1
    where = ["-E", f"offset={_MIB}", "-d", str(guest.root), str(disk), f"{partition_mib}M"]
    host.output("usr/sbin/mke2fs", "-q", "-t", "ext4", *where)
    first, sectors = (size // _SECTOR_BYTES for size in (_MIB, partition_mib * _MIB))
    record = bytearray((grub / "boot.img").read_bytes()[:440].ljust(_SECTOR_BYTES, b"\0"))
    # One active partition of Linux, which only says where it lies in blocks, not in cylinders.
    record[446:462] = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", first, sectors)
    record[510:] = b"\x55\xaa"
    core = disk.with_name("core.img")
    options = f"-d {shlex.quote(str(grub))} -O i386-pc -p (hd0,msdos1)/boot/grub -o {shlex.quote(str(core))}"
    host.output("usr/bin/grub-mkimage", *shlex.split(options), *_GRUB_MODULES)
    with disk.open("r+b") as file:
        file.write(record + core.read_bytes())
