"""Import programs from a user's folders: ``programs/NAME/`` beside ``experiments/``, with the same
modules as each of ours.

They become modules of ``qjump_mn.programs``, as if they lay here. Importing code runs it, and
anybody may have written a folder. So a program is imported only if a workload of a named experiment
or run uses it, and if nobody else can write to its files or the folders above it
(install/launcher.py). As root, programs in the current folder also need ``--trust``. ``list``,
``check`` and shell completion import none.
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
"""Environment variable that says what this process and its children may import."""
_ALL, _NONE = "all", "none"


class NotImportedError(UsageError):
    """A user's program that this command does not import."""


def trust() -> None:
    """Also import programs of the current folder as root."""
    os.environ.setdefault(VARIABLE, _ALL)


def forbid() -> None:
    """Import no user's program from now on."""
    os.environ[VARIABLE] = _NONE


@functools.cache
def folders() -> dict[str, Path]:
    """The folder of each program, by name; the first one if several have the same name."""
    by_name: dict[str, Path] = {}
    try:
        modules = [
            module
            for folder in extensions.users_folders()
            for module in sorted(folder.glob(f"{FOLDER}/*/{MODULE}"))
        ]
    except OSError:  # the current folder is gone, or a folder of the path is not readable
        return by_name
    for module in modules:
        with suppress(OSError):  # ignore unreadable files
            if b"qjump_mn" in module.read_bytes():
                by_name.setdefault(module.parent.name, module.parent.resolve())
    return by_name


def program(name: str, folder: Path) -> Program:
    """Import the program of a folder; raise :class:`UsageError` if it cannot be used."""
    if not name.isidentifier():
        raise UsageError(
            f"{folder}: {name!r} is not a valid program name: use letters, digits and underscores"
        )
    _check(name, folder)
    search_path = qjump_mn.programs.__path__
    if str(folder.parent) not in search_path:
        search_path.append(str(folder.parent))
    try:
        loaded = pkgutil.resolve_name(f"qjump_mn.programs.{name}.program:PROGRAM")
    except extensions.RAISED as error:
        raise UsageError(
            f"{folder / MODULE} cannot be imported ({describe(error)}): repair it"
        ) from error
    if not isinstance(loaded, Program) or loaded.name != name:
        raise UsageError(
            f"{folder / MODULE}: PROGRAM is not a qjump_mn.programs.base.Program with tag {name!r}"
        )
    return loaded


def _check(name: str, folder: Path) -> None:
    """Raise :class:`UsageError` unless the program may be imported."""
    allowed = os.environ.get(VARIABLE, "")
    if allowed == _NONE:
        raise NotImportedError(
            f"{folder}: this command does not import users' programs: use  qjump-mn explain  on "
            "the experiment"
        )
    named_folders = [path.resolve() for path in extensions.users_folders()[:-1]]
    if os.geteuid() == 0 and allowed != _ALL and folder.parent.parent not in named_folders:
        raise UsageError(
            f"{folder}: root does not import programs from the current folder: read program "
            f"{name!r} first, then use --trust, or QJUMP_MN_PATH={folder.parent.parent}"
        )
    # Python also looks for modules in programs/ itself: check it, but not everything inside it.
    parent_reason = launcher.distrust_path(str(folder.parent))
    if reason := parent_reason or launcher.distrust_path(str(folder), deep=True):
        raise UsageError(
            f"{folder} is not imported: {reason}: if you trust it, chown it or chmod go-w it"
        )
