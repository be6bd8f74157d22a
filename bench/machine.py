"""What a benchmark says of the machine that it has run on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def told() -> str:
    """System, architecture, processor and how many there are."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "?",
    )
    return f"{platform.system()} {platform.machine()}, {model}, {os.cpu_count()} processors"
