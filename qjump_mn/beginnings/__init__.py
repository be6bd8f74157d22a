"""``new``: a commented file to begin with, which runs as it is."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.errors import UsageError
from qjump_mn.model import filenames, loading
from qjump_mn.results import directory

KINDS = {"experiment": "experiments", "scheme": "schemes"}
"""What can be begun, and the folder in which it is looked for."""

NEXT = {
    "experiment": "qjump-mn run {name}",
    "scheme": "qjump-mn run fig3a --preset smoke --scheme {name}",
}
"""What to do with it then."""


def write(kind: str, name: str) -> Path:
    """Write a file for a new ``kind`` called ``name`` into its folder here; return where it is.

    Raises :class:`UsageError` for a name that cannot be or that something has already, and where the file
    cannot be written.
    """
    if kind not in KINDS:
        raise UsageError(f"{kind!r} cannot be begun: {loading.nearest(kind, list(KINDS))}")
    filenames.check(f"new {kind}", name)
    folder = KINDS[kind]
    if known := loading.path_of(folder, name):
        raise UsageError(f"{kind} {name!r} is there already, {known}: take another name")
    if kind == "experiment" and loading.experiment_called(name) != name:
        raise UsageError(f"{name!r} is another name of {loading.experiment_called(name)!r}: take another one")
    text = (Path(__file__).parent / f"{folder}.toml").read_text().replace("@NAME@", name)
    path = Path(folder, f"{name}.toml")
    new_folder = not path.parent.exists()
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None
    directory.hand_over(path.parent if new_folder else path)
    return path
