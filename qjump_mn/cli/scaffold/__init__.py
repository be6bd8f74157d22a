"""``new``: commented files to begin with, which run as they are."""

from __future__ import annotations

import importlib.util
import keyword
from pathlib import Path

from qjump_mn.errors import UsageError, reason_of
from qjump_mn.model import loading, suggestions, words
from qjump_mn.programs import registry
from qjump_mn.results import directory

KINDS = {
    "experiment": "experiments",
    "scheme": "schemes",
    "topology": "topologies",
    "program": "programs",
}
"""What can be made, and the folder in which it is looked for."""

NEXT = {
    "experiment": "qjump-mn run {name} --backend simulator",
    "scheme": "qjump-mn run fig3a --preset smoke --scheme {name}",
    "topology": "qjump-mn run fig3a --preset 10g -s topology={name} -s duration=20ms",
    "program": "qjump-mn run {name} --backend simulator",
}
"""What to do with it then."""

_HERE = Path(__file__).parent


def write(kind: str, name: str) -> list[Path]:
    """Write what is new of a ``kind`` called ``name`` into its folder here; return what is written. A program
    comes with an experiment of its name.

    Raises :class:`UsageError` for a name that cannot be or that something has already, and where it cannot be
    written.
    """
    if kind not in KINDS:
        raise UsageError(
            f"there is nothing called {kind!r} to make: {suggestions.nearest(kind, list(KINDS))}"
        )
    words.check(words.FILE, f"new {kind}", name)
    folder, wanted = KINDS[kind], {"program": "experiment"}.get(kind, kind)
    if kind == "program":
        _check_program(name)
    if known := loading.path_of(KINDS[wanted], name):
        raise UsageError(f"{wanted} {name!r} is there already, {known}: take another name")
    if wanted == "experiment":
        loading.check_name(name)
        if (other := loading.experiment_called(name)) != name:
            raise UsageError(f"{name!r} is another name of {other!r}: take another one")
    text = (_HERE / f"{folder}.toml").read_text().replace("@NAME@", name)
    files = {Path(KINDS[wanted], f"{name}.toml"): text}
    if kind == "program":
        files |= {
            Path(folder, name, file.name): file.read_text() for file in (_HERE / "program").glob("*.py")
        }
    for path, content in files.items():
        _place(path, content)
    return [*([Path(folder, name)] if kind == "program" else []), next(iter(files))]


def _check_program(name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"new program: {name!r} is no name of a Python package: use letters, digits and _")
    # Modules beside the programs, such as base, have names of the same place.
    taken = name in registry.names() or importlib.util.find_spec(f"qjump_mn.programs.{name}") is not None
    if taken or Path("programs", name).exists():
        raise UsageError(f"program {name!r} is there already: take another name")


def _place(path: Path, content: str) -> None:
    """Write a file that is not there yet, and the folders that it lies in."""
    new_folder = next((folder for folder in reversed(path.parents) if not folder.exists()), None)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {reason_of(error)}") from None
    directory.hand_over(new_folder or path)
