"""How far a trial has come: what its process says on standard error while it runs, for the harness's line."""

from __future__ import annotations

import sys

import qjump_sim
from qjump_mn.backends.protocol import SIMULATED


def line(progress: qjump_sim.Progress) -> str:
    """Such as `42 %, 34.500 ms simulated, 37 s left`; the harness itself says how long it has taken."""
    share = f"{100 * progress.share:.0f} %, " if progress.share else ""
    left = "" if progress.left is None else f", {progress.left:.0f} s left"
    return f"{share}{progress.now / qjump_sim.MS:.3f} ms simulated{left}"


def show(progress: qjump_sim.Progress) -> None:
    """Say it to the harness."""
    print(f"{SIMULATED}{line(progress)}", file=sys.stderr, flush=True)
