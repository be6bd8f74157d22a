"""The command line in a process of its own, as a user calls it, and a user's own experiments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

SAME = "the results are those of the reference run in the 1 trial that both have"
"""What a run of one arm says of its reference run."""


def qjump_mn(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command line; what it printed is shown if the test fails."""
    argv = [sys.executable, "-m", "qjump_mn.run", *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
    print(done.stdout, done.stderr)
    return done


def succeeds(*words: object, **options: Any) -> str:
    """Run a command line that must end well; return what it printed, both ways."""
    done = qjump_mn(*words, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def experiment(folder: Path, name: str, text: str) -> Path:
    """Write an experiment where `folder` as current folder, or in QJUMP_MN_PATH, has it found."""
    (folder / "experiments").mkdir()
    (folder / f"experiments/{name}.toml").write_text(text)
    return folder
