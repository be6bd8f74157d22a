"""A computer with Vagrant and libvirt and without KVM: a tree in namespaces, with a network that ends with it.

Nothing of it is left afterwards: what is written lies in an overlay, and every program is in one namespace of
processes. Needs root, overlayfs and /dev/net/tun; neither systemd nor loop devices.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from qjump_mn.errors import MachineError
from qjump_mn.process.die_with_parent import wrap_command
from qjump_mn.toolbox.tree import Tree, host_program
from tests.vagrant import trees

PACKAGES = (
    *("vagrant", "vagrant-libvirt", "libvirt-daemon-system", "libvirt-clients", "dmidecode"),
    *("qemu-system-x86", "qemu-utils", "openssh-client", "rsync", "procps", "ca-certificates"),
    *("dnsmasq-base", "iptables", "iproute2", "slirp4netns", "grub-pc-bin", "grub-common"),
)
_DEVICES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
}
"""And net/tun. There is no kvm: a machine's own may be there and not do, and it is slowest without."""

_QEMU_CONF = """\
user = "root"
group = "root"
cgroup_controllers = [ ]
namespaces = [ ]
security_driver = "none"
stdio_handler = "file"
"""
_ENTER = """
set -eu
read -r pid rest </proc/self/stat
mount -t overlay -o "lowerdir=$tree,upperdir=$scratch/upper,workdir=$scratch/work" overlay "$scratch/root"
cd "$scratch/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs tmpfs run
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
chroot . ip link set lo up
echo "$pid"
read -r _
chroot . libvirtd --daemon
exec chroot . sleep infinity
"""
_POOL = "virsh -q pool-define-as default dir --target /var/lib/libvirt/images && virsh -q pool-start default"
_TRIES = 60
_NAME_SERVER = "10.0.2.3"
"""slirp4netns's, which asks the machine's."""

_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
    "LIBVIRT_DEFAULT_URI": "qemu:///system",
    "VAGRANT_CHECKPOINT_DISABLE": "1",
}


def tree(progress: Callable[[str], None]) -> Tree:
    """Debian 12 with Vagrant and libvirt. Raises MachineError where it cannot be made."""
    return trees.newest("vagrant-host", PACKAGES, progress)


@dataclass(frozen=True)
class Host:
    """``pid`` is its first process."""

    pid: int

    def run(
        self, command: str, folder: str = "/", told: Callable[[str], None] = lambda line: None
    ) -> int:
        """Run a line of shell there; its status. ``told`` is given each line that it prints."""
        enter = [
            host_program("nsenter"),
            "--target",
            str(self.pid),
            *"--mount --net --pid --ipc --root --wd".split(),
        ]
        shell = ["sh", "-c", 'cd "$1" && eval "$2"', "sh", folder, command]
        with subprocess.Popen(
            wrap_command([*enter, *shell]),
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                told(line.rstrip("\n"))
        return process.returncode


@contextmanager
def started(system: Tree, fill: Callable[[Path], None]) -> Iterator[Host]:
    """The host; ``fill`` is given its folder /srv. Raises MachineError where this machine cannot have it."""
    # Not in /tmp, which may be memory: the disk of Vagrant's machine lies in it.
    with tempfile.TemporaryDirectory(prefix="qjump-mn-vagrant-", dir="/var/tmp") as scratch:
        _fill(Path(scratch))
        fill(Path(scratch, "upper/srv"))
        places = {"tree": str(system.root), "scratch": scratch}
        apart = "--mount --net --pid --ipc --fork --kill-child --propagation private".split()
        with subprocess.Popen(
            wrap_command([host_program("unshare"), *apart, "sh", "-c", _ENTER]),
            env={**os.environ, **places},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdin and process.stdout
            said = process.stdout.readline().strip()
            if not said.isdigit():
                raise MachineError(f"this machine cannot play another one: {said}")
            host = Host(int(said))
            try:
                with _network(system, host.pid):
                    process.stdin.write("go\n")
                    process.stdin.flush()
                    _wait(host)
                    yield host
            finally:
                # The first process of a namespace is the last to end: then nothing is written any more.
                with suppress(ProcessLookupError):
                    os.kill(host.pid, signal.SIGKILL)


def _fill(scratch: Path) -> None:
    """What the host has beside its tree."""
    made = "root work upper/srv upper/etc/libvirt upper/dev/pts upper/dev/shm upper/dev/net"
    for name in made.split():
        (scratch / name).mkdir(parents=True)
    upper = scratch / "upper"
    for name, (major, minor) in {**_DEVICES, "net/tun": (10, 200)}.items():
        os.mknod(upper / "dev" / name, 0o20666, os.makedev(major, minor))
        (upper / "dev" / name).chmod(0o666)
    (upper / "dev/ptmx").symlink_to("pts/ptmx")
    (upper / "dev/fd").symlink_to("/proc/self/fd")
    (upper / "etc/resolv.conf").write_text(f"nameserver {_NAME_SERVER}\n")
    (upper / "etc/libvirt/qemu.conf").write_text(_QEMU_CONF)


@contextmanager
def _network(system: Tree, pid: int) -> Iterator[None]:
    """The way out of the namespace of a process: this machine's own, by connections of slirp4netns."""
    ready, tell = os.pipe()
    argv = system.program(
        "usr/bin/slirp4netns", "--configure", "--disable-host-loopback", f"--ready-fd={tell}"
    )
    with subprocess.Popen(
        wrap_command([*argv, str(pid), "tap0"]),
        pass_fds=[tell],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(tell)
        try:
            with os.fdopen(ready) as file:
                is_ready = file.read(1)
            if not is_ready:
                assert process.stderr is not None
                words = process.stderr.read().strip().splitlines() or ["it said nothing"]
                raise MachineError(f"slirp4netns makes no network: {words[-1]}")
            yield
        finally:
            process.kill()


def _wait(host: Host) -> None:
    """Until libvirt answers and can keep disks."""
    said: list[str] = []
    for _ in range(_TRIES):
        said.clear()
        if host.run("virsh -q list", told=said.append) == 0:
            break
        time.sleep(1)
    if host.run(_POOL, told=said.append):
        raise MachineError(f"libvirt does not start: {' '.join(said[-3:])}")
