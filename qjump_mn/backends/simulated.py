"""What the simulator's process leaves, kept for the project's own tests (remembered.py): its input, the
simulator and the modules that it imports decide it."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

import qjump_mn
from qjump_mn import cache, extensions, remembered, syntax
from qjump_mn.errors import UsageError
from qjump_mn.programs import registry, users
from qjump_mn.remembered import Kind

PACKAGE = Path(qjump_mn.__file__).parent


class Said(msgspec.Struct, frozen=True):
    """How the process ended: its exit code and its last words."""

    exit_code: int
    message: str


def _is_lasting(said: Said) -> bool:
    """Not of a process that was killed."""
    return said.exit_code in (0, UsageError.exit_code)


SIMULATOR = Kind("simulator", Said, is_lasting=_is_lasting)


def once(simulator: Path, text: bytes, work: Callable[[Path | None], Said], out: Path | None = None) -> Said:
    """What `work` returns for the input `text`, and leaves in `out`, or what it did before.

    `simulator` is the folder that `qjump_sim` is imported from, whose name in the cache says what it is. A
    plan is only checked, and has no `out`.
    """
    session = remembered.session()
    if session is None or _is_extended():
        return work(out)
    what = "a trial" if out else "a plan"
    key = cache.hash_of(*_installed(), str(simulator), *code(), what, text)
    return remembered.once(session, SIMULATOR, key, work, out)


@functools.cache
def modules() -> dict[str, Path]:
    """The modules of this package that the process may import, by their import statements; those of programs
    it imports by their names."""
    programs = [f"{PACKAGE.name}.programs.{name}" for name in registry.OURS]
    names = [f"{program}.{module}" for program in programs for module in ("program", "simulated")]
    waiting, reached = [f"{PACKAGE.name}.simulation.__main__", *names], dict[str, Path]()
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if path and name not in reached:
            reached[name] = path
            waiting += [name.rpartition(".")[0], *_imported(path)]
    return reached


def _file(name: str) -> Path | None:
    """The file of a module of this package; None for the name of anything else."""
    top, _, rest = name.partition(".")
    place = PACKAGE.joinpath(*rest.split("."))
    files = (place / "__init__.py", place.with_suffix(".py"))
    return next((path for path in files if path.is_file()), None) if top == PACKAGE.name else None


def _imported(path: Path) -> Iterator[str]:
    """The names that a module's import statements have, wherever they stand; of what only a type checker
    reads too."""
    package = (PACKAGE.name, *path.parent.relative_to(PACKAGE).parts)
    with syntax.PARSING:
        module = ast.parse(path.read_bytes())
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join((*above, *filter(None, [node.module])))
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)


@functools.cache
def code() -> list[str]:
    """The hashes of what these modules do, each after its name."""
    return [f"{name} {cache.hash_of_code(path)}" for name, path in sorted(modules().items())]


@functools.cache
def _installed() -> list[str]:
    """This Python, and every distribution that it has."""
    distributions = importlib.metadata.distributions()
    return [sys.version, *sorted(f"{one.name}={one.version}" for one in distributions)]


def _is_extended() -> bool:
    """Whether somebody else brings programs: the key does not know their code."""
    return bool(extensions.every(registry.PROGRAMS_GROUP) or users.folders())
