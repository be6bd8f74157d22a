"""Whether the network of a trial, as its files have it, is the network that was planned."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.model.plan import ArmPlan
from qjump_mn.steps import asbuilt, readback

_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What comparing raises for a file that is damaged, or is JSON of another shape."""


def differences(folder: Path, arm: ArmPlan) -> list[str]:
    """How the network that was read back into a trial's ``folder`` differs from the one planned for its arm,
    a sentence each. A file that is missing or cannot be read is a difference."""
    files = dict.fromkeys(step.output for step in readback.built(arm))
    if missing := [name for name in files if not _is_filled(folder / name)]:
        return [f"{name} is missing or empty" for name in missing]
    try:
        return asbuilt.differences(folder / readback.BEFORE, arm)
    except _UNREADABLE as error:
        return [f"{readback.BEFORE} cannot be compared with the plan: {type(error).__name__}: {error}"]


def _is_filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
