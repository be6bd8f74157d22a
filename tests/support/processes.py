"""Python in a process of its own, for what the process of the tests cannot show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import qjump_mn


def printed(code: str) -> str:
    """What ``code`` prints, run in the checkout; it must end well."""
    argv, folder = [sys.executable, "-c", code], Path(qjump_mn.__file__).parents[1]
    return subprocess.run(argv, capture_output=True, text=True, check=True, cwd=folder).stdout
