"""What is compiled for the guest, in the toolbox and into the cache: kernel modules, tc plugins, the utility.

Each is kept under the hash of its sources and of the toolbox. The checkout is only read.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import qjump_mn
from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.guest.cpio import Node
from qjump_mn.guest.selection import dropped_in
from qjump_mn.guest.toolbox import Tree

_SOURCES = ("*.c", "*.h", "Makefile", "Kbuild", "*.[18]")
_NEEDS_BYTES = 50 << 20

_MODULES = """
make --no-print-directory KDIR=/usr/lib/modules/{release}/build modules
strip --strip-debug *.ko
install -D -m 644 -t out/usr/lib/modules/{release}/updates *.ko
"""
_PLUGINS = "make --no-print-directory -C tc install DESTDIR=/build/out LIBDIR=/usr/lib/x86_64-linux-gnu"
_UTILITY = "make --no-print-directory install DESTDIR=/build/out PREFIX=/usr"


def kernel_modules(kernel: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """sch_qjump and sch_wire for a tree's kernel, by their names in the guest. Raises MachineError with the compiler's words."""
    return _installed(kernel, f"the kernel modules for {kernel.kernel_release}", "kmod-patches", _MODULES.format(release=kernel.kernel_release), progress)


def tc_plugins(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """The plugins that teach tc our qdiscs, by their names in the guest."""
    return _installed(tree, "the plugins of tc", "kmod-patches", _PLUGINS, progress)


def utility(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """`qjau` and its library, by their names in the guest."""
    return _installed(tree, "the utility qjau", "native/app-util", _UTILITY, progress)


def patience(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """The library that keeps ping from spinning, by its name in the guest."""
    return _installed(tree, "the library that keeps ping patient", "native/patience", _UTILITY, progress)


def _installed(tree: Tree, what: str, folder: str, script: str, progress: Callable[[str], None]) -> dict[str, Node]:
    package = Path(qjump_mn.__file__).parent
    # In a checkout the sources lie beside the package, once installed in it.
    source = next((base / folder for base in (package.parent, package) if (base / folder).is_dir()), package.parent / folder)
    sources = sorted(path for pattern in _SOURCES for path in source.rglob(pattern) if "build" not in path.relative_to(source).parts)
    if not sources:
        raise MachineError(f"{source} holds no sources: get a complete checkout")
    contents = [f"{path.relative_to(source)} {cache.hash_of_file(path)}" for path in sources]

    def build(target: Path) -> None:
        progress(f"compiling {what}, a few seconds")
        with tempfile.TemporaryDirectory(dir=target) as scratch:
            for path in sources:
                copy = Path(scratch) / path.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
            tree.run(["sh", "-e", "-c", script], Path(scratch))
            (Path(scratch) / "out").rename(target / "installed")

    key = cache.hash_of(tree.packages_sha256, folder, script, *contents)
    return dropped_in(cache.artefact("build", key, build, needs_bytes=_NEEDS_BYTES, progress=progress) / "installed")
