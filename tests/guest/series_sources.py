"""Get the sources that kmod-patches/series is written against: Linux 7.x and iproute2.

The kernel is Debian's source with Debian's configuration. Drivers, file systems, sound and other
architectures are left out, because a module of net/sched builds without them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache, toolbox
from qjump_mn.toolbox import sources
from qjump_mn.toolbox.tree import Tree

Progress = Callable[[str], None]

_NEEDS_BYTES = 3 << 30

# In the tree of `tools`. Debian's headers of the same version have its configuration, and what
# symbols its kernel exports. Without pahole there is no BTF.
_PREPARE = r"""
tar -xf /usr/src/linux-source-*.tar.xz
mv linux-source-* source
cd source
find drivers fs sound samples $(ls -d arch/*/ | grep -v x86) \
    \( -name '*.[chS]' -o -name '*.dts*' -o -name '*.json' \) -type f -delete
sed -i -E 's/^((HOST)?CC\t.*gcc)$/\1-14/' Makefile
cp /usr/src/linux-headers-*-amd64/.config .
cp /usr/src/linux-headers-*-amd64/Module.symvers .
make -s olddefconfig
make -s -j$(nproc) modules_prepare
"""


def tools(progress: Progress = lambda line: None) -> Tree:
    """Return a tree with compiler, make, git and Python. Raises as `toolbox.made` does."""
    return toolbox.made("series", progress)


def kernel(progress: Progress = lambda line: None) -> Path:
    """Return the kernel's source, ready to build one module, made now if there is none. Raises as
    `tools` does."""
    tree = tools(progress)

    def build(folder: Path) -> None:
        progress("preparing the kernel's source, about five minutes")
        tree.run(["sh", "-e", "-c", _PREPARE], folder)

    key = cache.hash_of(tree.packages_sha256, _PREPARE)
    made = cache.artefact("kernel-source", key, build, needs_bytes=_NEEDS_BYTES, progress=progress)
    return made / "source"


def iproute2(progress: Progress = lambda line: None) -> Path:
    """Return iproute2's source. Raises as `sources.unpacked` does."""
    return sources.unpacked("iproute2", progress)
