"""What is compiled, in trees and into the cache: for the guest tc plugins and programs; and whatever `built`
is told.

Each is kept under the hash of its sources and of the toolbox. The checkout is only read.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import qjump_mn
from qjump_mn import cache
from qjump_mn.errors import MachineError
from qjump_mn.toolbox import crates
from qjump_mn.toolbox.cpio import Node
from qjump_mn.toolbox.selection import dropped_in
from qjump_mn.toolbox.tree import Tree

SOURCES = ("*.c", "*.h", "*.rs", "Cargo.toml", "Cargo.lock", "Makefile", "*.mk", "Kbuild", "*.[18]")
"""What is read of a folder of sources."""

_MADE = {"build", "target", "qjump-dkms", "qjump-tc"}  # folders that builds by hand leave in a checkout
_NEEDS_BYTES = 200 << 20  # what cargo leaves on its way, 100 MB

_PLUGINS = "make --no-print-directory -C tc install DESTDIR=/build/out LIBDIR=/usr/lib/x86_64-linux-gnu"
_TC = "the plugins of tc"
_PROGRAM = "make --no-print-directory -C {name} install DESTDIR=/build/out PREFIX=/usr"


@dataclass(frozen=True)
class Recipe:
    """How something is built: a shell script, run in a copy of the files below ``source`` that match, leaves
    it in the folder `out`."""

    source: Path
    script: str
    patterns: tuple[str, ...] = SOURCES
    parts: tuple[str, ...] = (".",)
    """The folders in ``source`` that are copied."""
    takes: str = ""
    """How long it takes, in words, where that is more than some seconds."""

    def sources(self) -> list[Path]:
        """The files. Raises MachineError when there are none."""
        files = {
            path
            for part in self.parts
            for pattern in self.patterns
            for path in (self.source / part).rglob(pattern)
        }
        files = {path for path in files if not _MADE & set(path.relative_to(self.source).parts)}
        if not files:
            raise MachineError(f"{self.source} holds no sources: get a complete checkout")
        return sorted(files)


def guest_programs() -> dict[str, Recipe]:
    """How everything is built that the guest has beside packages, by name."""
    return {_TC: Recipe(folder("kmod-patches"), _PLUGINS)} | {name: program(name) for name in _native()}


def tc_plugins(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """The plugins that teach tc our qdiscs, by their names in the guest."""
    return dropped_in(built(tree, _TC, guest_programs()[_TC], progress))


def native_programs(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """What the folders below native/ with a Makefile install, by the names in the guest."""
    nodes: dict[str, Node] = {}
    for name in _native():
        nodes |= dropped_in(native_program(tree, name, progress))
    return nodes


def native_program(tree: Tree, name: str, progress: Callable[[str], None] = lambda line: None) -> Path:
    """The folder into which native/`name` is installed, as if it were /."""
    return built(tree, name, program(name), progress)


def _native() -> list[str]:
    return sorted(makefile.parent.name for makefile in folder("native").glob("*/Makefile"))


def program(name: str) -> Recipe:
    """How native/`name` is built: beside it lie the folders of native/ that have no Makefile, which programs
    share."""
    native = folder("native")
    shared = sorted(
        path.name for path in native.iterdir() if path.is_dir() and not (path / "Makefile").exists()
    )
    return Recipe(native, _PROGRAM.format(name=name), parts=(name, *shared))


def built(tree: Tree, what: str, recipe: Recipe, progress: Callable[[str], None] = lambda line: None) -> Path:
    """What `compiled` makes of a recipe, from the cache or made now."""
    takes = f", {recipe.takes}" if recipe.takes else ""

    def build(target: Path) -> None:
        progress(f"compiling {what}{takes}")
        compiled(tree, recipe, target / "installed", progress)

    return (
        cache.artefact("build", key_of(tree, recipe), build, needs_bytes=_NEEDS_BYTES, progress=progress)
        / "installed"
    )


def key_of(tree: Tree, recipe: Recipe) -> str:
    """The hash of all that `compiled` makes a folder of, to the byte: compiler, sources and script."""
    contents = [f"{path.relative_to(recipe.source)} {cache.hash_of_file(path)}" for path in recipe.sources()]
    return cache.hash_of(tree.packages_sha256, recipe.source.name, recipe.script, *contents)


def identity_of(recipe: Recipe) -> str:
    """What stands for what is built, in the machine's identity: script and sources, but not their prose."""
    contents = [f"{path.relative_to(recipe.source)} {cache.hash_of_code(path)}" for path in recipe.sources()]
    return cache.hash_of(recipe.source.name, recipe.script, *contents)


def compiled(
    tree: Tree, recipe: Recipe, target: Path, progress: Callable[[str], None] = lambda line: None
) -> None:
    """Follow a recipe in a tree; what it makes becomes the folder `target`. Raises MachineError with the
    script's last lines.

    If there is a Cargo.lock among the sources, cargo finds its crates without a network.
    """
    lock = next((path for path in recipe.sources() if path.name == crates.LOCK), None)
    fetched = crates.fetched(tree, lock.parent, progress) if lock else None
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        for path in recipe.sources():
            copy = Path(scratch) / path.relative_to(recipe.source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        if fetched:
            shutil.copytree(fetched, Path(scratch, crates.HOME))
        tree.run(["sh", "-e", "-c", recipe.script], Path(scratch), crates.OFFLINE if fetched else {})
        (Path(scratch) / "out").rename(target)


def folder(name: str) -> Path:
    """A folder of the checkout.

    In a checkout the sources lie beside the package, once installed in it.
    """
    package = Path(qjump_mn.__file__).parent
    return next(
        (base / name for base in (package.parent, package) if (base / name).is_dir()), package.parent / name
    )
