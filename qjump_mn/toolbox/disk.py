"""Make a bootable disk from a tree, without loop devices and mounts.

mke2fs copies the tree into a file system, and GRUB's two images are put before it.
"""

from __future__ import annotations

import shlex
import shutil
import struct
from pathlib import Path

from qjump_mn.toolbox.tree import Tree

PACKAGES = (
    *("linux-image-amd64", "systemd-sysv", "udev", "dbus", "libpam-systemd", "kmod"),
    *("openssh-server", "sudo", "rsync", "python3", "ca-certificates"),
    *("ifupdown", "isc-dhcp-client", "iproute2"),
)
"""What :func:`install` asks of a system, and Vagrant."""

USER = "vagrant"
"""Who logs in, with a key, and may do everything."""

_MIB = 1 << 20
_SECTOR_BYTES = 512
_GRUB = "usr/lib/grub/i386-pc"
_GRUB_MODULES = ("biosdisk", "part_msdos", "ext2", "normal", "linux", "configfile")
_HOST_KEYS = "etc/systemd/system/host-keys.service"

# Every computer that boots this disk makes its own.
_MAKE_HOST_KEYS = """\
[Unit]
Description=Keys of this computer's sshd
Before=ssh.service

[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -A

[Install]
WantedBy=multi-user.target
"""
_INTERFACES = """\
auto lo
iface lo inet loopback
allow-hotplug eth0
iface eth0 inet dhcp
"""
# What the package has made is the same in every copy of the tree.
_CONFIGURE = f"""
set -eu
rm -f /etc/ssh/ssh_host_*
useradd --shell /bin/bash {USER}
chmod 440 /etc/sudoers.d/{USER}
chown -R {USER}: /home/{USER}
chmod 700 /home/{USER}/.ssh
chmod 600 /home/{USER}/.ssh/authorized_keys
systemctl --quiet enable host-keys
update-initramfs -c -k all
"""


def install(system: Tree, name: str, public_key: str) -> None:
    """Give a tree a user, a network and a boot menu; ``name`` is the computer's name.

    Raises MachineError with what failed.
    """
    release = system.kernel_release
    files = {
        "etc/hostname": f"{name}\n",
        "etc/hosts": f"127.0.0.1 localhost\n127.0.1.1 {name}\n",
        "etc/fstab": "/dev/vda1 / ext4 errors=remount-ro 0 1\n",
        "etc/resolv.conf": "",
        "etc/network/interfaces": _INTERFACES,
        f"etc/sudoers.d/{USER}": f"{USER} ALL=(ALL) NOPASSWD: ALL\n",
        "etc/ssh/sshd_config.d/vagrant.conf": "UseDNS no\n",
        _HOST_KEYS: _MAKE_HOST_KEYS,
        f"home/{USER}/.ssh/authorized_keys": public_key,
        "boot/grub/grub.cfg": (
            f"linux /boot/vmlinuz-{release} root=/dev/vda1 ro net.ifnames=0 console=ttyS0\n"
            f"initrd /boot/initrd.img-{release}\n"
            "boot\n"
        ),
    }
    put(system, files)
    system.run(["sh", "-c", _CONFIGURE], system.root / "build")


def put(system: Tree, files: dict[str, str]) -> None:
    """Write files of a tree, by their names in it."""
    for name, text in files.items():
        path = system.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a link into this machine
        path.write_text(text)


def write(tools: Tree, system: Tree, image: Path, size_gib: int) -> None:
    """Write a qcow2 disk whose only partition has the system.

    The tree ``tools`` has mke2fs, grub-mkimage and qemu-img. Raises MachineError with what failed.
    """
    shutil.copytree(tools.root / _GRUB, system.root / "boot/grub/i386-pc")
    disk, core, grub = image.with_suffix(".raw"), image.with_suffix(".core"), tools.root / _GRUB
    with disk.open("wb") as file:
        file.truncate(size_gib << 30)
    partition_mib = (size_gib << 10) - 1
    where = ["-E", f"offset={_MIB}", "-d", str(system.root), str(disk), f"{partition_mib}M"]
    tools.output("usr/sbin/mke2fs", "-q", "-t", "ext4", *where)
    first, sectors = (size // _SECTOR_BYTES for size in (_MIB, partition_mib * _MIB))
    record = bytearray((grub / "boot.img").read_bytes()[:440].ljust(_SECTOR_BYTES, b"\0"))
    # One active partition of Linux, which only says where it lies in blocks, not in cylinders.
    record[446:462] = struct.pack(
        "<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", first, sectors
    )
    record[510:] = b"\x55\xaa"
    options = (
        f"-d {shlex.quote(str(grub))} -O i386-pc -p (hd0,msdos1)/boot/grub -o "
        f"{shlex.quote(str(core))}"
    )
    tools.output("usr/bin/grub-mkimage", *shlex.split(options), *_GRUB_MODULES)
    with disk.open("r+b") as file:
        file.write(record + core.read_bytes())
    core.unlink()
    tools.output("usr/bin/qemu-img", "convert", "-c", "-O", "qcow2", str(disk), str(image))
    disk.unlink()
