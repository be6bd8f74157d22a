"""The models of a link, by name: ours, and those that extensions add (entry points of the group
``qjump_mn.links``)."""

from __future__ import annotations

import functools
import importlib

from qjump_mn import extensions
from qjump_mn.errors import UsageError
from qjump_mn.links.base import LinkModel
from qjump_mn.model import suggestions

GROUP = "qjump_mn.links"
OURS = {"wire": "Wire", "htb": "Htb", "tbf": "Tbf"}
"""Modules of this package, and the class in each."""


def names() -> list[str]:
    """Every model there is."""
    return [*OURS, *extensions.entries(GROUP, OURS)]


@functools.cache
def of(name: str, where: str = "link.model") -> LinkModel:
    """The model called ``name``; raise :class:`UsageError`, with ``where``, if there is none, or an
    extension's cannot be imported."""
    if name in OURS:
        model: type[LinkModel] = getattr(importlib.import_module(f"qjump_mn.links.{name}"), OURS[name])
        return model()
    if name not in names():
        raise UsageError(f"{where}: there is no link model {name!r}: {suggestions.nearest(name, names())}")
    made = extensions.load(GROUP, name)()
    if not isinstance(made, LinkModel) or made.name != name:
        raise UsageError(
            f"the extension's link model {name!r} is no LinkModel of that name (see qjump_mn/links/base.py)"
        )
    return made
