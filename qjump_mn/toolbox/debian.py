"""Build the Debian packages of the kernel modules and tc plugins (`qjump-mn machine package`).

kmod-patches/debian describes them. They are built in a tree of their own, because the toolbox's
packages are part of the machine's identity.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qjump_mn import toolbox
from qjump_mn.toolbox import build

# Of the oldest Debian that runs our modules: what is linked against its libc runs on every later
# one.
_LOCK = "debian-package"

_SOURCES = (
    *build.SOURCES, "dkms.conf", "debian/changelog", "debian/control", "debian/copyright",
    "debian/qjump-dkms.dkms",
    "debian/qjump-dkms.postinst", "debian/qjump-dkms.prerm", "debian/rules", "debian/source/format",
)  # fmt: skip

# dpkg-buildpackage writes beside the folder of the sources, and takes its changelog's time unless
# the environment has another one.
_SCRIPT = """
mkdir source out
find . -mindepth 1 -maxdepth 1 ! -name source ! -name out -exec mv -t source {} +
cd source
chmod 755 debian/rules
env -u SOURCE_DATE_EPOCH dpkg-buildpackage --build=binary --no-sign
mv ../*.deb ../out
"""


def packages(progress: Callable[[str], None] = lambda line: None) -> list[Path]:
    """Return the packages qjump-dkms and qjump-tc, built now if there are none.

    Raises MachineError with what building needs, or with the last lines of what failed.
    """
    recipe = _recipe(build.folder("kmod-patches"))
    return sorted(
        build.built(tree(progress), "the Debian packages", recipe, progress).glob("*.deb")
    )


def _recipe(source: Path) -> build.Recipe:
    return build.Recipe(source, _SCRIPT, _SOURCES)


def packages_of(
    source: Path, folder: Path, progress: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """Build the packages of another copy of kmod-patches into a new folder.

    The same sources and tree give the same bytes.
    """
    build.compiled(tree(progress), _recipe(source), folder)
    return sorted(folder.glob("*.deb"))


def tree(progress: Callable[[str], None] = lambda line: None) -> toolbox.Tree:
    """Return the tree that they are built in. Raises as `toolbox.made` does."""
    return toolbox.made(_LOCK, progress)
