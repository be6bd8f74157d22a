"""Find backends by name: those of qjump-mn, and those that other distributions add.

Listing names imports no backend. A backend is a class with the interface ``protocol.Backend``.
Other distributions add theirs as entry points of the group ``qjump_mn.backends``
(``qjump_mn.extensions``), under the class's ``name``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

from qjump_mn import extensions
from qjump_mn.backends.protocol import Backend
from qjump_mn.errors import UsageError
from qjump_mn.model import suggestions

GROUP = "qjump_mn.backends"
OURS = {
    "guest": "qjump_mn.backends.guest:GuestBackend",
    "host": "qjump_mn.backends.host:HostBackend",
    "simulator": "qjump_mn.backends.simulator:SimulatorBackend",
}
FACTS = ("name", "clock", "repeats_anywhere")
"""Attributes that a backend's class must have."""


def names() -> list[str]:
    """Return the names of all backends, sorted; raise :class:`UsageError` if two are the same."""
    return sorted([*OURS, *extensions.entries(GROUP, OURS)])


def check(backends: Iterable[str], where: str) -> None:
    """Raise :class:`UsageError`, naming ``where``, for the first name that is not a backend's."""
    valid = names()
    for name in backends:
        if name not in valid:
            raise UsageError(
                f"{where}: there is no backend {name!r}: {suggestions.nearest(name, valid)}"
            )


def make(name: str) -> Backend:
    """Return the backend ``name``; raise :class:`UsageError` if there is none that works."""
    check([name], "--backend")
    if name in OURS:
        backend_class: Any = EntryPoint(name, OURS[name], GROUP).load()
    else:
        backend_class = _load_extension(name)
    backend: Backend = backend_class()
    return backend


def _load_extension(name: str) -> Any:
    """Return another distribution's class; raise :class:`UsageError` if it is not that backend."""
    backend_class = extensions.load(GROUP, name)
    lacking = [fact for fact in FACTS if not hasattr(backend_class, fact)]
    if not lacking and backend_class.name == name:
        return backend_class
    distribution = extensions.owner(extensions.entries(GROUP)[name])
    if lacking:
        reason = f"has no attribute {' and '.join(lacking)}"
    else:
        reason = f"has the name {backend_class.name!r}"
    problem = f"{distribution} adds the backend {name!r}, which {reason}"
    raise UsageError(f"{problem}: repair or uninstall {distribution}")
