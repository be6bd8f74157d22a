"""A virtual machine with a kernel of Debian's, or a debug kernel, and our modules of kmod-patches:
QEMU, for tests of the kernel modules alone. Nothing of it is in the product, whose guest is
qjump_mn/guest.

    image = prepare(print, kernel="6.1")
    result = run(image, Setup(), Job(script="print(1)"), Path("out"))

Image, job and result are those of the product's guest, and so is the agent that does the job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import qjump_mn
from qjump_mn import cache, toolbox
from qjump_mn.guest import Image, Job, Result, Setup
from qjump_mn.toolbox import Tree, build, debug
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.image import initramfs
from tests.guest.vm import machine, modules
from tests.support import result_store

__all__ = ["Image", "Job", "Result", "Setup", "first_programs", "of_files", "prepare", "run"]

Progress = Callable[[str], None]
_PACKAGE = Path(qjump_mn.__file__).parent

# What the product's /init does last: it has another console, and job and result come otherwise.
_PRODUCTS = "ln -sf host-log /dev/console\nexec >/dev/host-log 2>&1\n"
_OURS = """\
modprobe -aq virtio_pci virtio_console qemu_fw_cfg
cat /sys/firmware/qemu_fw_cfg/by_name/opt/qjump-mn/raw >/dev/host-in
ln -s vport0p1 /dev/host-out
"""

run = result_store.kept_guest(machine.run)
"""`machine.run`, whose results a session keeps."""


def prepare(
    progress: Progress = lambda line: None,
    *,
    extra: Mapping[str, Node] | None = None,
    kernel: str = "6.12",
) -> Image:
    """An image that runs scripts, built now or found in the cache.

    `extra` are more files, by names relative to /. `kernel` is one of Debian's, by its lock's name,
    kernel-NAME, or, as "debug" or "races", one that debug.py builds. Raises MachineError with what
    is missing.
    """
    tree = toolbox.toolbox(progress)
    if kernel in debug.CONFIGS:
        other = debug.kernel_tree(kernel, progress)
    else:
        other = toolbox.made(f"kernel-{kernel}", progress)
    own = nodes(tree, other, progress) | modules.of_debian(other) | dict(extra or {})
    own |= modules.lists(tree, other, own)
    return of_files(other.kernel, initramfs(tree, own, progress), other.kernel_release)


def nodes(tree: Tree, kernel: Tree, progress: Progress = lambda line: None) -> dict[str, Node]:
    """What an image holds of ours: nothing but what tests of the kernel need, so that a change of
    anything else does not run them again."""
    made = build.tc_plugins(tree, progress) | first_programs()
    return made | modules.ours(kernel, progress)


def of_files(kernel: Path, initrd: Path, release: str) -> Image:
    """The image of these files. Among its hashes is all else that decides of a result: QEMU, with
    its libraries and firmware, and how it is started."""
    sha256 = {"kernel": cache.hash_of_file(kernel), "initrd": cache.hash_of_file(initrd)}
    sha256["qemu"] = toolbox.made(machine.QEMU).packages_sha256
    sha256["machine"] = cache.hash_of_code(Path(machine.__file__))
    return Image(
        kernel=kernel, initrd=initrd, sha256=sha256, packages=[], packages_sha256="", differences=[],
        identity="", release=release,
    )  # fmt: skip


def first_programs() -> dict[str, Node]:
    """/init, and the agent, which it starts: all that a script needs."""
    text = (_PACKAGE / "guest/init.sh").read_text()
    assert _PRODUCTS in text
    return {
        "init": Node.file(text.replace(_PRODUCTS, _OURS).encode(), 0o755),
        "opt/qjump-mn/executor/agent.py": Node.file(_PACKAGE / "executor/agent.py"),
    }
