"""Short runs of Figure 9, by the command line."""

from __future__ import annotations

import sys
from pathlib import Path

ARMS = ("search_dctcp", "search_qjump", "mining_pfabric")
TRIALS = 9
"""Three arms at three loads."""


def figure_9(mining: int) -> tuple[str, ...]:
    """The arguments; ``mining`` is the number of flows of data mining, which are the longer
    ones."""
    settings = ("-s", "workloads.search.count=60", "-s", f"workloads.mining.count={mining}")
    return ("fig9", "--preset", "smoke", *settings, "--arms", ",".join(ARMS))


def command(out: Path, *arguments: str) -> list[str]:
    """The command line of a run."""
    return [sys.executable, "-m", "qjump_mn.run", *arguments, "--out", str(out)]
