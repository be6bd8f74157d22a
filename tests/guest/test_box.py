"""The box: it boots in a plain QEMU, and has the reference run's results there, with no network at
all."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qjump_mn import toolbox
from qjump_mn.process.die_with_parent import wrap_command
from qjump_mn.toolbox import box, disk
from qjump_mn.toolbox.tree import Tree
from tests.guest import trees
from tests.guest.command import SAME, succeeds

pytestmark = [pytest.mark.guest, pytest.mark.root, pytest.mark.nightly, pytest.mark.timeout(5400)]

BOOTS_S = 900
"""A computer without KVM, beside other guests."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("box")
    succeeds("machine", "export", "--format", "box", folder / "box")
    names = subprocess.check_output(["tar", "xvf", "box"], cwd=folder, text=True).split()
    assert names == ["metadata.json", "Vagrantfile", box.KEY, box.IMAGE]
    (folder / "box").unlink()
    return folder


def test_it_boots_and_has_the_reference_results_without_a_network(unpacked: Path) -> None:
    tools = toolbox.made(box.LOCK)
    with booted(unpacked / box.IMAGE) as port:

        def there(command: str) -> subprocess.CompletedProcess[str]:
            to = ["-p", str(port), "-i", str(unpacked / box.KEY), f"{disk.USER}@127.0.0.1", command]
            trust = [f"-oUserKnownHostsFile={unpacked}/known", "-oStrictHostKeyChecking=accept-new"]
            argv = tools.program("usr/bin/ssh", "-F", "none", "-oBatchMode=yes", *trust, *to)
            return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)

        deadline = time.monotonic() + BOOTS_S
        while (done := there("true")).returncode:
            assert time.monotonic() < deadline, done.stderr
            time.sleep(5)
        # Nothing answers: neither a mirror nor an index can be asked.
        assert there("getent hosts example.org || ip route get 192.0.2.1").returncode
        done = there(f"qjump-mn run {' '.join(box.FIRST)} --out results")
        assert done.returncode == 0, done.stdout + done.stderr
        assert SAME in done.stdout
        done = there("qjump-mn doctor")
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def booted(image: Path) -> Iterator[int]:
    """A computer with that disk; the port of this machine that leads to its sshd."""
    tree = trees.qemu()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    argv = tree.program("usr/bin/qemu-system-x86_64", *_computer(tree, image, port))
    with subprocess.Popen(wrap_command(argv), stdin=subprocess.DEVNULL) as computer:
        try:
            yield port
        finally:
            computer.terminate()


def _computer(tree: Tree, image: Path, port: int) -> list[str]:
    shared = tree.root / "usr/share"
    return [
        *"-nodefaults -display none -machine pc,accel=tcg -cpu max -smp 2 -m 4096".split(),
        *("-L", str(shared / "qemu"), "-L", str(shared / "seabios")),
        *("-drive", f"file={image},if=virtio,format=qcow2"),
        *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,netdev=net,romfile="),
        *("-serial", f"file:{image.with_name('console.log')}"),
    ]
