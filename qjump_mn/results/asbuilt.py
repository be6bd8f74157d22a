"""Compare the network that a trial built, as read back into its files, with the planned one."""

from __future__ import annotations

from pathlib import Path

from qjump_mn.model.plan import ArmPlan
from qjump_mn.steps import asbuilt, readback

_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What the comparison raises for a damaged file, or for JSON of another shape."""


def differences(folder: Path, arm: ArmPlan) -> list[str]:
    """Return the differences between the network read back into ``folder`` and the arm's plan.

    Each is one sentence. A missing or unreadable file is a difference.
    """
    files = dict.fromkeys(step.output for step in readback.built(arm))
    if missing := [name for name in files if not _is_filled(folder / name)]:
        return [f"{name} is missing or empty" for name in missing]
    try:
        return asbuilt.differences(folder / readback.BEFORE, arm)
    except _UNREADABLE as error:
        return [
            f"{readback.BEFORE} cannot be compared with the plan: {type(error).__name__}: {error}"
        ]


def _is_filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
