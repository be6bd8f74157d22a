"""The Debian package of the kernel modules and tc plugins: `qjump-mn machine package [FOLDER]` puts
it into the folder.

What is in it says kmod-patches/debian. It is built in a tree of its own, not in the toolbox, whose packages
are the image's identity.
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
    "debian/qjump-dkms.prerm", "debian/rules", "debian/source/format",
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


def package(progress: Callable[[str], None] = lambda line: None) -> Path:
    """The package, from the cache or built now.

    Raises MachineError with what building it needs or the last lines of what failed.
    """
    return next(
        build.built(
            tree(progress), "the Debian package", _recipe(build.folder("kmod-patches")), progress
        ).glob("*.deb")
    )


def _recipe(source: Path) -> build.Recipe:
    return build.Recipe(source, _SCRIPT, _SOURCES)


def package_of(source: Path, folder: Path, progress: Callable[[str], None] = lambda line: None) -> Path:
    """The package of another copy of kmod-patches, built now, in a new folder. The same sources and tree give
    the same bytes."""
    build.compiled(tree(progress), _recipe(source), folder)
    return next(folder.glob("*.deb"))


def tree(progress: Callable[[str], None] = lambda line: None) -> toolbox.Tree:
    """Where the package is built. Raises as `toolbox.made` does."""
    return toolbox.made(_LOCK, progress)
