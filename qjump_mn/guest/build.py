"""What is compiled, in trees and into the cache: for the guest kernel modules, tc plugins, programs; and whatever `built` is told.

Each is kept under the hash of its sources and of the toolbox. The checkout is only read.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import qjump_mn
from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.guest import crates
from qjump_mn.guest.cpio import Node
from qjump_mn.guest.selection import dropped_in
from qjump_mn.guest.toolbox import Tree

SOURCES = ("*.c", "*.h", "*.rs", "Cargo.toml", "Cargo.lock", "Makefile", "Kbuild", "*.[18]")
"""What is read of a folder of sources."""

_MADE = {"build", "qjump-dkms"}  # folders that builds by hand leave in a checkout
_NEEDS_BYTES = 200 << 20  # what cargo leaves on its way, 100 MB

_MODULES = """
make --no-print-directory KDIR=/usr/lib/modules/{release}/build modules
strip --strip-debug *.ko
install -D -m 644 -t out/usr/lib/modules/{release}/updates *.ko
"""
_PLUGINS = "make --no-print-directory -C tc install DESTDIR=/build/out LIBDIR=/usr/lib/x86_64-linux-gnu"
PROGRAM = "make --no-print-directory install DESTDIR=/build/out PREFIX=/usr"
"""What installs a folder below native/."""


def kernel_modules(kernel: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """sch_qjump and sch_wire for a tree's kernel, by their names in the guest. Raises MachineError with the compiler's words."""
    return _installed(kernel, f"the kernel modules for {kernel.kernel_release}", "kmod-patches", _MODULES.format(release=kernel.kernel_release), progress)


def tc_plugins(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """The plugins that teach tc our qdiscs, by their names in the guest."""
    return _installed(tree, "the plugins of tc", "kmod-patches", _PLUGINS, progress)


def native_programs(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """What the folders below native/ with a Makefile install, by the names in the guest."""
    nodes: dict[str, Node] = {}
    for makefile in sorted(_folder("native").glob("*/Makefile")):
        nodes |= dropped_in(native_program(tree, makefile.parent.name, progress))
    return nodes


def native_program(tree: Tree, name: str, progress: Callable[[str], None] = lambda line: None) -> Path:
    """The folder into which native/`name` is installed, as if it were /."""
    return built(tree, name, f"native/{name}", PROGRAM, progress)


def _installed(tree: Tree, what: str, folder: str, script: str, progress: Callable[[str], None]) -> dict[str, Node]:
    return dropped_in(built(tree, what, folder, script, progress))


def built(tree: Tree, what: str, folder: str, script: str, progress: Callable[[str], None], patterns: Sequence[str] = SOURCES) -> Path:
    """What `compiled` makes of a folder of the checkout, from the cache or made now."""
    source = _folder(folder)
    contents = [f"{path.relative_to(source)} {cache.hash_of_file(path)}" for path in _sources(source, patterns)]

    def build(target: Path) -> None:
        fetched = crates.fetched(tree, source, progress) if (source / crates.LOCK).exists() else None
        progress(f"compiling {what}, {'a minute' if fetched else 'a few seconds'}")
        compiled(tree, source, script, target / "installed", patterns, fetched)

    key = cache.hash_of(tree.packages_sha256, folder, script, *contents)
    return cache.artefact("build", key, build, needs_bytes=_NEEDS_BYTES, progress=progress) / "installed"


def compiled(tree: Tree, source: Path, script: str, target: Path, patterns: Sequence[str] = SOURCES, fetched: Path | None = None) -> None:
    """Run a shell script in a copy of the files below `source` that match; what it leaves in its folder `out` becomes `target`.

    `fetched` are the crates that cargo finds without a network. Raises MachineError with the script's last lines.
    """
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        for path in _sources(source, patterns):
            copy = Path(scratch) / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        if fetched:
            shutil.copytree(fetched, Path(scratch, crates.HOME))
        tree.run(["sh", "-e", "-c", script], Path(scratch), crates.OFFLINE if fetched else {})
        (Path(scratch) / "out").rename(target)


def _folder(name: str) -> Path:
    # In a checkout the sources lie beside the package, once installed in it.
    package = Path(qjump_mn.__file__).parent
    return next((base / name for base in (package.parent, package) if (base / name).is_dir()), package.parent / name)


def _sources(source: Path, patterns: Sequence[str]) -> list[Path]:
    found = sorted(path for pattern in patterns for path in source.rglob(pattern) if not _MADE & set(path.relative_to(source).parts))
    if not found:
        raise MachineError(f"{source} holds no sources: get a complete checkout")
    return found
