"""Compile recipes in a tree, and keep the results in the cache.

The guest needs tc's plugins and the native programs; tests use recipes of their own. A result's key
is the hash of its sources and of the toolbox. The checkout is only read.
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

_MADE = {
    "build",
    "target",
    "qjump-dkms",
    "qjump-tc",
}  # folders that builds by hand leave in a checkout
_NEEDS_BYTES = 200 << 20  # what cargo leaves on its way, 100 MB

_PLUGINS = (
    "make --no-print-directory -C tc install DESTDIR=/build/out LIBDIR=/usr/lib/x86_64-linux-gnu"
)
_TC = "the plugins of tc"
_PROGRAM = "make --no-print-directory -C {name} install DESTDIR=/build/out PREFIX=/usr"


@dataclass(frozen=True)
class Recipe:
    """A shell script that builds sources: it runs in a copy of the files below ``source`` that
    match, and leaves its result in the folder `out`."""

    source: Path
    script: str
    patterns: tuple[str, ...] = SOURCES
    parts: tuple[str, ...] = (".",)
    """The folders in ``source`` that are copied."""
    takes: str = ""
    """How long it takes, in words, where that is more than some seconds."""

    def sources(self) -> list[Path]:
        """Return the files. Raises MachineError if there are none."""
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
    """Return the recipes of everything in the guest that is not from packages, by name."""
    return {_TC: Recipe(folder("kmod-patches"), _PLUGINS)} | {
        name: program(name) for name in _native()
    }


def tc_plugins(tree: Tree, progress: Callable[[str], None] = lambda line: None) -> dict[str, Node]:
    """Return tc's plugins for our qdiscs, by their names in the guest."""
    return dropped_in(built(tree, _TC, guest_programs()[_TC], progress))


def native_programs(
    tree: Tree, progress: Callable[[str], None] = lambda line: None
) -> dict[str, Node]:
    """Return what the folders of native/ with a Makefile install, by the names in the guest."""
    nodes: dict[str, Node] = {}
    for name in _native():
        nodes |= dropped_in(native_program(tree, name, progress))
    return nodes


def native_program(
    tree: Tree, name: str, progress: Callable[[str], None] = lambda line: None
) -> Path:
    """Return the folder into which native/`name` is installed, as if it were /."""
    return built(tree, name, program(name), progress)


def _native() -> list[str]:
    return sorted(makefile.parent.name for makefile in folder("native").glob("*/Makefile"))


def program(name: str) -> Recipe:
    """Return the recipe of native/`name`; folders without a Makefile lie beside every program."""
    native = folder("native")
    shared = sorted(
        path.name for path in native.iterdir() if path.is_dir() and not (path / "Makefile").exists()
    )
    return Recipe(native, _PROGRAM.format(name=name), parts=(name, *shared))


def built(
    tree: Tree, what: str, recipe: Recipe, progress: Callable[[str], None] = lambda line: None
) -> Path:
    """Return the result of a recipe, built now if there is none."""
    takes = f", {recipe.takes}" if recipe.takes else ""

    def build(target: Path) -> None:
        progress(f"compiling {what}{takes}")
        compiled(tree, recipe, target / "installed", progress)

    return (
        cache.artefact(
            "build", key_of(tree, recipe), build, needs_bytes=_NEEDS_BYTES, progress=progress
        )
        / "installed"
    )


def key_of(tree: Tree, recipe: Recipe) -> str:
    """Return the hash of every byte that decides the result: compiler, sources and script."""
    contents = [
        f"{path.relative_to(recipe.source)} {cache.hash_of_file(path)}" for path in recipe.sources()
    ]
    return cache.hash_of(tree.packages_sha256, recipe.source.name, recipe.script, *contents)


def identity_of(recipe: Recipe) -> str:
    """Return the recipe's part of the machine's identity: script and sources, without their
    prose."""
    contents = [
        f"{path.relative_to(recipe.source)} {cache.hash_of_code(path)}" for path in recipe.sources()
    ]
    return cache.hash_of(recipe.source.name, recipe.script, *contents)


def compiled(
    tree: Tree, recipe: Recipe, target: Path, progress: Callable[[str], None] = lambda line: None
) -> None:
    """Run a recipe in a tree, and move its result to the new folder `target`.

    If there is a Cargo.lock among the sources, cargo finds its crates without a network. Raises
    MachineError with the script's last lines.
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
        tree.run(
            ["sh", "-e", "-c", recipe.script], Path(scratch), crates.OFFLINE if fetched else {}
        )
        (Path(scratch) / "out").rename(target)


def folder(name: str) -> Path:
    """Return a folder of sources: beside the package in a checkout, in the package once
    installed."""
    package = Path(qjump_mn.__file__).parent
    return next(
        (base / name for base in (package.parent, package) if (base / name).is_dir()),
        package.parent / name,
    )
