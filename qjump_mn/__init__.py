"""Reproduce, teach and extend datacenter-QoS research: QJump (NSDI'15) in Mininet.

In Python and notebooks use ``from qjump_mn import Run, run``: see :mod:`qjump_mn.api`.
"""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import ``Run`` and ``run`` from :mod:`qjump_mn.api` on first use, so that commands start
    fast.

    If the module ``qjump_mn.run`` was imported before, ``run`` is that module; only the command
    line imports it.
    """
    if name not in ("Run", "run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from qjump_mn import api

    return getattr(api, name)
