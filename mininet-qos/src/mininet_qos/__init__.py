"""Priorities for Mininet: hosts on VLANs, veths with many queues, links that behave like wires, and
switches that serve 802.1p levels.

:mod:`mininet_qos.commands` has the commands as data, and needs no Mininet. The other modules have
Mininet classes that run them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mininet_qos.commands import QosError

if TYPE_CHECKING:
    from mininet_qos.host import VLANHost
    from mininet_qos.link import ChildLink, QueuedLink, TbfLink, WireLink
    from mininet_qos.switch import PrioritySwitch

__version__ = "0.1.0"
__all__ = [
    "ChildLink",
    "PrioritySwitch",
    "QosError",
    "QueuedLink",
    "TbfLink",
    "VLANHost",
    "WireLink",
]

_MODULES = {"VLANHost": "host", "PrioritySwitch": "switch"}
_MODULES.update(dict.fromkeys(("ChildLink", "QueuedLink", "TbfLink", "WireLink"), "link"))


def __dir__() -> list[str]:
    """Return the public names, those that are not imported yet too."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a class on first use, so that the commands alone need no Mininet."""
    if name not in _MODULES:
        raise AttributeError(f"module 'mininet_qos' has no {name!r}")
    try:
        return getattr(importlib.import_module(f"mininet_qos.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "mininet":
            raise
        raise ImportError(
            f"mininet_qos.{name} needs Mininet, which pip does not have: apt install mininet, and "
            "use a Python that sees it (python3 -m venv --system-site-packages)"
        ) from None
