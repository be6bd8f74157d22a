"""Links of mininet-qos that stand for Mininet's TCLink in scripts that are not changed."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from . import ports

_CLASSES = {"qjwire": "WireLink", "qjtbf": "TbfLink", "qjtc": "ChildLink"}
_UNSHAPED_MBIT = 10_000


def stand_for_tclink(link: ModuleType, name: str) -> None:
    """Make TCLink of Mininet's module ``link`` the class called ``name``.

    A link without ``bw`` gets 10 Gb/s, because a wire has a rate. ``max_queue_size``, in packets,
    becomes a buffer of as many full frames.
    """
    import mininet_qos

    base: Any = getattr(mininet_qos, _CLASSES[name])

    class TCLink(base):  # type: ignore[misc]
        """Takes the parameters of Mininet's TCLink."""

        def __init__(self, *nodes: Any, **params: Any) -> None:
            size = params.pop("max_queue_size", None)
            if size:
                params["buffer"] = int(size) * mininet_qos.commands.FULL
            params.setdefault("bw", _UNSHAPED_MBIT)
            for unused in ("use_htb", "fast"):
                params.pop(unused, None)
            super().__init__(*nodes, **params)

    ports.tell(f"TCLink is {_CLASSES[name]} of mininet-qos here")
    link.TCLink = TCLink  # type: ignore[attr-defined]
