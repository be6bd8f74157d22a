"""Find link models by name: those of qjump-mn, and those that extensions add.

Extensions add them as entry points of the group ``qjump_mn.links``.
"""

from __future__ import annotations

import functools
import importlib

from qjump_mn import extensions
from qjump_mn.errors import UsageError
from qjump_mn.links.base import LinkModel
from qjump_mn.model import suggestions

GROUP = "qjump_mn.links"
OURS = {"wire": "Wire", "htb": "Htb", "tbf": "Tbf"}
"""The class in each module of this package that is a link model."""


def names() -> list[str]:
    """Return the names of all link models."""
    return [*OURS, *extensions.entries(GROUP, OURS)]


@functools.cache
def of(name: str, where: str = "link.model") -> LinkModel:
    """Return the link model called ``name``.

    Raises :class:`UsageError`, which names ``where``, if there is none, or if an extension's
    cannot be used.
    """
    if name in OURS:
        module = importlib.import_module(f"qjump_mn.links.{name}")
        model_class: type[LinkModel] = getattr(module, OURS[name])
        return model_class()
    if name not in names():
        raise UsageError(
            f"{where}: there is no link model {name!r}: {suggestions.nearest(name, names())}"
        )
    model = extensions.load(GROUP, name)()
    if not isinstance(model, LinkModel) or model.name != name:
        raise UsageError(
            f"the extension's link model {name!r} must be a subclass of LinkModel with that name "
            "(see qjump_mn/links/base.py)"
        )
    return model
