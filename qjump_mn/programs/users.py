"""Programs in a user's folders: ``programs/NAME/`` beside ``experiments/``, with the modules that each of
ours has.

They become modules of ``qjump_mn.programs``, as if they lay here. Only a folder whose ``program.py`` imports
something of qjump-mn is one, and only of this user, of root, or of who called sudo: code is run by being
imported, and a folder may have come from anybody."""

from __future__ import annotations

import functools
import pkgutil
from contextlib import suppress
from pathlib import Path

import qjump_mn.programs
from qjump_mn import extensions, launcher
from qjump_mn.errors import UsageError
from qjump_mn.programs import mistakes
from qjump_mn.programs.base import Program

FOLDER, MODULE = "programs", "program.py"


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
    for path in (folder, folder / MODULE):
        if path.stat().st_uid not in launcher.trusted_users():
            raise UsageError(f"{path} is somebody else's, and would be run: make it yours if you trust it")
    places = qjump_mn.programs.__path__
    if str(folder.parent) not in places:
        places.append(str(folder.parent))
    where = f"qjump_mn.programs.{name}.program"
    try:
        found = pkgutil.resolve_name(f"{where}:PROGRAM")
    except extensions.RAISED as error:
        what = f"cannot be imported ({mistakes.told(error, folder)})"
        raise UsageError(f"{folder / MODULE} {what}: repair it") from error
    if not isinstance(found, Program) or found.name != name:
        raise UsageError(
            f"{folder / MODULE}: PROGRAM is no qjump_mn.programs.base.Program with the tag {name!r}"
        )
    return mistakes.Guard(name, folder).program(found)
