"""Build Linux as a program (ARCH=um) with our patches and qdiscs: the kernel of instances.

Source and compiler are Debian's, of the lock `um`; patches and configuration are in kernel/, qdiscs
in kmod-patches/. It is one static program, so it runs on any x86-64 Linux.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache, toolbox
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox.build import folder

LOCK = "um"
"""The lock of the tree that it is built in."""

_SOURCES = {
    "kernel": ("*.patch", "config"),
    "kmod-patches": ("*.c", "*.h", "Kbuild", "include/*.h"),
}
NEEDS_BYTES = 3 << 30
"""The room that the unpacked and compiled sources take."""
_KERNEL = "linux"
_TAKES = "about 4 minutes on two idle cores"

CONFIGURE = r"""
tar -xf /usr/src/linux-source-*.tar.xz
mv linux-source-* source
cd source
for patch in ../kernel/*.patch; do patch --quiet --strip=1 <"$patch"; done
cp -r ../kmod-patches net/sched/qjump
sed -i 's/^obj-m :=/obj-y :=/' net/sched/qjump/Kbuild
echo 'obj-y += qjump/' >>net/sched/Makefile
sed -i -E 's/^((HOST)?CC\t.*gcc)$/\1-14/' Makefile
export ARCH=um
KCONFIG_ALLCONFIG=../kernel/config make -s allnoconfig
if grep '^CONFIG_' ../kernel/config | grep -vxFf .config; then
    echo 'Kconfig does not take the lines above'
    exit 1
fi
export KBUILD_BUILD_USER=qjump-mn KBUILD_BUILD_HOST=guest KBUILD_BUILD_TIMESTAMP=@$SOURCE_DATE_EPOCH
"""
"""Unpack, patch and configure the sources, in a folder with what `sources` lists.

Sources of other architectures and most drivers are never read. The name, the place and the time of
the build are part of what the kernel says of itself, and so of its random numbers.
"""

_BUILD = f"""{CONFIGURE}nice make -s -j$(nproc) linux
strip --strip-debug linux
"""


def kernel(progress: Callable[[str], None] = lambda line: None) -> Path:
    """Return the program, built now if there is none.

    Raises as `toolbox.made` does, or with the compiler's output.
    """

    def build(target: Path) -> None:
        tree = toolbox.made(LOCK, progress)
        progress(f"compiling Linux as a program, {_TAKES}")
        with tempfile.TemporaryDirectory(dir=target) as scratch:
            copy_sources(Path(scratch))
            tree.run(["sh", "-e", "-c", _BUILD], Path(scratch))
            shutil.copy2(Path(scratch, "source", _KERNEL), target / _KERNEL)

    made = cache.artefact(
        "um-kernel", identity(), build, needs_bytes=NEEDS_BYTES, progress=progress
    )
    return made / _KERNEL


def identity() -> str:
    """Return the hash of what decides the kernel: packages, script, and sources without their
    prose."""
    hashes = (f"{name} {cache.hash_of_code(path)}" for name, path in sources().items())
    return cache.hash_of(locks.read(LOCK).identity, _BUILD, *hashes)


def copy_sources(folder: Path) -> None:
    """Copy what :func:`sources` lists into a folder, as :data:`CONFIGURE` expects it."""
    for name, path in sources().items():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def sources() -> dict[str, Path]:
    """Return our patches, configuration and qdiscs, by their names in the checkout.

    Raises MachineError if there are none.
    """
    paths: list[Path] = []
    for name, patterns in _SOURCES.items():
        found = [path for pattern in patterns for path in folder(name).glob(pattern)]
        if not found:
            raise MachineError(f"{folder(name)} holds no sources: get a complete checkout")
        paths += found
    return {str(path.relative_to(folder("kernel").parent)): path for path in sorted(paths)}
