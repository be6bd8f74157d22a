"""What other installed packages add, found by the entry points of their distributions, and where a user's own
files lie.

A distribution adds a name to a group of ours (such as ``qjump_mn.figures``) in its ``pyproject.toml``::

    [project.entry-points."qjump_mn.figures"]
    ladder = "their_package.ladder:draw"

This module uses the standard library only, and imports nothing of an extension until :func:`load`.
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
"""What somebody else's module may raise: anything; and ``sys.exit`` in it is not ours to obey."""


def users_folders() -> list[Path]:
    """Where a user's own files are looked for, in this order: in folders such as ``experiments/`` of
    these."""
    named = [Path(folder) for folder in os.environ.get("QJUMP_MN_PATH", "").split(os.pathsep) if folder]
    return [*named, Path.cwd()]


def entries(group: str, ours: Collection[str] = ()) -> dict[str, EntryPoint]:
    """The entry points of ``group``, by name, sorted.

    Raises :class:`UsageError` where two distributions have the same name, or one has a name of ``ours``.
    """
    by_name: dict[str, EntryPoint] = {}
    for entry in every(group):
        distribution = owner(entry)
        if entry.name in ours:
            what = f"{distribution} adds {entry.name!r} to {group}, which qjump-mn has itself"
            raise UsageError(f"{what}: uninstall {distribution}")
        if entry.name in by_name:
            both = " and ".join(sorted((owner(by_name[entry.name]), distribution)))
            raise UsageError(f"{both} both add {entry.name!r} to {group}: uninstall one of them")
        by_name[entry.name] = entry
    return by_name


def every(group: str) -> list[EntryPoint]:
    """All entry points of ``group``, whatever their names, in an order that no file system decides."""
    return sorted(entry_points(group=group), key=lambda entry: (entry.name, owner(entry)))


def packages() -> dict[str, Path]:
    """The folder of each package that adds something to a group of ours, by its distribution and name."""
    found = {}
    for group in sorted(entry_points().groups):
        for entry in every(group) if group.startswith(_PREFIX) else ():
            package = entry.module.partition(".")[0]
            spec = find_spec(package)
            if spec is not None and spec.submodule_search_locations:
                found[f"{owner(entry)}/{package}"] = Path(spec.submodule_search_locations[0])
    return found


def load(group: str, name: str) -> Any:
    """What the entry point ``name`` of ``group`` stands for.

    Raises :class:`UsageError` with the distribution and the reason where it cannot be imported, and
    ``KeyError`` where there is none.
    """
    return imported(entries(group)[name])


def imported(entry: EntryPoint) -> Any:
    """What ``entry`` stands for; raise :class:`UsageError` as :func:`load` does."""
    try:
        return entry.load()
    except RAISED as error:
        reason = f"{entry.value} cannot be imported ({type(error).__name__}: {error})"
        raise unusable(entry, reason) from error


def unusable(entry: EntryPoint, reason: str) -> UsageError:
    """The error that ``entry`` cannot be used for a ``reason``."""
    distribution = owner(entry)
    what = f"{distribution} adds {entry.name!r} to {entry.group}, but {reason}"
    return UsageError(f"{what}: repair or uninstall {distribution}")


def owner(entry: EntryPoint) -> str:
    """The name of the distribution that an entry point is of."""
    return entry.dist.name if entry.dist is not None else "a distribution without a name"
