"""Print the progress of a simulated trial on standard error, for the harness to show."""

from __future__ import annotations

import sys

import qjump_sim
from qjump_mn.backends.protocol import SIMULATED


def line(progress: qjump_sim.Progress) -> str:
    """Return a line such as `42 %, 34.500 ms simulated, 37 s left`. The harness adds the elapsed
    time.
    """
    share = f"{100 * progress.share:.0f} %, " if progress.share else ""
    left = "" if progress.left is None else f", {progress.left:.0f} s left"
    return f"{share}{progress.now / qjump_sim.MS:.3f} ms simulated{left}"


def show(progress: qjump_sim.Progress) -> None:
    """Print the line with the prefix that the harness looks for."""
    print(f"{SIMULATED}{line(progress)}", file=sys.stderr, flush=True)
