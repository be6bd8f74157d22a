"""Programs in processes of their own: any, Python code, and the command line of this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import qjump_mn

CHECKOUT = Path(qjump_mn.__file__).parents[1]


def execute(argv: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with nothing on its input and its output as text.

    ``options`` are those of `subprocess.run`.
    """
    given = {} if "input" in options else {"stdin": subprocess.DEVNULL}
    return subprocess.run(argv, **{"capture_output": True, "text": True, **given, **options})


def cli(
    *words: str | Path, cwd: str | Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run ``qjump-mn`` with these words and environment variables."""
    argv = [sys.executable, "-P", "-m", "qjump_mn.run", *words]
    return execute(argv, cwd=cwd, env={**os.environ, **variables})


def printed(code: str) -> str:
    """What Python code prints, run in the checkout; it must end well."""
    return execute([sys.executable, "-c", code], cwd=CHECKOUT, check=True).stdout
