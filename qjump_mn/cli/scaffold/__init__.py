"""``new``: write commented templates for experiments, schemes, topologies and programs."""

from __future__ import annotations

import importlib.util
import keyword
from pathlib import Path

from qjump_mn.errors import UsageError, reason_of
from qjump_mn.model import suggestions, words
from qjump_mn.model.tcp import OF_LINUX
from qjump_mn.programs import registry
from qjump_mn.resolve import loading
from qjump_mn.results import directory

KINDS = {
    "experiment": "experiments",
    "scheme": "schemes",
    "topology": "topologies",
    "program": "programs",
}
"""The kinds of templates, and the folder in which each kind is searched for."""

NEXT = {
    "experiment": "qjump-mn run {name} --backend simulator",
    "scheme": "qjump-mn run fig3a --preset smoke --scheme {name}",
    "topology": "qjump-mn run fig3a --preset 10g -s topology={name}",
    "program": "qjump-mn run {name} --backend simulator",
}
"""The command that uses a new file of each kind."""

_TEMPLATES = Path(__file__).parent


def write(kind: str, name: str, *, congestion: bool = False) -> list[Path]:
    """Write a template called ``name`` into the folder of its kind; return the new paths.

    A program comes with an experiment of the same name, a scheme for ``congestion`` with the C file
    of a congestion control. Raises :class:`UsageError` for an unknown kind, for a name that is not
    valid or already used, and if a file cannot be written.
    """
    if kind not in KINDS:
        raise UsageError(
            f"there is no template for {kind!r}: {suggestions.nearest(kind, list(KINDS))}"
        )
    words.check(words.FILE, f"new {kind}", name)
    folder, toml_kind = KINDS[kind], {"program": "experiment"}.get(kind, kind)
    if kind == "program":
        _check_program(name)
    if congestion:
        _check_congestion(kind, name)
    if existing := loading.path_of(KINDS[toml_kind], name):
        raise UsageError(f"{toml_kind} {name!r} exists already, {existing}: use another name")
    if toml_kind == "experiment":
        loading.check_name(name)
        if (other := loading.experiment_called(name)) != name:
            raise UsageError(f"{name!r} is another name of {other!r}: use a different one")
    template = "congestion/scheme.toml" if congestion else f"{folder}.toml"
    files = {Path(KINDS[toml_kind], f"{name}.toml"): (_TEMPLATES / template).read_text()}
    if congestion:
        files[Path(folder, f"tcp_{name}.c")] = (_TEMPLATES / "congestion/tcp.c").read_text()
    if kind == "program":
        modules = (_TEMPLATES / "program").glob("*.py")
        files |= {Path(folder, name, module.name): module.read_text() for module in modules}
    for path, content in files.items():
        _create_file(path, content.replace("@NAME@", name))
    if kind == "program":
        return [Path(folder, name), next(iter(files))]
    return list(files)


def _check_congestion(kind: str, name: str) -> None:
    if kind != "scheme":
        raise UsageError(f"new {kind}: --congestion is for a scheme: leave it out")
    words.check(words.CONGESTION_CONTROL, f"new {kind}", name)
    if name in OF_LINUX:
        raise UsageError(f"new {kind}: Linux has a congestion control {name!r}: use another name")


def _check_program(name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(
            f"new program: {name!r} is not the name of a Python package: use letters, digits and _"
        )
    # Modules in the same folder as our programs, such as base, occupy their names, too.
    is_taken = (
        name in registry.names()
        or importlib.util.find_spec(f"qjump_mn.programs.{name}") is not None
    )
    if is_taken or Path("programs", name).exists():
        raise UsageError(f"program {name!r} exists already: use another name")


def _create_file(path: Path, content: str) -> None:
    """Create a file and its folders; raise :class:`UsageError` if it exists or cannot be
    written."""
    new_folder = next((folder for folder in reversed(path.parents) if not folder.exists()), None)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {reason_of(error)}") from None
    directory.hand_over(new_folder or path)
