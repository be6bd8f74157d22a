"""The backends there are: ours, and those that other distributions add; to list them imports none.

A backend is a class after ``protocol.Backend``. Other distributions add theirs as entry points of the group
``qjump_mn.backends`` (``qjump_mn.extensions``), under the name that the class has.
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
"""What a class says of itself before there is one of it."""


def names() -> list[str]:
    """The backends there are, sorted; raise :class:`UsageError` where two have one name."""
    return sorted([*OURS, *extensions.entries(GROUP, OURS)])


def check(backends: Iterable[str], where: str) -> None:
    """Raise :class:`UsageError` with ``where`` for the first of ``backends`` that is no backend."""
    known = names()
    for name in backends:
        if name not in known:
            raise UsageError(f"{where}: there is no backend {name!r}: {suggestions.nearest(name, known)}")


def make(name: str) -> Backend:
    """The backend ``name``; raise :class:`UsageError` if there is none that works."""
    check([name], "--backend")
    backend: Any = EntryPoint(name, OURS[name], GROUP).load() if name in OURS else _added(name)
    made: Backend = backend()
    return made


def _added(name: str) -> Any:
    """The class another distribution adds; raise :class:`UsageError` if it is no backend of that name."""
    backend = extensions.load(GROUP, name)
    lacking = [fact for fact in FACTS if not hasattr(backend, fact)]
    if not lacking and backend.name == name:
        return backend
    distribution = extensions.owner(extensions.entries(GROUP)[name])
    reason = f"does not say its {' and '.join(lacking)}" if lacking else f"calls itself {backend.name!r}"
    raise UsageError(
        f"{distribution} adds the backend {name!r}, which {reason}: repair or uninstall {distribution}"
    )
