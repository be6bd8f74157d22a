"""Resolve an experiment to a plan: look up every name, fill in every default, check every
number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qjump_mn.resolve.planning import plan as plan


def __getattr__(name: str) -> Any:
    """Import :func:`~qjump_mn.resolve.planning.plan` on first use: commands that make no plan need
    only :mod:`~qjump_mn.resolve.loading`, and start faster."""
    if name != "plan":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from qjump_mn.resolve.planning import plan

    return plan
