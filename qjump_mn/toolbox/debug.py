"""Build debug kernels, for tests of the kernel modules (kmod-patches/debug-kernels.md).

One finds memory errors, leaks and wrong locking, another data races. Their code takes several times
as many instructions, so times measured on them are not results.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from qjump_mn import cache
from qjump_mn.toolbox import lock as locks
from qjump_mn.toolbox import make_tree
from qjump_mn.toolbox.tree import Tree

SUITE = "debug"
"""The name of the one for errors of memory, locks and lifetimes, where a kernel's suite is asked
for."""

RACES = "races"
"""The name of the one for data races: KCSAN, which excludes KASAN."""

MEMORY_MB = 2048
"""What a guest with either needs: KASAN keeps an eighth of the memory for itself, and freed memory
in quarantine."""

_FOLDER = Path(__file__).parent
CONFIGS = {
    SUITE: (_FOLDER / "debug.config", _FOLDER / "debug-memory.config"),
    RACES: (_FOLDER / "debug.config", _FOLDER / "debug-races.config"),
}
"""The configuration of each, in two files: what both have, and the detectors."""

_NEEDS_BYTES = 6 << 30

# In the tree, beside the configuration. What is left of the source is what modules from outside are
# built with.
_BUILD = r"""
tar -xf /usr/src/linux-source-*.tar.xz -C /usr/src
rm /usr/src/linux-source-*.tar.xz
mv /usr/src/linux-source-* /usr/src/linux
cp wanted /usr/src/linux
cd /usr/src/linux
sed -i -E 's/^((HOST)?CC\t.*gcc)$/\1-14/' Makefile
KCONFIG_ALLCONFIG=wanted make -s allnoconfig
if grep '^CONFIG_' wanted | grep -vxFf .config; then echo 'Kconfig does not take the lines above'; exit 1; fi
nice make -s -j$(nproc) KBUILD_BUILD_USER=qjump-mn KBUILD_BUILD_HOST=guest KBUILD_BUILD_TIMESTAMP=@$SOURCE_DATE_EPOCH bzImage modules
make -s modules_install
install -D -m 644 arch/x86/boot/bzImage /boot/vmlinuz-$(make -s kernelrelease)
mv arch/x86 tools/objtool/objtool .
rm -rf arch/* tools/*
mkdir tools/objtool
mv x86 arch
mv objtool tools/objtool
find arch ! -path '*/include/*' ! -name 'Makefile*' -type f -delete
for name in * .[a-z]*; do
    case $name in arch|include|scripts|tools|Makefile|Module.symvers|.config) ;; *) rm -rf $name ;; esac
done
"""  # noqa: E501


def kernel_tree(suite: str, progress: Callable[[str], None] = lambda line: None) -> Tree:
    """Return a tree with a debug kernel and what builds modules for it. Raises as `toolbox`
    does."""
    config = b"".join(path.read_bytes() for path in CONFIGS[suite])
    lock = locks.read(SUITE)
    key = cache.hash_of(config, _BUILD, lock.identity)

    def build(folder: Path) -> None:
        make_tree.locked(lock, folder / "root", progress)
        progress("building a debug kernel, about 15 minutes on two idle cores")
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            Path(scratch, "wanted").write_bytes(config)
            Tree(folder / "root").run(["sh", "-e", "-c", _BUILD], Path(scratch))

    made = cache.artefact("debug-kernel", key, build, needs_bytes=_NEEDS_BYTES, progress=progress)
    return Tree(made / "root", key)
