"""Reproduce, teach and extend datacenter-QoS research: QJump (NSDI'15) in Mininet.

``from qjump_mn import Run, run`` are those of :mod:`qjump_mn.api`.
"""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What a notebook needs, which is loaded when it is asked for. ``qjump_mn.run`` is the command line where
    somebody has imported that module, as this package itself does nowhere but in commands."""
    if name not in ("Run", "run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from qjump_mn import api

    return getattr(api, name)
