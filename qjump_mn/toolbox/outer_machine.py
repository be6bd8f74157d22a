"""Make the machine that surrounds a guest on hosts other than x86-64 Linux.

It is Debian's cloud kernel, which has all drivers built in, and an initramfs with busybox.
guest/outer.py adds an instance's files to the initramfs and boots it; it starts the instance and
ends with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache, toolbox
from qjump_mn.toolbox import cpio
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.machine_file import INITRD, KERNEL

LOCK = "outer"
"""The lock of its Debian packages."""

PROGRAM, IMAGE, INPUT, WORDS = "instance/linux", "instance/initrd", "instance/in", "instance/words"
"""What is added for a guest: its kernel, initramfs and input, and its kernel's command line, a word
a line."""

OUTPUT, LOG, STATUS = 1, 2, 3
"""The ports of the virtual serial line to which its output, its console and its status go."""

_NEEDS_BYTES = 100 << 20

# The descriptors of the instance have the same numbers as everywhere (guest/fence.py): they are
# in its kernel's command line, which goes into the pool of random numbers. It opens no device: as
# behind the fence, for what its kernel says of that is on its console.
_INIT = f"""\
#!/bin/busybox sh
alias box=/bin/busybox
box mount -t devtmpfs dev /dev
box mount -t proc proc /proc
exec </dev/null 3</{INPUT} 4</{IMAGE}
exec 5>/dev/vport0p{OUTPUT} 6>/dev/vport0p{LOG} 7>/dev/vport0p{STATUS}
box mount -o remount,nodev /dev
box env -i PATH=/usr/bin:/bin HOME=/ /{PROGRAM} $(box cat /{WORDS}) >&6 2>&6 7>&-
echo $? >&7
box reboot -f
"""


def machine(progress: Callable[[str], None] = lambda line: None) -> Path:
    """Return the folder with its kernel and initramfs, made now if there is none. Raises as
    `toolbox.made` does."""

    def build(folder: Path) -> None:
        root = toolbox.made(LOCK, progress).root
        (kernel,) = (root / "boot").glob("vmlinuz-*")
        shutil.copyfile(kernel, folder / KERNEL)
        nodes = {
            "bin/busybox": Node.file(root / "usr/bin/busybox", 0o755),
            "init": Node.file(_INIT.encode(), 0o755),
            **{name: Node.folder() for name in ("dev", "proc", "tmp")},
        }
        with (folder / INITRD).open("wb") as file:
            file.writelines(cpio.archive(nodes))

    code = (cache.hash_of_code(Path(str(name))) for name in (__file__, cpio.__file__))
    key = cache.hash_of(*made_of().values(), *code)
    return cache.artefact("outer-machine", key, build, needs_bytes=_NEEDS_BYTES, progress=progress)


def made_of() -> dict[str, str]:
    """Return a hash of each of its inputs, by name."""
    lock = cache.hash_of(locks.read(LOCK).identity)
    return {f"the lock {LOCK}": lock, "the outer machine's init": cache.hash_of(_INIT)}
