"""Programs in a user's folders: ``programs/NAME/`` beside ``experiments/``, with the modules that each of
ours has.

They become modules of ``qjump_mn.programs``, as if they lay here. Importing code runs it, and a folder may
have come from anybody. So a program is imported only if a workload of a named experiment or run has it, if
nobody else may write any file of it or a folder above (install/launcher.py), and as root from the current
folder only with ``--trust``. ``list``, ``check`` and a shell's completion import none.
"""

from __future__ import annotations

import functools
import os
import pkgutil
from contextlib import suppress
from pathlib import Path

import qjump_mn.programs
from qjump_mn import extensions
from qjump_mn.errors import UsageError, describe
from qjump_mn.install import launcher
from qjump_mn.programs.base import Program

FOLDER, MODULE = "programs", "program.py"

VARIABLE = "QJUMP_MN_PROGRAMS"
"""The environment variable that says what this process, and those that it starts, may import."""
_ALL, _NONE = "all", "none"


class NotImportedError(UsageError):
    """A program of a user's folder that this command does not import."""


def trust() -> None:
    """Import programs of the current folder as root, too."""
    os.environ.setdefault(VARIABLE, _ALL)


def forbid() -> None:
    """Import no program of a user's folder from now on."""
    os.environ[VARIABLE] = _NONE


@functools.cache
def folders() -> dict[str, Path]:
    """The folder of each program, by name; of two of one name the first that is found."""
    found: dict[str, Path] = {}
    try:
        modules = [
            module
            for place in extensions.users_folders()
            for module in sorted(place.glob(f"{FOLDER}/*/{MODULE}"))
        ]
    except OSError:  # the current folder is gone, or a folder of the path may not be read
        return found
    for module in modules:
        with suppress(OSError):  # one that may not be read is none
            if b"qjump_mn" in module.read_bytes():
                found.setdefault(module.parent.name, module.parent.resolve())
    return found


def program(name: str, folder: Path) -> Program:
    """The program of a folder; raise :class:`UsageError` for one that cannot be used."""
    if not name.isidentifier():
        raise UsageError(f"{folder}: {name!r} is no name for a program: use letters, digits and underscores")
    _check(name, folder)
    places = qjump_mn.programs.__path__
    if str(folder.parent) not in places:
        places.append(str(folder.parent))
    where = f"qjump_mn.programs.{name}.program"
    try:
        found = pkgutil.resolve_name(f"{where}:PROGRAM")
    except extensions.RAISED as error:
        what = f"cannot be imported ({describe(error)})"
        raise UsageError(f"{folder / MODULE} {what}: repair it") from error
    if not isinstance(found, Program) or found.name != name:
        raise UsageError(
            f"{folder / MODULE}: PROGRAM is no qjump_mn.programs.base.Program with the tag {name!r}"
        )
    return found


def _check(name: str, folder: Path) -> None:
    """Raise :class:`UsageError` unless the program may be imported."""
    allowed = os.environ.get(VARIABLE, "")
    if allowed == _NONE:
        raise NotImportedError(
            f"{folder}: this command imports no programs of users: see  qjump-mn explain  for the experiment"
        )
    named = [place.resolve() for place in extensions.users_folders()[:-1]]
    if os.geteuid() == 0 and allowed != _ALL and folder.parent.parent not in named:
        raise UsageError(
            f"{folder}: as root, no program of the current folder is imported: read program {name!r} first, "
            f"then use --trust, or QJUMP_MN_PATH={folder.parent.parent}"
        )
    # Modules are looked for in programs/ itself, too: it gets the check without what lies in it.
    above, inside = launcher.distrust_path(str(folder.parent)), launcher.distrust_path(str(folder), deep=True)
    if reason := above or inside:
        raise UsageError(f"{folder} is not imported: {reason}: if you trust it, chown it or chmod go-w it")
