"""Describe the machine that a benchmark ran on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def description() -> str:
    """Return system, architecture, processor and number of processors."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "?",
    )
    return f"{platform.system()} {platform.machine()}, {model}, {os.cpu_count()} processors"
