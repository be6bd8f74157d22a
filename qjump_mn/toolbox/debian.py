"""The Debian packages of the kernel modules and of tc's plugins: `qjump-mn machine package
[FOLDER]` puts them into the folder.

What is in them says kmod-patches/debian. They are built in a tree of their own, not in the toolbox,
whose packages are the image's identity.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qjump_mn import toolbox
from qjump_mn.toolbox import build

# Of the oldest Debian that runs our modules: what is linked against its libc runs on every later one.
_LOCK = "debian-package"

_SOURCES = (
    *build.SOURCES, "dkms.conf", "debian/changelog", "debian/control", "debian/copyright",
    "debian/qjump-dkms.dkms",
    "debian/qjump-dkms.postinst", "debian/qjump-dkms.prerm", "debian/rules", "debian/source/format",
)  # fmt: skip

# dpkg-buildpackage writes beside the folder of the sources, and takes its changelog's time unless the
# environment has another one.
_SCRIPT = """
mkdir source out
find . -mindepth 1 -maxdepth 1 ! -name source ! -name out -exec mv -t source {} +
cd source
chmod 755 debian/rules
env -u SOURCE_DATE_EPOCH dpkg-buildpackage --build=binary --no-sign
mv ../*.deb ../out
"""


def packages(progress: Callable[[str], None] = lambda line: None) -> list[Path]:
    """The packages, from the cache or built now: qjump-dkms, then qjump-tc.

    Raises MachineError with what building them needs or the last lines of what failed.
    """
    recipe = _recipe(build.folder("kmod-patches"))
    return sorted(build.built(tree(progress), "the Debian packages", recipe, progress).glob("*.deb"))


def _recipe(source: Path) -> build.Recipe:
    return build.Recipe(source, _SCRIPT, _SOURCES)


def packages_of(
    source: Path, folder: Path, progress: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """The packages of another copy of kmod-patches, built now, in a new folder. The same sources
    and tree give the same bytes."""
    build.compiled(tree(progress), _recipe(source), folder)
    return sorted(folder.glob("*.deb"))


def tree(progress: Callable[[str], None] = lambda line: None) -> toolbox.Tree:
    """Where the packages are built. Raises as `toolbox.made` does."""
    return toolbox.made(_LOCK, progress)
