"""Find what other installed packages add, by their entry points, and the folders of a user's files.

A distribution adds a name to one of qjump-mn's groups (such as ``qjump_mn.figures``) in its
``pyproject.toml``::

    [project.entry-points."qjump_mn.figures"]
    ladder = "their_package.ladder:draw"

Only :func:`load` and :func:`imported` import an extension's code.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qjump_mn.errors import UsageError

_PREFIX = "qjump_mn."

RAISED = (Exception, SystemExit)
"""What importing an extension may raise; a ``sys.exit`` in it must not end qjump-mn."""


def users_folders() -> list[Path]:
    """Return the folders that may hold the user's ``experiments/`` and the like, first match first.

    They are those of ``QJUMP_MN_PATH``, then the current folder.
    """
    variable = os.environ.get("QJUMP_MN_PATH", "")
    return [*(Path(folder) for folder in variable.split(os.pathsep) if folder), Path.cwd()]


def entries(group: str, ours: Collection[str] = ()) -> dict[str, EntryPoint]:
    """Return the entry points of ``group`` by name, sorted.

    Raises :class:`UsageError` if two distributions add the same name, or one adds a name in
    ``ours``.
    """
    by_name: dict[str, EntryPoint] = {}
    for entry in every(group):
        distribution = owner(entry)
        if entry.name in ours:
            problem = f"{distribution} adds {entry.name!r} to {group}, which qjump-mn has itself"
            raise UsageError(f"{problem}: uninstall {distribution}")
        if entry.name in by_name:
            both = " and ".join(sorted((owner(by_name[entry.name]), distribution)))
            raise UsageError(f"{both} both add {entry.name!r} to {group}: uninstall one of them")
        by_name[entry.name] = entry
    return by_name


def every(group: str) -> list[EntryPoint]:
    """Return all entry points of ``group``, duplicates included, by name and distribution."""
    return sorted(entry_points(group=group), key=lambda entry: (entry.name, owner(entry)))


def packages() -> dict[str, Path]:
    """Return the folder of each package that adds an entry point, by ``distribution/package``."""
    folders = {}
    for group in sorted(entry_points().groups):
        for entry in every(group) if group.startswith(_PREFIX) else ():
            package = entry.module.partition(".")[0]
            spec = find_spec(package)
            if spec is not None and spec.submodule_search_locations:
                folders[f"{owner(entry)}/{package}"] = Path(spec.submodule_search_locations[0])
    return folders


def load(group: str, name: str) -> Any:
    """Import and return the object that the entry point ``name`` of ``group`` refers to.

    Raises ``KeyError`` if there is no such entry point, and :class:`UsageError`, naming the
    distribution and the reason, if it cannot be imported.
    """
    return imported(entries(group)[name])


def imported(entry: EntryPoint) -> Any:
    """Import and return the object that ``entry`` refers to; raise as :func:`load` does."""
    try:
        return entry.load()
    except RAISED as error:
        reason = f"{entry.value} cannot be imported ({type(error).__name__}: {error})"
        raise unusable(entry, reason) from error


def unusable(entry: EntryPoint, reason: str) -> UsageError:
    """Return the error to raise when ``entry`` cannot be used, for ``reason``."""
    distribution = owner(entry)
    problem = f"{distribution} adds {entry.name!r} to {entry.group}, but {reason}"
    return UsageError(f"{problem}: repair or uninstall {distribution}")


def owner(entry: EntryPoint) -> str:
    """Return the name of the distribution that an entry point belongs to."""
    return entry.dist.name if entry.dist is not None else "a distribution without a name"
